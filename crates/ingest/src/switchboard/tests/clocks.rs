//! Publishers whose timestamps are irregular, in virtual time: what their upstreams and players get, and what is
//! generated for them.

use std::time::Duration;

use headgate_media::Irregularity;
use headgate_media::Irregularity::{
    FillerLimited, TimeBackward, TimeMissing, TimeOutlier, TimeStep,
};
use headgate_rtmp::{ClientRole, MediaKind};

use super::super::SessionKey;
use super::world::{AAC_FRAME, AAC_HEADER, URL, World};
use crate::sample::{AVC_HEADER, LEAST_PICTURE, picture};

const PICTURE: Duration = Duration::from_millis(40);

/// A world that holds streams, its publisher, whose headers are sent, and the upstream.
fn world() -> (World, SessionKey, SessionKey) {
    let mut world = World::new();
    world.window = Duration::from_secs(10);
    let publisher = world.publisher("a", 1, &[URL]);
    world.send(publisher, MediaKind::Video, 0, AVC_HEADER);
    world.send(publisher, MediaKind::Audio, 0, AAC_HEADER);
    let upstream = world.upstream_peer().expect("connected");
    (world, publisher, upstream)
}

/// Sends pictures and audio frames in real time, `from..to`, with these wire timestamps.
fn send(
    world: &mut World,
    publisher: SessionKey,
    range: std::ops::Range<i64>,
    clock: impl Fn(MediaKind, i64) -> i64,
) {
    for n in range {
        let wire = |kind, at: i64| clock(kind, at) as u32;
        let picture = picture(n % 25 == 0, n as u32, 0);
        world.send(publisher, MediaKind::Video, wire(MediaKind::Video, n * 40), &picture);
        for half in [0, 20] {
            let at = n * 40 + half;
            world.send(publisher, MediaKind::Audio, wire(MediaKind::Audio, at), AAC_FRAME);
        }
        world.pass(PICTURE);
    }
}

/// Asserts that what a peer got goes on without a step of more than `limit` ms, and that in the end the tracks are as
/// far apart as they were captured.
fn assert_in_step(name: &str, world: &World, peer: SessionKey, limit: u32, audio_late: u32) {
    let last = [MediaKind::Video, MediaKind::Audio].map(|kind| {
        let widest = world.widest_step(peer, kind);
        assert!(widest <= limit, "{name}: {kind:?} steps by {widest}");
        *world.times(peer, kind).last().expect("frames")
    });
    assert!((last[0] + 20).abs_diff(last[1] + audio_late) <= 45, "{name}: {last:?}");
}

#[test]
fn what_a_publishers_clock_does_costs_at_most_the_frame_and_is_named() {
    type SenderClock = fn(MediaKind, i64) -> i64;
    let hour = 3_600_000;
    let cases: [(&str, SenderClock, Irregularity); 7] = [
        (
            "audio below zero",
            |kind, at| at - if kind == MediaKind::Audio { 265 } else { 0 },
            TimeBackward,
        ),
        ("31 bits below zero", |_, at| (at - 80) & 0x7fff_ffff, TimeBackward),
        ("restart", |_, at| if at < 2_000 { 503_960 + at } else { at - 2_000 }, TimeStep),
        ("an hour ahead", |_, at| at + if at < 2_000 { 0 } else { 3_600_000 }, TimeStep),
        ("an hour back", |_, at| at + if at < 2_000 { 7_200_000 } else { 3_600_000 }, TimeStep),
        ("outliers", |_, at| at + if at % 1_000 == 480 { 3_600_000 } else { 0 }, TimeOutlier),
        ("all zero", |_, _| 0, TimeMissing),
    ];
    for (name, clock, kind) in cases {
        let (mut world, publisher, upstream) = world();
        send(&mut world, publisher, 0..150, clock);
        let limit = if kind == TimeMissing { 420 } else { 120 };
        let audio_late = if name == "audio below zero" { 265 } else { 0 };
        assert_in_step(name, &world, upstream, limit, audio_late);
        assert!(world.count(kind) > 0, "{name}");
        assert!(world.snapshot(1).timestamp_ms < 2 * hour + 10_000, "{name}");
        // The cached group is still there for a player, and a hold goes on where the publisher stopped.
        let player = world.player("a");
        let cached = world.times(player, MediaKind::Video);
        assert!(!cached.is_empty(), "{name}");
        world.hang_up(publisher);
        world.pass(Duration::from_secs(3));
        let audio = world.times(upstream, MediaKind::Audio);
        let widest = audio.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        assert!(widest <= limit, "{name}: {widest} in the hold");
    }
}

#[test]
fn a_sound_clock_is_not_touched() {
    for start in [0, 1_000, 0xf000_0000] {
        let (mut world, publisher, upstream) = world();
        send(&mut world, publisher, 0..100, |_, at| start + at);
        let want: Vec<_> = (0..100).map(|n| (start + n * 40) as u32).collect();
        assert_eq!(world.times(upstream, MediaKind::Video), want);
        assert_eq!(world.snapshot(1).irregularities.iter().count(), 0);
    }
}

#[test]
fn steps_of_a_video_clock_do_not_size_the_silence_of_its_pushes() {
    let urls: Vec<_> = (0..32).map(|n| format!("rtmp://upstream.example/live/{n}")).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &urls);
    world.send(publisher, MediaKind::Video, 0, AVC_HEADER);
    let start = world.now;
    for n in 0..200_u32 {
        world.send(publisher, MediaKind::Video, n * 1_900, &picture(true, n, 0));
        world.pass(PICTURE);
    }
    let upstream = world.upstream_peer().expect("connected");
    let silent = world.times(upstream, MediaKind::Audio).len();
    let wall = world.now.duration_since(start) + Duration::from_secs(5);
    assert!(silent > 200 && silent as u128 <= wall.as_micros() / 21_333, "{silent}");
    assert!(world.count(FillerLimited) > 0);
    let video = 200 * 32 * (LEAST_PICTURE as u64 - 5);
    let made = world.snapshot(1).bytes_out.abs_diff(video);
    assert!(made.abs_diff(silent as u64 * 32 * 6) < 32 * 60, "{made}");
}

#[test]
fn a_sample_rate_out_of_reason_makes_no_silence() {
    for (header, frames) in [
        (&[0xaf, 0, 0x17, 0xff, 0xff, 0xff, 0x90][..], 0..1),
        (&[0xaf, 0, 0x17, 0x87, 0xa1, 0x20, 0x10], 0..1),
        (&[0xaf, 0, 0x12, 0x10], 100..150),
    ] {
        let mut world = World::new();
        world.window = Duration::from_secs(10);
        let publisher = world.publisher("a", 1, &[]);
        world.send(publisher, MediaKind::Audio, 0, header);
        let player = world.connect(ClientRole::Play, "a");
        send(&mut world, publisher, 0..25, |_, at| at);
        world.hang_up(publisher);
        let before = world.times(player, MediaKind::Audio).len();
        world.pass(Duration::from_secs(3));
        let silent = world.times(player, MediaKind::Audio).len() - before;
        assert!(frames.contains(&silent), "{silent}");
    }
}
