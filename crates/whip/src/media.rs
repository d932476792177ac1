//! The media of one session: takes protected packets, returns frames and protected reports. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use headgate_media::{Frame, Irregularity, IrregularityCounts};

use crate::audio::AudioTrack;
use crate::clock::Clock;
use crate::counters::WhipCounters;
use crate::rate::RateLimit;
use crate::receiver::Receiver;
use crate::reporter::Reporter;
use crate::rtp::{RtpHeader, extension_u16};
use crate::sdp::Offer;
use crate::transport::feedback::{self, Report};
use crate::transport::srtp::Srtp;
use crate::video::VideoTrack;

/// Packets accepted per second from one session: 100 Mbps.
const PACKETS_PER_SECOND_LIMIT: u32 = 10_000;

/// SSRCs remembered of one session: two tracks, simulcast layers and their retransmissions.
const SOURCES_LIMIT: usize = 8;

/// Both tracks. Until there are keys every packet is dropped.
pub(crate) struct Media {
    srtp: Option<Srtp>,
    pub(crate) audio: Option<AudioTrack>,
    pub(crate) video: Option<VideoTrack>,
    pub(crate) clock: Clock,
    pub(crate) reporter: Reporter,
    pub(crate) frames: VecDeque<Frame>,
    /// At least one frame was produced.
    pub(crate) has_frames: bool,
    rate: RateLimit,
    /// SSRCs of authenticated packets, and how many of them were polled.
    sources: Vec<u32>,
    polled_sources: usize,
    packets: u64,
    pub(crate) rejected: u64,
    /// What was irregular about the sender since it was last taken.
    pub(crate) irregularities: IrregularityCounts,
    /// What the tracks had counted when it was last taken.
    taken: IrregularityCounts,
}

impl Media {
    /// Tracks as offered; `ssrc` is our own.
    pub(crate) fn new(offer: &Offer, ssrc: u32, now: Instant) -> Self {
        let audio = offer.audio.as_ref().map(|section| AudioTrack::new(section, now));
        let video = offer.video.as_ref().map(|section| VideoTrack::new(section, now));
        // Transport-wide feedback needs the packets' sequence number extension, not only the offered feedback.
        let has_transport_cc = offer
            .audio
            .as_ref()
            .is_some_and(|audio| audio.has_transport_cc && audio.transport_cc_id.is_some())
            || offer
                .video
                .as_ref()
                .is_some_and(|video| video.has_transport_cc && video.transport_cc_id.is_some());
        let has_remb = offer.video.as_ref().is_some_and(|video| video.has_remb);
        Self {
            srtp: None,
            audio,
            video,
            clock: Clock::default(),
            reporter: Reporter::new(ssrc, has_transport_cc, has_remb, now),
            frames: VecDeque::new(),
            has_frames: false,
            rate: RateLimit::new(PACKETS_PER_SECOND_LIMIT, now),
            sources: Vec::new(),
            polled_sources: 0,
            packets: 0,
            rejected: 0,
            irregularities: IrregularityCounts::default(),
            taken: IrregularityCounts::default(),
        }
    }

    /// From here on packets are decrypted and reports are protected.
    pub(crate) fn start(&mut self, srtp: Srtp) {
        self.srtp = Some(srtp);
    }

    /// Whether there are keys.
    #[must_use]
    pub(crate) const fn is_started(&self) -> bool {
        self.srtp.is_some()
    }

