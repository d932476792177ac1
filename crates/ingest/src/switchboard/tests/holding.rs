//! Streams that lose their publisher, in virtual time: what their upstreams and players get until a successor comes.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::super::message::Message;
use super::super::{EndReason, SessionKey};
use super::world::{AAC_FRAME, AAC_HEADER, AVC_HEADER, URL, World};
use crate::publish::mailbox::HoldEnded;

/// A different AVCDecoderConfigurationRecord.
const OTHER_HEADER: &[u8] = crate::sample::OTHER_AVC_HEADER;
/// How long streams are held in these tests.
const WINDOW: Duration = Duration::from_secs(10);

/// A world that holds streams, its publisher with two seconds of video and audio already sent, and its upstream.
fn live_world() -> (World, SessionKey, SessionKey) {
    let mut world = World::new();
    world.window = WINDOW;
    let publisher = world.publisher("a", 1, &[URL]);
    world.send(publisher, MediaKind::Audio, 0, AAC_HEADER);
    send_seconds(&mut world, publisher, 2);
    let upstream = world.upstream_peer().expect("connected");
    (world, publisher, upstream)
}

/// Sends `seconds` of video and audio in real time, from the start of the publisher's clock.
fn send_seconds(world: &mut World, publisher: SessionKey, seconds: u32) {
    for n in 0..seconds * 25 {
        world.send_frame(publisher, n, 100);
        world.send(publisher, MediaKind::Audio, n * 40, AAC_FRAME);
        world.pass(Duration::from_millis(40));
    }
}

/// A publisher that continues the stream of the publish `lost`, which must be held; nothing was sent yet.
fn successor(world: &mut World, client_id: u64, lost: u64) -> SessionKey {
    let near = world.near(Some(lost), None);
    assert!(near.continues().is_some(), "held");
    world.broadcaster("a", client_id, near, &[URL])
}

#[test]
fn upstream_and_player_of_a_lost_publisher_get_silence_for_the_window() {
    let (mut world, publisher, upstream) = live_world();
    let player = world.player("a");
    world.hang_up(publisher);
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)], "its publish ends immediately");
    assert!(world.ended[0].is_held && world.publishes.find_name(b"a").is_none());
    world.pass(Duration::from_millis(9_900));
    for peer in [upstream, player] {
        assert!(world.widest_step(peer, MediaKind::Audio) <= 60);
        let last = *world.times(peer, MediaKind::Audio).last().expect("audio");
        assert!((11_600..12_000).contains(&last), "{last}: at the pace of the clock");
    }
    assert!(!world.has_ended(upstream) && world.holds_ended.is_empty());
    world.pass(Duration::from_secs(1));
    assert!(world.has_ended(upstream));
    assert!(world.peers[&player].events.iter().any(|event| event.contains("Ended")));
    assert_eq!(world.holds_ended, [HoldEnded { client_id: 1, successor: None }]);
    world.pass(Duration::from_secs(3));
    assert!(world.switchboard.is_empty());
}

