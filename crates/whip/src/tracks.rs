//! One session's two tracks: packets in, frames out, and what must be asked of the sender. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, opus};

use crate::clock::{AUDIO_RATE, Clock, VIDEO_RATE};
use crate::depacketizer::{AccessUnit, Depacketizer};
use crate::jitter::{Jitter, JitterCounters, Ordered};
use crate::reception::ReceptionStats;
use crate::rtp::RtpHeader;
use crate::sdp::{AudioSection, VideoSection};
use crate::transport::feedback::Reception;

/// Browsers send no keyframes by themselves: asked for at this age, one is there before two seconds have passed.
const KEYFRAME_AGE: Duration = Duration::from_millis(1850);
/// Pause between two requests for a keyframe.
const KEYFRAME_PAUSE: Duration = Duration::from_millis(500);
/// After the first packet, the first keyframe is given so long to come by itself.
const FIRST_KEYFRAME_WAIT: Duration = Duration::from_millis(400);
/// Requests without a keyframe after which a sender is taken not to react.
const DEAF_AFTER: u32 = 8;
/// A sender that never reacts is asked this seldom.
const DEAF_PAUSE: Duration = Duration::from_secs(10);
/// One Opus packet of 120 ms has at most this.
const OPUS_PACKET_LIMIT: usize = 1275 * 6;

/// What both tracks have: whose packets, in which order, and what is reported of them.
pub(crate) struct Receiver {
    payload_type: u8,
    transport_cc_id: Option<u8>,
    jitter: Jitter,
    reception: ReceptionStats,
}

impl Receiver {
    /// The packets to ask for now.
    pub(crate) fn poll_nack(&mut self, now: Instant, sequences: &mut Vec<u16>) {
        self.jitter.poll_nack(now, sequences);
    }

    /// A sender report came.
    pub(crate) const fn note_report(&mut self, now: Instant, ntp: u64) {
        self.reception.note_report(now, ntp);
    }

    /// For the receiver report.
    pub(crate) fn reception(&mut self, now: Instant) -> Option<Reception> {
        self.reception.take(now, &self.jitter)
    }

    /// The sender, once it sent.
    #[must_use]
    pub(crate) const fn ssrc(&self) -> Option<u32> {
        match self.jitter.highest() {
            Some((ssrc, _)) => Some(ssrc),
            None => None,
        }
    }

    /// Header extension of the transport-wide sequence number.
    #[must_use]
    pub(crate) const fn transport_cc_id(&self) -> Option<u8> {
        self.transport_cc_id
    }

    /// What happened so far.
    #[must_use]
    pub(crate) const fn counters(&self) -> JitterCounters {
        self.jitter.counters()
    }

    /// The packet is of this track.
    #[must_use]
    pub(crate) const fn is_of(&self, header: &RtpHeader) -> bool {
        header.payload_type == self.payload_type
    }
}

/// The picture.
pub(crate) struct VideoTrack {
    pub(crate) receiver: Receiver,
    /// Payload type of retransmissions, and the sender that the offer names for the picture.
    rtx: Option<u8>,
    offered_ssrc: Option<u32>,
    can_ask_keyframe: bool,
    depacketizer: Depacketizer,
    first_packet: Option<Instant>,
    last_keyframe: Option<Instant>,
    last_pli: Option<Instant>,
    unanswered_plis: u32,
    is_keyframe_wanted: bool,
    plis: u64,
}

impl VideoTrack {
    /// As the offer's section says.
    #[must_use]
    pub(crate) fn new(section: &VideoSection, now: Instant) -> Self {
        Self {
            receiver: Receiver {
                payload_type: section.payload_type,
                transport_cc_id: section.transport_cc_id.filter(|_| section.has_transport_cc),
                jitter: Jitter::new(section.has_nack),
                reception: ReceptionStats::new(VIDEO_RATE, now),
            },
            rtx: section.rtx.filter(|_| section.has_nack).map(|rtx| rtx.payload_type),
            offered_ssrc: section.ssrc,
            can_ask_keyframe: section.has_pli,
            depacketizer: Depacketizer::new(&section.parameter_sets),
            first_packet: None,
            last_keyframe: None,
            last_pli: None,
            unanswered_plis: 0,
            is_keyframe_wanted: false,
            plis: 0,
        }
    }

    /// The packet repeats one of this track (RFC 4588).
    #[must_use]
    pub(crate) fn is_retransmission(&self, header: &RtpHeader) -> bool {
        self.rtx == Some(header.payload_type)
    }

