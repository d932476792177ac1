//! A push while its stream has lost its publisher, and when another publisher takes over: the connection stays.

use std::time::Instant;

use headgate_media::{Frame, Timestamp};

use super::{RtmpPush, State};
use crate::session::rtmp_frames::write_to_upstream;

impl RtmpPush {
    /// The stream belongs to another publish from now on.
    pub(crate) const fn set_client_id(&mut self, client_id: u64) {
        self.client_id = client_id;
    }

    /// The first frame of another publisher follows.
    pub(crate) fn handle_successor(&mut self) {
        if let Some(silence) = &mut self.silence {
            silence.handle_successor();
        }
    }

    /// Without video to drive it, continues the silence of a stream without audio up to this time of the stream.
    pub(crate) fn write_silence(&mut self, to: Timestamp, now: Instant) {
        let State::Talking { session, ready_since: Some(_), .. } = &mut self.state else {
            return;
        };
        let Some(silence) = &mut self.silence else { return };
        let keep_alive = &mut self.keep_alive;
        silence.go_on(to, now, |frame: &Frame| {
            keep_alive.note(frame, now);
            write_to_upstream(session, frame);
        });
        self.made.add(silence.take_made());
    }
}