    /// Takes an SRTP or SRTCP datagram and decrypts it in place; returns the packet's length if it was authenticated.
    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: &mut [u8]) -> Option<usize> {
        let srtp = self.srtp.as_mut()?;
        let opened = match self.rate.admit(now) {
            true if is_rtcp(datagram) => srtp.open_rtcp(datagram).ok(),
            true => srtp.open(datagram).ok(),
            false => None,
        };
        let Some(packet) = opened.and_then(|length| datagram.get(..length)) else {
            self.rejected += 1;
            return None;
        };
        self.handle_opened(now, packet);
        opened
    }

    /// Takes a decrypted RTP or RTCP packet.
    #[inline]
    pub(crate) fn handle_opened(&mut self, now: Instant, packet: &[u8]) {
        if is_rtcp(packet) {
            self.handle_reports(now, packet);
        } else {
            self.packets += 1;
            self.handle_rtp(now, packet);
        }
    }

    /// Gives up packets that have been missing for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(video) = &mut self.video {
            video.handle_timeout(now, &mut self.clock, &mut self.frames);
        }
        if let Some(audio) = &mut self.audio {
            audio.handle_timeout(now, &mut self.clock, &mut self.frames);
        }
        self.has_frames |= !self.frames.is_empty();
    }

    /// The report that is due now, protected.
    pub(crate) fn poll_report(&mut self, now: Instant) -> Option<Vec<u8>> {
        let srtp = self.srtp.as_mut()?;
        let compound = self.reporter.report(now, self.video.as_mut(), self.audio.as_mut())?;
        srtp.protect_rtcp(compound.as_slice()).map(Vec::from)
    }

    /// When [`Media::handle_timeout`] or [`Media::poll_report`] has something to do.
    #[must_use]
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.srtp.as_ref()?;
        let video = self.video.as_ref().and_then(|video| video.poll_timeout(now));
        let audio = self.audio.as_ref().and_then(|audio| audio.receiver.poll_timeout());
        [video, audio, Some(self.reporter.poll_timeout())].into_iter().flatten().min()
    }

    /// An SSRC that was not returned before.
    pub(crate) fn poll_source(&mut self) -> Option<u32> {
        let source = self.sources.get(self.polled_sources).copied()?;
        self.polled_sources += 1;
        Some(source)
    }

    /// Counters since the start.
    #[must_use]
    pub(crate) fn counters(&self) -> WhipCounters {
        let mut counters = WhipCounters {
            packets: self.packets,
            rejected: self.rejected,
            plis: self.video.as_ref().map_or(0, |video| video.plis().0),
            withheld: self.video.as_ref().map_or(0, VideoTrack::withheld),
            ..WhipCounters::default()
        };
        for receiver in self.receivers() {
            let track = receiver.counters();
            counters.lost += track.lost;
            counters.recovered += track.recovered;
            counters.nacks += track.requested;
        }
        counters
    }

    /// What was irregular about the sender since the last call.
    pub(crate) fn take_irregularities(&mut self) -> IrregularityCounts {
        let mut total = self.video.as_ref().map(VideoTrack::irregularities).unwrap_or_default();
        if let Some(audio) = &self.audio {
            let unanswered = audio.receiver.counters().unanswered;
            total.add(Irregularity::RetransmissionsMissing, unanswered);
        }
        for (kind, count) in total.iter() {
            self.irregularities.add(kind, count - self.taken.count(kind));
        }
        self.taken = total;
        for (kind, count) in self.clock.take_irregularities().iter() {
            self.irregularities.add(kind, count);
        }
        std::mem::take(&mut self.irregularities)
    }

    /// The receivers of all tracks and layers.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = &Receiver> {
        let video = self.video.iter().flat_map(VideoTrack::layers);
        let audio = self.audio.iter().map(|audio| &audio.receiver);
        video.map(|layer| &layer.receiver).chain(audio)
    }

    #[inline]
    fn handle_rtp(&mut self, now: Instant, packet: &[u8]) {
        let Some(header) = RtpHeader::read(packet) else {
            self.rejected += 1;
            self.irregularities.add(Irregularity::MalformedPayload, 1);
            return;
        };
        if !self.sources.contains(&header.ssrc) && self.sources.len() < SOURCES_LIMIT {
            self.sources.push(header.ssrc);
        }
        let mut transport_cc = None;
        let (clock, frames) = (&mut self.clock, &mut self.frames);
        if let Some(video) = self.video.as_mut().filter(|video| video.is_of(&header)) {
            video.handle_packet(now, &header, packet, clock, frames);
            transport_cc = video.shown().and_then(|layer| layer.receiver.transport_cc_id());
        } else if let Some(audio) = self.audio.as_mut().filter(|audio| audio.is_of(&header)) {
            let payload = packet.get(header.payload_at..header.payload_end).unwrap_or_default();
            audio.handle_packet(now, &header, payload, clock, frames);
            transport_cc = audio.receiver.transport_cc_id();
        }
        if let Some(sequence) = transport_cc.and_then(|id| extension_u16(packet, id)) {
            self.reporter.note_packet(now, header.ssrc, sequence);
        }
        self.has_frames |= !self.frames.is_empty();
    }

    fn handle_reports(&mut self, now: Instant, compound: &[u8]) {
        let (audio, video, clock) = (&mut self.audio, &mut self.video, &mut self.clock);
        feedback::read(compound, &mut |report| {
            // An RTCP BYE alone does not end the session: browsers send one when a track is replaced.
            let Report::Sender { ssrc, ntp, rtp } = report else { return };
            let layers = video.iter_mut().flat_map(VideoTrack::layers_mut);
            if let Some(layer) =
                layers.into_iter().find(|layer| layer.receiver.ssrc() == Some(ssrc))
            {
                layer.receiver.note_report(now, ntp);
                clock.handle_video_report(now, ssrc, ntp, rtp);
            } else if let Some(audio) =
                audio.as_mut().filter(|audio| audio.receiver.ssrc() == Some(ssrc))
            {
                audio.receiver.note_report(now, ntp);
                clock.handle_audio_report(now, ssrc, ntp, rtp);
            }
        });
    }
}

/// The SSRC of the sender of an SRTP or SRTCP datagram, not authenticated (RFC 3550 5.1, 6.4.1).
#[must_use]
pub fn ssrc_of(datagram: &[u8]) -> Option<u32> {
    let Some(128..=191) = datagram.first() else { return None };
    let at = if is_rtcp(datagram) { 4 } else { 8 };
    datagram.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// RFC 5761 4: payload types 64 to 95 with the marker bit are RTCP.
fn is_rtcp(packet: &[u8]) -> bool {
    matches!(packet.get(1), Some(192..=223))
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