    /// Takes a retransmission: the original sequence number stands before the original payload.
    pub(crate) fn handle_retransmission(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        // Nothing behind the number, or nothing at all, probes the bandwidth.
        let Some((&[high, low], original)) = payload.split_first_chunk() else { return };
        let Some(ssrc) = self.receiver.ssrc().or(self.offered_ssrc) else { return };
        if original.is_empty() {
            return;
        }
        let sequence = u16::from_be_bytes([high, low]);
        let payload_type = self.receiver.payload_type;
        let header = RtpHeader { sequence, ssrc, payload_type, ..*header };
        self.order(now, &header, original, clock, frames);
    }

    /// Takes a packet; what it completes goes to `frames`.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        self.first_packet.get_or_insert(now);
        self.receiver.reception.note_packet(now, header);
        self.order(now, header, payload, clock, frames);
    }

    fn order(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &[u8],
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let (depacketizer, mut out) = (&mut self.depacketizer, Emitter::new(now, clock, frames));
        self.receiver.jitter.handle_packet(now, header, payload, &mut |ordered| {
            order_into(depacketizer, ordered, &mut out);
        });
        self.note_keyframe(now, out.has_keyframe);
    }

    /// Gives up what is missing too long.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let (depacketizer, mut out) = (&mut self.depacketizer, Emitter::new(now, clock, frames));
        self.receiver.jitter.handle_timeout(now, &mut |ordered| {
            order_into(depacketizer, ordered, &mut out);
        });
        self.note_keyframe(now, out.has_keyframe);
    }

    /// When holes, requests or a keyframe are due.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.receiver.jitter.poll_timeout(), self.pli_at()].into_iter().flatten().min()
    }

    /// Whether to ask for a keyframe now.
    pub(crate) fn poll_pli(&mut self, now: Instant) -> bool {
        if self.pli_at().is_none_or(|at| now < at) {
            return false;
        }
        self.last_pli = Some(now);
        self.is_keyframe_wanted = false;
        self.unanswered_plis = self.unanswered_plis.saturating_add(1);
        self.plis += 1;
        true
    }

    /// Someone needs a keyframe.
    pub(crate) const fn want_keyframe(&mut self) {
        self.is_keyframe_wanted = true;
    }

    /// Width and height in pixels, once known.
    #[must_use]
    pub(crate) fn resolution(&self) -> Option<(u32, u32)> {
        self.depacketizer.resolution()
    }

    /// Requests for a keyframe so far.
    #[must_use]
    pub(crate) const fn plis(&self) -> u64 {
        self.plis
    }

    /// Pictures held back so far.
    #[must_use]
    pub(crate) const fn withheld(&self) -> u64 {
        self.depacketizer.withheld()
    }

    fn note_keyframe(&mut self, now: Instant, came: bool) {
        if came {
            self.last_keyframe = Some(now);
            self.unanswered_plis = 0;
        }
    }

    /// When the next request for a keyframe is due.
    fn pli_at(&self) -> Option<Instant> {
        let first = self.first_packet.filter(|_| self.can_ask_keyframe)?;
        let due = match self.last_keyframe {
            _ if self.is_keyframe_wanted => first,
            None => first + FIRST_KEYFRAME_WAIT,
            Some(_) if self.depacketizer.awaits_keyframe() => first,
            Some(last) => last + KEYFRAME_AGE,
        };
        let pause = if self.unanswered_plis >= DEAF_AFTER { DEAF_PAUSE } else { KEYFRAME_PAUSE };
        Some(self.last_pli.map_or(due, |last| due.max(last + pause)))
    }
}

/// Where the access units of one call go.
struct Emitter<'a> {
    now: Instant,
    clock: &'a mut Clock,
    frames: &'a mut VecDeque<Frame>,
    has_keyframe: bool,
}

impl<'a> Emitter<'a> {
    const fn new(now: Instant, clock: &'a mut Clock, frames: &'a mut VecDeque<Frame>) -> Self {
        Self { now, clock, frames, has_keyframe: false }
    }

    fn emit(&mut self, unit: AccessUnit) {
        let (timestamp, composition_ms) = self.clock.stamp_video(self.now, unit.timestamp);
        let codec = Codec::H264;
        if let Some(data) = unit.configuration {
            let kind = FrameKind::Configuration;
            self.frames.push_back(Frame { codec, kind, timestamp, composition_ms: 0, data });
        }
        let kind = match (unit.is_keyframe, unit.is_disposable) {
            (true, _) => FrameKind::Keyframe,
            (false, true) => FrameKind::Disposable,
            (false, false) => FrameKind::Inter,
        };
        self.has_keyframe |= unit.is_keyframe;
        self.frames.push_back(Frame { codec, kind, timestamp, composition_ms, data: unit.data });
    }
}

