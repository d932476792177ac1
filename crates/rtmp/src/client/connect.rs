//! The connect command's object (RTMP 7.2.1.1, E-RTMP "Enhancing NetConnection connect Command").

use super::{ClientConfig, ClientRole};
use crate::amf_value::Value;
use crate::metadata::read_properties;

const VIDEO_FOUR_CCS: [&str; 6] = ["vp08", "vp09", "av01", "avc1", "hvc1", "vvc1"];
const AUDIO_FOUR_CCS: [&str; 6] = ["ac-3", "ec-3", "Opus", ".mp3", "fLaC", "mp4a"];
/// Wildcard for every codec.
const ANY: &str = "*";

pub(super) fn connect_object(config: &ClientConfig) -> Value {
    let further = |text: &str| Value::string(&config.arguments.append_to(text));
    let mut properties = vec![
        ("app", further(&config.app)),
        ("type", Value::string("nonprivate")),
        ("flashVer", Value::string("FMLE/3.0 (compatible; Headgate)")),
        ("tcUrl", further(&config.tc_url)),
    ];
    if !config.four_cc_list.is_empty() {
        let list = config.four_cc_list.iter().map(|four_cc| Value::string(four_cc));
        properties.push(("fourCcList", Value::StrictArray(list.collect())));
        properties.push(("videoFourCcInfoMap", info_map(config, &VIDEO_FOUR_CCS)));
        properties.push(("audioFourCcInfoMap", info_map(config, &AUDIO_FOUR_CCS)));
    }
    let owned = |(key, value): (&str, Value)| (key.as_bytes().to_vec(), value);
    let mut properties: Vec<_> = properties.into_iter().map(owned).collect();
    for (key, value) in read_properties(&config.connect_info) {
        if properties.iter().all(|(known, _)| !known.eq_ignore_ascii_case(&key)) {
            properties.push((key, value));
        }
    }
    Value::Object(properties)
}

/// Those of our codecs that are in `among`, each with what we do with it.
fn info_map(config: &ClientConfig, among: &[&str]) -> Value {
    // FourCcInfoMask: CanDecode 1, CanForward 4; encoding is irrelevant here.
    let mask = match config.role {
        ClientRole::Publish => 4.0,
        ClientRole::Play => 1.0,
    };
    let is_among = |four_cc: &&String| *four_cc == ANY || among.contains(&four_cc.as_str());
    let ours = config.four_cc_list.iter().filter(is_among);
    let entry = |four_cc: &String| (four_cc.as_bytes().to_vec(), Value::Number(mask));
    Value::Object(ours.map(entry).collect())
}
