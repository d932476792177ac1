//! One layer of the video: takes packets, returns complete access units. Without simulcast there is one layer. Pure.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::h264::Sps;

use crate::clock_rates::VIDEO_RATE;
use crate::depacketizer::{AccessUnit, Depacketizer, PayloadCounters};
use crate::jitter::Ordered;
use crate::receiver::Receiver;
use crate::rtp::RtpHeader;
use crate::sdp::VideoSection;

/// A layer without packets for this long counts as no longer sent.
const LIVE_LIMIT: Duration = Duration::from_secs(1);

/// After a loss that no retransmission repaired, another layer is preferred for this long.
const IMPAIRED_TIME: Duration = Duration::from_secs(30);

/// Where an access unit comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The sender.
    pub(crate) ssrc: u32,
    /// When the first of its packets arrived.
    pub(crate) arrived: Instant,
}

/// The access unit that is being assembled.
#[derive(Clone, Copy, Debug)]
struct Assembling {
    /// RTP time.
    timestamp: u32,
    origin: Origin,
}

/// A simulcast layer.
pub(crate) struct Layer {
    /// Its name; empty without simulcast.
    pub(crate) rid: String,
    /// The SSRCs that packets with this layer's id carried, of media and of retransmissions.
    pub(crate) ssrc: Option<u32>,
    pub(crate) rtx_ssrc: Option<u32>,
    pub(crate) receiver: Receiver,
    depacketizer: Depacketizer,
    /// Packets lost so far although they were requested, and when the last one was.
    unanswered: u64,
    unanswered_at: Option<Instant>,
    /// Broken keyframes that were noted.
    broken_keyframes: u64,
    assembling: Assembling,
    pub(crate) first_packet: Option<Instant>,
    last_packet: Option<Instant>,
    /// RTP time of the newest frame, and when the last packet before that frame arrived.
    newest_frame: u32,
    previous_frame: Option<Instant>,
    /// The newest decoder configuration.
    pub(crate) configuration: Option<Bytes>,
}

impl Layer {
    /// A layer as described by the offer's section.
    pub(crate) fn new(rid: &str, section: &VideoSection, now: Instant) -> Self {
        let transport_cc_id = section.transport_cc_id.filter(|_| section.has_transport_cc);
        let (format, has_nack) = (section.payload_type, section.has_nack);
        Self {
            rid: rid.to_owned(),
            ssrc: None,
            rtx_ssrc: None,
            receiver: Receiver::new(format, transport_cc_id, has_nack, VIDEO_RATE, now),
            depacketizer: Depacketizer::new(&section.parameter_sets),
            unanswered: 0,
            unanswered_at: None,
            broken_keyframes: 0,
            assembling: Assembling { timestamp: 0, origin: Origin { ssrc: 0, arrived: now } },
            first_packet: None,
            last_packet: None,
            newest_frame: 0,
            previous_frame: None,
            configuration: None,
        }
    }

