//! What a single allowed peer can consume is bounded.

use std::time::Duration;

use headgate_media::Irregularity;
use headgate_rtmp::{MediaKind, MediaMessage};

use super::super::message::Message;
use super::world::World;
use crate::EndReason;
use crate::publish::near::Near;

#[test]
fn a_player_that_reads_one_byte_a_tick_is_closed_after_half_a_minute() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 100);
    let (crawling, brisk) = (world.player("a"), world.player("a"));
    world.peers.get_mut(&crawling).expect("there").reads = 1;
    for n in 1..2_000 {
        world.send_frame(publisher, n, 5_000);
        world.pass(Duration::from_millis(40));
        if !world.switchboard.sessions.contains_key(crawling) {
            break;
        }
    }
    assert!(!world.switchboard.sessions.contains_key(crawling), "it is still connected");
    assert!(world.switchboard.sessions.contains_key(brisk));
    assert!(world.reasons().is_empty());
}

#[test]
fn a_flood_of_configurations_reaches_nobody_and_the_newest_one_does() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 100);
    let player = world.player("a");
    let header = crate::sample::avc_header;
    for n in 1..=100 {
        world.send(publisher, MediaKind::Video, 0, &header(n));
    }
    let is_header = |message: &&MediaMessage| message.payload.starts_with(&[0x17, 0]);
    let headers = |world: &World| world.peers[&player].media.iter().filter(is_header).count();
    assert_eq!(headers(&world), 40);
    world.pass(Duration::from_secs(10));
    world.send_frame(publisher, 25, 100);
    world.send_frame(publisher, 26, 100);
    assert_eq!(headers(&world), 41);
    let newest = world.peers[&player].media.iter().rfind(is_header).expect("a header");
    assert_eq!(newest.payload, header(100));
    assert_eq!(world.frames(player), [0, 25, 26]);
    assert_eq!(world.count(Irregularity::ExcessData), 61);
    assert!(world.reasons().is_empty());
}

#[test]
fn a_flood_of_metadata_is_passed_on_up_to_its_rate() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    let mut metadata = b"\x02\0\x0aonMetaData\x08\0\0\0\0\0\x01x\x0c\0\0\xe0\0".to_vec();
    metadata.resize(metadata.len() + 0xe000, b'x');
    metadata.extend_from_slice(&[0, 0, 9]);
    for _ in 0..3_000 {
        world.send(publisher, MediaKind::Script, 0, &metadata);
    }
    assert_eq!(world.count(Irregularity::ExcessData), 500);
    world.pass(Duration::from_secs(1));
    assert!(world.reasons().is_empty());
}

#[test]
fn the_number_of_timers_is_bounded_by_sessions_and_streams() {
    let mut world = World::new();
    let publishers: Vec<_> =
        (0..5).map(|n| world.publisher(&format!("s{n}"), n, &["rtmp://u/live/x"])).collect();
    for n in 0..500 {
        for key in &publishers {
            world.send_frame(*key, n, 500);
        }
        if n % 7 == 0 {
            let player = world.player(&format!("s{}", n % 5));
            world.pass(Duration::from_millis(20));
            world.hang_up(player);
        }
        world.pass(Duration::from_millis(20));
        let limit = world.switchboard.sessions.len() + world.switchboard.sessions.by_id.len();
        assert!(
            world.switchboard.sessions.timers.len() <= limit,
            "{} timers",
            world.switchboard.sessions.timers.len()
        );
    }
    for key in publishers {
        world.hang_up(key);
    }
    world.pass(Duration::from_secs(3));
    assert!(world.switchboard.is_empty());
    assert_eq!(
        (world.switchboard.sessions.timers.len(), world.switchboard.questions.len()),
        (0, 0)
    );
}

#[test]
fn a_publish_request_without_an_answer_is_denied() {
    let mut world = World::new();
    let key = world.connect(headgate_rtmp::ClientRole::Publish, "a");
    world.pass(Duration::from_secs(13));
    let events = &world.peers[&key].events;
    assert!(events.iter().any(|event| event.contains("No decision in time")), "{events:?}");
    assert!(world.switchboard.questions.is_empty());
    let request = world.asked.pop_front().expect("it asked");
    let opening = world.opening(9, Near::default(), None, &[]);
    world.switchboard.handle_message(Message::Allow { request, opening });
    world.settle();
    assert_eq!(world.reasons(), [(9, EndReason::BroadcasterLeft)]);
    world.pass(Duration::from_secs(2));
    assert!(world.switchboard.is_empty());
}
