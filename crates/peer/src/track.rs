//! One RTP track: headers, the history for answering NACKs, and the counters of its sender reports (RFC 3550).

use std::collections::VecDeque;
use std::time::Instant;

use crate::offer::TRANSPORT_CC_ID;
use crate::srtp::Srtp;
use crate::{HISTORY_LIMIT, reports};

/// The packets sent with one SSRC.
pub(crate) struct Track {
    pub(crate) ssrc: u32,
    payload_type: u8,
    /// RTP clock rate in Hz.
    clock_rate: u32,
    sequence: u16,
    packets: u32,
    octets: u32,
    /// The newest timestamp, and when it was passed to us.
    newest: Option<(u32, Instant)>,
    /// Protected packets as sent. A retransmission is identical byte for byte: GCM must not use a nonce twice.
    history: VecDeque<(u16, Vec<u8>)>,
}

impl Track {
    pub(crate) const fn new(ssrc: u32, payload_type: u8, clock_rate: u32, sequence: u16) -> Self {
        Self {
            ssrc,
            payload_type,
            clock_rate,
            sequence,
            packets: 0,
            octets: 0,
            newest: None,
            history: VecDeque::new(),
        }
    }

    /// Sets the timestamp of the packets that [`Track::send`] sends next.
    pub(crate) const fn set_time(&mut self, now: Instant, rtp_time: u32) {
        self.newest = Some((rtp_time, now));
    }

    /// Protects and returns the next packet. `transport_sequence` goes into its header extension.
    pub(crate) fn send(
        &mut self,
        srtp: &mut Srtp,
        payload: &[u8],
        marker: bool,
        transport_sequence: Option<u16>,
    ) -> Option<Vec<u8>> {
        let (rtp_time, _) = self.newest?;
        let mut packet = Vec::with_capacity(20 + payload.len());
        packet.push(if transport_sequence.is_some() { 0x90 } else { 0x80 });
        packet.push(self.payload_type | if marker { 0x80 } else { 0 });
        packet.extend_from_slice(&self.sequence.to_be_bytes());
        packet.extend_from_slice(&rtp_time.to_be_bytes());
        packet.extend_from_slice(&self.ssrc.to_be_bytes());
        if let Some(sequence) = transport_sequence {
            // RFC 8285 4.2, one-byte form: a value of two bytes, and one byte of padding.
            packet.extend_from_slice(&[0xbe, 0xde, 0, 1, TRANSPORT_CC_ID << 4 | 1]);
            packet.extend_from_slice(&sequence.to_be_bytes());
            packet.push(0);
        }
        packet.extend_from_slice(payload);
        let protected = srtp.protect_rtp(&packet)?;
        if self.history.len() == HISTORY_LIMIT {
            self.history.pop_front();
        }
        self.history.push_back((self.sequence, protected.clone()));
        self.sequence = self.sequence.wrapping_add(1);
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(u32::try_from(payload.len()).unwrap_or(0));
        Some(protected)
    }

    /// A packet that was sent before, if it is still kept.
    pub(crate) fn sent_before(&self, sequence: u16) -> Option<Vec<u8>> {
        // The history has no gaps, so the position follows from the sequence number.
        let (first, _) = self.history.front()?;
        let (_, packet) = self.history.get(usize::from(sequence.wrapping_sub(*first)))?;
        Some(packet.clone())
    }

    /// The current sender report; `None` before the first packet.
    pub(crate) fn report(&self, now: Instant, ntp: u64) -> Option<Vec<u8>> {
        let (rtp_time, at) = self.newest?;
        let ahead = now.saturating_duration_since(at).as_micros() * u128::from(self.clock_rate);
        let ticks = (ahead / 1_000_000) as u32;
        let rtp_time = rtp_time.wrapping_add(ticks);
        Some(reports::sender_report(self.ssrc, ntp, rtp_time, self.packets, self.octets))
    }
}
