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
            can_ask_keyframe: section.has_pli || section.has_fir,
            depacketizer: Depacketizer::new(&section.parameter_sets),
            first_packet: None,
            last_keyframe: None,
            last_pli: None,
            unanswered_plis: 0,
            is_keyframe_wanted: false,
            plis: 0,
        }
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
