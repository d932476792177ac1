//! Pulls of streams that have no media for a while: players stay as long as the source serves them.

use std::net::IpAddr;
use std::time::Duration;

use headgate_rtmp::{ClientRole, MediaKind};

use super::peer::Remote;
use super::pulls::{ends, lost, pulling, pulls, send_frames, source, world};
use super::world::World;
use crate::EndReason;
use crate::publish::play_guard::PlayGuard;
use crate::publish::pull_record::{PullEnd, PullState};
use crate::switchboard::SessionKey;
use crate::switchboard::message::Message;

const FRAME: Duration = Duration::from_millis(40);
const SECOND: Duration = Duration::from_secs(1);

/// Two nodes: one with a publish that has sent two seconds of video, the other with a player of it.
struct Nodes {
    source: World,
    node: World,
    publisher: SessionKey,
    player: SessionKey,
}

impl Nodes {
    fn start() -> Self {
        let mut source = World { holds_plays: true, window: 10 * SECOND, ..World::new() };
        let publisher = source.publisher("a", 7, &[]);
        let mut node = World { dials_world: true, ..world() };
        let player = pulling(&mut node, 7);
        let accepted = source.switchboard.accept(IpAddr::from([192, 0, 2, 3])).expect("it serves");
        let remote = Remote::World { received: Vec::new(), written: Vec::new() };
        source.add_peer(accepted, remote, usize::MAX);
        let mut nodes = Self { source, node, publisher, player };
        for n in 0..50 {
            nodes.source.send_frame(publisher, n, 100);
            nodes.pass(FRAME);
        }
        nodes
    }

    /// Lets time pass on both nodes.
    fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_millis() / FRAME.as_millis() {
            self.source.pass(FRAME);
            self.node.pass(FRAME);
            loop {
                let was_asked = carry(&mut self.node, &mut self.source);
                if let Some(asked) = self.source.plays.pop_front() {
                    allow_node(&mut self.source, asked.request);
                }
                let was_answered = carry(&mut self.source, &mut self.node);
                if !was_asked && !was_answered {
                    break;
                }
            }
        }
    }

    /// Fails if the pull has ended, has asked where the stream is, or has ended its player.
    fn expect_unbroken(&self) {
        assert!(self.node.wanted.is_empty() && ends(&self.node).is_empty());
        assert!(!self.node.was_sent(self.player, "NetStream.Play.UnpublishNotify"));
    }
}

/// Carries bytes from one world to the other; false if there were none.
fn carry(from: &mut World, to: &mut World) -> bool {
    let Some((received, _)) = connection(from) else { return false };
    let bytes = std::mem::take(received);
    let is_carried = !bytes.is_empty();
    if let Some((_, written)) = connection(to) {
        written.extend(bytes);
        to.settle();
    }
    is_carried
}

/// What was received and written on the connection to the other world.
fn connection(world: &mut World) -> Option<(&mut Vec<u8>, &mut Vec<u8>)> {
    world.peers.values_mut().find_map(|peer| match &mut peer.remote {
        Remote::World { received, written } => Some((received, written)),
        Remote::Client(_) | Remote::Upstream(_) => None,
    })
}

/// Allows the play of another node, as the gateway.
fn allow_node(world: &mut World, request: u64) {
    let guard = PlayGuard::new(world.publishes.clone(), request);
    let message = Message::AllowPlay { request, guard, is_counted: false };
    world.switchboard.handle_message(message);
    world.settle();
}

/// Pings the pull, as its source.
fn ping(world: &mut World) {
    let (key, now) = (world.upstream_peer().expect("connected"), world.now);
    if let Remote::Upstream(server) = &mut world.peers.get_mut(&key).expect("there").remote {
        server.ping(now);
    }
    world.settle();
}

/// Answers a lost pull: its stream is still at its source.
fn dial_again(world: &mut World) {
    let pull = world.wanted.pop_front().expect("it lost its source").pull;
    let message = Message::DialPull { pull, source: Some(source(7)) };
    world.switchboard.handle_message(message);
    world.settle();
}

