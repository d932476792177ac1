//! The missing packets of one track, as runs of sequence numbers, and when to request them again. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait for a hole, on a slow path.
pub(crate) const HOLE_LIMIT_MOST: Duration = Duration::from_secs(1);
/// A packet overtaken by others is not considered missing before this.
const REORDER_WAIT: Duration = Duration::from_millis(6);
/// Shortest pause between the first requests for the same packet. It doubles every [`TRIES_PER_PAUSE`] requests up to
/// the longest, so that the requests last as long as the hole is waited for.
const NACK_PAUSE_LEAST: Duration = Duration::from_millis(20);
/// Requests between two doublings of their pause.
const TRIES_PER_PAUSE: u8 = 4;
/// Longest such pause. A request or its answer is lost as easily as the packet was: even on a slow path there is time
/// for five requests before the hole is given up, at the price of some packets arriving twice.
const NACK_PAUSE_MOST: Duration = Duration::from_millis(70);
/// Pause between two reports: everything that becomes due meanwhile is requested in one.
const REQUEST_PAUSE: Duration = Duration::from_millis(5);
/// Round-trip time assumed until one has been measured.
const FIRST_RTT: Duration = Duration::from_millis(80);
/// Packets requested in one report.
const NACK_LIMIT: usize = 64;
/// Requests for one packet: as many as fit into the longest wait for it.
const TRIES_LIMIT: u8 = 20;
/// Runs of missing packets: half a second at 20 Mbps with a fifth of it lost. Each run takes memory and lengthens the
/// search for the next request.
const RUNS_LIMIT: usize = 256;
/// Missing packets in all runs; libwebrtc gives up at the same number.
const MISSING_LIMIT: u64 = 1000;

/// Consecutive packets that went missing together and were requested equally often.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first sequence number after the run.
    end: u64,
    since: Instant,
    ask_at: Instant,
    asked_at: Option<Instant>,
    tries: u8,
}

/// The missing packets of one track.
#[derive(Debug)]
pub(crate) struct Holes {
    /// The runs by their first sequence number.
    runs: BTreeMap<u64, Run>,
    missing: u64,
    /// Not later than the earliest `ask_at` of all runs.
    request_at: Option<Instant>,
    last_request: Option<Instant>,
    rtt: Duration,
    is_rtt_measured: bool,
    /// Average time from the first request for a packet to its answer, repeated requests included.
    answered_in: Option<Duration>,
}

/// The pause after the first request for a packet. A sender that repeats a packet once per round trip ignores requests
/// that come sooner, so one request is timed just after each round trip, with an eighth added for the sender's own
/// estimate of it.
fn first_pause(rtt: Duration) -> Duration {
    let wanted = rtt * 9 / 8;
    let parts = wanted.as_micros().div_ceil(NACK_PAUSE_MOST.as_micros()).max(1);
    (wanted / u32::try_from(parts).unwrap_or(u32::MAX)).max(NACK_PAUSE_LEAST)
}

/// The pause after the next request for a packet that has been requested `tries` times.
fn pause_after(first: Duration, tries: u8) -> Duration {
    let mut pause = first;
    for _ in 0..tries / TRIES_PER_PAUSE {
        if pause * 2 <= NACK_PAUSE_MOST {
            pause *= 2;
        }
    }
    pause
}

impl Default for Holes {
    fn default() -> Self {
        Self {
            runs: BTreeMap::new(),
            missing: 0,
            request_at: None,
            last_request: None,
            rtt: FIRST_RTT,
            is_rtt_measured: false,
            answered_in: None,
        }
    }
}

impl Holes {
    /// The packets from `first` up to but not including `end` are missing.
    pub(crate) fn open(&mut self, now: Instant, first: u64, end: u64) {
        if first >= end {
            return;
        }
        let ask_at = now + REORDER_WAIT;
        self.missing += end - first;
        self.runs.insert(first, Run { end, since: now, ask_at, asked_at: None, tries: 0 });
        self.request_at = Some(self.request_at.map_or(ask_at, |at| at.min(ask_at)));
    }

    /// A missing packet arrived; true when it had been requested. Only a separate retransmission (RFC 4588,
    /// `is_repeated`) measures the round trip: any other packet may be the late original.
    pub(crate) fn fill(&mut self, now: Instant, sequence: u64, is_repeated: bool) -> bool {
        let Some((&first, &run)) = self.runs.range(..=sequence).next_back() else { return false };
        if sequence >= run.end {
            return false;
        }
        self.missing -= 1;
        if first == sequence {
            self.runs.remove(&first);
        } else {
            self.runs.insert(first, Run { end: sequence, ..run });
        }
        if sequence + 1 < run.end {
            self.runs.insert(sequence + 1, run);
        }
        if self.runs.is_empty() {
            self.request_at = None;
        }
        let Some(asked_at) = run.asked_at else { return false };
        if is_repeated {
            self.handle_answer(now, run.since);
        }
        if run.tries == 1 && is_repeated {
            let sample = now.saturating_duration_since(asked_at);
            self.rtt = (self.rtt * 7 + sample) / 8;
            self.is_rtt_measured = true;
        }
        true
    }

