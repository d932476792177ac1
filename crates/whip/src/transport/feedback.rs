//! RTCP both ways: what the sender reports is read, what it should know is written. Not when (`session`). Pure.
//!
//! Sources: RFC 3550 6.4, RFC 4585 6.2.1 and 6.3.1, draft-holmer-rmcat-transport-wide-cc-extensions-01 3.1.

use std::time::{Duration, Instant};

/// What a sender's report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// Its wall clock (64-bit NTP) at an RTP time.
    Sender {
        /// The sender.
        ssrc: u32,
        /// Seconds above, fractions below.
        ntp: u64,
        /// In the track's clock.
        rtp: u32,
    },
    /// The sender leaves.
    Bye {
        /// The sender.
        ssrc: u32,
    },
}

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const BYE: u8 = 203;
const TRANSPORT_FEEDBACK: u8 = 205;
const PAYLOAD_FEEDBACK: u8 = 206;

/// Reads a compound packet. What is malformed ends the reading; what was read before counts.
pub fn read(mut compound: &[u8], note: &mut impl FnMut(Report)) {
    while let Some(header) = compound.get(..8) {
        let length = 4 + 4 * usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] >> 6 != 2 || length < 8 {
            return;
        }
        let Some(packet) = compound.get(..length) else { return };
        match header[1] {
            SENDER_REPORT => {
                if let (Some(ssrc), Some(high), Some(low), Some(rtp)) =
                    (be32(packet, 4), be32(packet, 8), be32(packet, 12), be32(packet, 16))
                {
                    let ntp = u64::from(high) << 32 | u64::from(low);
                    note(Report::Sender { ssrc, ntp, rtp });
                }
            }
            BYE => {
                for n in 0..usize::from(header[0] & 0x1f) {
                    if let Some(ssrc) = be32(packet, 4 + 4 * n) {
                        note(Report::Bye { ssrc });
                    }
                }
            }
            _ => {}
        }
        compound = &compound[length..];
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// What a receiver report says of one sender (RFC 3550 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The sender.
    pub ssrc: u32,
    /// Share lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets lost since the start.
    pub lost: u32,
    /// Extended highest sequence number.
    pub highest: u32,
    /// Interarrival jitter in RTP time.
    pub jitter: u32,
    /// Middle 32 bits of the last sender report's NTP time; 0 when none came.
    pub last_report: u32,
    /// Since then, in 65,536ths of a second.
    pub delay: u32,
}

/// A compound packet in the making; the receiver report stands first (RFC 3550 6.1).
#[derive(Debug)]
pub struct Compound {
    bytes: Vec<u8>,
    ssrc: u32,
}

impl Compound {
    /// Begins with a receiver report of `receptions`.
    #[must_use]
    pub fn new(ssrc: u32, receptions: &[Reception]) -> Self {
        let mut compound = Self { bytes: Vec::with_capacity(128), ssrc };
        let count = receptions.len().min(31);
        compound.begin(count as u8, RECEIVER_REPORT, 1 + 6 * count);
        for of in receptions.iter().take(count) {
            compound.put(of.ssrc);
            compound.put(u32::from(of.fraction_lost) << 24 | of.lost.min(0x7f_ffff));
            compound.put(of.highest);
            compound.put(of.jitter);
            compound.put(of.last_report);
            compound.put(of.delay);
        }
        compound
    }

    /// Asks for packets again (generic NACK).
    pub fn put_nack(&mut self, sender: u32, sequences: &[u16]) {
        let mut pairs: Vec<(u16, u16)> = Vec::new();
        for &sequence in sequences {
            match pairs.last_mut() {
                Some((first, mask)) if (1..=16).contains(&sequence.wrapping_sub(*first)) => {
                    *mask |= 1 << (sequence.wrapping_sub(*first) - 1);
                }
                _ => pairs.push((sequence, 0)),
            }
        }
        if pairs.is_empty() {
            return;
        }
        self.begin(1, TRANSPORT_FEEDBACK, 2 + pairs.len());
        self.put(sender);
        for (first, mask) in pairs {
            self.put(u32::from(first) << 16 | u32::from(mask));
        }
    }

    /// Asks for a keyframe (picture loss indication).
    pub fn put_pli(&mut self, sender: u32) {
        self.begin(1, PAYLOAD_FEEDBACK, 2);
        self.put(sender);
    }

    /// Says what the senders may send at most together (draft-alvestrand-rmcat-remb-03 2.2), bit/s.
    pub fn put_remb(&mut self, bitrate: u64, senders: &[u32]) {
        /// The mantissa has 18 bits.
        const MANTISSA_BITS: u32 = 18;
        let senders = senders.get(..senders.len().min(255)).unwrap_or_default();
        let exponent = (u64::BITS - bitrate.leading_zeros()).saturating_sub(MANTISSA_BITS);
        self.begin(15, PAYLOAD_FEEDBACK, 4 + senders.len());
        self.put(0);
        self.put(u32::from_be_bytes(*b"REMB"));
        let mantissa = (bitrate >> exponent) as u32;
        self.put((senders.len() as u32) << 24 | exponent << 18 | mantissa);
        for sender in senders {
            self.put(*sender);
        }
    }

