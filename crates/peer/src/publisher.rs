//! The publisher: datagrams and time in, datagrams and events out; ICE, DTLS, SRTP and the two tracks together.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::dtls::{Dtls, Identity, Outcome};
use crate::ice::Ice;
use crate::offer::{AUDIO_PAYLOAD_TYPE, Answer, Offer, VIDEO_PAYLOAD_TYPE};
use crate::packetizer::packetize;
use crate::reports::{Feedback, ntp_time, read_feedback};
use crate::srtp::Srtp;
use crate::track::Track;
use crate::{Error, Event, Result, Settings, SrtpChoice};

/// Between sender reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// What becomes of an outgoing DTLS datagram: nothing holds it back, several are sent in order.
pub type DatagramFilter = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>;

/// Publishes one audio and one video track to one server.
pub struct Publisher {
    settings: Settings,
    identity: Identity,
    ufrag: String,
    password: String,
    audio: Track,
    video: Track,
    session: Option<Session>,
    srtp: Option<Box<Srtp>>,
    /// Counts over both tracks; `None` unless offered and answered.
    transport_sequence: Option<u16>,
    next_report: Option<Instant>,
    dtls_mtu: usize,
    dtls_filter: Option<DatagramFilter>,
    transmits: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
}

/// What there is once the server has answered.
struct Session {
    server: SocketAddr,
    ice: Ice,
    dtls: Dtls,
    /// Sender reports count from here.
    origin: Instant,
    is_closed: bool,
}

impl Publisher {
    /// With its own certificate, credentials and SSRCs.
    ///
    /// # Errors
    /// When the cryptography refuses.
    pub fn new(settings: Settings) -> Result<Self> {
        let identity = Identity::generate()?;
        let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let [a0, a1, a2, a3, v0, v1, v2, v3] = identity.random()?;
        let [s0, s1, t0, t1] = identity.random()?;
        let sequence = |high, low| u16::from_be_bytes([high, low]);
        let audio_ssrc = u32::from_be_bytes([a0, a1, a2, a3]) & !1;
        let video_ssrc = u32::from_be_bytes([v0, v1, v2, v3]) | 1;
        Ok(Self {
            settings,
            ufrag: text(&identity.random::<4>()?),
            password: text(&identity.random::<16>()?),
            audio: Track::new(audio_ssrc, AUDIO_PAYLOAD_TYPE, 48_000, sequence(s0, s1)),
            video: Track::new(video_ssrc, VIDEO_PAYLOAD_TYPE, 90_000, sequence(t0, t1)),
            identity,
            session: None,
            srtp: None,
            transport_sequence: None,
            next_report: None,
            dtls_mtu: 0,
            dtls_filter: None,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// Handshake messages are fragmented to fit so many bytes; to be set before the answer.
    pub const fn set_dtls_mtu(&mut self, bytes: usize) {
        self.dtls_mtu = bytes;
    }

    /// Every DTLS datagram from now on goes through `filter`: to hold back, corrupt, cut or repeat it.
    pub fn set_dtls_filter(&mut self, filter: Option<DatagramFilter>) {
        self.dtls_filter = filter;
    }

    /// Takes the server's answer; checking begins.
    ///
    /// # Errors
    /// The answer lacks something or is the second one.
    pub fn handle_answer(&mut self, now: Instant, sdp: &str) -> Result<()> {
        if self.session.is_some() {
            return Err(Error::Answer("place: there was one"));
        }
        let answer = Answer::parse(sdp)?;
        if self.settings.dtls_server && !answer.is_active {
            return Err(Error::Answer("setup"));
        }
        let provider = self.identity.provider.clone();
        let tie_breaker = u64::from_be_bytes(self.identity.random()?);
        let ice = Ice::new(provider, &self.ufrag, &answer.ufrag, answer.password, tie_breaker, now);
        let (is_client, srtp) = (!answer.is_active, self.settings.srtp);
        let dtls = Dtls::new(&self.identity, answer.fingerprint, is_client, srtp, self.dtls_mtu)?;
        let server = answer.address;
        self.session = Some(Session { server, ice, dtls, origin: now, is_closed: false });
        self.transport_sequence =
            (self.settings.transport_cc && answer.has_transport_cc).then_some(0);
        self.handle_timeout(now);
        Ok(())
    }

    /// A datagram from the server (RFC 7983: told apart by the first byte).
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) {
        let Some(session) = &mut self.session else { return };
        match bytes {
            [0..=3, ..] => {
                if session.ice.handle_datagram(now, bytes) {
                    let outcome = session.dtls.start(now);
                    self.settle(outcome);
                }
                self.handle_timeout(now);
            }
            [20..=63, ..] => {
                let outcome = session.dtls.handle_datagram(now, bytes);
                self.settle(outcome);
            }
            [128..=191, 192..=223, ..] => self.handle_report(bytes),
            _ => {}
        }
    }

    /// Time has passed: checks, lost flights, sender reports.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(session) = &mut self.session else { return };
        if session.is_closed {
            return;
        }
        self.transmits.extend(session.ice.handle_timeout(now));
        let outcome = session.dtls.handle_timeout(now);
        let ntp = ntp_time(now.saturating_duration_since(session.origin));
        self.settle(outcome);
        if self.next_report.is_none_or(|at| now < at) {
            return;
        }
        self.next_report = Some(now + REPORT_INTERVAL);
        let Some(srtp) = &mut self.srtp else { return };
        let reports = [self.audio.report(now, ntp), self.video.report(now, ntp)];
        let protected = reports.iter().flatten().filter_map(|report| srtp.protect_rtcp(report));
        self.transmits.extend(protected);
    }

    /// The next datagram to send, and where.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let session = self.session.as_ref()?;
        Some((session.server, self.transmits.pop_front()?))
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends one access unit, given without start codes. Nothing before [`Event::Connected`].
    pub fn send_video(&mut self, now: Instant, rtp_time: u32, nal_units: &[&[u8]]) {
        let Some(srtp) = &mut self.srtp else { return };
        self.video.set_time(now, rtp_time);
        self.next_report.get_or_insert(now);
        let (track, transmits) = (&mut self.video, &mut self.transmits);
        let counter = &mut self.transport_sequence;
        packetize(nal_units, |payload, marker| {
            transmits.extend(track.send(srtp, payload, marker, next(counter)));
        });
    }

    /// Sends one Opus packet. Nothing before [`Event::Connected`].
    pub fn send_audio(&mut self, now: Instant, rtp_time: u32, opus_packet: &[u8]) {
        let Some(srtp) = &mut self.srtp else { return };
        self.audio.set_time(now, rtp_time);
        self.next_report.get_or_insert(now);
        let sequence = next(&mut self.transport_sequence);
        self.transmits.extend(self.audio.send(srtp, opus_packet, false, sequence));
    }

    /// Sends one RTP payload of the video track as it is: for what no packetizer makes.
    pub fn send_video_payload(
        &mut self,
        now: Instant,
        rtp_time: u32,
        payload: &[u8],
        marker: bool,
    ) {
        let Some(srtp) = &mut self.srtp else { return };
        self.video.set_time(now, rtp_time);
        let sequence = next(&mut self.transport_sequence);
        self.transmits.extend(self.video.send(srtp, payload, marker, sequence));
    }

    /// Protects an RTCP packet and sends it.
    pub fn send_rtcp(&mut self, packet: &[u8]) {
        if let Some(srtp) = &mut self.srtp {
            self.transmits.extend(srtp.protect_rtcp(packet));
        }
    }

    /// Sends any datagram.
    pub fn send_raw(&mut self, bytes: Vec<u8>) {
        self.transmits.push_back(bytes);
    }

    /// Says goodbye; nothing is sent after it.
    pub fn close(&mut self, now: Instant) {
        let Some(session) = &mut self.session else { return };
        session.dtls.close(now);
        self.settle(None);
        self.end();
    }

    /// The offer. Always the same.
    #[must_use]
    pub fn offer(&self) -> String {
        Offer {
            settings: self.settings,
            ufrag: &self.ufrag,
            password: &self.password,
            fingerprint: self.identity.fingerprint,
            audio_ssrc: self.audio.ssrc,
            video_ssrc: self.video.ssrc,
        }
        .to_sdp()
    }

    /// When [`Publisher::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref().filter(|session| !session.is_closed)?;
        let checks = Some(session.ice.poll_timeout());
        [checks, session.dtls.poll_timeout(), self.next_report].into_iter().flatten().min()
    }

