//! One direction of a bad network: loss, delay, reordering, duplication and a limited rate. Sans-I/O; the same seed
//! impairs the same datagrams.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Extra delay of a reordered datagram.
const OVERTAKEN_BY: Duration = Duration::from_millis(15);
/// Longest queue of a slow link, in time at its rate; further datagrams are dropped, as by a router.
const BACKLOG_LIMIT: Duration = Duration::from_millis(500);

/// What is wrong with a network. Chances are in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) loss: f64,
    /// One-way delay of every datagram.
    pub(crate) delay: Duration,
    /// Largest additional delay, uniformly distributed; order is kept.
    pub(crate) jitter: Duration,
    pub(crate) reorder: f64,
    pub(crate) duplicate: f64,
    pub(crate) rate_kbps: Option<u32>,
    /// Nothing passes between these two times after the link's start.
    pub(crate) blackout: Option<(Duration, Duration)>,
}

impl Conditions {
    /// Parses `loss=5,delay=50,jitter=10,reorder=2,duplicate=1,rate=3000,blackout=2000-2500`; times are milliseconds,
    /// the rate is in kbit/s, and every part is optional. `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut conditions = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            let percent = || value.parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
            let time = |text: &str| text.parse().ok().map(Duration::from_millis);
            match name {
                "loss" => conditions.loss = percent()?,
                "delay" => conditions.delay = time(value)?,
                "jitter" => conditions.jitter = time(value)?,
                "reorder" => conditions.reorder = percent()?,
                "duplicate" => conditions.duplicate = percent()?,
                "rate" => {
                    conditions.rate_kbps = Some(value.parse().ok().filter(|rate| *rate > 0)?);
                }
                "blackout" => {
                    let (from, to) = value.split_once('-')?;
                    conditions.blackout = Some((time(from)?, time(to)?));
                }
                _ => return None,
            }
        }
        Some(conditions)
    }
}

/// One direction of the network, with the datagrams in transit.
pub(crate) struct Link {
    conditions: Conditions,
    dice: u64,
    start: Instant,
    /// By time of arrival, then by order of sending.
    on_its_way: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    sent: u64,
    /// The latest arrival that was not reordered, and when a slow link is free again.
    newest: Instant,
    free_at: Instant,
    pub(crate) lost: u64,
}

impl Link {
    pub(crate) fn new(conditions: Conditions, seed: u64, now: Instant) -> Self {
        Self {
            conditions,
            // Zero would stay zero.
            dice: seed.wrapping_mul(2).wrapping_add(1),
            start: now,
            on_its_way: BinaryHeap::new(),
            sent: 0,
            newest: now,
            free_at: now,
            lost: 0,
        }
    }

