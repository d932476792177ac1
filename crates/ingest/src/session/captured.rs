//! What an RTMP session notes for a capture: its input and what came of it. Of a connection that may be captured from its
//! first byte, what it sends before its publish is allowed is kept meanwhile. Pure.

use std::time::Instant;

use headgate_capture::Kind;
use headgate_media::Frame;

use crate::publish::capture::Tap;
use crate::publish::end_reason::EndReason;
use crate::publish::record::PublishRecord;

/// Handshake and commands; what is longer is captured from mid-publish on, if at all.
const EARLY_LIMIT_BYTES: usize = 32 << 10;

/// A session's tap, and what it may need.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    tap: Tap,
    /// Before the decision: what came, and when. `None`: nobody will ask for it.
    early: Option<Vec<(Kind, Instant, Vec<u8>)>>,
    early_bytes: usize,
    /// Waits for the session to stand between two messages.
    next: Tap,
}

impl Captured {
    /// `keeps_early`: the publish may be captured from its first byte.
    pub(crate) fn new(keeps_early: bool) -> Self {
        Self { early: keeps_early.then(Vec::new), ..Self::default() }
    }

    /// Bytes came.
    pub(crate) fn input(&mut self, input: &[u8], now: Instant) {
        self.tap.put(Kind::Input, now, || input.to_vec());
        if let Some(early) = &mut self.early {
            self.early_bytes += input.len();
            early.push((Kind::Input, now, input.to_vec()));
            if self.early_bytes > EARLY_LIMIT_BYTES {
                self.early = None;
            }
        }
    }

    /// Something happened that the session was told.
    pub(crate) fn mark(&mut self, kind: Kind, now: Instant) {
        self.tap.put(kind, now, Vec::new);
        if let Some(early) = &mut self.early {
            early.push((kind, now, Vec::new()));
        }
    }

    /// The publish goes live: its capture begins, if it is to have one, with the connection.
    pub(crate) fn allow(&mut self, record: &PublishRecord, now: Instant) {
        let early = self.early.take();
        let mut tap = record.take_capture();
        for (kind, at, body) in early.into_iter().flatten() {
            tap.put(kind, at, || body);
        }
        tap.put(Kind::Allowed, now, Vec::new);
        self.tap = tap;
    }

    /// The connection is no publish.
    pub(crate) fn forget(&mut self) {
        self.early = None;
    }

    /// A capture of the running publish begins at the next boundary. One at a time: false, and the tap is dropped.
    pub(crate) fn begin_next(&mut self, tap: Tap) -> bool {
        let is_free = !self.tap.is_on() && !self.next.is_on();
        if is_free {
            self.next = tap;
        }
        is_free
    }

    /// That boundary is here: what the session knows, and the input behind it.
    pub(crate) fn begin(&mut self, state: &[u8], input: &[u8], now: Instant) {
        self.tap = std::mem::take(&mut self.next);
        self.tap.put(Kind::State, now, || state.to_vec());
        self.tap.put(Kind::Input, now, || input.to_vec());
    }

    /// A frame is handed on.
    pub(crate) fn frame(&mut self, frame: &Frame, now: Instant) {
        self.tap.frame(frame, now);
    }

    /// The publish ends; `is_ordered`: not because of what arrived.
    pub(crate) fn end(&mut self, reason: EndReason, is_ordered: bool, now: Instant) {
        self.tap.end(reason.code(), is_ordered, now);
    }
}
