//! One WHIP publish session: the one door of the crate. Datagrams and time in, datagrams, frames and events out.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use headgate_media::Frame;

use crate::audio::AudioTrack;
use crate::clock::Clock;
use crate::credentials::Credentials;
use crate::diagnostics::{self, Diagnostics};
use crate::opening::Opening;
use crate::receiver::Receiver;
use crate::reporter::Reporter;
use crate::rtp::{RtpHeader, extension_u16};
use crate::sdp::{Offer, is_dtls_client};

use crate::transport::dtls::{Dtls, DtlsEvent, Identity};
use crate::transport::feedback::{self, Report};
use crate::transport::gate::Gate;
use crate::transport::ice_lite::{IceLite, PathChange};
use crate::transport::path::Path;
use crate::transport::srtp::Srtp;
use crate::video::VideoTrack;

/// No valid STUN request and no authenticated packet for so long: the client is gone (W19).
const LOST_LIMIT: Duration = Duration::from_secs(30);
/// From the answer to the first frame (W19, P14).
const FIRST_MEDIA_LIMIT: Duration = Duration::from_secs(15);
/// Packets one session may send in a second: 100 Mbps.
const PACKETS_PER_SECOND_LIMIT: u32 = 10_000;

/// Why the session is over, as far as its wire tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhipEnd {
    /// ICE or DTLS did not come about in time, or the certificate is a stranger's.
    HandshakeFailed,
    /// The client closed DTLS.
    Closed,
    /// The client vanished.
    Lost,
    /// It is connected and sends nothing we could use.
    NoMedia,
}

/// What the driver must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhipEvent {
    /// This path proved itself: its datagrams belong to this session.
    Proven(Path),
    /// Too many others have since: datagrams from there are nobody's.
    Forgotten(Path),
    /// Media may come.
    Connected,
    /// Nothing more will come.
    Ended(WhipEnd),
}

/// What happened in a session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhipCounters {
    /// RTP packets that were opened.
    pub packets: u64,
    /// RTP packets given up.
    pub lost: u64,
    /// RTP packets that a request brought.
    pub recovered: u64,
    /// Requests for packets.
    pub nacks: u64,
    /// Requests for a keyframe.
    pub plis: u64,
    /// Pictures held back behind a hole.
    pub withheld: u64,
    /// Packets that were forged, replayed, malformed or too many.
    pub rejected: u64,
}

/// A WebRTC publisher.
pub struct WhipSession {
    identity: Identity,
    ice: IceLite,
    gate: Gate,
    dtls: Dtls,
    srtp: Option<Srtp>,
    audio: Option<AudioTrack>,
    video: Option<VideoTrack>,
    clock: Clock,
    reporter: Reporter,
    transmits: VecDeque<(Path, Vec<u8>)>,
    frames: VecDeque<Frame>,
    opening: Opening,
    events: VecDeque<WhipEvent>,
    opened_at: Instant,
    /// The time of the last input.
    now: Instant,
    dtls_role: &'static str,
    srtp_profile: &'static str,
    last_packet: Option<Instant>,
    has_media: bool,
    is_over: bool,
    has_said_goodbye: bool,
    second: Instant,
    packets_this_second: u32,
    packets: u64,
    rejected: u64,
}

