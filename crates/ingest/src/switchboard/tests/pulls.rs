//! A stream of another node: pulled once for all players here, as long as there are any, and ended when it ends at its
//! source.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use headgate_rtmp::{ClientRole, MediaKind};

use super::peer::Remote;
use super::world::{AVC_HEADER, World};
use crate::publish::play_guard::PlayGuard;
use crate::publish::pull_record::{PullEnd, PullSource, PullState};
use crate::switchboard::SessionKey;
use crate::switchboard::message::Message;
use crate::{Denial, EndReason, PullStatus, UpstreamUrl};

/// The source of "a" under this client id.
pub(super) fn source(client_id: u64) -> PullSource {
    let url = UpstreamUrl::parse("rtmp://192.0.2.9/live/a?headgate-node=1").expect("valid");
    PullSource { client_id, url, address: IpAddr::from([192, 0, 2, 9]) }
}

pub(super) fn world() -> World {
    World { holds_plays: true, ..World::new() }
}

/// A player of "a", which is live on another node under this client id.
pub(super) fn pulling(world: &mut World, client_id: u64) -> SessionKey {
    let player = world.player("a");
    let asked = world.plays.pop_front().expect("the gateway is asked");
    assert_eq!((&asked.name[..], asked.client_id), (&b"a"[..], None));
    let (request, source) = (asked.request, source(client_id));
    let guard = PlayGuard::new(world.publishes.clone(), request);
    world.switchboard.handle_message(Message::Pull { request, guard, source });
    world.settle();
    player
}

/// Sends a message from the source to its player.
fn send(world: &mut World, timestamp: u32, body: &[u8]) {
    let key = world.upstream_peer().expect("connected");
    if let Remote::Upstream(server) = &mut world.peers.get_mut(&key).expect("there").remote {
        server.send_media(MediaKind::Video, timestamp, &[], &Bytes::copy_from_slice(body));
    }
    world.settle();
}

/// Sends these frames from the source, one every 40 ms with a keyframe each second, after the header.
pub(super) fn send_frames(world: &mut World, numbers: std::ops::Range<u32>) {
    send(world, 0, AVC_HEADER);
    for n in numbers {
        let frame = crate::sample::picture(n.is_multiple_of(25), n, 109);
        send(world, n * 40, &frame);
    }
    world.pass(Duration::from_millis(100));
}

fn break_connection(world: &mut World) {
    let key = world.upstream_peer().expect("connected");
    world.hang_up(key);
}

pub(super) fn pulls(world: &World) -> Vec<PullStatus> {
    world.publishes.pulls(world.now, std::time::SystemTime::now())
}

pub(super) fn ends(world: &World) -> Vec<PullEnd> {
    world.pulls_ended.iter().map(|ended| ended.end).collect()
}

#[test]
fn a_play_starts_once_the_source_has_sent_something() {
    let mut world = world();
    let player = pulling(&mut world, 7);
    world.pass(Duration::from_secs(4));
    assert!(!world.was_sent(player, "Ready"));
    send_frames(&mut world, 0..3);
    assert!(world.was_sent(player, "Ready"));
    assert_eq!(world.frames(player), [0, 1, 2]);
    let [pull] = &pulls(&world)[..] else { panic!("one pull") };
    assert_eq!((&pull.name[..], pull.client_id, pull.players), (&b"a"[..], 7, 1));
    assert_eq!((pull.url.as_str(), pull.state), ("rtmp://192.0.2.9:1935/live", PullState::Playing));
    assert!(pull.bytes_in > 300 && pull.bytes_out == pull.bytes_in, "{pull:?}");
    assert!(world.publishes.find(7).is_none(), "it is no publish of this node");
}

#[test]
fn a_second_player_reads_the_same_pull_from_its_keyframe_on() {
    let mut world = world();
    let first = pulling(&mut world, 7);
    send_frames(&mut world, 0..30);
    let second = pulling(&mut world, 7);
    send_frames(&mut world, 30..32);
    assert_eq!(world.frames(first), (0..32).collect::<Vec<_>>());
    assert_eq!(world.frames(second), (25..32).collect::<Vec<_>>());
    let connections = world.peers.values().filter(|of| matches!(of.remote, Remote::Upstream(_)));
    assert_eq!(connections.count(), 1);
    assert_eq!(pulls(&world)[0].players, 2);
}

#[test]
fn a_pull_without_players_ends_after_five_seconds() {
    let mut world = world();
    let first = pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    world.hang_up(first);
    world.pass(Duration::from_secs(3));
    let second = pulling(&mut world, 7);
    world.pass(Duration::from_secs(6));
    assert_eq!((pulls(&world)[0].players, world.frames(second)), (1, vec![0, 1, 2]));
    world.hang_up(second);
    world.pass(Duration::from_millis(4_900));
    assert!(ends(&world).is_empty());
    world.pass(Duration::from_millis(200));
    assert_eq!(ends(&world), [PullEnd::Unread]);
    let goodbye = world.upstream_peer().is_some_and(|key| world.was_sent(key, "PlayEnded"));
    assert!(goodbye, "the source gets the closing commands");
    world.pass(Duration::from_secs(3));
    assert!(world.switchboard.is_empty() && pulls(&world).is_empty());
}

