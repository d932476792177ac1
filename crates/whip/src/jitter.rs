//! Puts the RTP packets of one track back in order: what to wait for, what to request again, when to give up. Pure.
//!
//! The cost of a packet does not depend on how many wait: missing packets are kept as runs, and their deadline is
//! cached.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;

mod far;

use crate::answers::Answers;
use crate::holes::{HOLE_LIMIT_MOST, Holes};
use crate::rtp::RtpHeader;
use crate::source::Source;

/// A source begins with the earliest packet that arrives within this time: its very first packet may have been
/// overtaken too, and a first keyframe without its beginning is useless.
const START_WAIT: Duration = Duration::from_millis(20);
/// A packet at most this far before the first one that arrived may belong to the same beginning.
const START_REACH: u64 = 64;
/// Shortest wait for a hole when the sender answers retransmission requests.
const HOLE_LIMIT_NACK: Duration = Duration::from_millis(500);
/// How many answers a hole is waited for: libwebrtc repeats a packet once per round trip, however often it is
/// requested. At 5 % loss each way one lost packet in a thousand needs a fourth repetition: a frame every minute or
/// two.
const ANSWERS_WAITED_FOR: u32 = 4;
/// How much longer than average the answers may take, including the pauses between requests.
const ANSWER_SPREAD: Duration = Duration::from_millis(120);
/// How long a hole is waited for when the sender does not answer requests.
const HOLE_LIMIT: Duration = Duration::from_millis(60);
/// The same when it says that it does: what is overtaken by more than this is rare, and each keyframe has to wait too.
const HOLE_LIMIT_UNANSWERED: Duration = Duration::from_millis(30);
/// Packets that may wait behind a hole: half a second at 20 Mbps, a second at 10.
const WAITING_LIMIT: usize = 1024;
/// Payload bytes that may wait behind a hole: half a second at 60 Mbps, a second at 30.
const WAITING_LIMIT_BYTES: usize = 4 << 20;
/// A jump in sequence numbers beyond this starts a new sequence and does not count as loss.
const JUMP_LIMIT: u64 = 2000;
/// A packet further ahead than this is believed only when a second one confirms it (RFC 3550 A.1): a single stray number
/// would make everything after it late.
const STEP_LIMIT: i64 = 64;
/// RTP time after the newest packet, and before it, of which no late packet is: a second of video, and a minute.
const LATE_AHEAD: u32 = 90_000;
const LATE_BEHIND: u32 = 60 * 90_000;

/// What `emit` receives, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered<'a> {
    /// The next packet, and when it arrived.
    Packet(&'a RtpHeader, &'a [u8], Instant),
    /// This many packets are missing here for good.
    Gap(u64),
    /// The numbers begin anew here: another source, or the same after a jump.
    Restart,
}

#[derive(Debug)]
struct Waiting {
    header: RtpHeader,
    payload: Bytes,
    arrived: Instant,
}

/// Counters of one track since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JitterCounters {
    /// Packets that arrived in time and for the first time.
    pub received: u64,
    /// Packets given up as lost.
    pub lost: u64,
    /// Packets requested again; each request counts.
    pub requested: u64,
    /// Packets recovered by retransmission.
    pub recovered: u64,
    /// Packets that arrived twice or too late, with a number far from all others, or from a source that was replaced.
    pub late: u64,
    /// Packets given up by a sender that answers no requests, although they were requested.
    pub unanswered: u64,
}

/// Orders one track's packets.
#[derive(Debug)]
pub struct Jitter {
    can_ask: bool,
    source: Source,
    /// Extended sequence number expected next.
    next: u64,
    highest: u64,
    /// RTP time of the packet with the highest number.
    newest: u32,
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: usize,
    holes: Holes,
    answers: Answers,
    /// The last packet with a number far from all others, not confirmed yet.
    far: Option<Waiting>,
    /// The packets that were given up last, and since when they had been missing: an answer that comes too late shows
    /// how long to wait for the next hole.
    last_given_up: Option<(Range<u64>, Instant)>,
    /// Until then the source may turn out to begin earlier, and nothing is emitted.
    starts_at: Option<Instant>,
    counters: JitterCounters,
    /// The counters when the current source began.
    counters_at_start: JitterCounters,
}

impl Jitter {
    /// `can_ask`: whether the sender answers NACK.
    #[must_use]
    pub fn new(can_ask: bool) -> Self {
        Self {
            can_ask,
            source: Source::default(),
            next: 0,
            highest: 0,
            newest: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            holes: Holes::default(),
            answers: Answers::new(can_ask),
            far: None,
            last_given_up: None,
            starts_at: None,
            counters: JitterCounters::default(),
            counters_at_start: JitterCounters::default(),
        }
    }

