//! Publishers whose configuration, framing or keyframe marks are wrong: what their readers and upstreams get, and how it
//! is named.

use std::time::Duration;

use headgate_media::Irregularity;
use headgate_rtmp::MediaKind;

use super::world::{AVC_HEADER, URL, World};
use crate::publish::near::Near;
use crate::sample::{number, picture};
use crate::switchboard::SessionKey;

/// The parameter sets of [`AVC_HEADER`].
const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
const RECOVERY_POINT: &[u8] = &[6, 6, 2, 0x0c, 0x24, 0x80];

/// A publisher that has sent nothing yet.
fn publisher_without_header(world: &mut World, upstreams: &[&str]) -> SessionKey {
    world.broadcaster("a", 1, Near::default(), upstreams)
}

/// The tag bodies of configurations that a peer has received.
fn configurations(world: &World, peer: SessionKey) -> Vec<Vec<u8>> {
    let video = world.peers[&peer].media.iter().filter(|of| of.kind == MediaKind::Video);
    let headers = video.filter(|of| of.payload.get(1) == Some(&0));
    headers.map(|of| of.payload.to_vec()).collect()
}

/// Sends frames of 100 bytes, one every 40 ms with a keyframe each second, changed by `change`.
fn send(
    world: &mut World,
    key: SessionKey,
    numbers: std::ops::Range<u32>,
    change: impl Fn(u32, Vec<u8>) -> Vec<u8>,
) {
    for n in numbers {
        let body = change(n, picture(n.is_multiple_of(25), n, 100));
        world.send(key, MediaKind::Video, n * 40, &body);
        world.pass(Duration::from_millis(40));
    }
}

/// The frame with its NAL unit after a start code, and parameter sets before a keyframe.
fn with_start_codes(code: &[u8], has_sets: bool, mut body: Vec<u8>) -> Vec<u8> {
    // A NAL unit contains no start code, and does not end in zeros.
    body.iter_mut().skip(10).filter(|byte| **byte == 0).for_each(|byte| *byte = 0x80);
    let (head, unit) = (&body[..5], &body[9..]);
    let sets = if has_sets && body[0] == 0x17 { [code, SPS, code, PPS].concat() } else { vec![] };
    [head, &sets, code, unit].concat()
}

#[test]
fn readers_get_lengths_and_a_configuration_for_start_codes_without_one() {
    for (code, has_header) in
        [(&[0, 0, 0, 1][..], false), (&[0, 0, 1], false), (&[0, 0, 0, 1], true)]
    {
        let mut world = World::new();
        let key = publisher_without_header(&mut world, &[URL]);
        if has_header {
            world.send(key, MediaKind::Video, 0, AVC_HEADER);
        }
        let player = world.player("a");
        send(&mut world, key, 0..60, |_, body| with_start_codes(code, !has_header, body));
        let upstream = world.upstream_peer().expect("connected");
        for peer in [player, upstream] {
            assert_eq!(configurations(&world, peer), [AVC_HEADER]);
            let video = world.peers[&peer].media.iter().filter(|of| of.kind == MediaKind::Video);
            let frames: Vec<_> = video.filter(|of| of.payload.get(1) == Some(&1)).collect();
            assert_eq!(frames.len(), 60);
            let is_framed = |body: &[u8]| headgate_media::h264::Framing::Lengths(4).kinds(body);
            assert!(frames.iter().all(|of| is_framed(&of.payload[5..]).is_some()));
        }
        let counts = world.irregularities();
        assert!(counts.contains(&(Irregularity::FramingConverted, 60)), "{counts:?}");
    }
}

#[test]
fn frames_without_any_configuration_are_withheld_and_named_within_three_seconds() {
    let mut world = World::new();
    let key = publisher_without_header(&mut world, &[URL]);
    let player = world.player("a");
    send(&mut world, key, 0..75, |_, body| body);
    for n in 0..50 {
        world.send(key, MediaKind::Audio, n * 20, &[0xaf, 1, 0x21, 9, 9]);
    }
    assert_eq!(world.peers[&player].media.len(), 0);
    let counts = world.irregularities();
    let named: Vec<_> = counts.iter().map(|(kind, _)| *kind).collect();
    let [video, audio] =
        [Irregularity::VideoConfigurationMissing, Irregularity::AudioConfigurationMissing];
    assert_eq!(named, [video, audio]);
    assert!(world.reasons().is_empty(), "the publish goes on");
    // It is repaired in mid-stream.
    world.send(key, MediaKind::Video, 3_000, AVC_HEADER);
    send(&mut world, key, 75..100, |_, body| body);
    assert_eq!(world.frames(player).last(), Some(&99));
}

