//! The publisher against an in-memory server that follows the standards and shares no code with Headgate.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rtc_stun::attributes::{ATTR_USE_CANDIDATE, ATTR_USERNAME};
use rtc_stun::fingerprint::FINGERPRINT;
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_REQUEST, BINDING_SUCCESS, Message, Setter};

use crate::dtls::{Dtls, Identity, Outcome};
use crate::srtp::Srtp;
use crate::{Event, Publisher, Settings, SrtpChoice};

const PASSWORD: &str = "serverserverserverserver";

/// The server's ICE-lite, DTLS and SRTP.
struct Server {
    identity: Identity,
    dtls: Dtls,
    srtp: Option<Box<Srtp>>,
    is_active: bool,
    checks: Vec<bool>,
    hears: bool,
    packets: Vec<Vec<u8>>,
    reports: usize,
    is_closed: bool,
}

/// Both sides, and the time they share.
struct World {
    publisher: Publisher,
    server: Server,
    now: Instant,
    events: Vec<Event>,
    dtls_datagrams: usize,
}

impl Server {
    fn new(offer: &str, srtp: SrtpChoice) -> Self {
        let identity = Identity::generate().expect("identity");
        let fingerprint =
            offer.lines().find_map(|line| line.strip_prefix("a=fingerprint:sha-256 "));
        let bytes: Vec<u8> = fingerprint
            .expect("a fingerprint")
            .split(':')
            .map(|pair| u8::from_str_radix(pair, 16).expect("hex"))
            .collect();
        let is_active = offer.contains("a=setup:passive");
        let expected = bytes.try_into().expect("32 bytes");
        let dtls = Dtls::new(&identity, expected, is_active, srtp, 0).expect("configured");
        let (checks, packets) = (Vec::new(), Vec::new());
        let (hears, reports, is_closed) = (true, 0, false);
        Self { identity, dtls, srtp: None, is_active, checks, hears, packets, reports, is_closed }
    }

    fn answer(&self) -> String {
        let hex: Vec<String> =
            self.identity.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
        format!(
            "v=0\r\na=ice-lite\r\nm=video 9 UDP/TLS/RTP/SAVPF 102\r\na=ice-ufrag:server\r\na=ice-pwd:{PASSWORD}\r\n\
             a=fingerprint:sha-256 {}\r\na=setup:{}\r\na=extmap:3 \
             http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
             a=candidate:1 1 udp 1 192.0.2.1 4000 typ host\r\n",
            hex.join(":"),
            if self.is_active { "active" } else { "passive" },
        )
    }

    fn handle_datagram(&mut self, now: Instant, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut replies = Vec::new();
        match bytes[0] {
            0..=3 if self.hears => replies.push(self.bind(now, bytes)),
            20..=63 => {
                let outcome = self.dtls.handle_datagram(now, bytes);
                match outcome {
                    Some(Outcome::Connected(srtp)) => self.srtp = Some(srtp),
                    Some(Outcome::Closed) => self.is_closed = true,
                    None => {}
                }
            }
            128..=191 if (192..=223).contains(&bytes[1]) => {
                let report = self.srtp.as_mut().and_then(|srtp| srtp.open_rtcp(bytes));
                assert_eq!(report.expect("opens")[1], 200);
                self.reports += 1;
            }
            128..=191 => {
                let packet = self.srtp.as_mut().and_then(|srtp| srtp.open_rtp(bytes));
                self.packets.push(packet.expect("opens"));
            }
            _ => {}
        }
        replies.extend(std::iter::from_fn(|| self.dtls.poll_transmit()));
        replies
    }

    fn bind(&mut self, now: Instant, bytes: &[u8]) -> Vec<u8> {
        let crypto = self.identity.provider.crypto();
        let mut request = Message::new();
        request.unmarshal_binary(bytes).expect("STUN");
        assert_eq!(request.typ, BINDING_REQUEST);
        FINGERPRINT.check(&request).expect("a fingerprint");
        MessageIntegrity::check(&mut request, PASSWORD.as_bytes(), crypto).expect("signed");
        assert!(request.get(ATTR_USERNAME).expect("a name").starts_with(b"server:"));
        self.checks.push(request.contains(ATTR_USE_CANDIDATE));
        let integrity =
            MessageIntegrity::new_short_term_integrity_with_provider(PASSWORD.into(), crypto);
        let setters: [Box<dyn Setter + '_>; 4] = [
            Box::new(request),
            Box::new(BINDING_SUCCESS),
            Box::new(integrity),
            Box::new(FINGERPRINT),
        ];
        let mut response = Message::new();
        response.build(&setters).expect("builds");
        if self.is_active && self.checks.len() == 1 {
            assert!(self.dtls.start(now).is_none());
        }
        response.raw
    }
}

impl World {
    fn new(settings: Settings, server_srtp: SrtpChoice) -> Self {
        let publisher = Publisher::new(settings).expect("publisher");
        let server = Server::new(&publisher.offer(), server_srtp);
        let (now, events) = (Instant::now(), Vec::new());
        Self { publisher, server, now, events, dtls_datagrams: 0 }
    }

