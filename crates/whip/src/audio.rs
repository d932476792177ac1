//! The audio of one session: packets in, frames out. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, opus};

use crate::clock::Clock;
use crate::clock_rates::AUDIO_RATE;
use crate::jitter::Ordered;
use crate::receiver::Receiver;
use crate::rtp::RtpHeader;
use crate::sdp::AudioSection;

/// The most bytes an Opus packet of 120 ms can have.
const OPUS_PACKET_LIMIT: usize = 1275 * 6;
/// How far audio may arrive ahead of real time: a network that stalled delivers seconds at once. More than this would
/// cost a transcoder more than its share, at any bitrate.
const AHEAD_LIMIT: Duration = Duration::from_secs(5);
/// The lead shrinks by the time that passes and a quarter more, so that a sender with a fast clock never reaches the
/// limit.
const CATCH_UP_SHARE: u32 = 4;

/// The audio track.
pub(crate) struct AudioTrack {
    pub(crate) receiver: Receiver,
    channels: Option<opus::Channels>,
    pace: Pace,
}

/// How far the received audio is ahead of real time.
#[derive(Debug)]
struct Pace {
    ahead: Duration,
    since: Instant,
}

impl Pace {
    const fn new(now: Instant) -> Self {
        Self { ahead: Duration::ZERO, since: now }
    }

    /// Counts received audio of `duration`; false when it exceeds the limit.
    fn admit(&mut self, now: Instant, duration: Duration) -> bool {
        let passed = now.saturating_duration_since(self.since);
        self.since = now;
        self.ahead = self.ahead.saturating_sub(passed + passed / CATCH_UP_SHARE);
        let is_admitted = self.ahead + duration <= AHEAD_LIMIT;
        if is_admitted {
            self.ahead += duration;
        }
        is_admitted
    }
}

impl AudioTrack {
    /// A track as described by the offer's section.
    #[must_use]
    pub(crate) fn new(section: &AudioSection, now: Instant) -> Self {
        let transport_cc_id = section.transport_cc_id.filter(|_| section.has_transport_cc);
        let (format, has_nack) = (section.payload_type, section.has_nack);
        let receiver = Receiver::new(format, transport_cc_id, has_nack, AUDIO_RATE, now);
        Self { receiver, channels: None, pace: Pace::new(now) }
    }

    /// Whether the packet belongs to this track.
    #[must_use]
    pub(crate) const fn is_of(&self, header: &RtpHeader) -> bool {
        header.payload_type == self.receiver.payload_type()
    }

    /// Takes a packet; it and the packets that waited behind it go to `frames`.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let (channels, pace) = (&mut self.channels, &mut self.pace);
        self.receiver.handle_packet(now, header, payload, &mut |ordered| {
            emit_packet(now, ordered, channels, pace, clock, frames);
        });
    }

    /// Gives up packets that have been missing for too long. The decoder fills the hole from the next packet's
    /// redundancy, or conceals it.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let (channels, pace) = (&mut self.channels, &mut self.pace);
        self.receiver.handle_timeout(now, &mut |ordered| {
            emit_packet(now, ordered, channels, pace, clock, frames);
        });
    }

    /// Channel layout, once known.
    #[must_use]
    pub(crate) const fn channels(&self) -> Option<opus::Channels> {
        self.channels
    }
}

fn emit_packet(
    now: Instant,
    ordered: Ordered<'_>,
    channels: &mut Option<opus::Channels>,
    pace: &mut Pace,
    clock: &mut Clock,
    frames: &mut VecDeque<Frame>,
) {
    let Ordered::Packet(header, payload, arrived) = ordered else { return };
    // Empty padding packets probe the bandwidth and carry no audio.
    if payload.is_empty() || payload.len() > OPUS_PACKET_LIMIT {
        return;
    }
    // A packet without a valid duration counts as the longest (RFC 6716 3.2.5): whether it decodes is decided later.
    let samples = opus::duration(payload).unwrap_or(opus::LONGEST_PACKET_SAMPLES);
    if !pace.admit(now, Duration::from_secs(1) * samples / AUDIO_RATE) {
        return;
    }
    let timestamp = clock.stamp_audio(arrived, header.ssrc, header.timestamp);
    let codec = Codec::Opus;
    let Ok(of_packet) = opus::channels(payload) else { return };
    // Once stereo, always stereo: a new header at every change would disturb every player.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_much_faster_than_real_time_is_limited_and_a_burst_is_not() {
        let start = Instant::now();
        let packet = Duration::from_millis(20);
        let admitted = |pace: &mut Pace, now: Instant, count: u32| {
            (0..count).filter(|_| pace.admit(now, packet)).count()
        };
        let mut pace = Pace::new(start);
        assert_eq!(admitted(&mut pace, start, 1_000), 250);
        // Four seconds later five more seconds are allowed, however many packets were refused before.
        assert_eq!(admitted(&mut pace, start + Duration::from_secs(2), 1_000), 125);
        assert_eq!(admitted(&mut pace, start + Duration::from_secs(6), 1_000), 250);
    }

    #[test]
    fn a_packet_may_be_as_long_as_six_frames_of_maximum_size() {
        let offer = crate::sdp::read_offer(crate::fuzz::OFFER).expect("acceptable");
        let section = offer.audio.expect("audio");
        for (length, frames) in [(7_650, 2), (7_651, 0)] {
            let start = Instant::now();
            let mut track = AudioTrack::new(&section, start);
            // Six frames of 20 ms.
            let mut packet = vec![0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0xfb, 6];
            packet.resize(12 + length, 0);
            let header = RtpHeader::read(&packet).expect("a packet");
            let (mut clock, mut out) = (Clock::default(), VecDeque::new());
            track.handle_packet(start, &header, &packet[12..], &mut clock, &mut out);
            track.handle_timeout(start + Duration::from_secs(1), &mut clock, &mut out);
            assert_eq!(out.len(), frames, "{length} bytes");
        }
    }

    #[test]
    fn a_sender_with_a_clock_one_percent_fast_loses_nothing_in_an_hour() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for n in 0..180_000_u32 {
            let now = start + Duration::from_micros(19_800) * n;
            assert!(pace.admit(now, Duration::from_millis(20)));
        }
    }
}
