//! Merges our `onMetaData` with a broadcaster's, and reads what a broadcaster adds to the connect command. Pure.

use bytes::Bytes;

use crate::amf_value::Value;
use crate::amf0::Reader;
use crate::message::encode_data;

const ON_METADATA: &str = "onMetaData";

/// Properties of the single object or ECMA array in `bytes`; empty for anything else.
pub(crate) fn read_properties(bytes: &[u8]) -> Vec<(Vec<u8>, Value)> {
    match Reader::new(bytes).value() {
        Ok(Value::Object(properties) | Value::EcmaArray(properties)) => properties,
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The encoded value after `onMetaData` in a data message's payload; `None` for any other message.
#[must_use]
pub fn read_metadata(payload: &Bytes) -> Option<Bytes> {
    let value = payload.strip_prefix(b"\x02\x00\x0aonMetaData")?;
    Some(payload.slice_ref(value))
}

/// `onMetaData` with these numbers, followed by those properties of `custom` (an AMF0 object, or empty) that have other
/// names.
#[must_use]
pub fn encode_metadata_with(entries: &[(&str, f64)], custom: &[u8]) -> Bytes {
    let number = |(name, value): &(&str, f64)| (name.as_bytes().to_vec(), Value::Number(*value));
    let mut properties: Vec<_> = entries.iter().map(number).collect();
    let further = read_properties(custom);
    properties.extend(
        further.into_iter().filter(|(name, _)| {
            entries.iter().all(|(known, _)| known.as_bytes() != name.as_slice())
        }),
    );
    encode_data(&[Value::string(ON_METADATA), Value::EcmaArray(properties)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode_metadata;

    #[test]
    fn metadata_of_a_broadcaster_is_merged_into_ours_and_never_replaces_it() {
        let custom = encode_metadata(&[("width", 1.0), ("scene", 7.0)]);
        let custom = read_metadata(&custom).expect("metadata");
        let joined = encode_metadata_with(&[("width", 640.0)], &custom);
        let properties = read_properties(&read_metadata(&joined).expect("metadata"));
        let expected = [("width", 640.0), ("scene", 7.0)];
        let expected =
            expected.map(|(name, value)| (name.as_bytes().to_vec(), Value::Number(value)));
        assert_eq!(properties, expected);
    }

    #[test]
    fn absent_and_malformed_metadata_adds_nothing() {
        for custom in [&[][..], &[2, 0, 1], &[3, 0, 5, b'a']] {
            assert_eq!(
                encode_metadata_with(&[("width", 1.0)], custom),
                encode_metadata(&[("width", 1.0)])
            );
        }
        assert_eq!(read_metadata(&Bytes::from_static(b"\x02\x00\x0aonCuePoint")), None);
    }
}
