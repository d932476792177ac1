//! Ended sessions whose clients may not have noticed: for some seconds their STUN requests are answered with error 403,
//! on any path.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use headgate_whip::{RevokedConsent, ufrag_of};
use rustc_hash::FxHashMap;

/// A browser sends a check every 2.5 s (Chromium) or 5 s (Firefox), and a check or its answer may be lost twice.
const REVOKED_FOR: Duration = Duration::from_secs(15);
/// Ended sessions that one worker remembers, about 1 KiB each; beyond that the oldest is dropped.
const REVOKED_LIMIT: usize = 4_096;

/// Ended sessions, the oldest first.
#[derive(Debug, Default)]
pub(super) struct RevokedSessions {
    /// In order of age with consecutive numbers; the first one's number is `forgotten`.
    queue: VecDeque<(Instant, RevokedConsent)>,
    forgotten: u64,
    by_ufrag: FxHashMap<Vec<u8>, u64>,
}

impl RevokedSessions {
    /// Adds a session that has ended.
    pub(super) fn insert(&mut self, now: Instant, consent: RevokedConsent) {
        if self.queue.len() >= REVOKED_LIMIT {
            self.forget_oldest();
        }
        let number = self.forgotten + self.queue.len() as u64;
        let ufrags = consent.ufrags().map(|ufrag| (ufrag.as_bytes().to_vec(), number));
        self.by_ufrag.extend(ufrags);
        self.queue.push_back((now + REVOKED_FOR, consent));
    }

    /// The answer to a request of a client whose session has ended; `None` for every other datagram.
    pub(super) fn handle_datagram(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        if self.queue.is_empty() {
            return None;
        }
        let number = *self.by_ufrag.get(ufrag_of(datagram)?)?;
        let at = usize::try_from(number.checked_sub(self.forgotten)?).ok()?;
        self.queue.get_mut(at)?.1.handle_request(datagram)
    }

    /// Removes expired sessions.
    pub(super) fn handle_time(&mut self, now: Instant) {
        while self.queue.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, consent)) = self.queue.pop_front() else { return };
        for ufrag in consent.ufrags() {
            self.by_ufrag.remove(ufrag.as_bytes());
        }
        self.forgotten += 1;
    }

    /// Number of remembered sessions and user names.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.by_ufrag.len()
    }
}
