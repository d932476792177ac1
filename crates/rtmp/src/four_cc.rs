//! Which codecs a peer supports by Enhanced RTMP, and the capabilities in our answer to connect (E-RTMP, "Enhancing
//! NetConnection connect Command").

use crate::amf_value::Value;

/// Codecs we accept and send by Enhanced RTMP, as announced in connect and in its answer.
pub const OUR_FOUR_CCS: [&str; 6] = ["avc1", "hvc1", "av01", "vp09", "mp4a", "Opus"];
/// Entries read from a peer's list.
const FOUR_CC_LIMIT: usize = 32;

const VIDEO_MAP: &str = "videoFourCcInfoMap";
const AUDIO_MAP: &str = "audioFourCcInfoMap";

/// FourCcInfoMask.
const CAN_DECODE: u8 = 1;
const CAN_ENCODE: u8 = 2;
const CAN_FORWARD: u8 = 4;
/// Video is forwarded unchanged.
const OUR_VIDEO: [(&str, u8); 4] =
    [("avc1", CAN_FORWARD), ("hvc1", CAN_FORWARD), ("av01", CAN_FORWARD), ("vp09", CAN_FORWARD)];
/// Opus is transcoded to AAC for subscribers that do not accept it, never the reverse.
const OUR_AUDIO: [(&str, u8); 2] =
    [("mp4a", CAN_ENCODE | CAN_FORWARD), ("Opus", CAN_DECODE | CAN_FORWARD)];

/// CapsExMask: Reconnect (1), which we request from publishers; Multitrack (2), of which the first track is forwarded;
/// and ModEx (4). Not TimestampNanoOffset (8): RTMP does not carry nanoseconds further.
const OUR_CAPS_EX: u8 = 1 | 2 | 4;

/// The codecs that a peer's connect object declares as supported: E-RTMP v1's list and v2's maps.
pub(crate) fn read_four_cc_list(object: &Value) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(Value::StrictArray(values)) = object.property("fourCcList") {
        list.extend(values.iter().filter_map(Value::as_text));
    }
    for map in [VIDEO_MAP, AUDIO_MAP] {
        if let Some(Value::Object(entries) | Value::EcmaArray(entries)) = object.property(map) {
            let taken = entries.iter().filter(|(_, mask)| takes(mask));
            for (key, _) in taken {
                let four_cc = String::from_utf8_lossy(key).into_owned();
                // Clients may list the same codec in both forms.
                if list.len() < FOUR_CC_LIMIT && !list.contains(&four_cc) {
                    list.push(four_cc);
                }
            }
        }
    }
    list.truncate(FOUR_CC_LIMIT);
    list
}

/// The codec fields of our answer to this connect object: v1's list for every peer, the rest for peers that know v2.
pub(crate) fn answer_capabilities(object: &Value) -> Vec<(Vec<u8>, Value)> {
    let ours = OUR_FOUR_CCS.iter().map(|four_cc| Value::string(four_cc)).collect();
    let mut answer = vec![(b"fourCcList".to_vec(), Value::StrictArray(ours))];
    if knows_v2(object) {
        answer.push((b"capsEx".to_vec(), Value::Number(OUR_CAPS_EX.into())));
        for (name, map) in [(VIDEO_MAP, &OUR_VIDEO[..]), (AUDIO_MAP, &OUR_AUDIO[..])] {
            let entry = |(four_cc, mask): &(&str, u8)| {
                (four_cc.as_bytes().to_vec(), Value::Number((*mask).into()))
            };
            answer.push((name.into(), Value::Object(map.iter().map(entry).collect())));
        }
    }
    answer
}

/// Whether the mask includes decoding or forwarding; encoding alone is not enough. A value that is not a mask counts as
/// all.
fn takes(mask: &Value) -> bool {
    // A cast from float saturates; the mask has three bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    mask.as_number().is_none_or(|mask| mask as u32 & u32::from(CAN_DECODE | CAN_FORWARD) != 0)
}

fn knows_v2(object: &Value) -> bool {
    let is_map =
        |name| matches!(object.property(name), Some(Value::Object(_) | Value::EcmaArray(_)));
    object.property("capsEx").and_then(Value::as_number).is_some()
        || is_map(VIDEO_MAP)
        || is_map(AUDIO_MAP)
}
