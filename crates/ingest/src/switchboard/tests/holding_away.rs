//! A successor that was accepted by another worker than the one that holds the stream which it continues: its session
//! moves there.

use std::time::Duration;

use headgate_rtmp::{ClientRole, MediaKind};

use super::super::message::Message;
use super::super::{EndReason, SessionKey};
use super::workers::Workers;
use super::world::{AVC_HEADER, URL};
use crate::publish::mailbox::HoldEnded;

/// The first worker holds the stream of publish 1 after 50 frames; returns its upstream.
fn lost() -> (Workers, SessionKey) {
    let mut workers = Workers::new();
    let home = &mut workers.home;
    home.window = Duration::from_secs(10);
    let lost = home.publisher("a", 1, &[URL]);
    for n in 0..50 {
        home.send_frame(lost, n, 100);
        home.pass(Duration::from_millis(40));
    }
    let upstream = home.upstream_peer().expect("connected");
    home.hang_up(lost);
    home.pass(Duration::from_secs(1));
    (workers, upstream)
}

fn send(workers: &mut Workers, publisher: SessionKey, frames: std::ops::Range<u32>) {
    workers.home.send(publisher, MediaKind::Video, 0, AVC_HEADER);
    for n in frames {
        workers.home.send_frame(publisher, n, 100);
        workers.home.pass(Duration::from_millis(40));
        workers.exchange();
    }
}

#[test]
fn a_successor_of_another_worker_continues_on_the_same_connection() {
    let (mut workers, upstream) = lost();
    let publisher = workers.broadcaster("a");
    assert!(workers.away.switchboard.is_empty(), "nothing of it stays behind");
    send(&mut workers, publisher, 0..50);
    let frames = workers.home.frames(upstream);
    assert_eq!(frames, (0..50).chain(0..50).collect::<Vec<_>>());
    assert_eq!(workers.home.resolved.len(), 1);
    let times = workers.home.peers[&upstream].media.iter().map(|of| of.timestamp);
    assert!(times.is_sorted());
    workers.home.hang_up(publisher);
    workers.exchange();
    assert_eq!(workers.reasons().last(), Some(&(2, EndReason::BroadcasterLeft)));
    assert!(workers.home.publishes.find_held(2).is_some(), "it is held again");
}

#[test]
fn an_end_that_comes_before_the_session_ends_it_on_arrival() {
    let (mut workers, _) = lost();
    let (_, request) = workers.connect("a");
    workers.allow(request);
    let stream = workers.home.publishes.find(2).expect("it runs").stream;
    let (reason, description) = (EndReason::Kicked, "Off".to_owned());
    workers.home.switchboard.handle_message(Message::End { stream, reason, description });
    workers.home.settle();
    assert!(workers.home.publishes.find(2).is_some(), "it waits");
    let publisher = workers.arrive();
    assert_eq!(workers.reasons().last(), Some(&(2, EndReason::Kicked)));
    let said = &workers.home.peers[&publisher].events;
    assert!(said.iter().any(|event| event.contains("Off")), "{said:?}");
    workers.home.pass(Duration::from_secs(3));
    assert!(workers.home.switchboard.is_empty());
}

#[test]
fn a_session_on_its_way_to_a_worker_that_stops_ends_with_it() {
    let (mut workers, _) = lost();
    let (_, request) = workers.connect("a");
    workers.allow(request);
    workers.home.switchboard.stop();
    let (_, _, moved) = workers.away.moved.pop().expect("it moves");
    assert!(workers.home.switchboard.adopt(*moved).is_none());
    workers.exchange();
    assert_eq!(workers.reasons().last(), Some(&(2, EndReason::Shutdown)));
}

#[test]
fn a_session_on_its_way_survives_a_worker_that_gives_up_and_starts_afresh_there() {
    let (mut workers, _) = lost();
    let (_, request) = workers.connect("a");
    workers.allow(request);
    workers.away.switchboard.give_up();
    workers.home.switchboard.give_up();
    let publisher = workers.arrive();
    send(&mut workers, publisher, 0..10);
    let player = workers.away.connect(ClientRole::Play, "a");
    workers.exchange();
    send(&mut workers, publisher, 10..30);
    assert_eq!(workers.away.frames(player).last(), Some(&29));
}

#[test]
fn a_broadcaster_that_left_leaves_the_stream_to_the_next_one() {
    let (mut workers, _) = lost();
    let (key, request) = workers.connect("a");
    workers.away.hang_up(key);
    workers.allow(request);
    workers.exchange();
    assert!(workers.away.moved.is_empty());
    assert_eq!(workers.reasons().last(), Some(&(2, EndReason::BroadcasterLeft)));
    assert!(workers.home.publishes.find_held(1).is_some());
    workers.home.pass(Duration::from_secs(12));
    let posted: Vec<_> = workers.away.holds_ended.iter().chain(&workers.home.holds_ended).collect();
    assert_eq!(posted, [&HoldEnded { client_id: 1, successor: None }]);
    assert!(workers.home.switchboard.is_empty());
}
