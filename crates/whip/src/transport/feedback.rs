//! RTCP in both directions: reads the sender's reports, writes our reports and requests. Not when (`reporter`). Pure.
//!
//! Sources: RFC 3550 6.4, RFC 4585 6.2.1 and 6.3.1.

use super::transport_cc::ReceiveTimes;

/// What we read from a sender's RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A sender report: the wall clock (64-bit NTP) at an RTP time.
    Sender {
        /// SSRC of the sender.
        ssrc: u32,
        /// Seconds in the upper half, fractions in the lower.
        ntp: u64,
        /// RTP timestamp, in the track's clock.
        rtp: u32,
    },
    /// The sender leaves (BYE).
    Bye {
        /// SSRC of the sender.
        ssrc: u32,
    },
}

const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const BYE: u8 = 203;
const TRANSPORT_FEEDBACK: u8 = 205;
const PAYLOAD_FEEDBACK: u8 = 206;

/// Reads a compound packet. Reading stops at malformed content; what was read before it counts.
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

/// The reception block on one sender (RFC 3550 6.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Share lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets lost since the start.
    pub lost: u32,
    /// Extended highest sequence number.
    pub highest: u32,
    /// Interarrival jitter in RTP time.
    pub jitter: u32,
    /// Middle 32 bits of the last sender report's NTP time; 0 when none was received.
    pub last_report: u32,
    /// Time since that report, in 65,536ths of a second.
    pub delay: u32,
}

/// A compound packet under construction; the receiver report comes first (RFC 3550 6.1).
#[derive(Debug)]
pub struct Compound {
    bytes: Vec<u8>,
    ssrc: u32,
}

impl Compound {
    /// Starts with a receiver report containing `receptions`.
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

    /// Requests packets again (generic NACK).
    pub fn put_nack(&mut self, sender: u32, sequences: &[u16]) {
        let start = self.bytes.len();
        self.begin(1, TRANSPORT_FEEDBACK, 0);
        self.put(sender);
        let mut pair: Option<(u16, u16)> = None;
        for &sequence in sequences {
            match &mut pair {
                Some((first, mask)) if (1..=16).contains(&sequence.wrapping_sub(*first)) => {
                    *mask |= 1 << (sequence.wrapping_sub(*first) - 1);
                }
                Some(_) | None => {
                    if let Some((first, mask)) = pair.replace((sequence, 0)) {
                        self.put(u32::from(first) << 16 | u32::from(mask));
                    }
                }
            }
        }
        match pair {
            Some((first, mask)) => {
                self.put(u32::from(first) << 16 | u32::from(mask));
                self.finish(start);
            }
            None => self.bytes.truncate(start),
        }
    }

    /// Requests a keyframe (picture loss indication).
    pub fn put_pli(&mut self, sender: u32) {
        self.begin(1, PAYLOAD_FEEDBACK, 2);
        self.put(sender);
    }

    /// Limits the total bitrate of the senders (draft-alvestrand-rmcat-remb-03 2.2), bit/s.
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

    /// Reports when packets arrived (transport-wide congestion control), if any did.
    pub fn put_transport_cc(&mut self, sender: u32, times: &mut ReceiveTimes) {
        let start = self.bytes.len();
        self.begin(15, TRANSPORT_FEEDBACK, 0);
        self.put(sender);
        if !times.write_feedback(&mut self.bytes) {
            self.bytes.truncate(start);
            return;
        }
        self.finish(start);
    }

    /// The packet, not yet protected.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// `words`: the length after the first four bytes, in 32-bit words.
    fn begin(&mut self, count: u8, kind: u8, words: usize) {
        self.bytes.extend_from_slice(&[0x80 | count, kind]);
        self.bytes.extend_from_slice(&(words as u16).to_be_bytes());
        self.put(self.ssrc);
    }

    /// Writes the length of the packet that began at `start`.
    fn finish(&mut self, start: usize) {
        let words = (self.bytes.len() - start) / 4 - 1;
        if let Some(length) = self.bytes.get_mut(start + 2..start + 4) {
            length.copy_from_slice(&(words as u16).to_be_bytes());
        }
    }

    fn put(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
#[path = "feedback_tests.rs"]
mod tests;