    /// Takes a packet or, with `is_repeated`, the original from a retransmission (RFC 4588); `emit` is called with
    /// everything that is in order now. False: it arrived twice or too late, or its source was replaced.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        is_repeated: bool,
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> bool {
        let Some(is_new) = self.source.admit(now, header.ssrc) else {
            self.counters.late += 1;
            if self.source.is_candidate(now, header.ssrc) {
                self.keep_far(now, header, payload);
            }
            return false;
        };
        if is_new && self.far.as_ref().is_some_and(|far| far.header.ssrc == header.ssrc) {
            return self.begin_with_far(now, header, payload, emit);
        }
        let step = i64::from(header.sequence.wrapping_sub(self.highest as u16) as i16);
        let sequence = self.highest.saturating_add_signed(step);
        let sequence = if is_new || self.next == 0 {
            self.restart(now, header, is_new, emit)
        } else if is_repeated {
            // One with another number than that of its original would do harm.
            if self.holes.since(sequence).is_none() && !self.is_earlier_start(sequence) {
                self.note_late(now, sequence, true);
                return false;
            }
            sequence
        } else if (-(JUMP_LIMIT as i64)..=STEP_LIMIT).contains(&step) {
            sequence
        } else {
            return self.handle_far(now, step, header, payload, emit);
        };
        if sequence < self.next && !is_repeated && self.is_renumbered(header) {
            return self.handle_far(now, step, header, payload, emit);
        }
        self.take(now, sequence, header, payload, is_repeated, emit)
    }