    /// Measures the answer to requests for a packet that had been missing since `since`.
    pub(crate) fn handle_answer(&mut self, now: Instant, since: Instant) {
        let sample = now.saturating_duration_since(since + REORDER_WAIT);
        self.answered_in = Some(self.answered_in.map_or(sample, |of| (of * 7 + sample) / 8));
    }

    /// Stops waiting for packets before `until`.
    pub(crate) fn forget_before(&mut self, until: u64) {
        while let Some(entry) = self.runs.first_entry().filter(|entry| *entry.key() < until) {
            let (first, run) = entry.remove_entry();
            let kept_from = run.end.min(until);
            self.missing -= kept_from - first;
            if kept_from < run.end {
                self.runs.insert(kept_from, run);
            }
        }
        if self.runs.is_empty() {
            self.request_at = None;
        }
    }

    /// The sequence numbers to request now; what exceeds one report is requested one pause later.
    pub(crate) fn poll_requests(&mut self, now: Instant, sequences: &mut Vec<u16>) {
        if self.request_at().is_none_or(|at| now < at) {
            return;
        }
        let pause = first_pause(self.rtt);
        let before = sequences.len();
        let mut cut = None;
        for (&first, run) in self.runs.iter_mut().filter(|(_, run)| now >= run.ask_at) {
            if run.tries >= TRIES_LIMIT {
                // The hole is given up before then.
                run.ask_at = run.since + HOLE_LIMIT_MOST * 2;
                continue;
            }
            let room = NACK_LIMIT.saturating_sub(sequences.len() - before) as u64;
            if room == 0 {
                break;
            }
            let end = run.end.min(first + room);
            if end < run.end {
                cut = Some((end, *run));
            }
            *run = Run {
                end,
                since: run.since,
                ask_at: now + pause_after(pause, run.tries),
                asked_at: Some(now),
                tries: run.tries + 1,
            };
            sequences.extend((first..end).map(|sequence| sequence as u16));
        }
        // What did not fit remains due.
        self.runs.extend(cut);
        if sequences.len() > before {
            self.last_request = Some(now);
        }
        self.request_at = self.runs.values().map(|run| run.ask_at).min();
    }

    /// When [`Holes::poll_requests`] has something to do; never sooner than one pause after the last report.
    pub(crate) fn request_at(&self) -> Option<Instant> {
        let after_pause = self.last_request.map(|last| last + REQUEST_PAUSE);
        self.request_at.map(|at| after_pause.map_or(at, |pause| at.max(pause)))
    }

    /// Since when the first missing packet has been missing.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.runs.first_key_value().map(|(_, run)| run.since)
    }

    /// How often the first missing packet has been requested.
    pub(crate) fn oldest_tries(&self) -> u8 {
        self.runs.first_key_value().map_or(0, |(_, run)| run.tries)
    }

    /// Since when this packet has been missing, if it is.
    pub(crate) fn since(&self, sequence: u64) -> Option<Instant> {
        let (_, run) = self.runs.range(..=sequence).next_back()?;
        (sequence < run.end).then_some(run.since)
    }

    /// Whether nothing is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether more is missing than the limits allow: the first hole is to be given up.
    pub(crate) fn is_overfull(&self) -> bool {
        self.runs.len() > RUNS_LIMIT || self.missing > MISSING_LIMIT
    }

    /// How long an answer takes from the first request, repeated requests included; `None` before the first answer.
    pub(crate) const fn answered_in(&self) -> Option<Duration> {
        self.answered_in
    }

    /// Round-trip time measured by requests; `None` before the first answer. On a path so slow that every packet is
    /// requested more than once, it is [`Holes::answered_in`].
    pub(crate) const fn rtt(&self) -> Option<Duration> {
        if self.is_rtt_measured { Some(self.rtt) } else { self.answered_in }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_packets_in_256_runs_may_be_missing() {
        let now = Instant::now();
        let mut holes = Holes::default();
        holes.open(now, 1, 1_001);
        assert!(!holes.is_overfull());
        holes.open(now, 2_000, 2_001);
        assert!(holes.is_overfull());
        let mut holes = Holes::default();
        (0..256).for_each(|n| holes.open(now, 2 * n, 2 * n + 1));
        assert!(!holes.is_overfull());
        holes.open(now, 2_000, 2_001);
        assert!(holes.is_overfull());
    }

    #[test]
    fn an_arriving_packet_leaves_its_neighbours_missing() {
        for came in 10..14 {
            let now = Instant::now();
            let mut holes = Holes::default();
            holes.open(now, 10, 14);
            holes.fill(now, came, false);
            let mut requested = Vec::new();
            holes.poll_requests(now + REORDER_WAIT, &mut requested);
            let left: Vec<_> = (10..14).filter(|n| u64::from(*n) != came).collect();
            assert_eq!(requested, left);
        }
    }
}
