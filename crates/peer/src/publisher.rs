//! The publisher: takes datagrams and time, returns datagrams and events. ICE and DTLS run until there are keys, then
//! media flows.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use crate::dtls::{Dtls, Identity, Outcome};
use crate::ice::Ice;
use crate::media::Media;
use crate::offer::{Answer, Offer};
use crate::{Error, Event, Result, Settings, SrtpChoice};

/// Replaces an outgoing DTLS datagram: an empty result holds it back, several datagrams are sent in order.
pub type DatagramFilter = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>;

/// Publishes an audio and a video track to one server.
pub struct Publisher {
    settings: Settings,
    identity: Identity,
    ufrag: String,
    password: String,
    media: Media,
    session: Option<Session>,
    dtls_mtu: usize,
    dtls_filter: Option<DatagramFilter>,
    transmits: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
}

/// State that exists once the server has answered.
struct Session {
    server: SocketAddr,
    ice: Ice,
    dtls: Dtls,
    /// Zero of the sender reports' time.
    origin: Instant,
    is_closed: bool,
}

impl Publisher {
    /// Creates a publisher with its own certificate, credentials and SSRCs.
    ///
    /// # Errors
    /// When the cryptography provider fails.
    pub fn new(settings: Settings) -> Result<Self> {
        let identity = Identity::generate()?;
        let text = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            settings,
            ufrag: text(&identity.random::<4>()?),
            password: text(&identity.random::<16>()?),
            media: Media::new(identity.random()?, settings.audio_latency),
            identity,
            session: None,
            dtls_mtu: 0,
            dtls_filter: None,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// Limits the size of handshake fragments to this many bytes; to be called before the answer.
    pub const fn set_dtls_mtu(&mut self, bytes: usize) {
        self.dtls_mtu = bytes;
    }

    /// From now on passes every DTLS datagram through `filter`, which may hold back, corrupt, truncate or repeat it.
    pub fn set_dtls_filter(&mut self, filter: Option<DatagramFilter>) {
        self.dtls_filter = filter;
    }

    /// Takes the server's answer and starts the ICE checks.
    ///
    /// # Errors
    /// When the answer lacks something or is the second one.
    pub fn handle_answer(&mut self, now: Instant, sdp: &str) -> Result<()> {
        if self.session.is_some() {
            return Err(Error::Answer("there was one already"));
        }
        let answer = Answer::parse(sdp)?;
        if self.settings.dtls_server && !answer.is_active {
            return Err(Error::Answer("setup"));
        }
        let provider = self.identity.provider.clone();
        let tie_breaker = u64::from_be_bytes(self.identity.random()?);
        let own = (self.ufrag.as_str(), self.password.as_str());
        let ice = Ice::new(provider, own, &answer.ufrag, answer.password, tie_breaker, now);
        let (is_client, srtp) = (!answer.is_active, self.settings.srtp);
        let dtls = Dtls::new(&self.identity, answer.fingerprint, is_client, srtp, self.dtls_mtu)?;
        let server = answer.address;
        self.session = Some(Session { server, ice, dtls, origin: now, is_closed: false });
        if self.settings.transport_cc && answer.has_transport_cc {
            self.media.number_packets();
        }
        self.handle_timeout(now);
        Ok(())
    }

    /// Handles a datagram from the server (RFC 7983: the first byte tells the protocols apart).
    pub fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) {
        let Some(session) = self.session.as_mut().filter(|session| !session.is_closed) else {
            return;
        };
        match bytes {
            [0..=3, ..] => {
                self.transmits.extend(session.ice.answer(session.server, bytes));
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
            [128..=191, 192..=223, ..] => {
                self.events.extend(self.media.handle_feedback(bytes, &mut self.transmits));
            }
            _ => {}
        }
    }

    /// Does everything that is due: checks, retransmitted flights, sender reports.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(session) = &mut self.session else { return };
        if session.is_closed {
            return;
        }
        self.transmits.extend(session.ice.handle_timeout(now));
        let outcome = session.dtls.handle_timeout(now);
        let elapsed = now.saturating_duration_since(session.origin);
        self.settle(outcome);
        self.media.handle_timeout(now, elapsed, &mut self.transmits);
    }

    /// The next datagram to send, and its destination.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let session = self.session.as_ref()?;
        Some((session.server, self.transmits.pop_front()?))
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends one access unit, given as NAL units without start codes, even if video was not offered. Nothing is sent
    /// before [`Event::Connected`].
    pub fn send_video(&mut self, now: Instant, rtp_time: u32, nal_units: &[&[u8]]) {
        self.media.send_video(now, rtp_time, nal_units, &mut self.transmits);
    }

    /// Sends one RTP payload of the video track unchanged, for payloads that no packetizer produces.
    pub fn send_video_payload(
        &mut self,
        now: Instant,
        rtp_time: u32,
        payload: &[u8],
        marker: bool,
    ) {
        self.media.send_video_payload(now, rtp_time, payload, marker, &mut self.transmits);
    }

    /// Sends one Opus packet, even if audio was not offered. Nothing is sent before [`Event::Connected`].
    pub fn send_audio(&mut self, now: Instant, rtp_time: u32, opus_packet: &[u8]) {
        self.media.send_audio(now, rtp_time, opus_packet, &mut self.transmits);
    }

    /// Protects and sends an RTP packet with arbitrary sequence number, timestamp and SSRC.
    pub fn send_rtp(&mut self, packet: &[u8]) {
        self.media.send_rtp(packet, &mut self.transmits);
    }

    /// Protects and sends an RTCP packet.
    pub fn send_rtcp(&mut self, packet: &[u8]) {
        self.media.send_rtcp(packet, &mut self.transmits);
    }

    /// Sends an arbitrary datagram.
    pub fn send_raw(&mut self, bytes: Vec<u8>) {
        self.transmits.push_back(bytes);
    }

    /// Sends close_notify; nothing is sent after it.
    pub fn close(&mut self, now: Instant) {
        let Some(session) = &mut self.session else { return };
        session.dtls.close(now);
        self.settle(None);
        self.end();
    }

    /// The offer, which is the same on every call.
    #[must_use]
    pub fn offer(&self) -> String {
        let (audio_ssrc, video_ssrc) = self.media.ssrcs();
        Offer {
            settings: self.settings,
            ufrag: &self.ufrag,
            password: &self.password,
            fingerprint: self.identity.fingerprint,
            audio_ssrc,
            video_ssrc,
        }
        .to_sdp()
    }

    /// When [`Publisher::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref().filter(|session| !session.is_closed)?;
        let checks = Some(session.ice.poll_timeout());
        [checks, session.dtls.poll_timeout(), self.media.poll_timeout()].into_iter().flatten().min()
    }

    /// The negotiated profile, [`SrtpChoice::Gcm`] or [`SrtpChoice::Cm`]; `None` before [`Event::Connected`].
    #[must_use]
    pub fn srtp(&self) -> Option<SrtpChoice> {
        self.media.profile()
    }

    /// SSRCs of the audio and the video track.
    #[must_use]
    pub const fn ssrcs(&self) -> (u32, u32) {
        self.media.ssrcs()
    }

    /// Sends the datagrams of DTLS and handles its outcome.
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
                self.media.start(srtp);
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
        self.media.stop();
        if let Some(session) = &mut self.session {
            session.is_closed = true;
        }
    }
}
