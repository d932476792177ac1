//! One WHIP publish session: the entry point of the crate. The sockets, routes and timers around it are in `ingest`.

mod closing;
mod events;
mod moving;
mod replaying;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use headgate_media::{Frame, IrregularityCounts};

use crate::counters::WhipCounters;
use crate::credentials::Credentials;
use crate::diagnostics::{self, Diagnostics};
use crate::media::Media;
use crate::opening::Opening;
use crate::rate::RateLimit;
use crate::receiver::Receiver;
use crate::sdp::{Offer, is_dtls_client};
use crate::transport::dtls::DtlsEvent;
use crate::transport::handshake_fault::HandshakeFault;
use crate::transport::handshakes::Handshakes;
use crate::transport::ice_lite::IceLite;
use crate::transport::identity::Identity;
use crate::transport::path::Path;
use crate::transport::srtp::Srtp;
use crate::video::VideoTrack;
use closing::Closing;
pub use events::{WhipEnd, WhipEvent};

/// Without a valid STUN request or an authenticated packet for this long, the client is considered gone (W19).
const LOST_LIMIT: Duration = Duration::from_secs(30);
/// Time allowed from the answer to the first frame (W19, P14).
const FIRST_MEDIA_LIMIT: Duration = Duration::from_secs(15);
/// ICE checks accepted per second from paths that have passed one, and as many from all other paths together: a client
/// makes 50 at most, and each costs an HMAC.
const CHECKS_PER_SECOND_LIMIT: u32 = 100;
/// SRTP packets decrypted per second that come from paths without a check: the first valid one proves its path.
const STRANGE_PACKETS_PER_SECOND_LIMIT: u32 = 100;
/// DTLS datagrams accepted per second after the handshake: only close_notify is expected by then, and each costs a
/// decryption.
const RECORDS_PER_SECOND_LIMIT: u32 = 20;
/// Datagrams waiting to be sent. A driver that drains them after every input never has more than a handful.
const TRANSMITS_LIMIT: usize = 256;

/// The stage of a session's life.
enum State {
    Running,
    /// [`WhipEvent::Ended`] was returned; close_notify has not been sent yet.
    Ended,
    /// Our close_notify is being repeated.
    Closing(Closing),
    Closed,
}

/// A WebRTC publisher as a state machine without sockets or clocks.
///
/// **Inputs.** [`handle_datagram`](Self::handle_datagram) takes what the client sent, over UDP or in a TCP frame. The
/// driver calls [`handle_timeout`](Self::handle_timeout) at or after the time that [`poll_timeout`](Self::poll_timeout)
/// returns. Time never goes back between calls. [`want_keyframe`](Self::want_keyframe),
/// [`limit_bitrate`](Self::limit_bitrate) and [`restart_ice`](Self::restart_ice) may be called at any time.
///
/// **Outputs.** After any number of inputs, and before waiting, the driver calls these in order, each until it returns
/// `None`: [`poll_transmit`](Self::poll_transmit), [`poll_frame`](Self::poll_frame), [`poll_event`](Self::poll_event).
/// Then it calls [`poll_timeout`](Self::poll_timeout) once; the time it returns is later than that of the last
/// `handle_timeout`. The amount of undrained output is bounded by the inputs since the last drain.
///
/// **Routes.** A datagram belongs to this session if it arrived on a path announced by [`WhipEvent::Proven`] and not
/// revoked by [`WhipEvent::Forgotten`] since, or if it is a STUN request whose [`ufrag_of`](crate::ufrag_of) is one of
/// [`ufrags`](Self::ufrags). These change with `restart_ice` and with the client's first check after it. On an unknown
/// path it may belong to this session if its [`ssrc_of`](crate::ssrc_of) was announced by [`WhipEvent::Source`]: the
/// client's NAT has given it a new port.
///
/// **Ending.** [`WhipEvent::Ended`] is the last event and is returned once; after it only [`close`](Self::close) has an
/// effect. `close` may be called at any time, and once is enough. It sends DTLS close_notify and repeats it for one
/// second: the driver removes its routes at once, goes on calling `poll_transmit`, `poll_timeout` and `handle_timeout`,
/// and drops the session when [`is_closed`](Self::is_closed) returns true. While the session closes, datagrams are
/// ignored at no cost. STUN requests go to the object that [`revoke`](Self::revoke) returns, for some seconds: its
/// answers revoke the client's consent (RFC 7675 5.2). Dropping the session earlier only loses the repetitions.
pub struct WhipSession {
    identity: Identity,
    ice: IceLite,
    dtls: Handshakes,
    media: Media,
    opening: Opening,
    state: State,
    transmits: VecDeque<(Path, Vec<u8>)>,
    events: VecDeque<WhipEvent>,
    opened_at: Instant,
    /// The time of the last input.
    now: Instant,
    dtls_role: &'static str,
    srtp_profile: &'static str,
    last_packet: Option<Instant>,
    /// Limits for ICE checks from paths that have passed one, for checks and for media from other paths, and for DTLS
    /// datagrams.
    checks: RateLimit,
    strange_checks: RateLimit,
    strange_packets: RateLimit,
    records: RateLimit,
    rejected: u64,
}

