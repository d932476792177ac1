//! Script data of a publisher: it is passed on as it came if every reader can read it, otherwise what can be read is
//! written again. Pure.

use bytes::Bytes;

use crate::amf_value::Value;
use crate::amf0::Reader;
use crate::message::encode_data;

/// What a script data message contains.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScriptData {
    /// AMF0 throughout.
    Sound,
    /// What could be read of it, in AMF0.
    Repaired(Bytes),
    /// Not even its name, or metadata without any.
    Unreadable,
}

/// Reads the values of a message without its prefixes.
pub(crate) fn read_script_data(payload: &[u8]) -> ScriptData {
    let mut reader = Reader::new(payload);
    let mut values = Vec::new();
    while !reader.is_empty() {
        values.extend(reader.value().ok());
    }
    let name = values.first();
    let is_object = |value: &Value| matches!(value, Value::Object(_) | Value::EcmaArray(_));
    if name == Some(&Value::string("onMetaData")) && !values.get(1).is_some_and(is_object) {
        // Servers refuse it, and it would replace what is kept.
        return ScriptData::Unreadable;
    }
    match name {
        Some(Value::String(_)) if !reader.is_odd() => ScriptData::Sound,
        Some(Value::String(_)) => ScriptData::Repaired(encode_data(&values)),
        Some(_) | None => ScriptData::Unreadable,
    }
}