#[test]
fn a_refusal_by_the_source_is_passed_on_to_the_player() {
    let mut world = world();
    world.upstream.1 = false;
    let player = pulling(&mut world, 7);
    world.pass(Duration::from_secs(1));
    assert!(world.was_sent(player, "NetStream.Play.StreamNotFound"));
    assert_eq!(ends(&world), [PullEnd::Refused]);
    assert_eq!(world.plays_ended.len(), 1);
}

#[test]
fn a_source_that_is_unreachable_or_silent_for_five_seconds_is_given_up() {
    for is_reachable in [false, true] {
        let mut world = world();
        world.upstream.0 = is_reachable;
        let player = pulling(&mut world, 7);
        world.pass(Duration::from_millis(if is_reachable { 4_900 } else { 0 }));
        assert_eq!(ends(&world).is_empty(), is_reachable);
        world.pass(Duration::from_secs(3));
        assert!(world.was_sent(player, "NetStream.Play.StreamNotFound"));
        assert_eq!(ends(&world), [PullEnd::Lost]);
        assert!(world.switchboard.is_empty());
    }
}

#[test]
fn the_end_of_the_stream_at_its_source_ends_its_players() {
    let mut world = world();
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    let key = world.upstream_peer().expect("connected");
    if let Remote::Upstream(server) = &mut world.peers.get_mut(&key).expect("there").remote {
        server.end_play();
    }
    world.settle();
    world.pass(Duration::from_secs(2));
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
    assert_eq!(ends(&world), [PullEnd::SourceEnded]);
    assert!(world.ended.is_empty(), "no publish has ended");
    assert_eq!(world.pulls_ended[0].client_id, 7);
}

/// A player that got frames 0 to 29, whose source connection was then lost.
pub(super) fn lost() -> (World, SessionKey) {
    let mut world = world();
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..30);
    break_connection(&mut world);
    assert_eq!(pulls(&world)[0].state, PullState::Reconnecting);
    (world, player)
}

#[test]
fn after_a_loss_the_gateway_locates_the_stream_and_no_frame_is_repeated_or_missing() {
    let (mut world, player) = lost();
    let wanted = world.wanted.pop_front().expect("requested immediately");
    assert_eq!((&wanted.name[..], wanted.client_id), (&b"a"[..], 7));
    let source = Some(source(7));
    world.switchboard.handle_message(Message::DialPull { pull: wanted.pull, source });
    world.settle();
    // What a new player gets: everything from the keyframe.
    send_frames(&mut world, 25..34);
    assert_eq!(world.frames(player), (0..34).collect::<Vec<_>>());
    assert_eq!(pulls(&world)[0].state, PullState::Playing);
}

#[test]
fn a_lost_stream_that_is_gone_or_was_replaced_ends_its_players() {
    for answer in [None, Some(source(8))] {
        let (mut world, player) = lost();
        let pull = world.wanted.pop_front().expect("asked").pull;
        world.switchboard.handle_message(Message::DialPull { pull, source: answer });
        world.pass(Duration::from_secs(1));
        assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
        assert_eq!(ends(&world), [PullEnd::SourceEnded]);
    }
}

#[test]
fn a_lost_source_is_retried_for_five_seconds() {
    let (mut world, player) = lost();
    world.upstream.0 = false;
    let mut tries = 0;
    for _ in 0..100 {
        for wanted in std::mem::take(&mut world.wanted) {
            tries += 1;
            let source = Some(source(7));
            world.switchboard.handle_message(Message::DialPull { pull: wanted.pull, source });
            world.settle();
        }
        world.pass(Duration::from_millis(100));
    }
    assert!((8..=11).contains(&tries), "{tries}");
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
    assert_eq!(ends(&world), [PullEnd::Lost]);
    assert!(world.switchboard.is_empty());
}

#[test]
fn a_lost_stream_ends_if_the_gateway_does_not_answer() {
    let (mut world, player) = lost();
    world.pass(Duration::from_secs(7));
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
    assert_eq!((world.wanted.len(), ends(&world)), (1, vec![PullEnd::Lost]));
}

