//! WHIP publishers in virtual time, with a peer in memory that does its own DTLS and SRTP.

use std::time::{Duration, Instant};

use headgate_peer::{Event, Publisher, Settings};
use headgate_whip::sdp::{AnswerSettings, OwnOffer, read_offer, write_answer};
use headgate_whip::{Credentials, Identity, Path, WhipSession};

use super::super::message::{Message, Opening};
use super::world::{World, address};
use crate::EndReason;
use crate::publish::near::Near;
use crate::publish::whip_record::WhipRecord;
use crate::session::whip_publisher::WhipPublisher;

const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0xda, 0x01, 0x40, 0x16, 0xe8, 0x40];
const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
const OPUS: &[u8] = &[0x78, 1, 2, 3];

/// Opens an allowed publish.
fn open(world: &mut World, session: WhipSession, awaits_answer: bool, opening: Opening) {
    let record = opening.guard.record().clone();
    let name = format!("cam{}", record.client_id).into_bytes();
    let whip = Box::new(WhipPublisher::new(session, awaits_answer, record, world.now));
    world.switchboard.handle_message(Message::OpenWhip { whip, name, opening });
}

/// A client and the path that it uses.
pub(super) struct Client {
    publisher: Publisher,
    pub(super) path: Path,
    is_connected: bool,
    feedback: usize,
    frames: u32,
}

impl Client {
    /// Opens `client_id` and connects.
    fn connect(world: &mut World, client_id: u64) -> Self {
        Self::connect_with(world, client_id, &[])
    }

    /// The same, with upstreams.
    pub(super) fn connect_with(world: &mut World, client_id: u64, upstreams: &[&str]) -> Self {
        let identity = Identity::generate().expect("randomness");
        let mut publisher = Publisher::new(Settings::default()).expect("a publisher");
        let offer = read_offer(&publisher.offer()).expect("an acceptable offer");
        let credentials = Credentials::generate(&identity).expect("randomness");
        let candidates = vec![address(8189)];
        let settings = AnswerSettings {
            ufrag: &credentials.ufrag,
            pwd: &credentials.password,
            fingerprint: identity.fingerprint(),
            candidates: &candidates,
            session_id: client_id,
            start_bitrate_kbps: 2_000,
            max_bitrate_kbps: 0,
            stereo: false,
            audio_bitrate: None,
        };
        let answer = write_answer(&offer, &settings);
        publisher.handle_answer(world.now, &answer).expect("an acceptable answer");
        let record = WhipRecord::new(offer.clone(), candidates);
        let session = WhipSession::new(&identity, &offer, &credentials, 0, world.now);
        let opening = world.opening(client_id, Near::default(), Some(record), upstreams);
        open(world, session, false, opening);
        let path = Path::from(address(40_000 + u16::try_from(client_id).expect("small")));
        let (is_connected, feedback, frames) = (false, 0, 0);
        let mut client = Self { publisher, path, is_connected, feedback, frames };
        for _ in 0..200 {
            client.exchange(world);
            if client.is_connected {
                return client;
            }
            world.pass(Duration::from_millis(10));
        }
        panic!("it does not connect");
    }