#[test]
fn players_on_another_node_stay_until_the_end_of_the_hold() {
    let mut nodes = Nodes::start();
    // 15 s until the loss is noticed, and then the window. A stream of video alone gets no silence.
    nodes.pass(24 * SECOND);
    assert_eq!(nodes.source.reasons(), [(7, EndReason::Silent)]);
    nodes.expect_unbroken();
    nodes.pass(3 * SECOND);
    assert!(nodes.node.was_sent(nodes.player, "NetStream.Play.UnpublishNotify"));
    assert_eq!(ends(&nodes.node), [PullEnd::SourceEnded]);
}

#[test]
fn players_on_another_node_stay_while_the_publisher_sends_no_frames() {
    let mut nodes = Nodes::start();
    let (publisher, player) = (nodes.publisher, nodes.player);
    for _ in 0..6 {
        nodes.pass(10 * SECOND);
        nodes.source.send(publisher, MediaKind::Audio, 2_000, &[]);
    }
    assert!(nodes.source.reasons().is_empty());
    nodes.expect_unbroken();
    nodes.source.send_frame(publisher, 50, 100);
    nodes.pass(FRAME);
    assert_eq!(nodes.node.frames(player), (0..=50).collect::<Vec<_>>());
}

#[test]
fn another_node_is_pinged_every_five_seconds_without_media_and_a_player_is_not() {
    let mut world = world();
    let publisher = world.publisher("a", 1, &[]);
    let player = world.player("a");
    let request = world.plays.pop_front().expect("asked").request;
    world.allow_play(request);
    let node = world.connect(ClientRole::Play, "a?headgate-node=1");
    let request = world.plays.pop_front().expect("asked").request;
    allow_node(&mut world, request);
    for n in 0..300 {
        world.send_frame(publisher, n, 100);
        world.pass(FRAME);
    }
    let received = |world: &World| {
        [player, node].map(|key| match &world.peers[&key].remote {
            Remote::Client(client) => client.input_bytes(),
            Remote::Upstream(_) | Remote::World { .. } => panic!("it is a client"),
        })
    };
    let mut counts = vec![received(&world)];
    for _ in 0..14 {
        world.pass(SECOND);
        counts.push(received(&world));
    }
    assert!(counts.iter().all(|[of_player, _]| *of_player == counts[0][0]));
    let is_pinged = |second: &usize| counts[*second][1] > counts[second - 1][1];
    assert_eq!((1..counts.len()).filter(is_pinged).collect::<Vec<_>>(), [5, 10]);
}

#[test]
fn a_source_that_sends_only_pings_is_not_dialled_again() {
    let mut world = world();
    pulling(&mut world, 7);
    send_frames(&mut world, 0..3);
    for _ in 0..6 {
        world.pass(5 * SECOND);
        ping(&mut world);
    }
    world.pass(14 * SECOND);
    assert!(world.wanted.is_empty() && ends(&world).is_empty());
    assert_eq!(pulls(&world)[0].state, PullState::Playing);
    world.pass(2 * SECOND);
    assert_eq!(world.wanted.len(), 1, "without pings, the connection is taken for dead");
}

#[test]
fn a_source_that_does_not_ping_is_dialled_again_and_its_players_stay() {
    let mut world = world();
    let player = pulling(&mut world, 7);
    send_frames(&mut world, 0..30);
    world.pass(5 * SECOND);
    for _ in 0..4 {
        world.pass(10 * SECOND);
        dial_again(&mut world);
        // The cached GOP.
        send_frames(&mut world, 25..30);
        assert_eq!(pulls(&world)[0].state, PullState::Reconnecting);
        world.pass(5 * SECOND);
        assert_eq!(pulls(&world)[0].state, PullState::Playing);
    }
    assert!(ends(&world).is_empty());
    send_frames(&mut world, 30..32);
    assert_eq!(world.frames(player), (0..32).collect::<Vec<_>>());
}

#[test]
fn a_source_that_accepts_each_play_and_closes_is_given_up_after_five_seconds() {
    let (mut world, player) = lost();
    for _ in 0..60 {
        if !world.wanted.is_empty() {
            dial_again(&mut world);
            let key = world.upstream_peer().expect("connected");
            world.hang_up(key);
        }
        world.pass(SECOND / 10);
    }
    assert!(world.was_sent(player, "NetStream.Play.UnpublishNotify"));
    assert_eq!(ends(&world), [PullEnd::Lost]);
}
