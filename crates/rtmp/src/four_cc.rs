//! Which codecs a peer takes by Enhanced RTMP: v1's list and the keys of v2's maps ("fourCcList").

use crate::amf0::Value;

/// Codecs we take and give by Enhanced RTMP, as said in connect and its answer.
pub const OUR_FOUR_CCS: [&str; 6] = ["avc1", "hvc1", "av01", "vp09", "mp4a", "Opus"];
/// Entries of a peer's list that are read.
const FOUR_CC_LIMIT: usize = 32;

/// What a peer's connect object says it can take: E-RTMP v1's list and the keys of v2's maps.
pub(crate) fn read_four_cc_list(object: &Value) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(Value::StrictArray(values)) = object.property("fourCcList") {
        list.extend(values.iter().filter_map(Value::as_text));
    }
    for map in ["videoFourCcInfoMap", "audioFourCcInfoMap"] {
        if let Some(Value::Object(entries) | Value::EcmaArray(entries)) = object.property(map) {
            let names = entries.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned());
            list.extend(names);
        }
    }
    list.truncate(FOUR_CC_LIMIT);
    list
}
