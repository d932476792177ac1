//! Deadlines of a worker's sessions and streams: one armed entry each, never more.

use std::collections::BTreeSet;
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::keys::{SessionKey, StreamKey};

/// Whose deadline it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TimerOwner {
    Session(SessionKey),
    Stream(StreamKey),
}

/// The armed deadlines, the earliest first.
///
/// An entry that is too early costs one check; one that is too late would miss the deadline. So a later deadline leaves
/// the armed entry alone, and only an earlier one replaces it.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(Instant, TimerOwner)>,
    armed: FxHashMap<TimerOwner, Instant>,
}

impl Timers {
    /// The owner has something to do at `at`, perhaps sooner than was known.
    pub(super) fn arm(&mut self, owner: TimerOwner, at: Instant) {
        match self.armed.get_mut(&owner) {
            Some(armed) if *armed <= at => return,
            Some(armed) => {
                self.due.remove(&(*armed, owner));
                *armed = at;
            }
            None => {
                self.armed.insert(owner, at);
            }
        }
        self.due.insert((at, owner));
        debug_assert_eq!(self.due.len(), self.armed.len());
    }

    /// The owner is gone.
    pub(super) fn disarm(&mut self, owner: TimerOwner) {
        if let Some(at) = self.armed.remove(&owner) {
            self.due.remove(&(at, owner));
        }
    }

    /// The next owner whose entry is due; it is disarmed.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<TimerOwner> {
        let &(at, owner) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, owner));
        self.armed.remove(&owner);
        Some(owner)
    }

    /// When the earliest entry is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Entries that are armed.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotmap::SlotMap;
    use std::time::Duration;

    #[test]
    fn an_owner_has_one_entry_however_often_it_is_armed_and_the_earliest_wins() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut keys = SlotMap::<SessionKey, ()>::with_key();
        let (a, b) = (keys.insert(()), keys.insert(()));
        let (a, b) = (TimerOwner::Session(a), TimerOwner::Session(b));
        let mut timers = Timers::default();
        for n in 0..1000 {
            timers.arm(a, at(2000 - n));
            timers.arm(b, at(1500 + n));
        }
        assert_eq!((timers.len(), timers.next()), (2, Some(at(1001))));
        assert_eq!(timers.pop_due(at(1000)), None);
        assert_eq!(timers.pop_due(at(1600)), Some(a));
        timers.disarm(b);
        assert_eq!((timers.len(), timers.pop_due(at(9000))), (0, None));
    }
}
