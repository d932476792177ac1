//! An aggregate message, and the messages within it one by one (RTMP 7.1.6).

use bytes::{Buf, Bytes};

use crate::message::{AUDIO, DATA_AMF0, DATA_AMF3, MediaKind, MediaMessage, VIDEO, normalise_data};

/// Type, size, time, time extension, message stream id.
const HEADER: usize = 11;
/// The length of each message is repeated after it.
const BACK_POINTER: usize = 4;

/// What is left of an aggregate.
#[derive(Debug, Default)]
pub(crate) struct Aggregate {
    timestamp: u32,
    /// What is added to the times of the messages: they are relative to the first of them.
    offset: Option<u32>,
    rest: Bytes,
}

/// A message of an aggregate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Media(MediaMessage),
    /// Of a type that does not belong here; it is ignored.
    Other,
    /// It is longer than what is left of the aggregate, which ends here.
    Cut,
}

impl Aggregate {
    pub(crate) const fn new(timestamp: u32, payload: Bytes) -> Self {
        Self { timestamp, offset: None, rest: payload }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next message; `None` at the end. A remainder that is too short for a message is ignored.
    pub(crate) fn next(&mut self) -> Option<Part> {
        let &[kind, l0, l1, l2, t0, t1, t2, t3, ..] = &self.rest[..] else {
            self.rest.clear();
            return None;
        };
        if self.rest.len() <= HEADER {
            self.rest.clear();
            return None;
        }
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let time = u32::from_be_bytes([t3, t0, t1, t2]);
        self.rest.advance(HEADER);
        if length > self.rest.len() {
            self.rest.clear();
            return Some(Part::Cut);
        }
        let body = self.rest.split_to(length);
        self.rest.advance(BACK_POINTER.min(self.rest.len()));
        let timestamp = self.timestamp;
        let offset = *self.offset.get_or_insert_with(|| timestamp.wrapping_sub(time));
        let timestamp = time.wrapping_add(offset);
        let (kind, payload) = match kind {
            AUDIO => (MediaKind::Audio, body),
            VIDEO => (MediaKind::Video, body),
            DATA_AMF0 | DATA_AMF3 => (MediaKind::Script, normalise_data(body)),
            _ => return Some(Part::Other),
        };
        Some(Part::Media(MediaMessage { kind, timestamp, payload }))
    }
}