    /// Takes a packet by its extended number.
    #[allow(clippy::inline_always, reason = "every packet passes here, nearly all from one caller")]
    #[inline(always)]
    fn take(
        &mut self,
        now: Instant,
        sequence: u64,
        header: &RtpHeader,
        payload: &[u8],
        is_repeated: bool,
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> bool {
        self.start(now, emit);
        self.begin_earlier(now, sequence);
        if sequence < self.next || self.waiting.contains_key(&sequence) {
            self.note_late(now, sequence, is_repeated);
            return false;
        }
        self.counters.received += 1;
        if sequence > self.highest {
            self.holes.open(now, self.highest + 1, sequence);
            (self.highest, self.newest) = (sequence, header.timestamp);
        } else {
            let since = self.holes.since(sequence);
            if self.holes.fill(now, sequence, is_repeated) {
                self.counters.recovered += 1;
                self.answers.note_answer(now, since, is_repeated);
            }
        }
        if sequence == self.next && self.starts_at.is_none() {
            emit(Ordered::Packet(header, payload, now));
            self.next += 1;
            if !self.waiting.is_empty() {
                self.release(emit);
            }
        } else {
            let payload = Bytes::copy_from_slice(payload);
            let waiting = Waiting { header: *header, payload, arrived: now };
            self.waiting_bytes += waiting.payload.len();
            self.waiting.insert(sequence, waiting);
        }
        while self.is_overfull() {
            self.give_up_first(now, emit);
        }
        true
    }

    /// Counts a packet that is not needed; an answer that came too late is still an answer.
    fn note_late(&mut self, now: Instant, sequence: u64, is_repeated: bool) {
        self.counters.late += 1;
        if let Some((given_up, since)) = &self.last_given_up
            && given_up.contains(&sequence)
        {
            self.answers.note_answer(now, Some(*since), is_repeated);
            if is_repeated {
                self.holes.handle_answer(now, *since);
                self.last_given_up = None;
            }
        }
    }

    /// Gives up the holes that have been open for too long.
    pub fn handle_timeout(&mut self, now: Instant, emit: &mut impl FnMut(Ordered<'_>)) {
        self.start(now, emit);
        // Giving one up may shorten the wait for the next.
        while self.holes.oldest().is_some_and(|since| now >= since + self.hole_limit()) {
            self.give_up_first(now, emit);
        }
    }

    /// The packets to request now. Each call returns what is due once: the next request is due later than `now`.
    pub fn poll_nack(&mut self, now: Instant, sequences: &mut Vec<u16>) {
        if self.can_ask {
            let before = sequences.len();
            self.holes.poll_requests(now, sequences);
            self.counters.requested += (sequences.len() - before) as u64;
        }
    }

    /// When [`Jitter::handle_timeout`] or [`Jitter::poll_nack`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let give_up = self.holes.oldest().map(|since| since + self.hole_limit());
        let ask = self.holes.request_at().filter(|_| self.can_ask);
        [self.starts_at, give_up, ask].into_iter().flatten().min()
    }

    /// Counters since the start.
    #[must_use]
    pub const fn counters(&self) -> JitterCounters {
        self.counters
    }

    /// Packets received and packets lost since the current source began.
    #[must_use]
    pub const fn source_counters(&self) -> (u64, u64) {
        let (now, start) = (&self.counters, &self.counters_at_start);
        (now.received - start.received, now.lost - start.lost)
    }

    /// Highest extended sequence number as RFC 3550 6.4.1 counts it (its first cycle is 0), with the source's SSRC.
    #[must_use]
    pub const fn highest(&self) -> Option<(u32, u64)> {
        match self.source.ssrc() {
            Some(ssrc) => Some((ssrc, self.highest.saturating_sub(FIRST_CYCLE))),
            None => None,
        }
    }

    /// Round-trip time, measured by packets that arrived after a single request; `None` before the first.
    #[must_use]
    pub const fn rtt(&self) -> Option<Duration> {
        self.holes.rtt()
    }

    /// When a keyframe is to be requested because a missing packet may never come.
    #[must_use]
    pub fn keyframe_at(&self) -> Option<Instant> {
        Some(self.holes.oldest()? + self.answers.keyframe_wait()?)
    }

    /// Whether requests have remained without an answer so often that none is expected.
    #[must_use]
    pub const fn is_unanswered(&self) -> bool {
        self.can_ask && !self.answers.are_expected()
    }

    fn hole_limit(&self) -> Duration {
        if !self.answers.are_expected() {
            return if self.can_ask { HOLE_LIMIT_UNANSWERED } else { HOLE_LIMIT };
        }
        let Some(answered_in) = self.holes.answered_in() else {
            // The path may be slow: its first hole is often in the first keyframe. A sender that has let one hole time
            // out does not answer requests.
            return if self.counters.lost == 0 { HOLE_LIMIT_MOST } else { HOLE_LIMIT_NACK };
        };
        (answered_in * ANSWERS_WAITED_FOR + ANSWER_SPREAD).clamp(HOLE_LIMIT_NACK, HOLE_LIMIT_MOST)
    }

    fn is_overfull(&self) -> bool {
        self.waiting.len() > WAITING_LIMIT
            || self.waiting_bytes > WAITING_LIMIT_BYTES
            || self.holes.is_overfull()
    }

    /// Emits what waited for the source's beginning, once that time is over.
    fn start(&mut self, now: Instant, emit: &mut impl FnMut(Ordered<'_>)) {
        if self.starts_at.is_some_and(|at| now >= at) {
            self.starts_at = None;
            self.release(emit);
        }
    }

    /// Lets the source begin with this packet, if it is earlier than all others so far and still in time.
    fn begin_earlier(&mut self, now: Instant, sequence: u64) {
        if !self.is_earlier_start(sequence) {
            return;
        }
        self.holes.open(now, sequence + 1, self.next);
        self.next = sequence;
    }

    fn is_earlier_start(&self, sequence: u64) -> bool {
        self.starts_at.is_some() && (sequence..=sequence + START_REACH).contains(&self.next)
    }

    /// Emits the packets that are in order from `next` on.
    fn release(&mut self, emit: &mut impl FnMut(Ordered<'_>)) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next {
                break;
            }
            let waiting = entry.remove();
            self.waiting_bytes -= waiting.payload.len();
            emit(Ordered::Packet(&waiting.header, &waiting.payload, waiting.arrived));
            self.next += 1;
        }
    }

    /// Gives up everything before the first waiting packet, or the first hole when no packet waits.
    fn give_up_first(&mut self, now: Instant, emit: &mut impl FnMut(Ordered<'_>)) {
        self.starts_at = None;
        let until = match self.waiting.first_key_value() {
            Some((&sequence, _)) => sequence,
            None => self.highest + 1,
        };
        let lost = until - self.next;
        if lost > 0 {
            self.last_given_up = self.holes.oldest().map(|since| (self.next..until, since));
            self.counters.lost += lost;
            let tries = self.holes.oldest_tries();
            if self.can_ask && self.answers.note_given_up(now, tries) {
                self.counters.unanswered += lost;
            }
            emit(Ordered::Gap(lost));
        }
        self.next = until;
        self.holes.forget_before(until);
        self.release(emit);
    }
}

/// One cycle of the counter is left free below a source's first packet, so that older packets have a number too.
const FIRST_CYCLE: u64 = 1 << 16;

#[cfg(test)]
#[path = "jitter_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "jitter_irregular_tests.rs"]
mod irregular_tests;
