//! From a subscriber's queue to its socket: one vectored write for what waits. Players and pushes alike.

use std::time::Instant;

use headgate_media::{Frame, FrameKind, Timestamp, flv};
use headgate_rtmp::{ClientSession, Output, ServerSession};

use crate::link::Link;
use crate::rtmp_frames::{media_kind, takes_codec, wire_timestamp};
use crate::silence::Silence;
use crate::upstreams::UpstreamRecord;
use crate::worker::Worker;

/// Bytes handed to a session ahead of its socket: what goes beyond stays in the queue, where it can be dropped.
const AHEAD_LIMIT: usize = 128 * 1024;

/// A session that frames can be written to.
pub(crate) trait FrameWriter {
    fn write_frame(&mut self, frame: &Frame);
    fn output_mut(&mut self) -> &mut Output;
}

impl FrameWriter for ServerSession {
    fn write_frame(&mut self, frame: &Frame) {
        if takes_codec(self.four_cc_list(), frame.codec) {
            let header = flv::tag_header(frame);
            let (kind, timestamp) = (media_kind(frame), wire_timestamp(frame));
            self.send_media(kind, timestamp, header.as_slice(), &frame.data);
        }
    }

    fn output_mut(&mut self) -> &mut Output {
        Self::output_mut(self)
    }
}

impl FrameWriter for ClientSession {
    fn write_frame(&mut self, frame: &Frame) {
        let header = flv::tag_header(frame);
        self.send_media(media_kind(frame), wire_timestamp(frame), header.as_slice(), &frame.data);
    }

    fn output_mut(&mut self) -> &mut Output {
        Self::output_mut(self)
    }
}

/// A push's session, with the silence that the stream may need on the way.
pub(crate) struct PushWriter<'a> {
    pub(crate) session: &'a mut ClientSession,
    pub(crate) silence: &'a mut Option<Silence>,
    pub(crate) sent: &'a mut Option<Timestamp>,
    pub(crate) record: &'a UpstreamRecord,
    pub(crate) now: Instant,
}

impl FrameWriter for PushWriter<'_> {
    fn write_frame(&mut self, frame: &Frame) {
        if frame.kind != FrameKind::Configuration {
            *self.sent = (*self.sent).max(Some(frame.timestamp));
        } else if !takes_codec(self.session.four_cc_list(), frame.codec) {
            self.record.note_foreign(frame.codec);
        }
        let Some(silence) = self.silence else { return self.session.write_frame(frame) };
        let write = |frame: &Frame| self.session.write_frame(frame);
        if !silence.handle_frame(frame, self.now, write) {
            *self.silence = None;
        }
    }

    fn output_mut(&mut self) -> &mut Output {
        self.session.output_mut()
    }
}

/// Where a subscriber stands after a turn of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// It has what there is, or its peer takes no more for now.
    Waiting,
    /// It has everything there will ever be.
    Finished,
    /// The connection is gone.
    Broken,
}

/// Writes what waits for seat `key`.
pub(crate) fn pump(
    worker: &mut Worker,
    key: usize,
    link: &mut Link,
    session: &mut impl FrameWriter,
    now: Instant,
) -> Pumped {
    let Some((_, subscriber)) = worker.seats.get(key).and_then(|seat| seat.reads) else {
        return Pumped::Waiting;
    };
    loop {
        let mut is_drained = false;
        while session.output_mut().pending_bytes() < AHEAD_LIMIT {
            let Some(frame) = worker.hub.next_frame(subscriber) else {
                is_drained = true;
                break;
            };
            session.write_frame(&frame);
        }
        if link.flush(session.output_mut(), now).is_err() {
            return Pumped::Broken;
        }
        if is_drained && worker.hub.is_finished(subscriber) {
            return Pumped::Finished;
        }
        if is_drained || !link.can_write() {
            return Pumped::Waiting;
        }
    }
}