    fn answered(settings: Settings) -> Self {
        let mut world = Self::new(settings, settings.srtp);
        let answer = world.server.answer();
        world.publisher.handle_answer(world.now, &answer).expect("usable");
        world.exchange();
        world
    }

    fn connected(settings: Settings) -> Self {
        let world = Self::answered(settings);
        assert_eq!(world.events, [Event::Connected]);
        world
    }

    /// Carries datagrams in both directions until none is left.
    fn exchange(&mut self) {
        while let Some((to, bytes)) = self.publisher.poll_transmit() {
            assert_eq!(to, SocketAddr::from(([192, 0, 2, 1], 4000)));
            self.dtls_datagrams += usize::from((20..=63).contains(&bytes[0]));
            for reply in self.server.handle_datagram(self.now, &bytes) {
                self.publisher.handle_datagram(self.now, &reply);
            }
        }
        self.events.extend(std::iter::from_fn(|| self.publisher.poll_event()));
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let next = |world: &Self| {
            let timers = [world.publisher.poll_timeout(), world.server.dtls.poll_timeout()];
            timers.into_iter().flatten().min().filter(|at| *at <= until)
        };
        while let Some(at) = next(self) {
            self.now = self.now.max(at);
            self.publisher.handle_timeout(self.now);
            let _ = self.server.dtls.handle_timeout(self.now);
            while let Some(datagram) = self.server.dtls.poll_transmit() {
                self.publisher.handle_datagram(self.now, &datagram);
            }
            self.exchange();
        }
        self.now = until;
    }

    fn tell(&mut self, report: &[u8]) {
        let protected = self.server.srtp.as_mut().and_then(|srtp| srtp.protect_rtcp(report));
        self.publisher.handle_datagram(self.now, &protected.expect("protected"));
        self.exchange();
    }

    fn send_picture(&mut self) {
        let slice = [0x41; 3_000];
        self.publisher.send_video(self.now, 9_000, &[&slice]);
        self.exchange();
    }
}

fn sequence(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[2], packet[3]])
}

#[test]
fn it_connects_in_both_roles_and_with_both_profiles() {
    for dtls_server in [false, true] {
        for srtp in [SrtpChoice::Gcm, SrtpChoice::Cm] {
            let world = World::connected(Settings { srtp, dtls_server, ..Settings::default() });
            assert_eq!(world.publisher.srtp(), Some(srtp));
            assert_eq!(world.server.checks, [false, true]);
        }
    }
}

#[test]
fn a_publisher_that_lists_both_profiles_uses_that_of_the_server() {
    let settings = Settings { srtp: SrtpChoice::Both, ..Settings::default() };
    let mut world = World::new(settings, SrtpChoice::Gcm);
    world.publisher.handle_answer(world.now, &world.server.answer()).expect("usable");
    world.exchange();
    assert_eq!(world.publisher.srtp(), Some(SrtpChoice::Gcm));
}

#[test]
fn it_sends_checks_every_50_ms_until_answered_and_then_keeps_the_pair_alive() {
    let mut world = World::new(Settings::default(), SrtpChoice::Gcm);
    world.server.hears = false;
    world.publisher.handle_answer(world.now, &world.server.answer()).expect("usable");
    world.pass(Duration::from_millis(1_000));
    assert_eq!(world.server.checks, []);
    world.server.hears = true;
    world.pass(Duration::from_millis(51));
    assert_eq!(world.server.checks, [false, true]);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.server.checks, [false, true, true, true]);
    assert_eq!(world.events, [Event::Connected]);
}

#[test]
fn checks_of_a_server_are_answered_if_it_knows_the_password() {
    let mut world = World::answered(Settings::default());
    let offer = world.publisher.offer();
    let own = offer.lines().find_map(|line| line.strip_prefix("a=ice-pwd:")).expect("a password");
    let provider = world.server.identity.provider.clone();
    for (password, is_known) in [(own, true), (PASSWORD, false)] {
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
            password.into(),
            provider.crypto(),
        );
        let setters: [Box<dyn Setter + '_>; 3] =
            [Box::new(BINDING_REQUEST), Box::new(integrity), Box::new(FINGERPRINT)];
        let mut request = Message::new();
        request.build(&setters).expect("builds");
        world.publisher.handle_datagram(world.now, &request.raw);
        let answer = world.publisher.poll_transmit().map(|(_, datagram)| datagram);
        assert_eq!(answer.is_some(), is_known);
        let Some(answer) = answer else { continue };
        let mut response = Message::new();
        response.unmarshal_binary(&answer).expect("STUN");
        assert_eq!(response.typ, BINDING_SUCCESS);
        MessageIntegrity::check(&mut response, own.as_bytes(), provider.crypto()).expect("signed");
    }
}

#[test]
fn a_server_with_another_certificate_is_rejected() {
    let mut world = World::new(Settings::default(), SrtpChoice::Gcm);
    let stranger = Server::new(&world.publisher.offer(), SrtpChoice::Gcm);
    world.publisher.handle_answer(world.now, &stranger.answer()).expect("usable");
    world.exchange();
    assert_eq!(world.events, [Event::Closed]);
}

