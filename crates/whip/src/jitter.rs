//! RTP packets of one track back into their order: what to wait for, what to ask for again, when to give up. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::rtp::RtpHeader;

/// A packet that overtook others is not missed before this.
const REORDER_WAIT: Duration = Duration::from_millis(6);
/// A source begins with its earliest packet of so long a time: its very first may have been overtaken as well, and a
/// first keyframe without its beginning is none.
const START_WAIT: Duration = Duration::from_millis(20);
/// So far before the first one that came, an earlier packet may belong to the same beginning.
const START_REACH: u64 = 64;
/// Shortest pause between two requests for the same packet.
const NACK_PAUSE_LEAST: Duration = Duration::from_millis(20);
/// Longest such pause. A request or its answer is lost as easily as the packet was: on a slow path too there is time for
/// five of them before the hole is given up, at the price of packets that come twice.
const NACK_PAUSE_MOST: Duration = Duration::from_millis(70);
/// Round trip that is assumed until one was measured.
const FIRST_RTT: Duration = Duration::from_millis(80);
/// How long a hole is waited for when the sender answers requests.
const HOLE_LIMIT_NACK: Duration = Duration::from_millis(500);
/// How long a hole is waited for when nobody answers requests.
const HOLE_LIMIT: Duration = Duration::from_millis(60);
/// Packets that may wait behind a hole: half a second at 20 Mbps.
const WAITING_LIMIT: usize = 1024;
/// A jump past this is a new sequence, not a loss.
const JUMP_LIMIT: u64 = 2000;
/// Packets asked for in one go.
const NACK_LIMIT: usize = 64;
/// Requests for one packet.
const TRIES_LIMIT: u8 = 12;

/// What comes out, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered<'a> {
    /// The next packet.
    Packet(&'a RtpHeader, &'a [u8]),
    /// So many packets are missing here for good.
    Gap(u64),
}

#[derive(Debug)]
struct Missing {
    sequence: u64,
    since: Instant,
    ask_at: Instant,
    asked_at: Option<Instant>,
    tries: u8,
}

impl Missing {
    fn new(now: Instant, sequence: u64) -> Self {
        let (ask_at, asked_at, tries) = (now + REORDER_WAIT, None, 0);
        Self { sequence, since: now, ask_at, asked_at, tries }
    }
}

#[derive(Debug)]
struct Waiting {
    header: RtpHeader,
    payload: Bytes,
}

/// Counters of one track since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JitterCounters {
    /// Packets that came in time and for the first time.
    pub received: u64,
    /// Packets given up.
    pub lost: u64,
    /// Packets asked for again, each request counted.
    pub requested: u64,
    /// Packets that a request brought.
    pub recovered: u64,
    /// Packets that came twice or too late.
    pub late: u64,
}

/// Orders one track's packets.
#[derive(Debug)]
pub struct Jitter {
    can_ask: bool,
    ssrc: Option<u32>,
    /// Extended sequence number that is due.
    next: u64,
    highest: u64,
    waiting: BTreeMap<u64, Waiting>,
    missing: VecDeque<Missing>,
    /// Until then the source may turn out to begin earlier; nothing is passed on.
    starts_at: Option<Instant>,
    rtt: Duration,
    is_rtt_measured: bool,
    counters: JitterCounters,
}

impl Jitter {
    /// `can_ask`: the sender answers NACK.
    #[must_use]
    pub fn new(can_ask: bool) -> Self {
        Self {
            can_ask,
            ssrc: None,
            next: 0,
            highest: 0,
            waiting: BTreeMap::new(),
            missing: VecDeque::new(),
            starts_at: None,
            rtt: FIRST_RTT,
            is_rtt_measured: false,
            counters: JitterCounters::default(),
        }
    }

