//! The audio of one session: packets in, frames out. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, opus};

use crate::clock::{AUDIO_RATE, Clock};
use crate::jitter::Ordered;
use crate::receiver::Receiver;
use crate::rtp::RtpHeader;
use crate::sdp::AudioSection;

/// One Opus packet of 120 ms has at most this.
const OPUS_PACKET_LIMIT: usize = 1275 * 6;

/// The audio track.
pub(crate) struct AudioTrack {
    pub(crate) receiver: Receiver,
    channels: Option<opus::Channels>,
}

impl AudioTrack {
    /// As the offer's section says.
    #[must_use]
    pub(crate) fn new(section: &AudioSection, now: Instant) -> Self {
        let transport_cc_id = section.transport_cc_id.filter(|_| section.has_transport_cc);
        let (format, has_nack) = (section.payload_type, section.has_nack);
        let receiver = Receiver::new(format, transport_cc_id, has_nack, AUDIO_RATE, now);
        Self { receiver, channels: None }
    }

    /// The packet is of this track.
    #[must_use]
    pub(crate) const fn is_of(&self, header: &RtpHeader) -> bool {
        header.payload_type == self.receiver.payload_type()
    }

    /// Takes a packet; it and what waited behind it go to `frames`.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let channels = &mut self.channels;
        self.receiver.handle_packet(now, header, payload, &mut |ordered| {
            emit_packet(now, ordered, channels, clock, frames);
        });
    }

    /// Gives up what is missing too long; whoever decodes fills the hole from the next packet's redundancy, or conceals
    /// it.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let channels = &mut self.channels;
        self.receiver.handle_timeout(now, &mut |ordered| {
            emit_packet(now, ordered, channels, clock, frames);
        });
    }

    /// Channels, once known.
    #[must_use]
    pub(crate) const fn channels(&self) -> Option<opus::Channels> {
        self.channels
    }
}

fn emit_packet(
    now: Instant,
    ordered: Ordered<'_>,
    channels: &mut Option<opus::Channels>,
    clock: &mut Clock,
    frames: &mut VecDeque<Frame>,
) {
    let Ordered::Packet(header, payload) = ordered else { return };
    // Padding that probes the bandwidth is no audio.
    if payload.is_empty() || payload.len() > OPUS_PACKET_LIMIT {
        return;
    }
    let timestamp = clock.stamp_audio(now, header.ssrc, header.timestamp);
    let codec = Codec::Opus;
    let Ok(of_packet) = opus::channels(payload) else { return };
    // Stereo once, stereo for good: a header per change would unsettle every player.
    let is_new = match (*channels, of_packet) {
        (None, _) => true,
        (Some(opus::Channels::Mono), opus::Channels::Stereo) => true,
        (Some(_), _) => false,
    };
    if is_new {
        *channels = Some(of_packet);
        let kind = FrameKind::Configuration;
        let data = Bytes::copy_from_slice(&opus::head(of_packet));
        frames.push_back(Frame { codec, kind, timestamp, composition_ms: 0, data });
    }
    let data = Bytes::copy_from_slice(payload);
    frames.push_back(Frame { codec, kind: FrameKind::Audio, timestamp, composition_ms: 0, data });
}