    /// Exchanges datagrams in both directions until none is left.
    fn exchange(&mut self, world: &mut World) {
        loop {
            self.publisher.handle_timeout(world.now);
            let mut moved = false;
            while let Some((_, mut datagram)) = self.publisher.poll_transmit() {
                world.switchboard.handle_datagram(self.path, &mut datagram);
                moved = true;
            }
            world.settle();
            for (to, datagram) in std::mem::take(&mut world.sent) {
                assert_eq!(to, self.path);
                self.publisher.handle_datagram(world.now, &datagram);
                moved = true;
            }
            while let Some(event) = self.publisher.poll_event() {
                match event {
                    Event::Connected => self.is_connected = true,
                    Event::TransportFeedback => self.feedback += 1,
                    Event::Closed | Event::KeyframeWanted | Event::Nack(_) => {}
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// The datagrams of video frame `n` of `picture_bytes` and its audio; they are not delivered.
    pub(super) fn record_media(
        &mut self,
        now: Instant,
        n: u32,
        is_keyframe: bool,
        picture_bytes: usize,
        sound_bytes: usize,
    ) -> Vec<Vec<u8>> {
        let mut slice = vec![if is_keyframe { 0x65 } else { 0x41 }, 0x88];
        slice.resize(picture_bytes, 0x55);
        let nal_units = [SPS, PPS, &slice];
        let nal_units = if is_keyframe { &nal_units[..] } else { &nal_units[2..] };
        self.publisher.send_video(now, n * 3_600, nal_units);
        let mut sound = vec![OPUS[0]];
        sound.resize(sound_bytes, 0x55);
        for half in 0..2 {
            self.publisher.send_audio(now, (n * 2 + half) * 960, &sound);
        }
        std::iter::from_fn(|| self.publisher.poll_transmit()).map(|(_, bytes)| bytes).collect()
    }

    /// An Opus packet at this RTP time.
    pub(super) fn send_opus(&mut self, world: &mut World, rtp: u32, packet: &[u8]) {
        self.publisher.send_audio(world.now, rtp, packet);
        self.exchange(world);
    }

    /// 40 ms of media: one video frame and two audio packets.
    pub(super) fn send_media(&mut self, world: &mut World) {
        let n = self.frames;
        self.frames += 1;
        let mut slice = vec![if n.is_multiple_of(50) { 0x65 } else { 0x41 }, 0x88];
        slice.resize(3_000, 0x55);
        let nal_units = [SPS, PPS, &slice];
        let nal_units = if n.is_multiple_of(50) { &nal_units[..] } else { &nal_units[2..] };
        self.publisher.send_video(world.now, n * 3_600, nal_units);
        for half in 0..2 {
            self.publisher.send_audio(world.now, (n * 2 + half) * 960, OPUS);
        }
        self.exchange(world);
        world.pass(Duration::from_millis(40));
    }
}

#[test]
fn minutes_of_transport_wide_feedback_use_one_timer_per_session() {
    let mut world = World::new();
    let mut client = Client::connect(&mut world, 1);
    for _ in 0..3 * 60 * 25 {
        client.send_media(&mut world);
        let owners = world.switchboard.sessions.len() + world.switchboard.sessions.by_id.len();
        assert!(world.switchboard.sessions.timers.len() <= owners, "more timers than owners");
    }
    assert!(client.feedback > 3 * 60 * 5, "{} reports", client.feedback);
    let record = world.publishes.find(1).expect("it runs");
    // The length prefix and slice of each video frame, and two audio packets.
    let frame_bytes = 4 + 3_000 + 2 * OPUS.len() as u64;
    assert_eq!(record.bytes().0, 3 * 60 * 25 * frame_bytes, "every frame counted");
}

#[test]
fn a_client_regains_a_path_taken_by_another_session_with_its_next_check() {
    let mut world = World::new();
    let mut client = Client::connect(&mut world, 1);
    let mut other = Client::connect(&mut world, 2);
    client.send_media(&mut world);
    world.pass(Duration::from_secs(3));
    other.path = client.path;
    world.sent.clear();
    other.exchange(&mut world);
    let owner = world.switchboard.routes.find(client.path, &[128]).expect("a session's path");
    assert_eq!(world.switchboard.publish_of(owner).map(|of| of.client_id), Some(2));
    for _ in 0..100 {
        client.send_media(&mut world);
    }
    let bytes = |world: &World| world.publishes.find(1).expect("it runs").bytes().0;
    let before = bytes(&world);
    client.send_media(&mut world);
    assert!(bytes(&world) > before, "its media is not assigned to it");
}

#[test]
fn media_from_a_new_port_of_a_client_is_its_own_before_its_next_check() {
    let mut world = World::new();
    let mut client = Client::connect(&mut world, 1);
    for _ in 0..5 {
        client.send_media(&mut world);
    }
    let bytes = |world: &World| world.publishes.find(1).expect("it runs").bytes().0;
    let before = bytes(&world);
    let moved = Path::from(address(41_000));
    for mut datagram in client.record_media(world.now, 5, false, 3_000, OPUS.len()) {
        world.switchboard.handle_datagram(moved, &mut datagram);
    }
    world.settle();
    assert!(bytes(&world) > before, "its media is lost");
    assert!(world.switchboard.has_route(moved));
}

#[test]
fn a_client_that_vanishes_ends_silent_and_leaves_nothing_behind() {
    let mut world = World::new();
    let mut client = Client::connect(&mut world, 1);
    for _ in 0..25 {
        client.send_media(&mut world);
    }
    world.pass(Duration::from_secs(25));
    assert!(world.reasons().is_empty(), "it may come back");
    world.pass(Duration::from_secs(10));
    assert_eq!(world.reasons(), [(1, EndReason::Silent)]);
    assert!(world.switchboard.is_empty());
    assert_eq!((world.switchboard.sessions.timers.len(), world.switchboard.routes.len()), (0, 0));
}

#[test]
fn a_client_that_connects_and_sends_nothing_ends_without_media() {
    let mut world = World::new();
    Client::connect(&mut world, 1);
    world.pass(Duration::from_secs(20));
    assert_eq!(world.reasons(), [(1, EndReason::NoMedia)]);
}

#[test]
fn a_kicked_client_gets_repeated_alerts_and_its_datagrams_are_ignored_immediately() {
    let mut world = World::new();
    let mut client = Client::connect(&mut world, 1);
    for _ in 0..5 {
        client.send_media(&mut world);
    }
    let stream = world.publishes.find(1).expect("it runs").stream;
    let (reason, description) = (EndReason::Kicked, String::new());
    world.switchboard.handle_message(Message::End { stream, reason, description });
    world.settle();
    assert_eq!(world.reasons(), [(1, EndReason::Kicked)]);
    assert!(!world.switchboard.has_route(client.path));
    let at_once = world.sent.len();
    world.pass(Duration::from_secs(2));
    assert!(at_once > 0 && world.sent.len() > at_once, "{at_once} of {}", world.sent.len());
    assert!(world.switchboard.is_empty(), "the session is gone after its last close_notify");
    // A repetition makes up for a lost close_notify.
    let repeated = world.sent.pop().expect("a close_notify");
    client.publisher.handle_datagram(world.now, &repeated.1);
    assert!(std::iter::from_fn(|| client.publisher.poll_event()).any(|e| e == Event::Closed));
}

/// Kind of a STUN response: true for success, false for an error.
fn stun_outcome(datagram: &[u8]) -> Option<bool> {
    match datagram {
        [0x01, 0x01, ..] => Some(true),
        [0x01, 0x11, ..] => Some(false),
        _ => None,
    }
}

#[test]
fn checks_of_a_kicked_client_are_refused_for_fifteen_seconds_and_then_ignored() {
    let mut world = World::new();
    let mut client = Client::connect(&mut world, 1);
    client.send_media(&mut world);
    let stream = world.publishes.find(1).expect("it runs").stream;
    let (reason, description) = (EndReason::Kicked, String::new());
    world.switchboard.handle_message(Message::End { stream, reason, description });
    world.settle();
    // The close_notify is lost: the client continues, also from an address that it had not used before.
    let other = Path::from(address(50_000));
    for (after, path, refused) in [(5, client.path, true), (5, other, true), (6, other, false)] {
        world.pass(Duration::from_secs(after));
        world.sent.clear();
        client.publisher.handle_timeout(world.now);
        while let Some((_, mut datagram)) = client.publisher.poll_transmit() {
            world.switchboard.handle_datagram(path, &mut datagram);
        }
        world.settle();
        let answers: Vec<_> =
            world.sent.iter().filter_map(|(to, of)| Some((*to, stun_outcome(of)?))).collect();
        let expected = if refused { vec![(path, false)] } else { vec![] };
        assert_eq!(answers, expected, "{after} s later");
    }
    assert!(world.switchboard.is_empty());
    assert_eq!(world.switchboard.revoked.len(), 0);
}

#[test]
fn an_unanswered_offer_of_ours_accepts_no_client_and_ends_after_ten_seconds() {
    let mut world = World::new();
    let identity = Identity::generate().expect("randomness");
    let credentials = Credentials::generate(&identity).expect("randomness");
    let offer = OwnOffer::new(true, true).expect("two sections");
    let record = WhipRecord::with_own_offer(&offer, credentials.clone(), 0, Vec::new());
    let session = WhipSession::new(&identity, offer.expected(), &credentials, 0, world.now);
    let opening = world.opening(1, Near::default(), Some(record), &[]);
    open(&mut world, session, true, opening);
    world.settle();
    assert!(world.switchboard.has_streams() && world.switchboard.routes.len() == 0);
    world.pass(Duration::from_secs(9));
    assert!(world.reasons().is_empty());
    world.pass(Duration::from_secs(2));
    assert_eq!(
        world.reasons(),
        [(1, EndReason::HandshakeFailed(headgate_whip::HandshakeFault::Unreachable))]
    );
    assert!(world.switchboard.is_empty());
}