#[test]
fn a_successor_continues_on_the_same_connections_after_the_elapsed_time() {
    let (mut world, publisher, upstream) = live_world();
    let player = world.player("a");
    world.hang_up(publisher);
    world.pass(Duration::from_secs(3));
    let second = successor(&mut world, 2, 1);
    assert_eq!(world.holds_ended, [HoldEnded { client_id: 1, successor: Some(2) }]);
    world.send(second, MediaKind::Video, 0, OTHER_HEADER);
    world.send(second, MediaKind::Audio, 0, AAC_HEADER);
    // It begins in mid-GOP.
    for n in 20..75 {
        world.send_frame(second, n, 100);
        world.send(second, MediaKind::Audio, n * 40, AAC_FRAME);
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(world.upstream_peer(), Some(upstream), "the connection is the same");
    assert_eq!(world.resolved.len(), 1);
    for peer in [upstream, player] {
        assert!(world.widest_step(peer, MediaKind::Audio) <= 60);
        let step = world.widest_step(peer, MediaKind::Video);
        assert!((3_000..3_400).contains(&step), "{step}: the real gap");
        let frames = world.frames(peer);
        let resumed = frames.windows(2).position(|pair| pair[1] < pair[0]).expect("it restarts");
        assert_eq!(frames[resumed + 1], 25, "with a keyframe");
        let video = world.media(peer, MediaKind::Video).collect::<Vec<_>>();
        let headers: Vec<_> = video.iter().filter(|of| of.payload[1] == 0).collect();
        assert_eq!(headers.len(), 2);
        assert_eq!((&headers[1].payload[..], headers[1].timestamp > 2_000), (OTHER_HEADER, true));
        let audio = world.media(peer, MediaKind::Audio).collect::<Vec<_>>();
        assert_eq!(audio.iter().filter(|of| of.payload[1] == 0).count(), 1, "not sent again");
    }
    let snapshot = world.snapshot(2);
    assert_eq!((snapshot.subscribers, snapshot.upstreams.len()), (2, 1));
    assert!(snapshot.bytes_out > 0 && world.publishes.find_name(b"a").is_some());
    let stream = world.publishes.find(2).expect("it runs").stream;
    world.switchboard.end_publish(stream, EndReason::Kicked, "");
    world.settle();
    assert!(world.has_ended(upstream), "an intended end takes effect immediately");
}

#[test]
fn timestamps_continue_over_many_losses_whatever_a_successor_starts_at() {
    let (mut world, mut publisher, upstream) = live_world();
    for id in 2..8 {
        world.hang_up(publisher);
        world.pass(Duration::from_millis(200 * id));
        publisher = successor(&mut world, id, id - 1);
        world.send(publisher, MediaKind::Video, 0, AVC_HEADER);
        world.send(publisher, MediaKind::Audio, 0, AAC_HEADER);
        let start = if id % 2 == 0 { 4_000_000 } else { 25 };
        for n in start..start + 30 {
            // Alternately video ahead of audio, and audio ahead of video.
            let ahead = u32::try_from(id).expect("small") * 20;
            world.send_frame(publisher, n, 100);
            world.send(publisher, MediaKind::Audio, n * 40 - ahead, AAC_FRAME);
            world.pass(Duration::from_millis(40));
        }
    }
    assert!(world.widest_step(upstream, MediaKind::Audio) <= 200);
    assert!(world.widest_step(upstream, MediaKind::Video) < 2_000);
    let last = *world.times(upstream, MediaKind::Video).last().expect("video");
    // Two seconds, six times 1.2, and the gaps of 0.4 to 1.4.
    assert!((14_000..15_200).contains(&last), "{last}");
}

#[test]
fn a_successor_without_media_does_not_extend_the_window() {
    let (mut world, publisher, upstream) = live_world();
    world.hang_up(publisher);
    world.pass(Duration::from_secs(6));
    let second = successor(&mut world, 2, 1);
    world.pass(Duration::from_secs(1));
    world.hang_up(second);
    assert_eq!(world.reasons().last(), Some(&(2, EndReason::BroadcasterLeft)));
    world.pass(Duration::from_millis(2_900));
    assert!(!world.has_ended(upstream));
    world.pass(Duration::from_millis(300));
    assert!(world.has_ended(upstream));
    assert_eq!(world.holds_ended[1], HoldEnded { client_id: 2, successor: None });
}

#[test]
fn upstreams_that_the_successor_lacks_are_closed_and_its_new_ones_are_dialled() {
    let (mut world, publisher, upstream_key) = live_world();
    world.hang_up(publisher);
    let near = world.near(Some(1), None);
    let key = world.broadcaster("a", 2, near, &["rtmp://other.example/live/out"]);
    assert!(world.has_ended(upstream_key));
    world.pass(Duration::from_millis(100));
    world.send(key, MediaKind::Video, 0, AVC_HEADER);
    send_seconds(&mut world, key, 1);
    let upstreams = world.snapshot(2).upstreams;
    assert_eq!(upstreams.len(), 1);
    assert!(upstreams[0].url.contains("other.example") && upstreams[0].bytes_out > 0);
}

#[test]
fn a_held_stream_ends_immediately_when_it_is_released_or_the_service_stops() {
    for stops in [false, true] {
        let (mut world, publisher, upstream) = live_world();
        let stream = world.publishes.find(1).expect("it runs").stream;
        world.hang_up(publisher);
        if stops {
            world.switchboard.stop();
        } else {
            world.switchboard.handle_message(Message::Release(stream));
        }
        world.settle();
        assert!(world.has_ended(upstream));
        assert_eq!(world.holds_ended, [HoldEnded { client_id: 1, successor: None }]);
    }
}

#[test]
fn nothing_is_held_without_a_window_without_media_and_after_an_intended_end() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    send_seconds(&mut world, publisher, 1);
    world.hang_up(publisher);
    world.window = WINDOW;
    let silent = world.publisher("b", 2, &[]);
    world.hang_up(silent);
    let kicked = world.publisher("c", 3, &[]);
    send_seconds(&mut world, kicked, 1);
    let stream = world.publishes.find(3).expect("it runs").stream;
    world.switchboard.end_publish(stream, EndReason::Kicked, "");
    world.pass(Duration::from_secs(3));
    let ends: Vec<_> = world.ended.iter().map(|ended| (ended.client_id, ended.is_held)).collect();
    assert_eq!(ends, [(1, false), (2, false), (3, false)]);
    assert!(world.holds_ended.is_empty());
}

#[test]
fn an_upstream_without_audio_keeps_its_silence() {
    let mut world = World::new();
    world.window = WINDOW;
    let publisher = world.publisher("a", 1, &[URL]);
    for n in 0..75 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    let upstream = world.upstream_peer().expect("connected");
    world.hang_up(publisher);
    world.pass(Duration::from_secs(5));
    assert!(world.widest_step(upstream, MediaKind::Audio) <= 60);
    assert!(world.times(upstream, MediaKind::Audio).last().is_some_and(|last| *last > 7_500));
}

#[test]
fn a_released_stream_waits_for_a_player_that_reads_nothing_only_as_long_as_any_other() {
    let (mut world, publisher, _) = live_world();
    let player = world.player("a");
    world.peers.get_mut(&player).expect("it plays").reads = 0;
    for n in 50..110 {
        world.send_frame(publisher, n, 20_000);
        world.pass(Duration::from_millis(40));
    }
    world.hang_up(publisher);
    world.pass(Duration::from_millis(150));
    let stream = world.publishes.find_held(1).expect("held").stream;
    world.switchboard.handle_message(Message::Release(stream));
    world.pass(Duration::from_secs(1));
    assert!(!world.switchboard.has_streams());
}
