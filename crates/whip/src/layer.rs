//! One layer of the video: takes packets, returns complete access units. Without simulcast there is one layer. Pure.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::h264::Sps;

use crate::clock::VIDEO_RATE;
use crate::depacketizer::{AccessUnit, Depacketizer};
use crate::jitter::Ordered;
use crate::receiver::Receiver;
use crate::rtp::RtpHeader;
use crate::sdp::VideoSection;

/// A layer without packets for this long counts as no longer sent.
const LIVE_LIMIT: Duration = Duration::from_secs(1);

/// A simulcast layer.
pub(crate) struct Layer {
    /// Its name; empty without simulcast.
    pub(crate) rid: String,
    /// The SSRCs that packets with this layer's id carried, of media and of retransmissions.
    pub(crate) ssrc: Option<u32>,
    pub(crate) rtx_ssrc: Option<u32>,
    pub(crate) receiver: Receiver,
    depacketizer: Depacketizer,
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
            first_packet: None,
            last_packet: None,
            newest_frame: 0,
            previous_frame: None,
            configuration: None,
        }
    }

    /// Takes a packet; the access units it completes go to `units`, each with its sender's SSRC.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        is_repeated: bool,
        units: &mut Vec<(u32, AccessUnit)>,
    ) {
        let depacketizer = &mut self.depacketizer;
        let mut emit = |ordered: Ordered<'_>| order_into(depacketizer, ordered, units);
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
    }

    /// Gives up packets that have been missing for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant, units: &mut Vec<(u32, AccessUnit)>) {
        let depacketizer = &mut self.depacketizer;
        self.receiver.handle_timeout(now, &mut |ordered| order_into(depacketizer, ordered, units));
    }

    /// A frame that others refer to could not be forwarded.
    pub(crate) fn lose_reference(&mut self) {
        self.depacketizer.handle_gap();
    }

    /// Nothing is emitted before the next IDR.
    #[must_use]
    pub(crate) const fn awaits_keyframe(&self) -> bool {
        self.depacketizer.awaits_keyframe()
    }

    /// Recovery points that were passed on as keyframes since the previous call.
    pub(crate) const fn take_recovery_points(&mut self) -> u64 {
        self.depacketizer.take_recovery_points()
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

    /// Whether to show this layer instead of `shown` from a keyframe on: it is larger, or the other has stopped.
    #[must_use]
    pub(crate) fn is_better_than(&self, shown: &Self) -> bool {
        self.pixels() > shown.pixels() || self.has_outlived(shown)
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

fn order_into(
    depacketizer: &mut Depacketizer,
    ordered: Ordered<'_>,
    units: &mut Vec<(u32, AccessUnit)>,
) {
    match ordered {
        Ordered::Packet(header, payload) => {
            depacketizer.handle_payload(header.timestamp, header.marker, payload, &mut |unit| {
                units.push((header.ssrc, unit));
            });
        }
        Ordered::Gap(_) => depacketizer.handle_gap(),
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
