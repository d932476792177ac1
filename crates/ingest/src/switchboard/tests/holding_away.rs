//! A successor on another worker than the stream that it continues: its frames come through a relay.

use std::sync::Arc;
use std::time::Duration;

use headgate_rtmp::{ClientRole, MediaKind};

use super::super::message::{Message, PublishOpening};
use super::super::relay::Relay;
use super::super::{EndReason, SessionKey};
use super::world::{AVC_HEADER, World, upstream};
use crate::publish::mailbox::HoldEnded;

const URL: &str = "rtmp://upstream.example/live/out";

/// Two workers of one process: the first holds the stream of publish 1, the second has its successor, publish 2.
struct Workers {
    home: World,
    away: World,
    upstream: SessionKey,
    publisher: SessionKey,
}

impl Workers {
    fn start() -> Self {
        let (mut home, mut away) = (World::on(0, 2), World::on(1, 2));
        away.share(&home);
        home.window = Duration::from_secs(10);
        let lost = home.publisher("a", 1, &[URL]);
        for n in 0..50 {
            home.send_frame(lost, n, 100);
            home.pass(Duration::from_millis(40));
        }
        let upstream_key = home.upstream_peer().expect("connected");
        home.hang_up(lost);
        home.pass(Duration::from_secs(1));
        let publisher = away.connect(ClientRole::Publish, "a");
        home.settle();
        let request = home.asked.pop_front().or_else(|| away.asked.pop_front()).expect("it asked");
        let held = home.publishes.find_held(1).expect("held");
        let guard = home.publishes.open_successor(&held.record, 2, None, home.now);
        let (relay, record) = (Arc::new(Relay::default()), guard.record().clone());
        let (upstreams, continues) = (vec![upstream(URL)], Some(held.record.stream));
        let opening =
            PublishOpening { guard, upstreams, window: home.window, continues, beside: None };
        let (worker, name) = (1, held.name);
        let open = Message::OpenForAway { worker, relay: relay.clone(), name, opening };
        home.switchboard.handle_message(open);
        let allow = Message::AllowAway { request, home: 0, relay, record };
        away.switchboard.handle_message(allow);
        let mut workers = Self { home, away, upstream: upstream_key, publisher };
        workers.exchange();
        workers
    }

    fn send(&mut self, frames: std::ops::Range<u32>) {
        for n in frames {
            self.away.send_frame(self.publisher, n, 100);
            self.home.pass(Duration::from_millis(40));
            self.exchange();
        }
    }

    /// Exchanges messages and relays between the two.
    fn exchange(&mut self) {
        for _ in 0..4 {
            self.away.now = self.home.now;
            for world in [&mut self.away, &mut self.home] {
                world.settle();
                world.switchboard.drain_relays();
                world.settle();
            }
            let told = self.away.told.drain(..).collect::<Vec<_>>();
            let back = self.home.told.drain(..).collect::<Vec<_>>();
            for (worker, message) in told.into_iter().chain(back) {
                let world = if worker == 0 { &mut self.home } else { &mut self.away };
                world.switchboard.handle_message(message);
            }
        }
    }

    fn ended(&self) -> Vec<(u64, EndReason)> {
        let mut ended: Vec<_> = self.home.reasons();
        ended.extend(self.away.reasons());
        ended
    }
}

#[test]
fn a_successor_on_another_worker_continues_on_the_same_connection() {
    let mut workers = Workers::start();
    workers.away.send(workers.publisher, MediaKind::Video, 0, AVC_HEADER);
    workers.send(0..50);
    let frames = workers.home.frames(workers.upstream);
    assert_eq!(frames, (0..50).chain(0..50).collect::<Vec<_>>());
    assert_eq!(workers.home.resolved.len(), 1);
    let times = workers.home.peers[&workers.upstream].media.iter().map(|of| of.timestamp);
    assert!(times.is_sorted());
    workers.away.hang_up(workers.publisher);
    workers.exchange();
    assert_eq!(workers.ended().last(), Some(&(2, EndReason::BroadcasterLeft)));
    assert!(workers.home.publishes.find_held(2).is_some(), "it is held again");
}

#[test]
fn the_gateway_ends_a_successor_on_another_worker() {
    let mut workers = Workers::start();
    workers.away.send(workers.publisher, MediaKind::Video, 0, AVC_HEADER);
    workers.send(0..10);
    let stream = workers.home.publishes.find(2).expect("it runs").stream;
    let (reason, description) = (EndReason::Kicked, "Off".to_owned());
    workers.home.switchboard.handle_message(Message::End { stream, reason, description });
    workers.exchange();
    assert_eq!(workers.ended().last(), Some(&(2, EndReason::Kicked)));
    let said = &workers.away.peers[&workers.publisher].events;
    assert!(said.iter().any(|event| event.contains("Off")), "{said:?}");
    workers.home.pass(Duration::from_secs(3));
    assert!(workers.home.switchboard.is_empty());
}

#[test]
fn a_successor_on_another_worker_is_closed_when_the_worker_of_its_stream_gives_up() {
    let mut workers = Workers::start();
    workers.away.send(workers.publisher, MediaKind::Video, 0, AVC_HEADER);
    workers.send(0..10);
    workers.home.switchboard.give_up();
    workers.exchange();
    assert_eq!(workers.ended().last(), Some(&(2, EndReason::InternalError)));
    workers.away.pass(Duration::from_secs(1));
    assert!(workers.away.switchboard.is_empty(), "it sends nothing");
}

#[test]
fn a_broadcaster_on_another_worker_that_left_leaves_the_stream_to_the_next_one() {
    let (mut home, mut away) = (World::on(0, 2), World::on(1, 2));
    away.share(&home);
    home.window = Duration::from_secs(10);
    let lost = home.publisher("a", 1, &[]);
    home.send_frame(lost, 0, 100);
    home.hang_up(lost);
    let held = home.publishes.find_held(1).expect("held");
    let guard = home.publishes.open_successor(&held.record, 2, None, home.now);
    let (relay, record) = (Arc::new(Relay::default()), guard.record().clone());
    let continues = Some(held.record.stream);
    let opening = PublishOpening {
        guard,
        upstreams: Vec::new(),
        window: home.window,
        continues,
        beside: None,
    };
    let (worker, name) = (1, held.name);
    let open = Message::OpenForAway { worker, relay: relay.clone(), name, opening };
    home.switchboard.handle_message(open);
    // No request with this number is pending.
    let allow = Message::AllowAway { request: 77, home: 0, relay, record };
    away.switchboard.handle_message(allow);
    away.settle();
    for (_, message) in std::mem::take(&mut away.told) {
        home.switchboard.handle_message(message);
    }
    home.settle();
    assert_eq!(home.reasons().last(), Some(&(2, EndReason::BroadcasterLeft)));
    assert!(home.publishes.find_held(2).is_some());
    home.pass(Duration::from_secs(12));
    let ends =
        [(1, Some(2)), (2, None)].map(|(client_id, successor)| HoldEnded { client_id, successor });
    // Both share one mailbox: whichever drains it first gets the events.
    let told: Vec<_> = away.holds_ended.iter().chain(&home.holds_ended).copied().collect();
    assert_eq!(told, ends);
    assert!(home.switchboard.is_empty());
}
