//! Starting a capture of a running publish.

use super::Switchboard;
use crate::publish::capture::Tap;
use crate::publish::record::StreamId;
use crate::session::Session;

impl Switchboard {
    /// Captures the publish of a stream that lives here. If it is already being captured, the tap is dropped.
    pub(super) fn capture(&mut self, stream: StreamId, tap: Tap) {
        let publisher = self.running_stream(stream).and_then(|key| self.publisher_of(key));
        let Some(key) = publisher else { return };
        self.turn(key, |session, now, _| match session {
            Session::Server(server) => {
                server.capture(tap);
            }
            Session::Whip(whip) => {
                whip.capture(tap, now);
            }
            Session::Push(_) | Session::Pull(_) | Session::Preview(_) => {}
        });
    }
}