    /// The profile that was agreed on, [`SrtpChoice::Gcm`] or [`SrtpChoice::Cm`]; `None` before [`Event::Connected`].
    #[must_use]
    pub fn srtp(&self) -> Option<SrtpChoice> {
        self.srtp.as_ref().map(|srtp| srtp.profile())
    }

    /// SSRC of the audio and of the video track.
    #[must_use]
    pub const fn ssrcs(&self) -> (u32, u32) {
        (self.audio.ssrc, self.video.ssrc)
    }

    fn handle_report(&mut self, bytes: &[u8]) {
        let Some(compound) = self.srtp.as_mut().and_then(|srtp| srtp.open_rtcp(bytes)) else {
            return;
        };
        for feedback in read_feedback(&compound) {
            self.events.push_back(match feedback {
                Feedback::Keyframe => Event::KeyframeWanted,
                Feedback::TransportCc => Event::TransportFeedback,
                Feedback::Nack(ssrc, missing) => {
                    let tracks = [&self.audio, &self.video];
                    if let Some(track) = tracks.into_iter().find(|track| track.ssrc == ssrc) {
                        let kept = missing.iter().filter_map(|id| track.sent_before(*id));
                        self.transmits.extend(kept);
                    }
                    Event::Nack(missing)
                }
            });
        }
    }

    /// What DTLS came to and what it wants to send.
    fn settle(&mut self, outcome: Option<Outcome>) {
        let Some(session) = &mut self.session else { return };
        while let Some(datagram) = session.dtls.poll_transmit() {
            match &mut self.dtls_filter {
                Some(filter) => self.transmits.extend(filter(datagram)),
                None => self.transmits.push_back(datagram),
            }
        }
        match outcome {
            Some(Outcome::Connected(srtp)) => {
                self.srtp = Some(srtp);
                self.events.push_back(Event::Connected);
            }
            Some(Outcome::Closed) if !session.is_closed => {
                self.events.push_back(Event::Closed);
                self.end();
            }
            Some(Outcome::Closed) | None => {}
        }
    }

    fn end(&mut self) {
        self.srtp = None;
        self.next_report = None;
        if let Some(session) = &mut self.session {
            session.is_closed = true;
        }
    }
}

/// Takes the next number of a counter that is in use.
fn next(counter: &mut Option<u16>) -> Option<u16> {
    let taken = *counter;
    *counter = taken.map(|number| number.wrapping_add(1));
    taken
}
