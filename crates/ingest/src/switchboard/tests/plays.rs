//! The gateway decides who may play, and the end of each allowed player is reported.

use std::net::IpAddr;
use std::time::Duration;

use headgate_rtmp::ClientRole;

use super::world::World;
use crate::Denial;
use crate::switchboard::SessionKey;
use crate::switchboard::message::Message;

/// A live stream "a" of client id 1, a player that waits for it, and the handle of its request.
fn asked() -> (World, SessionKey, SessionKey, u64) {
    let mut world = World::new();
    world.holds_plays = true;
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 100);
    let player = world.player("a?token=x&y=1");
    let asked = world.plays.pop_front().expect("the gateway is asked");
    let want = (Some(1), Some(&b"token=x&y=1"[..]));
    assert_eq!((asked.client_id, asked.arguments.as_deref()), want);
    (world, publisher, player, asked.request)
}

#[test]
fn a_player_gets_nothing_before_it_is_allowed_and_its_end_is_reported_once() {
    let (mut world, publisher, player, request) = asked();
    world.send_frame(publisher, 1, 100);
    world.pass(Duration::from_millis(100));
    assert!(world.frames(player).is_empty());
    world.allow_play(request);
    world.send_frame(publisher, 2, 100);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(player), [0, 1, 2]);
    assert!(world.plays_ended.is_empty());
    world.hang_up(player);
    world.pass(Duration::from_millis(100));
    let ends: Vec<_> = world.plays_ended.iter().map(|of| (of.player, of.bytes_out > 300)).collect();
    assert_eq!(ends, [(request, true)]);
}

#[test]
fn a_denied_player_is_notified_and_gets_nothing() {
    let (mut world, publisher, player, request) = asked();
    let description = "A token is required".to_owned();
    world.switchboard.handle_message(Message::Deny {
        request,
        denial: Denial::Denied,
        description,
    });
    world.send_frame(publisher, 1, 100);
    world.pass(Duration::from_millis(100));
    assert!(world.was_sent(player, "NetStream.Play.Failed"));
    assert!(world.frames(player).is_empty() && world.plays_ended.is_empty());
}

#[test]
fn an_unanswered_play_request_is_refused_and_a_later_answer_has_no_effect() {
    let (mut world, publisher, player, request) = asked();
    for n in 1..400 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    assert!(world.was_sent(player, "No decision in time"));
    world.allow_play(request);
    world.pass(Duration::from_millis(100));
    assert!(world.frames(player).is_empty());
    assert_eq!(world.plays_ended.len(), 1, "what was allowed ends");
}

#[test]
fn a_player_that_left_or_whose_stream_ended_meanwhile_is_reported_as_ended() {
    let (mut world, _, player, request) = asked();
    world.hang_up(player);
    world.pass(Duration::from_millis(100));
    world.allow_play(request);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.plays_ended.len(), 1);

    let (mut world, publisher, player, request) = asked();
    world.hang_up(publisher);
    world.pass(Duration::from_secs(1));
    world.allow_play(request);
    world.pass(Duration::from_millis(100));
    assert!(world.was_sent(player, "NetStream.Play.StreamNotFound"));
    assert_eq!(world.plays_ended.len(), 1);
}

#[test]
fn a_play_of_a_name_that_is_not_live_is_requested_by_name_and_refused_even_if_allowed() {
    let mut world = World::new();
    world.holds_plays = true;
    let player = world.player("nobody");
    let asked = world.plays.pop_front().expect("the gateway is asked");
    assert_eq!((&asked.name[..], asked.client_id), (&b"nobody"[..], None));
    world.allow_play(asked.request);
    world.pass(Duration::from_millis(100));
    assert!(world.was_sent(player, "NetStream.Play.StreamNotFound"));
}

#[test]
fn a_connection_refused_before_any_request_is_reported_with_its_reason() {
    let mut world = World::new();
    let key = world.connect(ClientRole::Publish, "a");
    // It has requested a publish: what it does from here on concerns that publish.
    world.asked.pop_front().expect("it asked");
    world.hang_up(key);
    assert!(world.refused.is_empty());

    let key = world.switchboard.accept(IpAddr::from([192, 0, 2, 1])).expect("it serves");
    world.switchboard.handle_input(key, b"GET / HTTP/1.1\r\n\r\n");
    world.settle();
    assert_eq!(world.refused, ["version"]);
    world.connect_to("secret", ClientRole::Play, "a");
    assert_eq!(world.refused, ["version", "app"]);
}