impl WhipSession {
    /// A session for a judged offer; `max_bitrate_kbps`: what the sender is told to stay below, 0 for no limit; the answer is written by [`crate::sdp::write_answer`] with the same credentials.
    #[must_use]
    pub fn new(
        identity: &Identity,
        offer: &Offer,
        credentials: &Credentials,
        max_bitrate_kbps: u32,
        now: Instant,
    ) -> Self {
        let Credentials { ufrag, password, ssrc } = credentials.clone();
        let audio = offer.audio.as_ref().map(|section| AudioTrack::new(section, now));
        let video = offer.video.as_ref().map(|section| VideoTrack::new(section, now));
        // The wish alone brings no arrivals: the packets must be numbered, too.
        let has_transport_cc = offer
            .audio
            .as_ref()
            .is_some_and(|audio| audio.has_transport_cc && audio.transport_cc_id.is_some())
            || offer
                .video
                .as_ref()
                .is_some_and(|video| video.has_transport_cc && video.transport_cc_id.is_some());
        let has_remb = offer.video.as_ref().is_some_and(|video| video.has_remb);
        let mut reporter = Reporter::new(ssrc, has_transport_cc, has_remb, now);
        reporter.limit_bitrate(max_bitrate_kbps);
        let opening = Opening::new(audio.is_some() && video.is_some());
        Self {
            identity: identity.clone(),
            ice: IceLite::new(ufrag, password, identity.provider()),
            gate: Gate::default(),
            dtls: Dtls::new(identity, offer.fingerprint, is_dtls_client(offer), now),
            srtp: None,
            audio,
            video,
            clock: Clock::default(),
            reporter,
            transmits: VecDeque::new(),
            frames: VecDeque::new(),
            opening,
            events: VecDeque::new(),
            opened_at: now,
            now,
            dtls_role: if is_dtls_client(offer) { "client" } else { "server" },
            srtp_profile: "",
            last_packet: None,
            has_media: false,
            is_over: false,
            has_said_goodbye: false,
            second: now,
            packets_this_second: 0,
            packets: 0,
            rejected: 0,
        }
    }

    /// Takes a datagram; media in it is opened in place.
    pub fn handle_datagram(&mut self, now: Instant, source: impl Into<Path>, datagram: &mut [u8]) {
        if self.is_over {
            return;
        }
        self.now = now;
        let source = source.into();
        // RFC 7983: told apart by the first byte.
        match datagram.first() {
            Some(0..=3) => self.handle_stun(now, source, datagram),
            Some(20..=63) if self.ice.is_proven(source) => self.handle_dtls(now, datagram),
            Some(128..=191) if self.ice.is_proven(source) => {
                self.handle_media(now, source, datagram)
            }
            Some(_) | None => self.rejected += 1,
        }
    }