#[test]
fn a_publish_that_starts_on_this_node_replaces_the_pull() {
    let mut world = world();
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    let publisher = world.publisher("a", 8, &[]);
    world.pass(Duration::from_secs(2));
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
    assert_eq!(ends(&world), [PullEnd::PublishedHere]);
    assert!(pulls(&world).is_empty());
    world.send_frame(publisher, 0, 100);
    let next = world.player("a");
    let asked = world.plays.pop_front().expect("asked");
    assert_eq!(asked.client_id, Some(8));
    world.allow_play(asked.request);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(next), [0]);
    world.hang_up(publisher);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.reasons(), [(8, EndReason::BroadcasterLeft)]);
}

#[test]
fn a_pull_request_is_served_from_a_publish_that_started_here_meanwhile() {
    let mut world = world();
    let player = world.player("a");
    let asked = world.plays.pop_front().expect("asked");
    let publisher = world.publisher("a", 8, &[]);
    world.send_frame(publisher, 0, 100);
    let (request, source) = (asked.request, source(7));
    let guard = PlayGuard::new(world.publishes.clone(), request);
    world.switchboard.handle_message(Message::Pull { request, guard, source });
    world.settle();
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(player), [0]);
    assert!(pulls(&world).is_empty() && world.upstream_peer().is_none());
}

#[test]
fn another_node_is_served_only_from_a_publish_and_is_not_counted() {
    let mut world = world();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 100);
    let node = world.connect(ClientRole::Play, "a?headgate-node=1");
    let request = world.plays.pop_front().expect("asked").request;
    let guard = PlayGuard::new(world.publishes.clone(), request);
    let message = Message::AllowPlay { request, guard, is_counted: false };
    world.switchboard.handle_message(message);
    world.send_frame(publisher, 1, 100);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(node), [0, 1]);
    let record = world.publishes.find(1).expect("it runs");
    let snapshot = world.snapshot(1);
    assert_eq!((snapshot.bytes_out, snapshot.subscribers), (0, 0));
    assert!(record.players.status(world.now, std::time::SystemTime::now()).is_empty());

    // A pulled stream is not played to another node, even if that is allowed.
    let mut world = self::world();
    pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    let node = world.connect(ClientRole::Play, "a?headgate-node=1");
    let asked = world.plays.pop_front().expect("asked");
    assert_eq!(asked.client_id, None);
    let request = asked.request;
    let guard = PlayGuard::new(world.publishes.clone(), request);
    let message = Message::AllowPlay { request, guard, is_counted: false };
    world.switchboard.handle_message(message);
    world.pass(Duration::from_millis(100));
    assert!(world.was_sent(node, "NetStream.Play.StreamNotFound"));
}

#[test]
fn a_source_that_sends_invalid_media_is_left_and_the_worker_continues() {
    let mut world = world();
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    // A tag that ends in its header costs itself, chunks that continue no message the connection.
    send(&mut world, 200, &[0x97, 9, 9]);
    assert!(ends(&world).is_empty());
    if let Some(key) = world.upstream_peer() {
        world.switchboard.handle_input(key, &[0xff; 4_096]);
    }
    world.wanted = VecDeque::new();
    world.pass(Duration::from_secs(8));
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
    assert_eq!(ends(&world).len(), 1);
    let publisher = world.publisher("b", 9, &[]);
    world.send_frame(publisher, 0, 100);
    assert!(world.reasons().is_empty());
}

#[test]
fn a_denied_player_starts_no_pull() {
    let mut world = world();
    world.player("a");
    let request = world.plays.pop_front().expect("asked").request;
    let (denial, description) = (Denial::BadName, "No such stream".to_owned());
    world.switchboard.handle_message(Message::Deny { request, denial, description });
    world.pass(Duration::from_secs(1));
    assert!(pulls(&world).is_empty() && world.upstream_peer().is_none());
}

#[test]
fn players_of_another_worker_share_the_pull_and_keep_it_running() {
    let mut world = World { holds_plays: true, ..World::on(0, 2) };
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    let record = match world.publishes.open_pull(b"a", &source(7), 1, world.now) {
        crate::publish::registry::Pulled::Running(record) => record,
        crate::publish::registry::Pulled::Opened(_) => panic!("it runs"),
    };
    assert_eq!(record.worker, 0);
    let relay = std::sync::Arc::new(crate::switchboard::relay::Relay::default());
    let attach = Message::Attach { stream: record.stream, reader: 1, relay: relay.clone() };
    world.switchboard.handle_message(attach);
    world.hang_up(player);
    world.pass(Duration::from_secs(8));
    assert!(ends(&world).is_empty());
    relay.leave();
    world.switchboard.drain_relays();
    world.pass(Duration::from_secs(6));
    assert_eq!(ends(&world), [PullEnd::Unread]);
}

#[test]
fn a_stop_ends_pulls_too() {
    let mut world = world();
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    world.switchboard.stop();
    world.settle();
    world.pass(Duration::from_secs(3));
    assert_eq!(ends(&world), [PullEnd::Shutdown]);
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
}
