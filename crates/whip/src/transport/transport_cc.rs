//! When packets arrived, by transport-wide sequence number, and the feedback built from it. Pure.
//!
//! A packet that arrives after its number was reported is reported again with its range, as libwebrtc does: the sender
//! then knows that it was late and not lost. Source: draft-holmer-rmcat-transport-wide-cc-extensions-01 3.1.

use std::time::{Duration, Instant};

use crate::rtp::step_to;

/// Sequence numbers that one feedback may span, and that are remembered for a late packet's range. A usual feedback
/// covers 30; a sender at 100 Mbps uses 1,000 in 100 ms.
const SPAN_LIMIT: u64 = 1024;
/// Times are written in quarters of a millisecond.
const TICK: Duration = Duration::from_micros(250);
const TICKS_PER_SECOND: i64 = 4_000;
/// The reference time counts units of 64 ms.
const REFERENCE_TICKS: i64 = 256;

/// One remembered packet.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Extended sequence number; 0 is none.
    sequence: u64,
    /// Arrival time since the start.
    ticks: i64,
}

/// Which packets arrived, and when.
#[derive(Debug)]
pub struct ReceiveTimes {
    start: Instant,
    /// By sequence number modulo [`SPAN_LIMIT`]; empty before the first packet.
    slots: Vec<Slot>,
    highest: u64,
    /// First sequence number of the next feedback.
    next_base: u64,
    has_news: bool,
    feedback_count: u8,
    symbols: Vec<u8>,
    deltas: Vec<u8>,
}

impl ReceiveTimes {
    /// Times are relative to `start`.
    #[must_use]
    pub const fn new(start: Instant) -> Self {
        Self {
            start,
            slots: Vec::new(),
            highest: 0,
            next_base: 0,
            has_news: false,
            feedback_count: 0,
            symbols: Vec::new(),
            deltas: Vec::new(),
        }
    }

    /// Notes the arrival of a packet.
    pub fn note(&mut self, now: Instant, sequence: u16) {
        let extended = if self.slots.is_empty() {
            self.slots.resize(SPAN_LIMIT as usize, Slot::default());
            // One cycle of the counter is left free below the first packet, so that older packets have a number too.
            let first = (1 << 16) + u64::from(sequence);
            (self.highest, self.next_base) = (first, first);
            first
        } else {
            self.highest.saturating_add_signed(step_to(self.highest, sequence, SPAN_LIMIT))
        };
        let Some(slot) = self.slots.get_mut((extended % SPAN_LIMIT) as usize) else { return };
        // If a packet arrives twice, its first arrival counts.
        if slot.sequence == extended {
            return;
        }
        let elapsed = now.saturating_duration_since(self.start);
        let in_second = elapsed.subsec_nanos() / TICK.subsec_nanos();
        let ticks = elapsed.as_secs() as i64 * TICKS_PER_SECOND + i64::from(in_second);
        *slot = Slot { sequence: extended, ticks };
        self.highest = self.highest.max(extended);
        self.next_base = self.next_base.min(extended);
        self.has_news = true;
    }

    /// Whether nothing has arrived since the last feedback.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.has_news
    }

    /// Writes a feedback after its two SSRCs: base sequence, packet count, reference time, feedback count, status
    /// chunks and deltas, padded to words. Returns false and writes nothing when nothing has arrived.
    pub(super) fn write_feedback(&mut self, out: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.has_news) {
            return false;
        }
        let base = self.next_base.max((self.highest + 1).saturating_sub(SPAN_LIMIT));
        self.next_base = self.highest + 1;
        self.symbols.clear();
        self.deltas.clear();
        let mut reference = None;
        let mut previous = 0;
        for sequence in base..=self.highest {
            let slot = self.slots.get((sequence % SPAN_LIMIT) as usize);
            let Some(slot) = slot.filter(|slot| slot.sequence == sequence) else {
                self.symbols.push(0);
                continue;
            };
            if reference.is_none() {
                reference = Some(slot.ticks / REFERENCE_TICKS);
                previous = slot.ticks / REFERENCE_TICKS * REFERENCE_TICKS;
            }
            let delta = slot.ticks - previous;
            let delta = i16::try_from(delta).unwrap_or(if delta < 0 { i16::MIN } else { i16::MAX });
            previous += i64::from(delta);
            match u8::try_from(delta) {
                Ok(small) => {
                    self.symbols.push(1);
                    self.deltas.push(small);
                }
                Err(_) => {
                    self.symbols.push(2);
                    self.deltas.extend_from_slice(&delta.to_be_bytes());
                }
            }
        }
        let reference = reference.unwrap_or_default() as u32 & 0xff_ffff;
        out.extend_from_slice(&(base as u16).to_be_bytes());
        out.extend_from_slice(&(self.symbols.len() as u16).to_be_bytes());
        out.extend_from_slice(&(reference << 8 | u32::from(self.feedback_count)).to_be_bytes());
        self.feedback_count = self.feedback_count.wrapping_add(1);
        put_chunks(&self.symbols, out);
        out.extend_from_slice(&self.deltas);
        out.resize(out.len().next_multiple_of(4), 0);
        true
    }
}

/// Runs of seven or more as run length chunks, the rest as two-bit status vectors.
fn put_chunks(mut symbols: &[u8], out: &mut Vec<u8>) {
    while let Some(&first) = symbols.first() {
        let run = symbols.iter().take_while(|symbol| **symbol == first).count().min(0x1fff);
        let (chunk, taken) = if run >= 7 || run == symbols.len() {
            (u16::from(first) << 13 | run as u16, run)
        } else {
            let vector = symbols.iter().take(7).enumerate();
            let chunk = vector
                .fold(0xc000, |chunk, (n, symbol)| chunk | u16::from(*symbol) << (12 - 2 * n));
            (chunk, symbols.len().min(7))
        };
        out.extend_from_slice(&chunk.to_be_bytes());
        symbols = symbols.get(taken..).unwrap_or_default();
    }
}

#[cfg(test)]
#[path = "transport_cc_tests.rs"]
mod tests;
