use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use headgate_peer::{Event, Settings};
use headgate_whip::{HandshakeFault, WhipEnd};

use crate::world::{Direction, World};

#[test]
fn a_client_that_closes_ends_the_session() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(5, 1000);
    world.publisher.close(world.now);
    world.pass(Duration::from_millis(50));
    assert_eq!(world.end(), Some(WhipEnd::Closed));
}

#[test]
fn a_client_that_vanishes_is_lost_after_thirty_seconds() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(5, 1000);
    world.loss = Box::new(|_, _| true);
    world.pass(Duration::from_secs(29));
    assert_eq!(world.end(), None);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.end(), Some(WhipEnd::Lost));
}

#[test]
fn a_client_that_answers_checks_but_sends_nothing_is_ended_after_fifteen_seconds() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.pass(Duration::from_secs(16));
    assert_eq!(world.end(), Some(WhipEnd::NoMedia));
    // The client is notified, as at every ending.
    world.session.close(world.now);
    world.pass(Duration::from_millis(50));
    assert!(world.client_events.contains(&Event::Closed));
}

#[test]
fn a_client_that_never_comes_is_ended_after_ten_seconds() {
    let mut world = World::new(Settings::default());
    world.loss = Box::new(|_, _| true);
    world.pass(Duration::from_millis(10_500));
    assert_eq!(world.end(), Some(WhipEnd::HandshakeFailed(HandshakeFault::Unreachable)));
}

#[test]
fn a_client_with_another_certificate_is_rejected() {
    let mut world = World::with_fingerprint(Settings::default(), |offer| {
        let at = offer.find("a=fingerprint:sha-256 ").expect("a fingerprint") + 22;
        let mut bytes = offer.into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).expect("text")
    });
    assert!(!world.connect());
    assert_eq!(world.end(), Some(WhipEnd::HandshakeFailed(HandshakeFault::WrongCertificate)));
}

#[test]
fn a_client_that_passes_checks_but_no_handshake_is_named_so() {
    let mut world = World::new(Settings::default());
    world.loss = Box::new(|_, datagram| is_dtls(datagram));
    world.pass(Duration::from_millis(10_500));
    assert_eq!(world.end(), Some(WhipEnd::HandshakeFailed(HandshakeFault::Incomplete)));
}

/// Changes the publisher's ClientHello; the checks of the library come before anything is signed.
fn end_with(change: impl Fn(&mut Vec<u8>) + 'static) -> Option<WhipEnd> {
    let mut world = World::new(Settings::default());
    world.split = Box::new(move |mut datagram| {
        if datagram.first() == Some(&22) && datagram.get(13) == Some(&1) {
            change(&mut datagram);
        }
        vec![datagram]
    });
    world.pass(Duration::from_millis(10_500));
    world.end()
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    for at in 0..=bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
}

#[test]
fn an_offer_in_dtls_that_cannot_be_met_is_named() {
    let failed = |fault| Some(WhipEnd::HandshakeFailed(fault));
    // The version in the message comes after the headers of record and message.
    assert_eq!(end_with(|hello| hello[26] = 0xff), failed(HandshakeFault::OldVersion));
    let no_suite = end_with(|hello| {
        let suites = 26 + 33 + 1;
        let suites = suites + 1 + usize::from(hello[suites]);
        let length = usize::from(hello[suites + 1]);
        hello[suites + 2..suites + 2 + length].fill(0x13);
    });
    assert_eq!(no_suite, failed(HandshakeFault::NoCommonCipher));
    let no_srtp = end_with(|hello| replace(hello, &[0, 14, 0, 5, 0, 2], &[0xfa, 0xfa, 0, 5, 0, 2]));
    assert_eq!(no_srtp, failed(HandshakeFault::NoSrtpProfile));
    let unknown =
        end_with(|hello| replace(hello, &[0, 14, 0, 5, 0, 2, 0, 7], &[0, 14, 0, 5, 0, 2, 0, 5]));
    assert_eq!(unknown, failed(HandshakeFault::NoSrtpProfile));
}

