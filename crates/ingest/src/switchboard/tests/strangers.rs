//! No one gets frames of a stream that they did not join.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Timestamp};
use headgate_rtmp::MediaKind;

use super::super::SessionKey;
use super::super::broadcast::Role;
use super::super::message::Message;
use super::super::relay::Relay;
use super::world::World;
use crate::EndReason;
use crate::session::effect::AudioForm;

#[test]
fn a_slow_player_of_an_ended_stream_gets_no_frame_of_the_next_one() {
    let mut world = World::new();
    let a = world.publisher("a", 1, &[]);
    world.send_frame(a, 0, 100);
    let slow = world.player("a");
    world.peers.get_mut(&slow).expect("there").reads = 0;
    for n in 1..60 {
        world.send_frame(a, n, 20_000);
        world.pass(Duration::from_millis(40));
    }
    world.hang_up(a);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)], "its stream is closed by now");
    // The next stream and its slow player reuse the slots of the first ones.
    let b = world.publisher("b", 2, &[]);
    world.send_frame(b, 1_000_000, 100);
    let theirs = world.player("b");
    world.peers.get_mut(&slow).expect("there").reads = usize::MAX;
    for n in 1..60 {
        world.send_frame(b, 1_000_000 + n, 1_000);
        world.pass(Duration::from_millis(40));
    }
    let strange = world.frames(slow).into_iter().filter(|n| *n >= 1_000_000).count();
    assert_eq!(strange, 0, "frames of another stream");
    world.hang_up(slow);
    for n in 60..120 {
        world.send_frame(b, 1_000_000 + n, 1_000);
        world.pass(Duration::from_millis(40));
    }
    let want: Vec<_> = (1_000_000..1_000_120).collect();
    assert_eq!(world.frames(theirs), want, "a player that left removed no other");
}

#[test]
fn a_player_gets_what_waits_for_it_when_the_publisher_leaves_and_then_the_end() {
    let mut world = World::new();
    let a = world.publisher("a", 1, &[]);
    world.send_frame(a, 0, 100);
    let player = world.player("a");
    world.peers.get_mut(&player).expect("there").reads = 0;
    for n in 1..10 {
        world.send_frame(a, n, 1_000);
    }
    world.hang_up(a);
    world.peers.get_mut(&player).expect("there").reads = usize::MAX;
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(player), (0..10).collect::<Vec<_>>());
    let events = &world.peers[&player].events;
    assert!(events.iter().any(|event| event.contains("UnpublishNotify")), "{events:?}");
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)]);
    assert!(!world.switchboard.has_streams());
}

/// A keyframe that contains its number.
fn keyframe(n: u32) -> Frame {
    let (codec, kind) = (Codec::H264, FrameKind::Keyframe);
    let timestamp = Timestamp::from_millis(i64::from(n) * 40);
    let data = Bytes::from(crate::sample::picture(true, n, 0)).slice(5..);
    Frame { codec, kind, timestamp, composition_ms: 0, data }
}

/// The relay of the worker's newest attach message.
fn attached(world: &World) -> Arc<Relay> {
    let relays = world.posted.iter().filter_map(|(_, message)| match message {
        Message::Attach { relay, .. } => Some(relay.clone()),
        _ => None,
    });
    relays.last().expect("it asked")
}

#[test]
fn a_burst_for_players_that_left_does_not_reach_later_ones() {
    let mut world = World::on(1, 2);
    let guard = world.publishes.open(1, 0, None, world.now);
    world.publishes.enter_name(b"cam", guard.record());
    let gone = world.player("cam");
    let relay = attached(&world);
    world.hang_up(gone);
    let player = world.player("cam");
    relay.tell(guard.record().clone(), Some(vec![keyframe(1)]));
    world.switchboard.drain_relays();
    world.settle();
    assert!(world.frames(player).is_empty(), "an old burst");
    let relay = attached(&world);
    relay.push(&keyframe(3), std::iter::empty());
    world.switchboard.drain_relays();
    world.settle();
    assert!(world.frames(player).is_empty(), "the burst comes first");
    relay.tell(guard.record().clone(), Some(vec![keyframe(2)]));
    world.switchboard.drain_relays();
    world.settle();
    assert_eq!(world.frames(player), [2, 3]);
}

#[test]
fn players_on_other_workers_get_the_end_when_a_worker_gives_up() {
    let mut world = World::on(0, 2);
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 100);
    let stream = world.publishes.find(1).expect("it runs").stream;
    let relay = Arc::new(Relay::default());
    let attach = Message::Attach { stream, reader: 1, relay: relay.clone() };
    world.switchboard.handle_message(attach);
    world.switchboard.give_up();
    world.settle();
    assert!(relay.is_ended());
    assert_eq!(world.reasons(), [(1, EndReason::InternalError)]);
}

const AAC: [&[u8]; 2] = [b"\xaf\0\x12\x10", b"\xaf\x01\x21\x09"];
const OPUS: &[u8] = b"\x91Opus\xf8\xff\xfe";

#[test]
fn a_player_on_another_worker_that_accepts_opus_gets_the_aac_that_follows_it() {
    use FrameKind::{Audio, Configuration};
    let [aac, opus] = [Codec::Aac, Codec::Opus].map(|of| [(of, Configuration), (of, Audio)]);
    assert_eq!(accepted_elsewhere(&[OPUS, AAC[0], AAC[1]]), [opus, aac].concat());
    // The same header before and after.
    let bodies = [AAC[0], AAC[1], OPUS, AAC[0], AAC[1]];
    assert_eq!(accepted_elsewhere(&bodies), [aac, opus, aac].concat());
}

/// The audio that a player on another worker gets that accepts Opus.
fn accepted_elsewhere(bodies: &[&[u8]]) -> Vec<(Codec, FrameKind)> {
    let (mut home, mut away) = (World::on(0, 2), World::on(1, 2));
    away.share(&home);
    let publisher = home.publisher("a", 1, &[]);
    let record = home.publishes.find(1).expect("it runs");
    let stream = away.switchboard.open_remote(&record).expect("it lives elsewhere");
    away.settle();
    let (reader, form) = (SessionKey::default(), AudioForm::Opus);
    let live = away.switchboard.broadcasts.get_mut(stream).expect("live");
    let player = live.subscribe(reader, form, Role::Player);
    let relay = attached(&away);
    let attach = Message::Attach { stream: record.stream, reader: 1, relay };
    home.switchboard.handle_message(attach);
    home.settle();
    away.switchboard.drain_relays();
    for body in bodies {
        home.send(publisher, MediaKind::Audio, 0, body);
        away.switchboard.drain_relays();
    }
    let live = away.switchboard.broadcasts.get_mut(stream).expect("live");
    let frames = std::iter::from_fn(|| live.next_frame(player));
    let audio = frames.filter(|frame| frame.codec != Codec::H264);
    audio.map(|frame| (frame.codec, frame.kind)).collect()
}