    /// Takes a packet; the access units it completes go to `units`, each with its origin.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        is_repeated: bool,
        units: &mut Vec<(Origin, AccessUnit)>,
    ) {
        let (depacketizer, assembling) = (&mut self.depacketizer, &mut self.assembling);
        let mut emit = |ordered: Ordered<'_>| order_into(depacketizer, assembling, ordered, units);
        if is_repeated {
            self.receiver.handle_repeated(now, header, payload, &mut emit);
        } else {
            self.first_packet.get_or_insert(now);
            if self.newest_frame != header.timestamp {
                (self.newest_frame, self.previous_frame) = (header.timestamp, self.last_packet);
            }
            self.last_packet = Some(now);
            self.receiver.handle_packet(now, header, payload, &mut emit);
        }
        self.finish_batch(now, units);
    }

    /// Gives up packets that have been missing for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant, units: &mut Vec<(Origin, AccessUnit)>) {
        let (depacketizer, assembling) = (&mut self.depacketizer, &mut self.assembling);
        self.receiver.handle_timeout(now, &mut |ordered| {
            order_into(depacketizer, assembling, ordered, units);
        });
        self.finish_batch(now, units);
    }

    /// No further packet is available: the access unit with the marker ends.
    #[inline]
    fn finish_batch(&mut self, now: Instant, units: &mut Vec<(Origin, AccessUnit)>) {
        let Assembling { origin, .. } = self.assembling;
        self.depacketizer.finish_marked(&mut |unit| units.push((origin, unit)));
        let unanswered = self.receiver.counters().unanswered;
        if self.unanswered != unanswered {
            (self.unanswered, self.unanswered_at) = (unanswered, Some(now));
        }
    }

    /// A frame that others refer to could not be forwarded.
    pub(crate) fn lose_reference(&mut self) {
        self.depacketizer.lose_references();
    }

    /// What was irregular about the payloads so far.
    #[must_use]
    pub(crate) const fn payload_counters(&self) -> PayloadCounters {
        self.depacketizer.counters()
    }

    /// Whether a keyframe was withheld since the last call because a part of it was missing.
    pub(crate) const fn take_broken_keyframe(&mut self) -> bool {
        let before =
            std::mem::replace(&mut self.broken_keyframes, self.depacketizer.broken_keyframes());
        self.broken_keyframes > before
    }

    /// Whether this layer loses packets that are not repaired.
    #[must_use]
    pub(crate) fn is_impaired(&self, now: Instant) -> bool {
        self.unanswered_at.is_some_and(|at| now < at + IMPAIRED_TIME)
    }

    /// Nothing is emitted before the next IDR.
    #[must_use]
    pub(crate) const fn awaits_keyframe(&self) -> bool {
        self.depacketizer.awaits_keyframe()
    }

    /// Access units withheld so far.
    #[must_use]
    pub(crate) const fn withheld(&self) -> u64 {
        self.depacketizer.withheld()
    }

    /// The active SPS.
    #[must_use]
    pub(crate) fn sps(&self) -> Option<Sps> {
        self.depacketizer.sps()
    }

    /// profile_idc, constraint flags and level_idc.
    #[must_use]
    pub(crate) fn profile(&self) -> Option<[u8; 3]> {
        self.depacketizer.profile()
    }

    /// Whether packets of this layer are arriving.
    #[must_use]
    pub(crate) fn is_live(&self, now: Instant) -> bool {
        self.last_packet.is_some_and(|last| now < last + LIVE_LIMIT)
    }

    /// Whether to show this layer instead of `shown` from a keyframe on: it is larger and no worse repaired, it alone is
    /// repaired, or the other has stopped.
    #[must_use]
    pub(crate) fn is_better_than(&self, shown: &Self, now: Instant) -> bool {
        let is_preferred = match (self.is_impaired(now), shown.is_impaired(now)) {
            (false, true) => self.is_live(now),
            (true, false) => false,
            (true, true) | (false, false) => self.pixels() > shown.pixels(),
        };
        is_preferred || self.has_outlived(shown)
    }

    /// Whether two frames of this layer have arrived since `other` fell silent, the first of them after
    /// [`LIVE_LIMIT`]. At a frame per second or less every layer is silent for that long before each of its frames.
    fn has_outlived(&self, other: &Self) -> bool {
        let Some(last) = other.last_packet else { return true };
        self.previous_frame.is_some_and(|previous| previous >= last + LIVE_LIMIT)
    }

    /// Whether a packet that arrives now is the first one after a pause.
    #[must_use]
    pub(crate) fn has_returned(&self, now: Instant) -> bool {
        self.last_packet.is_some() && !self.is_live(now)
    }

    /// Pixels of a frame; 0 before they are known.
    #[must_use]
    pub(crate) fn pixels(&self) -> u64 {
        self.sps().map_or(0, |sps| u64::from(sps.width) * u64::from(sps.height))
    }
}

#[inline]
fn order_into(
    depacketizer: &mut Depacketizer,
    assembling: &mut Assembling,
    ordered: Ordered<'_>,
    units: &mut Vec<(Origin, AccessUnit)>,
) {
    // A packet completes the unit before its own.
    let previous = *assembling;
    let mut emit = |unit| units.push((previous.origin, unit));
    match ordered {
        // Padding that probes the bandwidth belongs to no access unit.
        Ordered::Packet(_, [], _) => {}
        Ordered::Packet(header, payload, arrived) => {
            if previous.timestamp != header.timestamp || arrived < previous.origin.arrived {
                let origin = Origin { ssrc: header.ssrc, arrived };
                *assembling = Assembling { timestamp: header.timestamp, origin };
            }
            depacketizer.handle_payload(header.timestamp, header.marker, payload, &mut emit);
        }
        Ordered::Gap(lost) => depacketizer.handle_gap(lost, &mut emit),
        Ordered::Restart => {
            depacketizer.finish_marked(&mut emit);
            depacketizer.lose_references();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_outlives_another_with_its_second_frame_after_a_second_of_silence() {
        for (second, has_outlived) in [(1_002, false), (1_003, true)] {
            let offer = crate::sdp::read_offer(crate::fuzz::OFFER).expect("acceptable");
            let (section, start) = (offer.video.expect("video"), Instant::now());
            let [mut layer, mut other] = ["h", "l"].map(|rid| Layer::new(rid, &section, start));
            assert!(layer.has_outlived(&other), "it has never begun");
            let mut sequence = 0;
            let mut feed = |layer: &mut Layer, millis: u64| {
                sequence += 1;
                let (marker, payload_type, ssrc, payload_at) = (true, 96, 7, 12);
                let (timestamp, payload_end) = (90 * millis as u32, 14);
                let header = RtpHeader {
                    marker,
                    payload_type,
                    sequence,
                    timestamp,
                    ssrc,
                    payload_at,
                    payload_end,
                };
                let now = start + Duration::from_millis(millis);
                layer.handle_packet(now, &header, &[0x41, 0x9a], false, &mut Vec::new());
            };
            feed(&mut layer, 0);
            feed(&mut other, 3);
            for _ in 0..2 {
                feed(&mut layer, second);
                assert!(!layer.has_outlived(&other), "a frame may have several packets");
            }
            feed(&mut layer, 2_200);
            assert_eq!(layer.has_outlived(&other), has_outlived, "{second} ms");
            assert!(!other.has_outlived(&layer));
        }
    }
}