    /// Does what is due: retransmissions, requests, reports, endings.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_over {
            return;
        }
        self.now = now;
        if let Some(event) = self.dtls.handle_timeout(now) {
            self.handle_dtls_event(event);
        }
        self.drain_dtls();
        if let Some(video) = &mut self.video {
            video.handle_timeout(now, &mut self.clock, &mut self.frames);
        }
        if let Some(audio) = &mut self.audio {
            audio.handle_timeout(now, &mut self.clock, &mut self.frames);
        }
        self.report(now);
        if self.srtp.is_some() && now >= self.alive_until() {
            self.end(WhipEnd::Lost);
        } else if !self.has_media && now >= self.opened_at + FIRST_MEDIA_LIMIT {
            self.end(WhipEnd::NoMedia);
        }
    }

    /// When [`WhipSession::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let first_media = (!self.has_media).then(|| self.opened_at + FIRST_MEDIA_LIMIT);
        let video = self.video.as_ref().and_then(|video| video.poll_timeout(self.now));
        let audio = self.audio.as_ref().and_then(|audio| audio.receiver.poll_timeout());
        let alive = self.srtp.is_some().then(|| self.alive_until());
        let report = self.srtp.is_some().then(|| self.reporter.poll_timeout());
        [self.dtls.poll_timeout(), first_media, video, audio, alive, report]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next datagram to send, and where to.
    pub fn poll_transmit(&mut self) -> Option<(Path, Vec<u8>)> {
        self.transmits.pop_front()
    }

    /// The next frame.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.opening.poll(&mut self.frames)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WhipEvent> {
        self.events.pop_front()
    }

    /// Someone needs a keyframe: a player that just joined, an upstream that came back.
    pub fn want_keyframe(&mut self) {
        if let Some(video) = &mut self.video {
            video.want_keyframe();
        }
    }

    /// The sender is told to stay below `kbps` from now on; 0 is no limit. One that does not read REMB keeps what the
    /// answer said.
    pub fn limit_bitrate(&mut self, kbps: u32) {
        self.reporter.limit_bitrate(kbps);
    }

    /// Says goodbye; what [`WhipSession::poll_transmit`] still has should be sent.
    pub fn close(&mut self, now: Instant) {
        self.is_over = true;
        if !self.has_said_goodbye {
            self.has_said_goodbye = true;
            self.dtls.close(now);
            self.drain_dtls();
        }
    }

    /// As if `source` had sent a valid check: for fuzzing, which cannot sign one.
    pub(crate) fn prove(&mut self, now: Instant, source: Path) {
        self.ice.prove(now, source);
    }

    /// The client restarts ICE: from now on these credentials are answered to beside the old ones.
    pub fn restart_ice(&mut self, ufrag: String, password: String) {
        self.ice.restart(ufrag, password);
    }

    /// Width and height of the picture in pixels, once known.
    #[must_use]
    pub fn resolution(&self) -> Option<(u32, u32)> {
        self.video.as_ref().and_then(VideoTrack::resolution)
    }

    /// Our halves of the STUN user names that are answered to: one, and more while ICE restarts.
    pub fn ufrags(&self) -> impl Iterator<Item = &str> {
        self.ice.ufrags()
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> WhipCounters {
        let mut counters = WhipCounters {
            packets: self.packets,
            rejected: self.rejected + self.gate.dropped(),
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

    /// What there is to say about the session now. Rates are of the time since the last call.
    #[must_use]
    pub fn diagnostics(&mut self, now: Instant) -> Diagnostics {
        let rtt = self.receivers().filter_map(Receiver::rtt).min();
        let mut told = Diagnostics {
            is_connected: self.srtp.is_some(),
            path: self.ice.selected(),
            dtls_role: self.dtls_role,
            srtp: self.srtp_profile,
            video: self.video.as_mut().map(|video| diagnostics::of_video(video, now)),
            audio: self.audio.as_mut().map(|audio| diagnostics::of_audio(audio, now)),
            rtt_ms: rtt.map(|rtt| rtt.as_secs_f64() * 1000.0),
            skew_ms: self.clock.skew_us().map(|skew| skew as f64 / 1000.0),
            rejected: self.rejected + self.gate.dropped(),
            problems: Vec::new(),
        };
        let since_start = now.saturating_duration_since(self.opened_at);
        told.problems = diagnostics::problems(&told, since_start, self.video.as_ref());
        told
    }

    fn receivers(&self) -> impl Iterator<Item = &Receiver> {
        let video = self.video.iter().flat_map(VideoTrack::layers);
        let audio = self.audio.iter().map(|audio| &audio.receiver);
        video.map(|layer| &layer.receiver).chain(audio)
    }

    fn handle_stun(&mut self, now: Instant, source: Path, datagram: &[u8]) {
        let Some(answer) = self.ice.handle_request(now, source, datagram) else {
            self.rejected += 1;
            return;
        };
        self.transmits.push_back((source, answer));
        while let Some(change) = self.ice.poll_change() {
            self.events.push_back(match change {
                PathChange::Proven(path) => WhipEvent::Proven(path),
                PathChange::Forgotten(path) => WhipEvent::Forgotten(path),
            });
        }
        if let Some(event) = self.dtls.start(now) {
            self.handle_dtls_event(event);
        }
        self.drain_dtls();
    }

    fn handle_dtls(&mut self, now: Instant, datagram: &[u8]) {
        let Some(admitted) = self.gate.admit(datagram) else { return };
        for event in self.dtls.handle_datagram(now, admitted) {
            self.handle_dtls_event(event);
        }
        self.drain_dtls();
    }

    fn handle_dtls_event(&mut self, event: DtlsEvent) {
        match event {
            DtlsEvent::Connected(keys) => {
                self.gate.complete();
                self.srtp = Srtp::new(&keys, &self.identity.provider());
                self.srtp_profile = keys.profile.name();
                if self.srtp.is_some() {
                    self.events.push_back(WhipEvent::Connected);
                } else {
                    self.end(WhipEnd::HandshakeFailed);
                }
            }
            DtlsEvent::Closed => self.end(WhipEnd::Closed),
            DtlsEvent::Failed => self.end(WhipEnd::HandshakeFailed),
        }
    }

    fn drain_dtls(&mut self) {
        while let Some(datagram) = self.dtls.poll_transmit() {
            if let Some(to) = self.ice.selected() {
                self.transmits.push_back((to, datagram.to_vec()));
            }
        }
    }

    fn handle_media(&mut self, now: Instant, source: Path, datagram: &mut [u8]) {
        if now >= self.second + Duration::from_secs(1) {
            self.second = now;
            self.packets_this_second = 0;
        }
        self.packets_this_second += 1;
        let Some(srtp) = &mut self.srtp else { return };
        if self.packets_this_second > PACKETS_PER_SECOND_LIMIT {
            self.rejected += 1;
            return;
        }
        // RFC 5761 4: payload types 64 to 95 with the marker bit are RTCP.
        if matches!(datagram.get(1), Some(192..=223)) {
            match srtp.open_rtcp(datagram) {
                Ok(length) => {
                    self.last_packet = Some(now);
                    self.ice.note_heard(now, source);
                    self.handle_reports(now, datagram.get(..length).unwrap_or_default());
                }
                Err(_) => self.rejected += 1,
            }
            return;
        }
        match srtp.open(datagram) {
            Ok(length) => {
                self.last_packet = Some(now);
                self.ice.note_heard(now, source);
                self.packets += 1;
                self.handle_rtp(now, datagram.get(..length).unwrap_or_default());
            }
            Err(_) => self.rejected += 1,
        }
    }

    fn handle_rtp(&mut self, now: Instant, packet: &[u8]) {
        let Some(header) = RtpHeader::read(packet) else {
            self.rejected += 1;
            return;
        };
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
            self.reporter.note_arrival(now, header.ssrc, sequence);
        }
        self.has_media |= !self.frames.is_empty();
    }

    fn handle_reports(&mut self, now: Instant, compound: &[u8]) {
        let (audio, video, clock) = (&mut self.audio, &mut self.video, &mut self.clock);
        feedback::read(compound, &mut |report| {
            // A goodbye alone ends nothing: browsers say it when a track is replaced.
            let Report::Sender { ssrc, ntp, rtp } = report else { return };
            let layers = video.iter_mut().flat_map(VideoTrack::layers_mut);
            if let Some(layer) =
                layers.into_iter().find(|layer| layer.receiver.ssrc() == Some(ssrc))
            {
                layer.receiver.note_report(now, ntp);
                clock.handle_video_report(ssrc, ntp, rtp);
            } else if let Some(audio) =
                audio.as_mut().filter(|audio| audio.receiver.ssrc() == Some(ssrc))
            {
                audio.receiver.note_report(now, ntp);
                clock.handle_audio_report(ssrc, ntp, rtp);
            }
        });
    }

    fn report(&mut self, now: Instant) {
        let (Some(srtp), Some(to)) = (&mut self.srtp, self.ice.selected()) else { return };
        let compound = self.reporter.report(now, self.video.as_mut(), self.audio.as_mut());
        if let Some(compound) = compound
            && let Some(protected) = srtp.protect_rtcp(compound.as_slice())
        {
            self.transmits.push_back((to, protected.to_vec()));
        }
    }

    fn alive_until(&self) -> Instant {
        let last = self.ice.last_request().max(self.last_packet).unwrap_or(self.opened_at);
        last + LOST_LIMIT
    }

    fn end(&mut self, end: WhipEnd) {
        if !self.is_over {
            self.is_over = true;
            self.events.push_back(WhipEvent::Ended(end));
        }
    }
}
