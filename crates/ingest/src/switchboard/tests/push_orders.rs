//! What the gateway orders for pushes, and tests of upstreams, in virtual time.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::world::{URL, World, upstream};
use crate::switchboard::message::Message;
use crate::{PushOrder, PushStep, Upstream, UpstreamCause, UpstreamState};

fn order(world: &mut World, order: PushOrder) {
    let publish = world.publishes.find(1).expect("live");
    let serial = publish.upstreams.find(URL).expect("listed").serial;
    let message = Message::OrderPush { stream: publish.stream, serial, order };
    world.switchboard.handle_message(message);
    world.settle();
}

fn state(world: &World) -> UpstreamState {
    world.snapshot(1).upstreams[0].state
}

fn test(world: &mut World, upstream: Upstream, time: Duration) {
    world.switchboard.handle_message(Message::TestUpstream { test: 7, upstream });
    world.settle();
    world.pass(time);
}

#[test]
fn a_paused_upstream_is_left_and_the_rest_of_the_publish_goes_on() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    let player = world.player("a");
    world.send_frame(publisher, 0, 100);
    let peer = world.upstream_peer().expect("connected");
    order(&mut world, PushOrder::Pause);
    order(&mut world, PushOrder::Pause);
    let said = &world.peers[&peer].events;
    assert!(said.iter().any(|event| event.contains("PublishEnded")), "{said:?}");
    assert_eq!(state(&world), UpstreamState::Paused);
    for n in 1..200 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    assert!(world.upstream_peer().is_none(), "it is not dialled");
    assert_eq!(world.frames(player).len(), 200);
    order(&mut world, PushOrder::Resume);
    for n in 200..260 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(state(&world), UpstreamState::Sending);
    let peer = world.upstream_peer().expect("connected again");
    assert_eq!(world.frames(peer).last(), Some(&259));
}

#[test]
fn a_paused_upstream_does_not_delay_the_end_of_its_publish() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 100);
    order(&mut world, PushOrder::Pause);
    world.pass(Duration::from_secs(3));
    world.hang_up(publisher);
    assert!(world.switchboard.is_empty());
}

#[test]
fn an_upstream_that_waits_for_its_next_attempt_tries_at_once() {
    let mut world = World::new();
    world.upstream.0 = false;
    let publisher = world.publisher("a", 1, &[URL]);
    for n in 0..600 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    let attempts = world.resolved.len();
    world.upstream.0 = true;
    assert_eq!(state(&world), UpstreamState::Waiting);
    order(&mut world, PushOrder::Retry);
    assert_eq!(world.resolved.len(), attempts + 1);
    assert_eq!(state(&world), UpstreamState::Sending);
    order(&mut world, PushOrder::Retry);
    assert_eq!(world.resolved.len(), attempts + 1, "it does not wait");
}

#[test]
fn a_test_publishes_two_seconds_and_reports_each_step() {
    let mut world = World::new();
    test(&mut world, upstream(URL), Duration::from_millis(1_900));
    assert!(world.tested.is_empty());
    let peer = world.upstream_peer().expect("connected");
    world.pass(Duration::from_secs(1));
    let [tested] = &world.tested[..] else { panic!("{:?}", world.tested) };
    use PushStep::{Connect, Dns, Handshake, Media, Publish, Tcp};
    let steps: Vec<_> = tested.steps.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [Dns, Tcp, Handshake, Connect, Publish, Media]);
    assert!((2_000..2_100).contains(&tested.steps[5].1), "{:?}", tested.steps);
    assert_eq!((tested.client_id, tested.cause, tested.detail.as_str()), (7, None, ""));
    let got = &world.peers[&peer];
    let count = |kind| got.media.iter().filter(|of| of.kind == kind).count();
    assert_eq!(count(MediaKind::Video), 51);
    assert!(count(MediaKind::Audio) > 90);
    assert!(got.events.iter().any(|event| event.contains("PublishEnded")), "{:?}", got.events);
    world.pass(Duration::from_secs(3));
    assert!(world.switchboard.is_empty());
}

#[test]
fn a_test_fails_once_and_by_name() {
    let mut world = World::new();
    world.upstream.0 = false;
    test(&mut world, upstream(URL), Duration::from_secs(20));
    let [tested] = &world.tested[..] else { panic!("{:?}", world.tested) };
    assert_eq!(tested.cause, Some(UpstreamCause::ConnectionRefused));
    assert_eq!(tested.steps.last().map(|(step, _)| *step), Some(PushStep::Tcp));
    assert_eq!(world.resolved.len(), 1, "it tries once");
    assert!(world.switchboard.is_empty());
}

#[test]
fn a_test_that_is_not_answered_ends() {
    let mut world = World::new();
    world.upstream.1 = false;
    test(&mut world, upstream(URL), Duration::from_secs(15));
    let [tested] = &world.tested[..] else { panic!("{:?}", world.tested) };
    assert_eq!(tested.cause, Some(UpstreamCause::TimedOut));
    assert_eq!(tested.steps.last().map(|(step, _)| *step), Some(PushStep::Publish));
    assert!(world.switchboard.is_empty());
}
