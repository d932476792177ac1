use std::time::Duration;

use headgate_peer::{Event, Settings};
use headgate_whip::WhipEnd;

use crate::world::World;

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
    // It is told, as at every ending.
    world.session.close(world.now);
    world.pass(Duration::from_millis(50));
    assert!(world.client_events.contains(&Event::Closed));
}

#[test]
fn a_client_that_never_comes_is_ended_after_ten_seconds() {
    let mut world = World::new(Settings::default());
    world.loss = Box::new(|_, _| true);
    world.pass(Duration::from_millis(10_500));
    assert_eq!(world.end(), Some(WhipEnd::HandshakeFailed));
}

#[test]
fn a_stranger_with_another_certificate_does_not_get_in() {
    let mut world = World::with_fingerprint(Settings::default(), |offer| {
        let at = offer.find("a=fingerprint:sha-256 ").expect("a fingerprint") + 22;
        let mut bytes = offer.into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).expect("text")
    });
    assert!(!world.connect());
    assert_eq!(world.end(), Some(WhipEnd::HandshakeFailed));
}

#[test]
fn what_we_end_is_told_to_the_client() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.session.close(world.now);
    world.pass(Duration::from_millis(50));
    assert!(world.client_events.contains(&Event::Closed));
}
