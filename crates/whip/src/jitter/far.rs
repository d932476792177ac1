//! Packets whose number is far from all others: a stray one, or the sender's numbers have jumped.

use std::time::Instant;

use bytes::Bytes;

use super::{
    FIRST_CYCLE, JUMP_LIMIT, Jitter, LATE_AHEAD, LATE_BEHIND, Ordered, START_WAIT, Waiting,
};
use crate::rtp::RtpHeader;

impl Jitter {
    /// Takes a packet whose number is far from all others. A second one beside it confirms it; else it is ignored.
    #[cold]
    pub(super) fn handle_far(
        &mut self,
        now: Instant,
        step: i64,
        header: &RtpHeader,
        payload: &[u8],
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> bool {
        self.counters.late += 1;
        let beside = |far: &Waiting| {
            if far.header.ssrc != header.ssrc {
                return false;
            }
            let apart = i64::from(header.sequence.wrapping_sub(far.header.sequence) as i16);
            apart != 0 && apart.unsigned_abs() <= JUMP_LIMIT && apart.abs() < step.abs()
        };
        let Some(far) = self.far.take().filter(beside) else {
            self.keep_far(now, header, payload);
            return false;
        };
        self.counters.late -= 2;
        let first = self.highest.saturating_add_signed(i64::from(
            far.header.sequence.wrapping_sub(self.highest as u16) as i16,
        ));
        let first = if step < 0 || step.unsigned_abs() > JUMP_LIMIT {
            self.restart(now, &far.header, false, emit)
        } else {
            first
        };
        self.take_both(now, first, &far, (header, payload), emit)
    }

    /// Keeps a packet until a second one confirms it.
    pub(super) fn keep_far(&mut self, now: Instant, header: &RtpHeader, payload: &[u8]) {
        let payload = Bytes::copy_from_slice(payload);
        self.far = Some(Waiting { header: *header, payload, arrived: now });
    }

    /// Takes the second packet of a new source, and the first.
    #[cold]
    pub(super) fn begin_with_far(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> bool {
        let Some(far) = self.far.take() else { return false };
        self.counters.late -= 1;
        let first = self.restart(now, &far.header, true, emit);
        self.take_both(now, first, &far, (header, payload), emit)
    }

    fn take_both(
        &mut self,
        now: Instant,
        first: u64,
        far: &Waiting,
        (header, payload): (&RtpHeader, &[u8]),
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> bool {
        self.take(now, first, &far.header, &far.payload, false, emit);
        let step = i64::from(header.sequence.wrapping_sub(far.header.sequence) as i16);
        self.take(now, first.saturating_add_signed(step), header, payload, false, emit)
    }

    /// Whether a packet with a number that has passed is not a late one, by its RTP time: the sender's numbers went back.
    #[cold]
    pub(super) const fn is_renumbered(&self, header: &RtpHeader) -> bool {
        let ahead = header.timestamp.wrapping_sub(self.newest);
        ahead > LATE_AHEAD && ahead < LATE_BEHIND.wrapping_neg()
    }

    /// Begins the numbering anew with this packet, after a gap; returns its number.
    #[cold]
    pub(super) fn restart(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        is_new: bool,
        emit: &mut impl FnMut(Ordered<'_>),
    ) -> u64 {
        if self.next > 0 {
            while !self.holes.is_empty() || !self.waiting.is_empty() {
                self.give_up_first(now, emit);
            }
            emit(Ordered::Restart);
        }
        self.far = None;
        if is_new {
            self.counters_at_start = self.counters;
        }
        let start = FIRST_CYCLE + u64::from(header.sequence);
        self.next = start;
        (self.highest, self.newest) = (start, header.timestamp);
        self.starts_at = Some(now + START_WAIT);
        start
    }
}
