//! How late a track's packets arrive compared to their timestamps, over the last seconds: tells a clock that stood still
//! from a network that delays. Pure.
//!
//! Delays of the network vary, and what waited in it arrives in a burst that catches up: the least lateness stays the
//! same. After a clock stood still every packet is late by that time, and stays so.

use crate::clock_rates::MILLI_US;

/// Lateness is kept in steps of this length.
const STEP_US: i64 = 500 * MILLI_US;
/// Steps that are kept: the newest is not complete.
const STEPS: usize = 8;
/// Lateness that jitter does not explain once a second of packets has it.
pub(crate) const FAR_US: i64 = 300 * MILLI_US;
/// Lateness that is inserted when all packets of 3.5 s have it: less than what is audible between audio and video.
const NEAR_US: i64 = 35 * MILLI_US;
/// Lateness that shrinks by more than this from the older to the newer half of the steps is being caught up.
const FLAT_US: i64 = 40 * MILLI_US;
/// How improbable jitter must be as the reason: e^-12 if it were uniform.
const EVIDENCE: i64 = 12;

/// Complete steps to look at when the other track is on time, and when it is late too or absent: then it may be the
/// network, which is given time to catch up.
const STEPS_ALONE: usize = 2;
const STEPS_TOGETHER: usize = 4;

/// Packets that are so much faster than all of the last seconds may have wrong timestamps: they show how fast the network
/// is once they have outnumbered the others for this time.
pub(crate) const FAST_US: i64 = 60 * MILLI_US;
const FAST_TIME_US: i64 = 1_000 * MILLI_US;

/// Packets that were faster than all others and about as fast as each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastRun {
    since: i64,
    least: i64,
    /// How many they are more than the others since then.
    surplus: u32,
}

impl FastRun {
    /// The run with a further packet; one that was faster or slower begins another.
    pub(crate) fn with(run: Option<Self>, arrival: i64, late: i64) -> Self {
        let agrees = |run: &Self| (late - run.least).abs() <= FAST_US;
        match run.filter(agrees) {
            Some(Self { since, least, surplus }) => {
                Self { since, least: least.min(late), surplus: surplus.saturating_add(1) }
            }
            None => Self { since: arrival, least: late, surplus: 1 },
        }
    }

    /// The run after a packet that was not fast.
    pub(crate) fn interrupted(self) -> Option<Self> {
        let surplus = self.surplus.saturating_sub(1);
        (surplus > 0).then_some(Self { surplus, ..self })
    }

    pub(crate) const fn lasts(&self, arrival: i64) -> bool {
        arrival - self.since >= FAST_TIME_US
    }
}

/// The least and the most of some times, and how many they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extremes {
    pub(crate) least: i64,
    pub(crate) most: i64,
    pub(crate) count: i64,
}

impl Extremes {
    pub(crate) const EMPTY: Self = Self { least: i64::MAX, most: i64::MIN, count: 0 };

    pub(crate) const fn of(time_us: i64) -> Self {
        Self { least: time_us, most: time_us, count: 1 }
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            count: self.count + other.count,
        }
    }
}

/// The lateness of one track's packets in microseconds, newest step first.
#[derive(Debug)]
pub(crate) struct Lateness {
    steps: [Extremes; STEPS],
    used: usize,
    until: i64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { steps: [Extremes::EMPTY; STEPS], used: 0, until: 0 }
    }
}

impl Lateness {
    /// Notes a packet; true when it begins a new step.
    pub(crate) fn note(&mut self, arrival: i64, late: i64) -> bool {
        let is_new = arrival >= self.until;
        if is_new {
            self.begin_step(arrival);
        }
        self.steps[0] = self.steps[0].with(Extremes::of(late));
        is_new
    }

    fn begin_step(&mut self, arrival: i64) {
        let passed = (arrival - self.until) / STEP_US + 1;
        let passed = if self.used == 0 { 1 } else { passed.clamp(1, STEPS as i64) as usize };
        self.steps.rotate_right(passed);
        self.steps[..passed].fill(Extremes::EMPTY);
        self.used = (self.used + passed).min(STEPS);
        self.until = arrival + STEP_US;
    }

    /// The least lateness of all steps.
    pub(crate) fn least(&self) -> Option<i64> {
        let all = self.over(0, self.used);
        (all.count > 0).then_some(all.least)
    }

    /// Whether [`Lateness::least`] covers enough time and packets to be relied on.
    pub(crate) fn is_settled(&self) -> bool {
        self.used + 1 >= STEPS && self.over(1, self.used).count >= EVIDENCE
    }

