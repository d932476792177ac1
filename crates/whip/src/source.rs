//! Which synchronisation source (SSRC) a track accepts packets from: one at a time. Pure.
//!
//! A browser that replaces its track may start a new source on the same payload type; the track follows with its second
//! packet, since a single one may have a wrong number. Sources that alternate would restart the ordering with every
//! packet, so one that was seen before is accepted only when the current one has fallen silent.

use std::time::{Duration, Instant};

/// After a silence this long any other source may take over, including the one before it. The second packet of a new
/// source follows within this time.
const SILENCE: Duration = Duration::from_millis(500);
/// Pause between two changes while the current source still sends.
const CHANGE_PAUSE: Duration = Duration::from_secs(1);

/// Sources remembered of one track: undeclared layers of a simulcast, and tracks that were replaced.
const SEEN_LIMIT: usize = 16;

/// A track's source.
#[derive(Debug, Default)]
pub(crate) struct Source {
    current: Option<u32>,
    /// A new source of which one packet has come, and when.
    candidate: Option<(u32, Instant)>,
    /// All sources so far; the oldest is forgotten when there are too many.
    seen: Vec<u32>,
    changed_at: Option<Instant>,
    last_packet: Option<Instant>,
}

impl Source {
    /// Whether a packet of `ssrc` is accepted; `Some(true)` when the source begins with it.
    #[inline]
    pub(crate) fn admit(&mut self, now: Instant, ssrc: u32) -> Option<bool> {
        if self.current == Some(ssrc) {
            self.last_packet = Some(now);
            return Some(false);
        }
        self.admit_other(now, ssrc)
    }

    fn admit_other(&mut self, now: Instant, ssrc: u32) -> Option<bool> {
        let is_silent = self.last_packet.is_none_or(|last| now >= last + SILENCE);
        let may_change = self.changed_at.is_none_or(|at| now >= at + CHANGE_PAUSE);
        let is_known = self.seen.contains(&ssrc);
        if !is_silent && !is_known && may_change && !self.is_candidate(now, ssrc) {
            self.candidate = Some((ssrc, now));
            return None;
        }
        if !is_known {
            if self.seen.len() == SEEN_LIMIT {
                self.seen.remove(0);
            }
            self.seen.push(ssrc);
        }
        if !is_silent && (is_known || !may_change) {
            return None;
        }
        self.candidate = None;
        let replaced = self.current.replace(ssrc);
        // The first source does not count as a change: it may be replaced immediately.
        self.changed_at = replaced.map(|_| now);
        self.last_packet = Some(now);
        Some(true)
    }

    /// Whether a packet of this source has come that was not accepted, because it is not the current one yet.
    pub(crate) fn is_candidate(&self, now: Instant, ssrc: u32) -> bool {
        self.candidate.is_some_and(|(of, at)| of == ssrc && now < at + SILENCE)
    }

    /// The current source.
    pub(crate) const fn ssrc(&self) -> Option<u32> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_source_is_followed_with_its_second_packet_and_the_old_one_only_after_a_silence() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut source = Source::default();
        assert_eq!(source.admit(at(0), 1), Some(true));
        for stray in [7, 8, 9] {
            assert_eq!(source.admit(at(5), stray), None, "one packet is none");
        }
        assert_eq!(source.admit(at(10), 2), None);
        assert_eq!(source.admit(at(10), 2), Some(true));
        for millis in (20..2000).step_by(20) {
            assert_eq!(source.admit(at(millis), 1), None);
            assert_eq!(source.admit(at(millis), 2), Some(false));
        }
        assert_eq!(source.admit(at(1999), 3), None);
        assert_eq!(source.admit(at(2000), 3), Some(true), "a further new source");
        // One that began too soon after the change is sent beside it: it is not a replacement.
        assert_eq!(source.admit(at(2010), 4), None);
        assert_eq!(source.admit(at(2020), 3), Some(false));
        assert_eq!(source.admit(at(2600), 2), Some(true), "3 has fallen silent");
    }
    #[test]
    fn of_several_sources_that_send_at_once_one_stays() {
        let start = Instant::now();
        let mut source = Source::default();
        let mut changes = 0;
        for n in 0..3_000_u64 {
            let now = start + Duration::from_millis(n * 10);
            let ssrc = 1 + (n % 3) as u32;
            changes += u32::from(source.admit(now, ssrc) == Some(true));
        }
        assert_eq!(changes, 1, "the first");
    }
}
