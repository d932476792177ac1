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

/// What is left when an output was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Everything there is for now.
    Drained,
    /// More waits behind the limit: fill again once the socket took bytes.
    More,
}

impl Switchboard {
    /// The sessions that have something for their sockets, each once.
    pub(crate) fn poll_ready(&mut self) -> Vec<SessionKey> {
        let mut ready = std::mem::take(&mut self.woken.readers);
        ready.sort_unstable();
        ready.dedup();
        ready.retain(|key| !self.holds_audio(*key));
        ready
    }

    /// Hands frames that wait for a session to its output.
    pub(crate) fn fill(&mut self, key: SessionKey) -> Filled {
        let Some(subscriber) = self.sessions.get(key).and_then(|entry| entry.reads) else {
            return Filled::Drained;
        };
        let mut filled = Filled::Drained;
        self.run(key, |switchboard, session, now, effects| {
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
                Session::Server(_) | Session::Whip(_) => {
                    effects.push(Effect::Close(EndReason::BroadcasterLeft));
                }
            });
        }
        self.touch(key);
    }

    /// True while a reader has only audio waiting and a video frame may still come to be written with it.
    fn holds_audio(&mut self, key: SessionKey) -> bool {
        let Some(entry) = self.sessions.get_mut(key) else { return true };
        let Some(subscriber) = entry.reads else { return false };
        let has_output = entry
            .session
            .as_mut()
            .and_then(Session::output_mut)
            .is_some_and(|output| !output.is_empty());
        let holds_only_audio =
            self.hub.holds_only_audio(subscriber) && !self.hub.is_ended(subscriber);
        if has_output || !holds_only_audio {
            entry.audio_held_until = None;
            return false;
        }
        let now = self.now;
        let until = *entry.audio_held_until.get_or_insert(now + AUDIO_HOLD);
        if now >= until {
            entry.audio_held_until = None;
            return false;
        }
        self.touch(key);
        true
    }
}
