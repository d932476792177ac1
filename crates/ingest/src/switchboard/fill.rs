//! From a reader's queue to its output: as much as its socket may soon take, what goes beyond stays where it can be
//! dropped.

use std::time::Duration;

use super::{SessionKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::session::Session;
use crate::session::effect::Effect;

/// Bytes handed to a session ahead of its socket.
const AHEAD_LIMIT: usize = 128 * 1024;
/// Audio waits so long for a video frame to be written with: a write costs the same for 200 bytes as for 10 kB.
const AUDIO_HOLD: Duration = Duration::from_millis(40);

/// A preview's frames wait so long for each other: each batch costs the gateway's one thread a turn and a write.
const PREVIEW_HOLD: Duration = Duration::from_millis(100);
/// The same while its reader has not taken what it was given: room is looked for so often.
const FULL_PREVIEW_HOLD: Duration = Duration::from_millis(50);

/// Whether what waits for a session goes now.
enum Readiness {
    /// Not yet; a timer or the next frame asks again.
    Held,
    /// Into its output.
    Ready,
    /// To the gateway.
    Preview,
}

/// What is left when an output was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Everything there is for now.
    Drained,
    /// More waits behind the limit: fill again once the socket took bytes.
    More,
}

impl Switchboard {
    /// The sessions that have something for their sockets, each once. Previews, which have none, are served here.
    pub(crate) fn poll_ready(&mut self) -> Vec<SessionKey> {
        let mut ready = std::mem::take(&mut self.woken.readers);
        ready.sort_unstable();
        ready.dedup();
        ready.retain(|key| match self.readiness(*key) {
            Readiness::Held => false,
            Readiness::Ready => true,
            Readiness::Preview => {
                self.serve_preview(*key);
                false
            }
        });
        ready
    }

    /// Hands frames that wait for a session to its output.
    pub(crate) fn fill(&mut self, key: SessionKey) -> Filled {
        let Some(subscriber) = self.sessions.get(key).and_then(|entry| entry.reads) else {
            return Filled::Drained;
        };
        let mut filled = Filled::Drained;
        self.run(key, |switchboard, session, now, effects| {
            if let Session::Server(server) = session
                && server.awaits_stream()
            {
                switchboard.serve_waiting(server, subscriber, effects);
            }
            if !session.takes_frames() {
                return;
            }
            loop {
                if session.output_mut().is_none_or(|output| output.pending_bytes() >= AHEAD_LIMIT) {
                    filled = Filled::More;
                    return;
                }
                let Some(frame) = switchboard.hub.next_frame(subscriber) else { break };
                session.write_frame(&frame, now);
            }
            if switchboard.hub.is_finished(subscriber) {
                session.finish_reading(now, effects);
            }
        });
        filled
    }

    /// The session's socket took `bytes`; `is_behind`: more waits for it.
    pub(crate) fn handle_written(&mut self, key: SessionKey, bytes: usize, is_behind: bool) {
        let Some(entry) = self.sessions.get_mut(key) else { return };
        let Some(session) = &mut entry.session else { return };
        session.handle_written(self.now);
        let offered = entry.reads.map_or(0, |subscriber| self.hub.offered(subscriber));
        if !entry.least_rate.handle_written(bytes, offered, is_behind, self.now) {
            self.turn(key, |session, now, effects| match session {
                Session::Push(push) => push.handle_too_slow(now, effects),
                Session::Server(_) | Session::Whip(_) | Session::Pull(_) | Session::Preview(_) => {
                    effects.push(Effect::Close(EndReason::BroadcasterLeft));
                }
            });
        }
        self.touch(key);
    }

    /// Whether what waits for a session goes now. Held are a reader that has only audio waiting while a video frame may
    /// still come to be written with it, and a preview while its next batch fills.
    fn readiness(&mut self, key: SessionKey) -> Readiness {
        let Some(entry) = self.sessions.get_mut(key) else { return Readiness::Held };
        let Some(subscriber) = entry.reads else { return Readiness::Ready };
        if let Some(Session::Preview(preview)) = &entry.session {
            let hold = if !preview.takes_frames() {
                Some(FULL_PREVIEW_HOLD)
            } else if preview.has_begun() && !self.hub.is_ended(subscriber) {
                Some(PREVIEW_HOLD)
            } else {
                None
            };
            return self.hold(key, hold, Readiness::Preview);
        }
        let has_output = entry
            .session
            .as_mut()
            .and_then(Session::output_mut)
            .is_some_and(|output| !output.is_empty());
        let waits_for_video =
            self.hub.may_wait_for_video(subscriber) && !self.hub.is_ended(subscriber);
        let hold = (!has_output && waits_for_video).then_some(AUDIO_HOLD);
        self.hold(key, hold, Readiness::Ready)
    }

    /// A preview's reader has not taken what it was given.
    pub(super) fn hold_full_preview(&mut self, key: SessionKey) {
        self.hold(key, Some(FULL_PREVIEW_HOLD), Readiness::Preview);
    }

    /// Held until `hold` has passed since it was first asked; then, and without one, `otherwise`, which is the reader's turn.
    fn hold(&mut self, key: SessionKey, hold: Option<Duration>, otherwise: Readiness) -> Readiness {
        let Some(entry) = self.sessions.get_mut(key) else { return Readiness::Held };
        let until = hold.map(|hold| *entry.held_until.get_or_insert(self.now + hold));
        if until.is_some_and(|until| self.now < until) {
            self.touch(key);
            return Readiness::Held;
        }
        entry.held_until = None;
        if let Some(subscriber) = entry.reads {
            self.hub.note_turn(subscriber);
        }
        otherwise
    }
}