#[test]
fn lost_flights_are_retransmitted() {
    for dtls_server in [false, true] {
        let mut world =
            World::new(Settings { dtls_server, ..Settings::default() }, SrtpChoice::Gcm);
        let mut count = 0;
        // Every second datagram is lost, and half of the others are sent twice.
        world.publisher.set_dtls_filter(Some(Box::new(move |datagram| {
            count += 1;
            match count % 4 {
                0 => vec![datagram.clone(), datagram],
                2 => vec![datagram],
                _ => Vec::new(),
            }
        })));
        world.publisher.handle_answer(world.now, &world.server.answer()).expect("usable");
        world.pass(Duration::from_secs(8));
        assert_eq!(world.events, [Event::Connected], "server role: {dtls_server}");
    }
}

#[test]
fn a_small_mtu_fragments_the_handshake() {
    let mut world = World::new(Settings::default(), SrtpChoice::Gcm);
    world.publisher.set_dtls_mtu(100);
    world.publisher.handle_answer(world.now, &world.server.answer()).expect("usable");
    world.exchange();
    assert_eq!(world.events, [Event::Connected]);
    assert!(world.dtls_datagrams > World::connected(Settings::default()).dtls_datagrams + 4);
}

#[test]
fn transport_wide_sequence_numbers_span_both_tracks() {
    let mut world = World::connected(Settings::default());
    world.send_picture();
    world.publisher.send_audio(world.now, 960, &[1, 2, 3]);
    world.exchange();
    let numbers: Vec<u16> = world
        .server
        .packets
        .iter()
        .map(|packet| u16::from_be_bytes([packet[17], packet[18]]))
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let video = &world.server.packets[2];
    assert_eq!((video[0], video[1]), (0x90, 0x80 | 102));
    let audio = &world.server.packets[3];
    assert_eq!(
        (audio[1], &audio[4..8], &audio[20..]),
        (111, &960_u32.to_be_bytes()[..], &[1, 2, 3][..])
    );
}

#[test]
fn a_nack_is_answered_with_the_same_packets() {
    let mut world = World::connected(Settings::default());
    world.send_picture();
    let first = sequence(&world.server.packets[0]);
    let [f0, f1] = first.to_be_bytes();
    let (_, ssrc) = world.publisher.ssrcs();
    let mut nack = vec![0x81, 205, 0, 3, 0, 0, 0, 1];
    nack.extend_from_slice(&ssrc.to_be_bytes());
    nack.extend_from_slice(&[f0, f1, 0, 0b10]);
    world.tell(&nack);
    let missing = vec![first, first.wrapping_add(2)];
    assert_eq!(world.events.last(), Some(&Event::Nack(missing)));
    let packets = &world.server.packets;
    assert_eq!(packets[3..], [packets[0].clone(), packets[2].clone()]);
}

#[test]
fn pli_fir_and_transport_feedback_raise_events() {
    let mut world = World::connected(Settings::default());
    world.tell(&[0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
    world.tell(&[0x84, 206, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0]);
    world.tell(&[0x8f, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
    let expected = [Event::KeyframeWanted, Event::KeyframeWanted, Event::TransportFeedback];
    assert_eq!(world.events[1..], expected);
}

#[test]
fn sender_reports_are_sent_each_second_for_each_active_track() {
    let mut world = World::connected(Settings::default());
    world.pass(Duration::from_secs(2));
    assert_eq!(world.server.reports, 0);
    world.send_picture();
    world.pass(Duration::from_millis(2_500));
    assert_eq!(world.server.reports, 3);
}

#[test]
fn either_side_can_close_once() {
    let mut world = World::connected(Settings::default());
    world.publisher.close(world.now);
    world.exchange();
    assert!(world.server.is_closed);
    world.send_picture();
    assert_eq!((world.server.packets.len(), world.publisher.poll_timeout()), (0, None));

    let mut world = World::connected(Settings::default());
    world.server.dtls.close(world.now);
    let goodbye = world.server.dtls.poll_transmit().expect("close_notify");
    world.publisher.handle_datagram(world.now, &goodbye);
    world.publisher.handle_datagram(world.now, &goodbye);
    world.exchange();
    assert_eq!(world.events, [Event::Connected, Event::Closed]);
}

#[test]
fn a_packet_of_any_sequence_number_and_ssrc_is_protected() {
    let mut world = World::connected(Settings::default());
    let packet = [0x80, 102, 0x12, 0x34, 0, 0, 0, 1, 9, 9, 9, 9, 0x41];
    world.publisher.send_rtp(&packet);
    world.exchange();
    assert_eq!(world.server.packets, [packet]);
}

#[test]
fn random_bytes_can_be_sent_and_do_no_harm_when_received() {
    let mut world = World::connected(Settings::default());
    world.publisher.send_raw(vec![255; 9]);
    assert_eq!(world.publisher.poll_transmit().map(|(_, bytes)| bytes), Some(vec![255; 9]));
    for first in 0..=255 {
        for length in [1, 2, 11, 60] {
            world.publisher.handle_datagram(world.now, &vec![first; length]);
        }
    }
    world.publisher.handle_datagram(world.now, &[]);
}