    /// Says which packets came when (transport-wide congestion control).
    pub fn put_arrivals(&mut self, sender: u32, arrivals: &mut Arrivals) {
        let Some((base, count, reference, body)) = arrivals.take_body() else { return };
        let padding = body.len().next_multiple_of(4) - body.len();
        self.begin(15, TRANSPORT_FEEDBACK, 4 + (body.len() + padding) / 4);
        self.put(sender);
        self.put(u32::from(base) << 16 | u32::from(count));
        self.put(reference << 8 | u32::from(arrivals.feedback_count));
        arrivals.feedback_count = arrivals.feedback_count.wrapping_add(1);
        self.bytes.extend_from_slice(&body);
        self.bytes.resize(self.bytes.len() + padding, 0);
    }

    /// The packet, to be protected.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// `words`: what follows the first four bytes, in 32-bit words.
    fn begin(&mut self, count: u8, kind: u8, words: usize) {
        self.bytes.extend_from_slice(&[0x80 | count, kind]);
        self.bytes.extend_from_slice(&(words as u16).to_be_bytes());
        self.put(self.ssrc);
    }

    fn put(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_be_bytes());
    }
}

/// Packets one feedback may cover; at the usual pace it is 30.
const ARRIVALS_LIMIT: usize = 512;
/// Sequence numbers one feedback may span.
const SPAN_LIMIT: u64 = 1024;
/// Times are told in quarters of a millisecond.
const TICK: Duration = Duration::from_micros(250);

/// When packets came, by their transport-wide sequence number.
#[derive(Debug)]
pub struct Arrivals {
    start: Instant,
    /// Extended sequence number and arrival in ticks since `start`.
    seen: Vec<(u64, i64)>,
    highest: Option<u64>,
    next_base: Option<u64>,
    feedback_count: u8,
}

impl Arrivals {
    /// Times are relative to `start`.
    #[must_use]
    pub const fn new(start: Instant) -> Self {
        Self { start, seen: Vec::new(), highest: None, next_base: None, feedback_count: 0 }
    }

    /// A packet came.
    pub fn note(&mut self, now: Instant, sequence: u16) {
        let extended = match self.highest {
            Some(highest) => {
                let step = i64::from(sequence.wrapping_sub(highest as u16) as i16);
                highest.saturating_add_signed(step)
            }
            None => (1 << 16) + u64::from(sequence),
        };
        self.highest = Some(self.highest.map_or(extended, |highest| highest.max(extended)));
        if self.seen.len() < ARRIVALS_LIMIT {
            let ticks = now.saturating_duration_since(self.start).as_micros() / TICK.as_micros();
            self.seen.push((extended, i64::try_from(ticks).unwrap_or(i64::MAX)));
        }
    }

    /// Nothing came since the last feedback.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Base sequence, packet count, reference time (64 ms), status chunks with deltas.
    fn take_body(&mut self) -> Option<(u16, u16, u32, Vec<u8>)> {
        let mut seen = std::mem::take(&mut self.seen);
        seen.sort_unstable();
        seen.dedup_by_key(|(sequence, _)| *sequence);
        // What came too late for the feedback that covered it counts as lost.
        if let Some(base) = self.next_base {
            seen.retain(|(sequence, _)| *sequence >= base);
        }
        let &(last, _) = seen.last()?;
        seen.retain(|(sequence, _)| last - *sequence < SPAN_LIMIT);
        let first = seen.first()?.0;
        let base = self.next_base.filter(|base| last - base < SPAN_LIMIT);
        let base = base.unwrap_or(first);
        self.next_base = Some(last + 1);
        let reference = seen.first()?.1 / 256;
        let mut previous = reference * 256;
        let (mut symbols, mut deltas) = (Vec::new(), Vec::new());
        let mut arrived = seen.iter().peekable();
        for sequence in base..=last {
            match arrived.next_if(|(of, _)| *of == sequence) {
                Some((_, ticks)) => {
                    let delta = i16::try_from(ticks - previous).unwrap_or(i16::MAX);
                    previous += i64::from(delta);
                    match u8::try_from(delta) {
                        Ok(small) => {
                            symbols.push(1);
                            deltas.push(small);
                        }
                        Err(_) => {
                            symbols.push(2);
                            deltas.extend_from_slice(&delta.to_be_bytes());
                        }
                    }
                }
                None => symbols.push(0_u16),
            }
        }
        let mut body = Vec::with_capacity(symbols.len() / 3 + deltas.len());
        put_chunks(&symbols, &mut body);
        body.extend_from_slice(&deltas);
        let count = u16::try_from(symbols.len()).ok()?;
        Some((base as u16, count, reference as u32 & 0xff_ffff, body))
    }
}

/// Runs of seven or more as run length chunks, the rest as two-bit status vectors.
fn put_chunks(mut symbols: &[u16], body: &mut Vec<u8>) {
    while let Some(&first) = symbols.first() {
        let run = symbols.iter().take_while(|symbol| **symbol == first).count().min(0x1fff);
        let (chunk, taken) = if run >= 7 || run == symbols.len() {
            (first << 13 | run as u16, run)
        } else {
            let taken = symbols.len().min(7);
            let vector = symbols.iter().take(7).enumerate();
            (vector.fold(0xc000, |chunk, (n, symbol)| chunk | symbol << (12 - 2 * n)), taken)
        };
        body.extend_from_slice(&chunk.to_be_bytes());
        symbols = symbols.get(taken..).unwrap_or_default();
    }
}

#[cfg(test)]
#[path = "feedback_tests.rs"]
mod tests;