impl WhipSession {
    /// A session for an accepted offer. `max_bitrate_kbps` is the bitrate the sender is asked to stay below, 0 for no
    /// limit. [`crate::sdp::write_answer`] writes the answer with the same credentials.
    #[must_use]
    pub fn new(
        identity: &Identity,
        offer: &Offer,
        credentials: &Credentials,
        max_bitrate_kbps: u32,
        now: Instant,
    ) -> Self {
        let Credentials { ufrag, password, ssrc } = credentials.clone();
        let mut media = Media::new(offer, ssrc, now);
        media.reporter.limit_bitrate(max_bitrate_kbps);
        let opening = Opening::new(media.audio.is_some() && media.video.is_some());
        Self {
            identity: identity.clone(),
            ice: IceLite::new(ufrag, password, offer.ufrags.clone(), identity.provider()),
            dtls: Handshakes::new(identity, &offer.fingerprints, is_dtls_client(offer), now),
            media,
            opening,
            state: State::Running,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            opened_at: now,
            now,
            dtls_role: if is_dtls_client(offer) { "client" } else { "server" },
            srtp_profile: "",
            last_packet: None,
            checks: RateLimit::new(CHECKS_PER_SECOND_LIMIT, now),
            strange_checks: RateLimit::new(CHECKS_PER_SECOND_LIMIT, now),
            strange_packets: RateLimit::new(STRANGE_PACKETS_PER_SECOND_LIMIT, now),
            records: RateLimit::new(RECORDS_PER_SECOND_LIMIT, now),
            rejected: 0,
        }
    }