    /// Takes a packet; `emit` gets what is in order now. False: it came twice or too late.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> bool {
        let sequence = self.extend(now, header, emit);
        self.start(now, emit);
        self.begin_earlier(now, sequence);
        if sequence < self.next || self.waiting.contains_key(&sequence) {
            self.counters.late += 1;
            return false;
        }
        self.counters.received += 1;
        if sequence > self.highest {
            for missing in self.highest + 1..sequence {
                self.missing.push_back(Missing::new(now, missing));
            }
            self.highest = sequence;
        } else {
            self.note_recovered(now, sequence);
        }
        if sequence == self.next && self.starts_at.is_none() {
            emit(Ordered::Packet(header, payload));
            self.next += 1;
            self.release(emit);
        } else {
            let waiting = Waiting { header: *header, payload: Bytes::copy_from_slice(payload) };
            self.waiting.insert(sequence, waiting);
            while self.waiting.len() > WAITING_LIMIT {
                self.give_up_first(emit);
            }
        }
        true
    }

    /// Gives up the holes that lasted too long.
    pub fn handle_timeout(&mut self, now: Instant, emit: &mut impl FnMut(Ordered<'_>)) {
        self.start(now, emit);
        let limit = self.hole_limit();
        while self.missing.front().is_some_and(|first| now >= first.since + limit) {
            self.give_up_first(emit);
        }
    }

    /// The packets to ask for now.
    pub fn poll_nack(&mut self, now: Instant, sequences: &mut Vec<u16>) {
        if !self.can_ask {
            return;
        }
        let pause = (self.rtt * 5 / 4).clamp(NACK_PAUSE_LEAST, NACK_PAUSE_MOST);
        for missing in self.missing.iter_mut().filter(|missing| now >= missing.ask_at) {
            if sequences.len() >= NACK_LIMIT {
                break;
            }
            if missing.tries >= TRIES_LIMIT {
                missing.ask_at = missing.since + HOLE_LIMIT_NACK * 2;
                continue;
            }
            missing.tries += 1;
            missing.asked_at = Some(now);
            missing.ask_at = now + pause;
            self.counters.requested += 1;
            sequences.push(missing.sequence as u16);
        }
    }

    /// When [`Jitter::handle_timeout`] or [`Jitter::poll_nack`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let give_up = self.missing.front().map(|first| first.since + self.hole_limit());
        let ask = self.missing.iter().map(|missing| missing.ask_at).min().filter(|_| self.can_ask);
        [self.starts_at, give_up, ask].into_iter().flatten().min()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> JitterCounters {
        self.counters
    }

    /// Highest extended sequence number (RFC 3550 6.4.1), and the sender it is of.
    #[must_use]
    pub const fn highest(&self) -> Option<(u32, u64)> {
        match self.ssrc {
            Some(ssrc) => Some((ssrc, self.highest)),
            None => None,
        }
    }

    /// Round trip of requests that were answered at the first time of asking; `None` before one was.
    #[must_use]
    pub const fn rtt(&self) -> Option<Duration> {
        if self.is_rtt_measured { Some(self.rtt) } else { None }
    }

    const fn hole_limit(&self) -> Duration {
        if self.can_ask { HOLE_LIMIT_NACK } else { HOLE_LIMIT }
    }

    /// The 64-bit sequence number; a new sender or a far jump starts anew behind a gap.
    fn extend(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> u64 {
        let same = self.ssrc == Some(header.ssrc);
        let step = i64::from(header.sequence.wrapping_sub(self.highest as u16) as i16);
        let sequence = self.highest.saturating_add_signed(step);
        if same && sequence.abs_diff(self.highest) <= JUMP_LIMIT {
            return sequence;
        }
        if self.ssrc.is_some() {
            while !self.missing.is_empty() || !self.waiting.is_empty() {
                self.give_up_first(emit);
            }
            emit(Ordered::Gap(1));
        }
        self.ssrc = Some(header.ssrc);
        // One turn of the counter below stays free, so that older packets have a number too.
        let start = (1 << 16) + u64::from(header.sequence);
        self.next = start;
        self.highest = start;
        self.starts_at = Some(now + START_WAIT);
        start
    }

    /// Passes on what waited for the beginning, once its time is over.
    fn start(&mut self, now: Instant, emit: &mut impl FnMut(Ordered<'_>)) {
        if self.starts_at.is_some_and(|at| now >= at) {
            self.starts_at = None;
            self.release(emit);
        }
    }

    /// The source begins with this packet, if it is earlier than all so far and still in time.
    fn begin_earlier(&mut self, now: Instant, sequence: u64) {
        if self.starts_at.is_none() || !(sequence..=sequence + START_REACH).contains(&self.next) {
            return;
        }
        for missing in (sequence + 1..self.next).rev() {
            self.missing.push_front(Missing::new(now, missing));
        }
        self.next = sequence;
    }

    fn note_recovered(&mut self, now: Instant, sequence: u64) {
        let Some(at) = self.missing.iter().position(|missing| missing.sequence == sequence) else {
            return;
        };
        if let Some(found) = self.missing.remove(at)
            && let Some(asked_at) = found.asked_at
        {
            self.counters.recovered += 1;
            if found.tries == 1 {
                let sample = now.saturating_duration_since(asked_at);
                self.rtt = (self.rtt * 7 + sample) / 8;
                self.is_rtt_measured = true;
            }
        }
    }

    /// Passes on what is in order behind `next`.
    fn release(&mut self, emit: &mut impl FnMut(Ordered<'_>)) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next {
                break;
            }
            let waiting = entry.remove();
            emit(Ordered::Packet(&waiting.header, &waiting.payload));
            self.next += 1;
        }
    }

    /// Gives up everything before the first packet that waits, or the first hole when none does.
    fn give_up_first(&mut self, emit: &mut impl FnMut(Ordered<'_>)) {
        self.starts_at = None;
        let until = match self.waiting.first_key_value() {
            Some((&sequence, _)) => sequence,
            None => self.highest + 1,
        };
        let lost = until - self.next;
        if lost > 0 {
            self.counters.lost += lost;
            emit(Ordered::Gap(lost));
        }
        self.next = until;
        while self.missing.front().is_some_and(|missing| missing.sequence < until) {
            self.missing.pop_front();
        }
        self.release(emit);
    }
}

#[cfg(test)]
#[path = "jitter_tests.rs"]
mod tests;
