//! Moves frames from a subscriber's queue to its session's output: only as much as its socket is likely to accept soon,
//! so that the rest can still be dropped.

use std::time::Duration;

use super::{SessionKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::session::Session;
use crate::session::effect::Effect;

/// Bytes that may wait in a session's output before frames stay in its queue.
const AHEAD_LIMIT: usize = 128 * 1024;
/// How long audio waits to be written together with a video frame: a write costs the same for 200 bytes as for 10 kB.
const AUDIO_HOLD: Duration = Duration::from_millis(40);

/// How long a preview's frames wait to form a batch: each batch costs the gateway's single thread a turn and a write.
const PREVIEW_HOLD: Duration = Duration::from_millis(100);
/// The interval at which a full preview is checked for room, while its reader takes nothing.
const FULL_PREVIEW_HOLD: Duration = Duration::from_millis(50);

/// Whether the frames that wait for a session are passed on.
enum Readiness {
    /// Not yet; a timer or the next frame checks again.
    Held,
    /// To the session's output.
    Ready,
    /// To the gateway, as a preview.
    Preview,
}

/// What remained after filling an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing.
    Drained,
    /// Frames beyond the limit: fill again once the socket has accepted bytes.
    More,
}

impl Switchboard {
    /// The sessions that may have something to write, without duplicates. Previews, which have no socket, are served
    /// here.
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

    /// Passes waiting frames to a session's output.
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
                    break;
                }
                let Some(frame) = switchboard.hub.next_frame(subscriber) else { break };
                session.write_frame(&frame, now);
            }
            if let Session::Push(push) = session
                && let Some(made) = push.take_made()
            {
                switchboard.hub.count_made(subscriber, made);
            }
            if filled == Filled::Drained && switchboard.hub.is_finished(subscriber) {
                session.finish_reading(now, effects);
            }
        });
        filled
    }

    /// The session's socket accepted `bytes`; `is_behind`: more waits for it.
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

    /// Whether the frames that wait for a session are passed on. Held back are audio frames without video if a video
    /// frame may still come to be written with them, and a preview's frames while its next batch fills.
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

    /// A preview's reader has not taken the waiting batches.
    pub(super) fn hold_full_preview(&mut self, key: SessionKey) {
        self.hold(key, Some(FULL_PREVIEW_HOLD), Readiness::Preview);
    }

    /// Returns `Held` until `hold` has passed since the first such call; after that, or without `hold`, it returns
    /// `otherwise` and notes the subscriber's turn.
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