fn order_into(depacketizer: &mut Depacketizer, ordered: Ordered<'_>, out: &mut Emitter<'_>) {
    match ordered {
        Ordered::Packet(header, payload) => {
            depacketizer.handle_payload(header.timestamp, header.marker, payload, &mut |unit| {
                out.emit(unit);
            });
        }
        Ordered::Gap(_) => depacketizer.handle_gap(),
    }
}

/// The sound.
pub(crate) struct AudioTrack {
    pub(crate) receiver: Receiver,
    channels: Option<opus::Channels>,
}

impl AudioTrack {
    /// As the offer's section says.
    #[must_use]
    pub(crate) fn new(section: &AudioSection, now: Instant) -> Self {
        Self {
            receiver: Receiver {
                payload_type: section.payload_type,
                transport_cc_id: section.transport_cc_id.filter(|_| section.has_transport_cc),
                jitter: Jitter::new(section.has_nack),
                reception: ReceptionStats::new(AUDIO_RATE, now),
            },
            channels: None,
        }
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
        self.receiver.reception.note_packet(now, header);
        let channels = &mut self.channels;
        self.receiver.jitter.handle_packet(now, header, payload, &mut |ordered| {
            emit_packet(now, ordered, channels, clock, frames);
        });
    }

    /// Gives up what is missing too long; whoever decodes conceals it.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        clock: &mut Clock,
        frames: &mut VecDeque<Frame>,
    ) {
        let channels = &mut self.channels;
        self.receiver.jitter.handle_timeout(now, &mut |ordered| {
            emit_packet(now, ordered, channels, clock, frames);
        });
    }

    /// When holes or requests are due.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.receiver.jitter.poll_timeout()
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
    // Padding that probes the bandwidth is no sound.
    if payload.is_empty() || payload.len() > OPUS_PACKET_LIMIT {
        return;
    }
    let timestamp = clock.stamp_audio(now, header.timestamp);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdp::Rtx;

    fn section() -> VideoSection {
        let offer = "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=ice-ufrag:abcd\r\n\
a=ice-pwd:0123456789abcdefghijklmn\r\na=setup:actpass\r\na=rtcp-mux\r\na=mid:0\r\n\
a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n\
a=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n";
        crate::sdp::read_offer(offer).expect("acceptable").video.expect("a picture")
    }

    fn header(payload_type: u8, ssrc: u32, sequence: u16, timestamp: u32) -> RtpHeader {
        let (marker, payload_at, payload_end) = (true, 0, 0);
        RtpHeader { marker, payload_type, sequence, timestamp, ssrc, payload_at, payload_end }
    }

    #[test]
    fn a_retransmission_fills_its_hole_and_what_is_no_packet_is_passed_over() {
        let now = Instant::now();
        let section = section();
        assert_eq!(section.rtx.map(|Rtx { payload_type, .. }| payload_type), Some(97));
        let mut video = VideoTrack::new(&section, now);
        let (mut clock, mut frames) = (Clock::default(), VecDeque::new());
        let key = [
            &[0x78, 0, 5, 0x67, 0x42, 0xc0, 0x1f, 0x8c][..],
            &[0, 2, 0x68, 0xce, 0, 2, 0x65, 0x88],
        ]
        .concat();
        video.handle_packet(now, &header(96, 7, 10, 0), &key, &mut clock, &mut frames);
        video.handle_packet(now, &header(96, 7, 12, 7200), &[0x41, 0x9a], &mut clock, &mut frames);
        let before = frames.len();
        for payload in [&[][..], &[0], &[0, 11]] {
            let probe = header(97, 8, 500, 3600);
            video.handle_retransmission(now, &probe, payload, &mut clock, &mut frames);
        }
        assert_eq!(frames.len(), before);
        let repeated = header(97, 8, 501, 3600);
        assert!(video.is_retransmission(&repeated) && !video.receiver.is_of(&repeated));
        for _ in 0..2 {
            let payload = [0, 11, 0x41, 0x9a, 1];
            video.handle_retransmission(now, &repeated, &payload, &mut clock, &mut frames);
        }
        assert_eq!(frames.len(), before + 2);
        assert_eq!(video.receiver.counters().recovered, 0, "it was not asked for");
    }
}
