//! Publishes on their way to this worker: their connections were accepted by another one, and their streams live here.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::message::{Message, Opening};
use crate::publish::end_reason::EndReason;
use crate::publish::record::StreamId;
use crate::session::rtmp_server::RtmpServer;

/// A move takes as long as a message does; after this one has failed.
const LIMIT: Duration = Duration::from_secs(10);

/// An allowed broadcaster whose session moves to the worker of its stream. The reactor moves its socket.
pub(crate) struct MovedPublish {
    pub(super) server: Box<RtmpServer>,
    pub(super) opening: Opening,
}

impl MovedPublish {
    /// The publish that opens with it.
    pub(crate) fn stream(&self) -> StreamId {
        self.opening.guard.record().stream
    }

    /// It arrives nowhere: its publish ends.
    pub(crate) fn refuse(mut self, reason: EndReason) {
        self.opening.guard.set_reason(reason);
    }
}

struct Expected {
    since: Instant,
    /// What concerns it and came first.
    messages: Vec<Message>,
}

/// The publishes that are expected.
#[derive(Default)]
pub(super) struct ExpectedPublishes {
    expected: FxHashMap<StreamId, Expected>,
}

impl ExpectedPublishes {
    /// Messages about this publish wait until it has arrived.
    pub(super) fn expect(&mut self, stream: StreamId, now: Instant) {
        self.expected.retain(|_, expected| now < expected.since + LIMIT);
        self.expected.insert(stream, Expected { since: now, messages: Vec::new() });
    }

    /// Keeps a message about a publish that is expected; returns any other.
    pub(super) fn keep(&mut self, message: Message) -> Option<Message> {
        if self.expected.is_empty() {
            return Some(message);
        }
        match message.about().and_then(|stream| self.expected.get_mut(&stream)) {
            Some(expected) => {
                expected.messages.push(message);
                None
            }
            None => Some(message),
        }
    }

    /// The publish has arrived, or will not come: the messages about it, oldest first.
    pub(super) fn take(&mut self, stream: StreamId) -> Vec<Message> {
        self.expected.remove(&stream).map_or_else(Vec::new, |expected| expected.messages)
    }
}
