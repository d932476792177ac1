//! Timestamps of long publishes from socket to socket: the gateway gets 64 bits, players get 32.

use headgate_rtmp::MediaKind::{Audio, Video};

use super::Core;
use super::peer::Peer;
use crate::sample::{AVC_HEADER, OTHER_AVC_HEADER, picture};

/// Sends a keyframe at each of these wire timestamps and checks the 64-bit timestamps that result.
fn assert_times(name: &str, times: &[(u32, i64)]) {
    let mut core = Core::start(1);
    let mut publisher = core.publisher(name, 1, &[]);
    // The header has timestamp 0, wherever the media begins.
    publisher.send(Video, 0, AVC_HEADER);
    let mut player = Peer::play(core.port(), name);
    player.wait_ready();
    let mut next = || loop {
        let media = player.next_media();
        if media.kind == Video {
            return media;
        }
    };
    assert_eq!((next().timestamp, core.ingest.snapshot(1).map(|s| s.timestamp_ms)), (0, Some(0)));
    // Two chunks, so that the extended timestamp is repeated on the wire.
    let picture = picture(true, 0, 70_000);
    for (wire, millis) in times {
        publisher.send(Video, *wire, &picture);
        let media = next();
        let want = u32::try_from(millis & 0xffff_ffff).expect("32 bits");
        assert_eq!((media.timestamp, media.payload.len()), (want, picture.len()), "{wire:x}");
        let snapshot = core.ingest.snapshot(1).expect("live");
        assert_eq!(snapshot.timestamp_ms, *millis, "{wire:x}");
    }
    // A header in mid-stream keeps timestamp 0 and does not move the clock.
    publisher.send(Video, 0, OTHER_AVC_HEADER);
    assert_eq!(next().timestamp, 0);
    let (wire, millis) = times.last().expect("some");
    publisher.send(Video, wire + 40, &picture);
    next();
    assert_eq!(core.ingest.snapshot(1).map(|s| s.timestamp_ms), Some(millis + 40));
    publisher.say_goodbye();
    core.ended(1);
}

#[test]
fn timestamps_continue_past_24_bits() {
    let around = [0x00ff_ffd8, 0x00ff_fffe, 0x00ff_ffff, 0x0100_0000, 0x0100_0028];
    assert_times("24", &around.map(|time: u32| (time, time.into())));
}

/// Keyframes from 11 s before a wrap to 4 s after it.
fn around(wrap: i64) -> Vec<(u32, i64)> {
    let times = (0..9).map(|n| wrap - 11_000 + n * 1_900);
    let wire = |millis: i64| u32::try_from(millis & (wrap - 1)).expect("32 bits");
    times.map(|millis| (wire(millis), millis)).collect()
}

#[test]
fn timestamps_continue_across_a_wrap_at_24_bits() {
    assert_times("24w", &around(1 << 24));
}

#[test]
fn timestamps_continue_across_a_wrap_at_31_bits() {
    assert_times("31", &around(1 << 31));
}

#[test]
fn timestamps_continue_across_a_wrap_at_32_bits() {
    assert_times("32", &around(1 << 32));
}

#[test]
fn audio_that_starts_after_the_wrap_is_in_sync_with_the_video() {
    let mut core = Core::start(1);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send(Video, 0, AVC_HEADER);
    publisher.send(Audio, 0, &[0xaf, 0, 0x11, 0x90]);
    let mut player = Peer::play(core.port(), "cam");
    player.wait_ready();
    for (wire, _) in &around(1 << 31)[..6] {
        publisher.send(Video, *wire, &picture(true, 0, 0));
    }
    publisher.send(Audio, 0x10, &[0xaf, 1, 9]);
    publisher.say_goodbye();
    let media = player.media_to_end();
    let sound = media.iter().rfind(|m| m.kind == Audio).expect("a sound");
    assert_eq!(sound.timestamp, 0x8000_0010);
    core.ended(1);
}