#[test]
fn an_alert_of_the_client_is_named() {
    for (description, fault) in [
        (40, HandshakeFault::NoCommonCipher),
        (70, HandshakeFault::OldVersion),
        (42, HandshakeFault::RefusedByClient),
    ] {
        let mut world = World::new(Settings::default());
        world.split = Box::new(move |datagram| {
            if !is_dtls(&datagram) {
                return vec![datagram];
            }
            let alert = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, description];
            // Its first message is followed by nothing but the alert.
            if datagram.get(18) == Some(&0) { vec![datagram, alert.into()] } else { Vec::new() }
        });
        world.pass(Duration::from_millis(10_500));
        assert_eq!(world.end(), Some(WhipEnd::HandshakeFailed(fault)), "{description}");
    }
}

#[test]
fn a_closed_session_notifies_the_client() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.session.close(world.now);
    world.pass(Duration::from_millis(50));
    assert!(world.client_events.contains(&Event::Closed));
}

/// DTLS records differ from media and STUN in their first byte (RFC 7983).
const fn is_dtls(datagram: &[u8]) -> bool {
    matches!(datagram, [20..=63, ..])
}

#[test]
fn a_lost_close_notify_is_repeated_and_arrives_within_a_second() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(5, 1000);
    let lost = Rc::new(Cell::new(0));
    let counter = lost.clone();
    world.loss = Box::new(move |direction, datagram| {
        let is_goodbye = direction == Direction::ToClient && is_dtls(datagram);
        let is_lost = is_goodbye && counter.get() < 3;
        counter.set(counter.get() + usize::from(is_lost));
        is_lost
    });
    world.session.close(world.now);
    world.pass(Duration::from_millis(990));
    assert!(!world.client_events.contains(&Event::Closed) && !world.session.is_closed());
    world.pass(Duration::from_millis(20));
    assert_eq!(lost.get(), 3);
    assert!(world.client_events.contains(&Event::Closed) && world.session.is_closed());
    assert_eq!(world.session.poll_timeout(), None);
}

#[test]
fn a_closing_session_answers_nothing_and_sends_only_close_notify() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(5, 1000);
    // The client receives nothing and continues: media, reports, and ICE checks every 2.5 s.
    world.loss = Box::new(|direction, _| direction == Direction::ToClient);
    let (before, rejected) = (world.to_client, world.session.counters().rejected);
    let frames = world.frames.len();
    world.session.close(world.now);
    world.session.close(world.now);
    world.publish(200, 1000);
    assert_eq!(world.to_client - before, 4, "close_notify and three repetitions");
    assert_eq!(world.session.counters().rejected, rejected);
    assert_eq!(world.frames.len(), frames);
    assert!(world.session.is_closed());
}

#[test]
fn a_session_without_a_client_is_closed_immediately() {
    let mut world = World::new(Settings::default());
    world.session.close(world.now);
    assert!(world.session.is_closed() && world.session.poll_timeout().is_none());
    assert_eq!(world.session.poll_transmit(), None);
    // So is a session whose client sent close_notify first.
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publisher.close(world.now);
    world.pass(Duration::from_millis(50));
    world.session.close(world.now);
    assert!(world.session.is_closed());
}

#[test]
fn over_tcp_close_notify_is_sent_once() {
    let mut world = World::new(Settings::default());
    world.is_tcp = true;
    assert!(world.connect());
    world.session.close(world.now);
    assert!(world.session.is_closed() && world.session.poll_transmit().is_some());
    assert_eq!(world.session.poll_transmit(), None);
}

#[test]
fn close_notify_carries_epoch_and_counter_as_its_nonce() {
    const RECORD_HEADER: usize = 13;
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.session.close(world.now);
    let (_, record) = world.session.poll_transmit().expect("a close_notify");
    // A client that parses the alert before decrypting it takes the second byte for its description; 1 is not one.
    assert_eq!(record[0], 21, "an alert");
    assert_eq!(record[RECORD_HEADER..RECORD_HEADER + 4], [0, 1, 0, 0], "{record:02x?}");
}
