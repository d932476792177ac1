//! What an RTMP session records for a capture: its input and the resulting frames. If a connection may be captured from
//! its first byte, its input is kept until its publish is allowed. Pure.

use std::time::Instant;

use headgate_capture::Kind;
use headgate_media::Frame;

use crate::publish::capture::Tap;
use crate::publish::end_reason::EndReason;
use crate::publish::record::PublishRecord;

/// Limit of the start of a connection that is kept: handshake, commands, and what clients send without waiting for an
/// answer. A longer start is dropped, and its publish cannot be captured from the first byte.
const EARLY_LIMIT_BYTES: usize = 160 << 10;

/// A session's capture tap and the input kept for it.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    tap: Tap,
    /// Input before the decision, with its arrival times; `None` if it is not needed.
    early: Option<Vec<(Kind, Instant, Vec<u8>)>>,
    early_bytes: usize,
    /// The start was longer than the limit.
    has_lost_start: bool,
    /// A tap that starts at the next boundary between two messages.
    next: Tap,
}

impl Captured {
    /// `keeps_early`: whether the publish may be captured from its first byte.
    pub(crate) fn new(keeps_early: bool) -> Self {
        Self { early: keeps_early.then(Vec::new), ..Self::default() }
    }

    /// Records received bytes.
    pub(crate) fn input(&mut self, input: &[u8], now: Instant) {
        self.tap.put(Kind::Input, now, || input.to_vec());
        if let Some(early) = &mut self.early {
            self.early_bytes += input.len();
            early.push((Kind::Input, now, input.to_vec()));
            if self.early_bytes > EARLY_LIMIT_BYTES {
                self.early = None;
                self.has_lost_start = true;
            }
        }
    }

    /// Records an event that the session was notified of.
    pub(crate) fn mark(&mut self, kind: Kind, now: Instant) {
        self.tap.put(kind, now, Vec::new);
        if let Some(early) = &mut self.early {
            early.push((kind, now, Vec::new()));
        }
    }

    /// The publish goes live: its capture, if it has one, begins with the kept start of the connection.
    pub(crate) fn allow(&mut self, record: &PublishRecord, now: Instant) {
        let early = self.early.take();
        let mut tap = record.take_capture();
        if self.has_lost_start {
            // In mid-stream nothing could be scrubbed.
            tap.stop("start_too_long");
            return;
        }
        for (kind, at, body) in early.into_iter().flatten() {
            tap.put(kind, at, || body);
        }
        tap.put(Kind::Allowed, now, Vec::new);
        self.tap = tap;
    }

    /// The connection does not publish: drops what was kept.
    pub(crate) fn forget(&mut self) {
        self.early = None;
    }

    /// Starts a capture of the running publish at the next boundary. Returns false and drops the tap if another capture
    /// is running or waiting.
    pub(crate) fn begin_next(&mut self, tap: Tap) -> bool {
        let is_free = !self.tap.is_on() && !self.next.is_on();
        if is_free {
            self.next = tap;
        }
        is_free
    }

    /// The boundary is reached: records the session's state and the input that follows it.
    pub(crate) fn begin(&mut self, state: &[u8], input: &[u8], now: Instant) {
        self.tap = std::mem::take(&mut self.next);
        self.tap.put(Kind::State, now, || state.to_vec());
        self.tap.put(Kind::Input, now, || input.to_vec());
    }

    /// Records a frame that is passed on.
    pub(crate) fn frame(&mut self, frame: &Frame, now: Instant) {
        self.tap.frame(frame, now);
    }

    /// The publish ends; `is_ordered` unless its input was the reason.
    pub(crate) fn end(&mut self, reason: EndReason, is_ordered: bool, now: Instant) {
        self.tap.end(reason.code(), is_ordered, now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::publish::capture::capture_pipe;
    use crate::publish::mailbox::Mailbox;
    use crate::publish::registry::Publishes;

    #[test]
    fn a_connection_whose_start_is_too_long_is_not_captured_from_the_middle() {
        let publishes = Publishes::new(Mailbox::new(Box::new(|| {})));
        let now = Instant::now();
        for (length, notes, reason) in
            [(EARLY_LIMIT_BYTES, 2, "publish_ended"), (EARLY_LIMIT_BYTES + 1, 0, "start_too_long")]
        {
            let guard = publishes.open(1, 0, None, now);
            let (tap, taken, state) = capture_pipe(Duration::from_secs(9));
            guard.record().put_capture(tap);
            let mut captured = Captured::new(true);
            captured.input(&vec![0; length], now);
            captured.allow(guard.record(), now);
            assert_eq!((taken.try_iter().count(), state.reason()), (notes, reason));
        }
    }
}
