//! The meaning of messages: commands, control messages, media.

use bytes::{Buf, Bytes};

use crate::amf_value::Value;
use crate::amf0::{Reader, write};

// Message types (RTMP 5.4, 6.2, 7.1).
pub(crate) const SET_CHUNK_SIZE: u8 = 1;
pub(crate) const ABORT: u8 = 2;
pub(crate) const ACKNOWLEDGEMENT: u8 = 3;
pub(crate) const USER_CONTROL: u8 = 4;
pub(crate) const WINDOW_ACK_SIZE: u8 = 5;
pub(crate) const SET_PEER_BANDWIDTH: u8 = 6;
pub(crate) const AUDIO: u8 = 8;
pub(crate) const VIDEO: u8 = 9;
pub(crate) const DATA_AMF3: u8 = 15;
pub(crate) const COMMAND_AMF3: u8 = 17;
pub(crate) const DATA_AMF0: u8 = 18;
pub(crate) const COMMAND_AMF0: u8 = 20;
pub(crate) const AGGREGATE: u8 = 22;

// User control events (RTMP 7.1.7).
pub(crate) const STREAM_BEGIN: u16 = 0;
pub(crate) const STREAM_EOF: u16 = 1;
pub(crate) const PING_REQUEST: u16 = 6;
pub(crate) const PING_RESPONSE: u16 = 7;

/// Arguments read from one command; further ones are ignored.
const ARGUMENTS_LIMIT: usize = 16;
/// `@setDataFrame` as an AMF0 string: an encoder puts it before metadata that the server should keep.
pub(crate) const SET_DATA_FRAME: &[u8] = b"\x02\x00\x0d@setDataFrame";

/// The content of a media message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An FLV audio tag body.
    Audio,
    /// An FLV video tag body.
    Video,
    /// AMF0 script data, without `@setDataFrame`.
    Script,
}

impl MediaKind {
    pub(crate) const fn message_type(self) -> u8 {
        match self {
            Self::Audio => AUDIO,
            Self::Video => VIDEO,
            Self::Script => DATA_AMF0,
        }
    }
}

/// One media message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaMessage {
    /// The content of the message.
    pub kind: MediaKind,
    /// Milliseconds modulo 2^32, as on the wire.
    pub timestamp: u32,
    /// The tag body.
    pub payload: Bytes,
}

/// A command (RTMP 7.1.1): name, transaction id, command object, arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) transaction: f64,
    pub(crate) object: Value,
    pub(crate) arguments: Vec<Value>,
    /// Something in it could not be read as it is.
    pub(crate) is_odd: bool,
}

impl Command {
    /// Parses the AMF0 of a command message as far as it can be read; `None` without a name.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        // An AMF3 command is a format byte followed, from every known peer, by AMF0 (RTMP 7.1.1). Some omit the byte,
        // others send it with AMF0 commands. No name begins with a zero.
        let amf0 = payload.strip_prefix(&[0]).unwrap_or(payload);
        let mut reader = Reader::new(amf0);
        let name = reader.value().ok()?.as_text()?;
        let mut values =
            std::iter::from_fn(|| (!reader.is_empty()).then(|| reader.value().ok()).flatten());
        let transaction = values.next().and_then(|value| value.as_number()).unwrap_or(0.0);
        let object = values.next().unwrap_or(Value::Undefined);
        let arguments = values.take(ARGUMENTS_LIMIT).collect();
        Some(Self { name, transaction, object, arguments, is_odd: reader.is_odd() })
    }

    /// The AMF0 of a command message.
    pub(crate) fn encode(name: &str, transaction: f64, values: &[Value]) -> Bytes {
        let mut out = Vec::new();
        write(&mut out, &Value::string(name));
        write(&mut out, &Value::Number(transaction));
        for value in values {
            write(&mut out, value);
        }
        out.into()
    }
}

/// An onStatus info object (RTMP 7.2.2).
pub(crate) fn status(level: &str, code: &str, description: &str) -> Value {
    Value::object([
        ("level", Value::string(level)),
        ("code", Value::string(code)),
        ("description", Value::string(description)),
    ])
}

/// The AMF0 of a script data message: the values in sequence.
pub(crate) fn encode_data(values: &[Value]) -> Bytes {
    let mut out = Vec::new();
    for value in values {
        write(&mut out, value);
    }
    out.into()
}

/// `onMetaData` with these numbers, as the payload of a script data message.
#[must_use]
pub fn encode_metadata(entries: &[(&str, f64)]) -> Bytes {
    let number = |(name, value): &(&str, f64)| (name.as_bytes().to_vec(), Value::Number(*value));
    let entries = Value::EcmaArray(entries.iter().map(number).collect());
    encode_data(&[Value::string("onMetaData"), entries])
}

/// Script data without the prefixes used on the wire: the format byte of type 15, and `@setDataFrame`.
pub(crate) fn normalise_data(mut payload: Bytes) -> Bytes {
    // No name begins with a zero.
    if payload.first() == Some(&0) {
        payload.advance(1);
    }
    if payload.starts_with(SET_DATA_FRAME) {
        payload.advance(SET_DATA_FRAME.len());
    }
    payload
}
