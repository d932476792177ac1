//! Pushes in virtual time: pauses between attempts, stalls, ends.

use std::time::Duration;

use headgate_media::{Channels, opus};
use headgate_rtmp::MediaKind;

use super::world::{URL, World};
use crate::EndReason;
use crate::switchboard::SessionKey;

/// Seconds between the attempts so far, rounded.
fn pauses(world: &World) -> Vec<u64> {
    let pairs = world.resolved.windows(2);
    pairs.map(|pair| (pair[1] - pair[0]).as_secs_f64().round() as u64).collect()
}

/// What an upstream got up to its first picture, as the first two bytes of tag bodies, with timestamps.
fn before_first_picture(world: &World, upstream: SessionKey) -> Vec<([u8; 2], u32)> {
    let media = world.peers[&upstream].media.iter();
    let media = media.filter(|message| message.kind != MediaKind::Script);
    let heads = media.map(|of| ([of.payload[0], of.payload[1]], of.timestamp));
    heads.take_while(|(head, _)| *head != [0x17, 1]).collect()
}

const AVC: ([u8; 2], u32) = ([0x17, 0], 0);
const AAC: ([u8; 2], u32) = ([0xaf, 0], 0);

#[test]
fn each_reader_of_opus_as_aac_gets_its_header_before_the_first_picture() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    let opus = |kind: u8, rest: &[u8]| [&[0x90 | kind][..], b"Opus", rest].concat();
    let head = opus(0, &opus::head(Channels::Stereo));
    let first = world.player("a");
    world.send(publisher, MediaKind::Audio, 0, &head);
    let mut second = None;
    for n in 0..60 {
        world.send(publisher, MediaKind::Audio, n * 40, &opus(1, &opus::SILENCE));
        world.send_frame(publisher, n, 100);
        // The only reader leaves: nothing is transcoded until another one comes.
        match n {
            30 => world.hang_up(first),
            40 => second = Some(world.player("a")),
            _ => {}
        }
        if n == 20 {
            assert_eq!(before_first_picture(&world, first), [AVC, AAC]);
        }
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(before_first_picture(&world, second.expect("it came")), [AVC, AAC]);
}

#[test]
fn the_next_connection_of_a_stream_without_audio_begins_with_silence() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    for n in 0..200 {
        world.send_frame(publisher, n, 100);
        if n == 100 {
            let upstream = world.upstream_peer().expect("connected");
            assert_eq!(before_first_picture(&world, upstream), [AVC], "audio may still come");
            world.hang_up(upstream);
        }
        world.pass(Duration::from_millis(40));
    }
    let upstream = world.upstream_peer().expect("connected again");
    assert_eq!(before_first_picture(&world, upstream)[..2], [AVC, AAC]);
}

#[test]
fn pauses_between_attempts_double_and_restart_after_half_a_minute_of_sending() {
    let mut world = World::new();
    world.upstream.0 = false;
    let publisher = world.publisher("a", 1, &[URL]);
    let mut n = 0;
    let mut run = |world: &mut World, seconds: u32| {
        for _ in 0..seconds * 25 {
            world.send_frame(publisher, n, 100);
            world.pass(Duration::from_millis(40));
            n += 1;
        }
    };
    run(&mut world, 20);
    let first = pauses(&world);
    assert!(first.len() >= 4 && first.is_sorted() && first[0] <= 1 && first[3] >= 6, "{first:?}");
    world.upstream.0 = true;
    run(&mut world, 60);
    let upstream = world.upstream_peer().expect("connected");
    assert!(!world.frames(upstream).is_empty());
    world.resolved.clear();
    world.hang_up(upstream);
    world.upstream.0 = false;
    run(&mut world, 4);
    assert!(pauses(&world).first().is_some_and(|pause| *pause <= 2), "{:?}", pauses(&world));
}

#[test]
fn an_upstream_that_accepts_no_byte_for_ten_seconds_is_closed_and_dialled_again() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 100);
    let upstream = world.upstream_peer().expect("connected");
    world.peers.get_mut(&upstream).expect("there").reads = 0;
    let attempts = world.resolved.len();
    for n in 1..250 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(world.resolved.len(), attempts, "it had ten seconds");
    for n in 250..400 {
        world.send_frame(publisher, n, 100);
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(world.resolved.len(), attempts + 1);
    let again = world.upstream_peer().expect("connected again");
    let frames = world.frames(again);
    assert_eq!(frames.first().map(|n| n % 25), Some(0), "it resumes at a keyframe: {frames:?}");
}

#[test]
fn frames_that_wait_for_an_upstream_reach_it_after_the_publisher_has_left() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 100);
    let upstream = world.upstream_peer().expect("connected");
    world.peers.get_mut(&upstream).expect("there").reads = 0;
    for n in 1..20 {
        world.send_frame(publisher, n, 100);
    }
    world.hang_up(publisher);
    world.peers.get_mut(&upstream).expect("there").reads = usize::MAX;
    world.pass(Duration::from_millis(100));
    assert_eq!(world.frames(upstream), (0..20).collect::<Vec<_>>());
    let said = &world.peers[&upstream].events;
    assert!(said.iter().any(|event| event.contains("PublishEnded")), "{said:?}");
    world.pass(Duration::from_secs(3));
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)]);
    assert!(world.switchboard.is_empty());
}

#[test]
fn a_push_between_two_attempts_does_not_delay_the_end_of_its_publish() {
    let mut world = World::new();
    world.upstream.0 = false;
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 100);
    world.pass(Duration::from_millis(100));
    world.hang_up(publisher);
    assert_eq!(world.reasons(), [(1, EndReason::BroadcasterLeft)]);
    assert!(world.switchboard.is_empty());
}