#[test]
fn a_header_that_comes_a_second_late_costs_no_frame() {
    let mut world = World::new();
    let key = publisher_without_header(&mut world, &[URL]);
    let player = world.player("a");
    send(&mut world, key, 0..25, |_, body| body);
    world.send(key, MediaKind::Video, 0, AVC_HEADER);
    send(&mut world, key, 25..50, |_, body| body);
    let upstream = world.upstream_peer().expect("connected");
    for peer in [player, upstream] {
        assert_eq!(world.frames(peer), (0..50).collect::<Vec<_>>());
    }
    assert!(world.irregularities().is_empty());
}

#[test]
fn keyframes_with_any_frame_type_are_started_on() {
    for frame_type in [0_u8, 2, 3, 4, 5, 6, 7] {
        let mut world = World::new();
        let key = world.publisher("a", 1, &[URL]);
        send(&mut world, key, 0..40, |n, mut body| {
            if n.is_multiple_of(25) {
                body[0] = frame_type << 4 | 7;
            }
            body
        });
        let player = world.player("a");
        assert_eq!(world.frames(player), (25..40).collect::<Vec<_>>(), "{frame_type}");
        assert_eq!(world.irregularities(), [(Irregularity::KeyframeMismarked, 2)]);
        let first = &world.peers[&player].media.iter().find(|of| number(&of.payload).is_some());
        assert_eq!(first.map(|of| of.payload[0]), Some(0x17));
    }
}

#[test]
fn frames_that_are_all_marked_as_keyframes_do_not_start_readers_in_mid_group() {
    let mut world = World::new();
    let key = world.publisher("a", 1, &[URL]);
    send(&mut world, key, 0..40, |_, mut body| {
        body[0] = 0x17;
        body
    });
    let player = world.player("a");
    assert_eq!(world.frames(player), (25..40).collect::<Vec<_>>());
}

#[test]
fn a_push_and_a_late_player_join_a_stream_without_idr_pictures_at_recovery_points() {
    let mut world = World::new();
    let key = world.publisher("a", 1, &[URL]);
    let refreshed = |n: u32, body: Vec<u8>| {
        if n == 0 {
            return body;
        }
        // The number stays where it is: the SEI message comes after the slice here.
        let mut inter = picture(false, n, body.len());
        if n.is_multiple_of(50) {
            let unit = inter.split_off(5);
            inter.extend([&[0, 0, 0, 6][..], RECOVERY_POINT, &unit].concat());
        }
        inter
    };
    send(&mut world, key, 0..300, refreshed);
    let first = world.upstream_peer().expect("connected");
    let sent = world.peers[&first].media.len();
    assert!(sent >= 300);
    world.hang_up(first);
    send(&mut world, key, 300..450, refreshed);
    let second = world.upstream_peer().expect("connected again");
    let late = world.player("a");
    for peer in [second, late] {
        let frames = world.peers[&peer].media.iter().filter(|of| of.kind == MediaKind::Video);
        assert!(frames.count() > 40, "{peer:?}");
    }
    let counts = world.irregularities();
    assert_eq!(
        counts.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [Irregularity::RecoveryPoint]
    );
}

#[test]
fn a_keyframe_that_readers_wait_for_is_reported() {
    let mut world = World::new();
    let key = world.publisher("a", 1, &[]);
    let awaited = |world: &World| world.snapshot(1).keyframe_awaited.map(|of| of.as_secs());
    let without_keyframes = |n: u32, body: Vec<u8>| match n {
        0 | 325 => body,
        _ => picture(false, n, body.len()),
    };
    send(&mut world, key, 0..250, without_keyframes);
    assert_eq!(awaited(&world), None, "nobody waits");
    // What is cached is too long by now.
    let player = world.player("a");
    send(&mut world, key, 250..325, without_keyframes);
    assert!(world.frames(player).is_empty());
    assert_eq!(awaited(&world), Some(13));
    send(&mut world, key, 325..330, without_keyframes);
    assert_eq!(awaited(&world), None);
}