    /// By how much the clock has fallen behind `reference` for good, and how many complete steps show it.
    /// `is_other_on_time`: the session's other track is not late.
    pub(crate) fn stopped(&self, reference: i64, is_other_on_time: bool) -> Option<(i64, usize)> {
        let fewest = if is_other_on_time { STEPS_ALONE } else { STEPS_TOGETHER };
        (fewest..self.used).find_map(|complete| {
            let is_all = complete + 1 == STEPS;
            let half = complete / 2;
            let (newer, older) = (self.over(1, 1 + half), self.over(1 + half, 1 + complete));
            if newer.count == 0 || older.count == 0 {
                return None;
            }
            let all = newer.with(older);
            let (behind, most) = (all.least - reference, all.most - reference);
            let (now, newest, before) =
                (self.steps[0].least, self.steps[1].least, self.steps[2].least);
            let is_caught_up = newer.least < older.least - FLAT_US
                || now < all.least - FLAT_US
                || newest < before.saturating_sub(FLAT_US) && before < i64::MAX;
            // A delay that grows may still be caught up, unless it has been there all the time.
            let is_growing = !is_all && newer.least > older.least + FLAT_US;
            let is_far = behind >= if is_all { NEAR_US } else { FAR_US };
            let is_certain = all.count * behind >= EVIDENCE * most
                || (all.count >= 4 && 4 * (most - behind) <= behind);
            let is_stopped = is_far && is_certain && !is_caught_up && !is_growing;
            is_stopped.then_some((behind, complete))
        })
    }

    /// `inserted` was inserted because of the newest `complete` steps; those before them are forgotten. The newest
    /// packet is now late by `late`.
    pub(crate) fn handle_inserted(&mut self, inserted: i64, complete: usize, late: i64) {
        if complete == 0 {
            self.used = 1;
            self.steps.fill(Extremes::EMPTY);
            self.steps[0] = Extremes::of(late);
            return;
        }
        self.used = self.used.min(complete + 1);
        self.steps[self.used..].fill(Extremes::EMPTY);
        for step in self.steps[..self.used].iter_mut().filter(|step| step.count > 0) {
            step.least -= inserted;
            step.most -= inserted;
        }
    }

    fn over(&self, from: usize, to: usize) -> Extremes {
        self.steps[from.min(to)..to].iter().fold(Extremes::EMPTY, |all, step| all.with(*step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds packets every 20 ms for `millis`, late by what `late` says of their number; returns what was found.
    fn feed(late: impl Fn(i64) -> i64, millis: i64, is_other_on_time: bool) -> Option<i64> {
        let mut lateness = Lateness::default();
        (0..millis / 20).find_map(|n| {
            let begins = lateness.note(n * 20 * MILLI_US, late(n) * MILLI_US);
            let stopped = lateness.stopped(0, is_other_on_time).filter(|_| begins);
            stopped.map(|(behind, _)| behind / MILLI_US)
        })
    }

    #[test]
    fn a_clock_that_stood_still_is_distinguished_from_a_network_that_catches_up() {
        let jitter = |n: i64| n * 7919 % 251;
        for is_other_on_time in [false, true] {
            assert_eq!(feed(|_| 3_000, 3_000, is_other_on_time), Some(3_000));
            assert_eq!(feed(|_| 40, 5_000, is_other_on_time), Some(40));
            assert_eq!(feed(|n| 500 + jitter(n), 5_000, is_other_on_time), Some(500));
            assert_eq!(feed(jitter, 600_000, is_other_on_time), None);
            assert_eq!(feed(|n| 250 - jitter(n), 600_000, is_other_on_time), None);
            assert_eq!(feed(|n| (3_000 - 2 * n).max(0), 60_000, is_other_on_time), None);
            assert_eq!(feed(|n| (300 - n % 300) * 10, 60_000, is_other_on_time), None);
        }
    }

    #[test]
    fn a_packet_that_has_caught_up_shows_that_the_clock_did_not_stand_still() {
        let until = |behind: i64| move |n: i64| if n < 50 { 3_000 } else { behind };
        assert_eq!(feed(until(3_000), 1_020, true), Some(3_000));
        for behind in [2_900, 400, 0, -5_000] {
            assert_eq!(feed(until(behind), 1_020, true), None, "{behind}");
        }
    }

    #[test]
    fn less_time_is_waited_when_the_other_track_is_on_time() {
        assert_eq!(feed(|_| 400, 1_100, true), Some(400));
        assert_eq!(feed(|_| 400, 1_100, false), None);
        assert_eq!(feed(|n| 400 + 4 * n, 2_900, false), None, "a delay that grows");
    }
}