    /// Takes a datagram that is sent.
    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        // Every chance is drawn for every datagram, so that adding one condition does not change the others.
        let [loss, jitter, reorder, duplicate] = [(); 4].map(|()| self.throw());
        let age = now.saturating_duration_since(self.start);
        let is_dark = self.conditions.blackout.is_some_and(|(from, to)| (from..to).contains(&age));
        let Some(through) = self.pass(now, datagram.len()) else {
            self.lost += 1;
            return;
        };
        if is_dark || loss < self.conditions.loss {
            self.lost += 1;
            return;
        }
        let late = self.conditions.delay + self.conditions.jitter.mul_f64(jitter / 100.0);
        let mut arrival = (through + late).max(self.newest);
        if reorder < self.conditions.reorder {
            arrival += OVERTAKEN_BY;
        } else {
            self.newest = arrival;
        }
        self.put(arrival, datagram);
        if duplicate < self.conditions.duplicate {
            self.put(arrival, datagram);
        }
    }

    /// The next datagram that has arrived.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let Reverse((at, ..)) = self.on_its_way.peek()?;
        if *at > now {
            return None;
        }
        self.on_its_way.pop().map(|Reverse((_, _, datagram))| datagram)
    }

    fn put(&mut self, arrival: Instant, datagram: &[u8]) {
        self.sent += 1;
        self.on_its_way.push(Reverse((arrival, self.sent, datagram.to_vec())));
    }

    /// When a datagram leaves the slow link; `None` when the queue is full.
    fn pass(&mut self, now: Instant, bytes: usize) -> Option<Instant> {
        let Some(rate) = self.conditions.rate_kbps else { return Some(now) };
        let begin = self.free_at.max(now);
        if begin - now > BACKLOG_LIMIT {
            return None;
        }
        // kbit/s is bits per millisecond.
        self.free_at = begin + Duration::from_micros(bytes as u64 * 8_000 / u64::from(rate));
        Some(self.free_at)
    }

    /// Uniformly distributed from 0 to 100 (xorshift64*).
    fn throw(&mut self) -> f64 {
        self.dice ^= self.dice >> 12;
        self.dice ^= self.dice << 25;
        self.dice ^= self.dice >> 27;
        let drawn = self.dice.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
        drawn as f64 * 100.0 / f64::from(1_u32 << 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(1);

    /// Sends 10,000 numbered datagrams, one each millisecond. Returns number and delay of those that arrive.
    fn fate(conditions: &str, seed: u64) -> Vec<(u32, Duration)> {
        let start = Instant::now();
        let conditions = Conditions::parse(conditions).expect("valid");
        let mut link = Link::new(conditions, seed, start);
        let mut arrived = Vec::new();
        for number in 0..11_000_u32 {
            let now = start + STEP * number;
            if number < 10_000 {
                link.handle_datagram(now, &number.to_be_bytes());
            }
            while let Some(datagram) = link.poll(now) {
                let sent = u32::from_be_bytes(datagram.try_into().expect("four bytes"));
                arrived.push((sent, STEP * (number - sent)));
            }
        }
        arrived
    }

    #[test]
    fn a_good_network_changes_nothing() {
        let numbers: Vec<_> = fate("", 1).iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn loss_and_duplicates_have_the_given_rate_and_depend_on_the_seed() {
        let count = fate("loss=10", 7).len();
        assert!((8_800..9_200).contains(&count), "{count}");
        let count = fate("duplicate=10", 7).len();
        assert!((10_800..11_200).contains(&count), "{count}");
        assert_eq!(fate("loss=10,reorder=5", 7), fate("loss=10,reorder=5", 7));
        assert_ne!(fate("loss=10", 7), fate("loss=10", 8));
    }

    #[test]
    fn jitter_keeps_the_order_and_reordering_changes_it() {
        let jittered = fate("delay=50,jitter=20", 3);
        assert!(jittered.is_sorted_by_key(|(number, _)| *number));
        let (least, most) = (Duration::from_millis(50), Duration::from_millis(71));
        assert!(jittered.iter().all(|(_, delay)| (least..=most).contains(delay)));
        let reordered = fate("reorder=5", 3);
        let behind = reordered.iter().filter(|(_, delay)| *delay >= OVERTAKEN_BY).count();
        assert!((400..600).contains(&behind), "{behind}");
        assert!(!reordered.is_sorted_by_key(|(number, _)| *number));
    }

    #[test]
    fn a_blackout_drops_everything_and_a_slow_link_what_exceeds_its_rate() {
        let arrived = fate("blackout=2000-2500", 1);
        assert_eq!(arrived.len(), 9_500);
        assert!(arrived.iter().all(|(number, _)| !(2_000..2_500).contains(number)));
        // 4 bytes a millisecond are 32 kbit/s.
        let half = fate("rate=16", 1).len();
        assert!((5_000..5_400).contains(&half), "{half}");
    }

    #[test]
    fn invalid_conditions_are_rejected() {
        for text in ["loss", "loss=x", "loss=101", "delay=-1", "rate=0", "blackout=5", "wind=3"] {
            assert_eq!(Conditions::parse(text), None, "{text}");
        }
    }
}
