//! What every track and layer has: its source's packets, their order, and the reception report on them. Pure.

use std::time::{Duration, Instant};

use crate::jitter::{Jitter, JitterCounters, Ordered};
use crate::meter::Meter;
use crate::reception::ReceptionStats;
use crate::rtp::RtpHeader;
use crate::transport::feedback::Reception;

/// Receives the packets of one track or layer.
pub(crate) struct Receiver {
    payload_type: u8,
    transport_cc_id: Option<u8>,
    jitter: Jitter,
    reception: ReceptionStats,
    pub(crate) meter: Meter,
}

impl Receiver {
    /// `rate`: the track's RTP clock in Hz; `has_nack`: whether the sender answers NACK.
    pub(crate) fn new(
        payload_type: u8,
        transport_cc_id: Option<u8>,
        has_nack: bool,
        rate: u32,
        now: Instant,
    ) -> Self {
        Self {
            payload_type,
            transport_cc_id,
            jitter: Jitter::new(has_nack),
            reception: ReceptionStats::new(rate, now),
            meter: Meter::new(now),
        }
    }

    /// Takes a packet of this track; `emit` is called with everything that is in order now.
    #[inline]
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        emit: &mut impl FnMut(Ordered<'_>),
    ) {
        self.meter.note_bytes(payload.len());
        self.jitter.handle_packet(now, header, payload, false, emit);
        // A source that was replaced is ignored.
        if self.ssrc() == Some(header.ssrc) {
            self.reception.note_packet(now, header);
        }
    }

    /// Takes the original packet from a retransmission.
    pub(crate) fn handle_repeated(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        emit: &mut impl FnMut(Ordered<'_>),
    ) {
        self.meter.note_bytes(payload.len());
        self.jitter.handle_packet(now, header, payload, true, emit);
    }

    /// Gives up the holes that have been open for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant, emit: &mut impl FnMut(Ordered<'_>)) {
        self.jitter.handle_timeout(now, emit);
    }

    /// When holes or requests are due.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.jitter.poll_timeout()
    }

    /// The packets to request now.
    pub(crate) fn poll_nack(&mut self, now: Instant, sequences: &mut Vec<u16>) {
        self.jitter.poll_nack(now, sequences);
    }

    /// When a keyframe is to be requested because a missing packet may never come.
    #[must_use]
    pub(crate) fn keyframe_at(&self) -> Option<Instant> {
        self.jitter.keyframe_at()
    }

    /// Whether requests have remained without an answer so often that none is expected.
    #[must_use]
    pub(crate) const fn is_unanswered(&self) -> bool {
        self.jitter.is_unanswered()
    }

    /// Notes a sender report.
    pub(crate) const fn note_report(&mut self, now: Instant, ntp: u64) {
        self.reception.note_report(now, ntp);
    }

    /// The block for the next receiver report.
    pub(crate) fn reception(&mut self, now: Instant) -> Option<Reception> {
        self.reception.take(now, &self.jitter)
    }

    /// The sender's SSRC, once a packet was accepted.
    #[must_use]
    pub(crate) const fn ssrc(&self) -> Option<u32> {
        match self.jitter.highest() {
            Some((ssrc, _)) => Some(ssrc),
            None => None,
        }
    }

    #[must_use]
    pub(crate) const fn payload_type(&self) -> u8 {
        self.payload_type
    }

    /// Id of the header extension with the transport-wide sequence number.
    #[must_use]
    pub(crate) const fn transport_cc_id(&self) -> Option<u8> {
        self.transport_cc_id
    }

    /// Counters since the start.
    #[must_use]
    pub(crate) const fn counters(&self) -> JitterCounters {
        self.jitter.counters()
    }

    /// Interarrival jitter (RFC 3550 6.4.1).
    #[must_use]
    pub(crate) fn jitter(&self) -> Duration {
        self.reception.jitter()
    }

    /// Round-trip time, measured by answered requests; `None` before the first.
    #[must_use]
    pub(crate) const fn rtt(&self) -> Option<Duration> {
        self.jitter.rtt()
    }
}