    /// Takes a datagram. SRTP and SRTCP are decrypted in place; then returns the length of the resulting RTP or RTCP
    /// packet.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        source: impl Into<Path>,
        datagram: &mut [u8],
    ) -> Option<usize> {
        if !self.is_running() {
            return None;
        }
        self.now = now;
        let source = source.into();
        // RFC 7983: the first byte tells the protocols apart.
        match datagram.first() {
            Some(0..=3) => self.handle_stun(now, source, datagram),
            Some(20..=63) if self.ice.is_proven(source) => self.handle_dtls(now, source, datagram),
            Some(128..=191) if self.ice.is_proven(source) => {
                let opened = self.handle_media(now, datagram)?;
                self.ice.note_media(now, source);
                return Some(opened);
            }
            Some(128..=191) => return self.handle_moved_media(now, source, datagram),
            Some(_) | None => self.rejected += 1,
        }
        None
    }

    /// Does everything that is due: retransmissions, requests, reports, endings.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Running => {}
            State::Ended | State::Closed => return,
            State::Closing(closing) => {
                self.transmits.extend(closing.handle_timeout(now));
                if closing.poll_timeout().is_none() {
                    self.state = State::Closed;
                }
                return;
            }
        }
        self.now = now;
        if let Some(event) = self.dtls.handle_timeout(now) {
            self.handle_dtls_event(event);
        }
        self.drain_dtls();
        self.media.handle_timeout(now);
        self.opening.handle_timeout(now);
        if let Some(to) = self.ice.selected()
            && let Some(report) = self.media.poll_report(now)
        {
            self.send(to, report);
        }
        if self.media.is_started() && now >= self.alive_until() {
            self.end(WhipEnd::Lost);
        } else if !self.media.has_frames && now >= self.opened_at + FIRST_MEDIA_LIMIT {
            self.end(WhipEnd::NoMedia);
        }
    }

    /// When [`WhipSession::handle_timeout`] next has something to do. Cheap: it searches nothing.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Running => {}
            State::Ended | State::Closed => return None,
            State::Closing(closing) => return closing.poll_timeout(),
        }
        let first_media = (!self.media.has_frames).then(|| self.opened_at + FIRST_MEDIA_LIMIT);
        let alive = self.media.is_started().then(|| self.alive_until());
        let media = self.media.poll_timeout(self.now);
        [self.dtls.poll_timeout(), first_media, media, alive, self.opening.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The next datagram to send, and its destination.
    pub fn poll_transmit(&mut self) -> Option<(Path, Vec<u8>)> {
        self.transmits.pop_front()
    }

    /// The next frame available at the time of the last input.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.opening.poll(self.now, &mut self.media.frames)
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WhipEvent> {
        self.events.pop_front()
    }

    /// A subscriber needs a keyframe, for example a player that just joined or an upstream that reconnected.
    pub fn want_keyframe(&mut self) {
        if let Some(video) = &mut self.media.video {
            video.want_keyframe();
        }
    }

    /// Asks the sender to stay below `kbps` from now on; 0 is no limit. A sender that does not read REMB stays with the
    /// bitrate in the answer.
    pub fn limit_bitrate(&mut self, kbps: u32) {
        self.media.reporter.limit_bitrate(kbps);
    }

    /// The client restarts ICE: from now on checks with these credentials are answered, as well as checks with the old
    /// ones. `theirs`: the client's new user name fragment.
    pub fn restart_ice(&mut self, ufrag: String, password: String, theirs: String) {
        self.ice.restart(ufrag, password, vec![theirs]);
    }

    /// The last repetition of close_notify was queued: what [`WhipSession::poll_transmit`] still returns is the last.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Width and height of the video in pixels, once known.
    #[must_use]
    pub fn resolution(&self) -> Option<(u32, u32)> {
        self.media.video.as_ref().and_then(VideoTrack::resolution)
    }

    /// Our halves of the accepted STUN user names: one, and more while ICE restarts.
    pub fn ufrags(&self) -> impl Iterator<Item = &str> {
        self.ice.ufrags()
    }

    /// Counters since the start of the session.
    #[must_use]
    pub fn counters(&self) -> WhipCounters {
        let media = self.media.counters();
        WhipCounters { rejected: media.rejected + self.rejected + self.dtls.dropped(), ..media }
    }

    /// What was irregular about the sender since the last call.
    pub fn take_irregularities(&mut self) -> IrregularityCounts {
        self.media.take_irregularities()
    }

    /// The session's state and rates, with problems described in words. Rates cover the time since the last call.
    #[must_use]
    pub fn diagnostics(&mut self, now: Instant) -> Diagnostics {
        let rtt = self.media.receivers().filter_map(Receiver::rtt).min();
        let mut diagnostics = Diagnostics {
            is_connected: self.media.is_started(),
            path: self.ice.selected(),
            dtls_role: self.dtls_role,
            srtp: self.srtp_profile,
            video: self.media.video.as_mut().map(|video| diagnostics::of_video(video, now)),
            audio: self.media.audio.as_mut().map(|audio| diagnostics::of_audio(audio, now)),
            rtt_ms: rtt.map(|rtt| rtt.as_secs_f64() * 1000.0),
            skew_ms: self.media.clock.skew_us().map(|skew| skew as f64 / 1000.0),
            rejected: self.media.rejected + self.rejected + self.dtls.dropped(),
            problems: Vec::new(),
        };
        let since_start = now.saturating_duration_since(self.opened_at);
        let video = self.media.video.as_ref();
        diagnostics.problems = diagnostics::problems(&diagnostics, since_start, video);
        diagnostics
    }

    const fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    fn handle_stun(&mut self, now: Instant, source: Path, datagram: &[u8]) {
        let is_proven = self.ice.is_proven(source);
        let rate = if is_proven { &mut self.checks } else { &mut self.strange_checks };
        let answer = rate.admit(now).then(|| self.ice.handle_request(now, source, datagram));
        let Some(answer) = answer.flatten() else {
            self.rejected += 1;
            return;
        };
        self.send(source, answer);
        self.announce_paths();
        self.dtls.handle_check(now, source, self.ice.selected() == Some(source));
        self.drain_dtls();
    }

    /// Takes an SRTP or SRTCP packet; announces whose it is.
    fn handle_media(&mut self, now: Instant, datagram: &mut [u8]) -> Option<usize> {
        let opened = self.media.handle_datagram(now, datagram)?;
        self.last_packet = Some(now);
        if let Some(source) = self.media.poll_source() {
            self.events.push_back(WhipEvent::Source(source));
        }
        Some(opened)
    }

    fn handle_dtls(&mut self, now: Instant, source: Path, datagram: &[u8]) {
        // Before the handshake is complete the gate does the counting.
        if self.media.is_started() && !self.records.admit(now) {
            self.rejected += 1;
            return;
        }
        if let Some(event) = self.dtls.handle_datagram(now, source, datagram) {
            if matches!(event, DtlsEvent::Connected(_)) {
                self.ice.note_media(now, source);
            }
            self.handle_dtls_event(event);
        }
        self.drain_dtls();
    }

    fn handle_dtls_event(&mut self, event: DtlsEvent) {
        match event {
            DtlsEvent::Connected(keys) => {
                self.srtp_profile = keys.profile.name();
                match Srtp::new(&keys, &self.identity.provider()) {
                    Some(srtp) => {
                        self.media.start(srtp);
                        self.events.push_back(WhipEvent::Connected);
                    }
                    None => self.end(WhipEnd::HandshakeFailed(HandshakeFault::NoSrtpProfile)),
                }
            }
            DtlsEvent::Closed => self.end(WhipEnd::Closed),
            DtlsEvent::Failed(fault) => self.end(WhipEnd::HandshakeFailed(fault)),
        }
    }

    fn drain_dtls(&mut self) {
        while let Some((to, datagram)) = self.dtls.poll_transmit() {
            self.send(to, datagram.into());
        }
    }

    /// Queues a datagram. When the queue is full it is dropped, as it might be on the network.
    fn send(&mut self, to: Path, datagram: Vec<u8>) {
        if self.transmits.len() < TRANSMITS_LIMIT {
            self.transmits.push_back((to, datagram));
        }
    }

    fn alive_until(&self) -> Instant {
        let last = self.ice.last_request().max(self.last_packet).unwrap_or(self.opened_at);
        last + LOST_LIMIT
    }

    fn end(&mut self, end: WhipEnd) {
        if self.is_running() {
            self.state = State::Ended;
            self.events.push_back(WhipEvent::Ended(end));
        }
    }
}
