//! Publishers that send nothing for a while, in virtual time: their upstreams are kept and get all late frames.

use std::time::Duration;

use headgate_rtmp::{MediaKind, MediaMessage};

use super::super::{EndReason, SessionKey};
use super::world::{AAC_FRAME, AAC_HEADER, AVC_HEADER, URL, World};

/// Of the silent AAC that a stream without audio gets.
const SILENCE_HEADER: &[u8] = &[0xaf, 0, 0x11, 0x90];
const MP3_FRAME: &[u8] = &[0x2f, 0xff, 0xfb, 0x90, 0x64];
/// E-RTMP: sequence start with an OpusHead of two channels, and a coded frame.
const OPUS_HEADER: &[u8] = b"\x90OpusOpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
const OPUS_FRAME: &[u8] = b"\x91Opus\xfc\xff\xfe";
/// The upstreams here end a publish that sends no message with content for this long.
const IDLE_LIMIT: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(100);

/// Lets time pass with an upstream that closes the connection if it gets nothing for [`IDLE_LIMIT`].
fn pass_at_idle_limit(world: &mut World, upstream: SessionKey, time: Duration) {
    let has_content = |message: &&MediaMessage| !message.payload.is_empty();
    let (until, mut newest) = (world.now + time, (0, world.now));
    while world.now < until {
        world.pass(STEP);
        let Some(peer) = world.peers.get(&upstream) else { return };
        let messages = peer.media.iter().filter(has_content).count();
        if messages != newest.0 {
            newest = (messages, world.now);
        } else if world.now >= newest.1 + IDLE_LIMIT {
            world.hang_up(upstream);
        }
    }
}

/// A publisher with these headers that has sent two seconds of video with an audio frame for each, and its upstream.
fn live(world: &mut World, audio: Option<(&[u8], &[u8])>) -> (SessionKey, SessionKey) {
    let publisher = world.publisher("a", 1, &[URL]);
    if let Some((header, _)) = audio {
        world.send(publisher, MediaKind::Audio, 0, header);
    }
    for n in 0..50 {
        world.pass(Duration::from_millis(40));
        send(world, publisher, n, audio);
    }
    (publisher, world.upstream_peer().expect("connected"))
}

fn send(world: &mut World, publisher: SessionKey, n: u32, audio: Option<(&[u8], &[u8])>) {
    world.send_frame(publisher, n, 100);
    if let Some((_, frame)) = audio {
        world.send(publisher, MediaKind::Audio, n * 40, frame);
    }
}

fn bodies(world: &World, peer: SessionKey, kind: MediaKind) -> Vec<(u32, &[u8])> {
    world.media(peer, kind).map(|message| (message.timestamp, &message.payload[..])).collect()
}

/// The timestamps at which a body arrived; fails if timestamps of its track go back.
fn times_of(world: &World, peer: SessionKey, kind: MediaKind, body: &[u8]) -> Vec<u32> {
    let all = bodies(world, peer, kind);
    assert!(all.is_sorted_by_key(|(timestamp, _)| *timestamp), "{kind:?} goes back");
    all.iter().filter(|(_, of)| *of == body).map(|(timestamp, _)| *timestamp).collect()
}

#[test]
fn an_upstream_that_ends_silent_publishes_stays_and_gets_late_frames() {
    let mut world = World::new();
    let audio = Some((AAC_HEADER, AAC_FRAME));
    let (publisher, upstream) = live(&mut world, audio);
    let player = world.player("a");
    let played = world.peers[&player].media.len();
    pass_at_idle_limit(&mut world, upstream, Duration::from_secs(9));
    assert_eq!(world.peers[&player].media.len(), played, "players get nothing");
    // Everything that TCP buffered arrives at once.
    for n in 50..300 {
        send(&mut world, publisher, n, audio);
    }
    for n in 300..350 {
        world.pass(Duration::from_millis(40));
        send(&mut world, publisher, n, audio);
    }
    world.pass(Duration::from_millis(40));
    assert_eq!((world.upstream_peer(), world.resolved.len()), (Some(upstream), 1));
    assert_eq!(world.frames(upstream), (0..350).collect::<Vec<_>>());
    let sounds = times_of(&world, upstream, MediaKind::Audio, AAC_FRAME);
    assert_eq!(sounds, (0..350).map(|n| n * 40).collect::<Vec<_>>());
    let headers = times_of(&world, upstream, MediaKind::Audio, AAC_HEADER);
    assert_eq!(headers, [0, 1_960, 1_960, 1_960, 1_960], "at the newest audio, each two seconds");
    assert_eq!(times_of(&world, upstream, MediaKind::Video, AVC_HEADER), [0]);
}

#[test]
fn a_publish_lost_after_a_silence_is_held_on_the_same_connection() {
    let (sound, picture) = (MediaKind::Audio, MediaKind::Video);
    for (audio, adds_silence, repeated) in [
        (Some((AAC_HEADER, AAC_FRAME)), true, (sound, AAC_HEADER)),
        (Some((OPUS_HEADER, OPUS_FRAME)), true, (sound, OPUS_HEADER)),
        (Some((MP3_FRAME, MP3_FRAME)), true, (picture, AVC_HEADER)),
        (None, true, (sound, SILENCE_HEADER)),
        (None, false, (picture, AVC_HEADER)),
    ] {
        let mut world = World::new();
        world.switchboard.sessions.context.pushes_silence = adds_silence;
        world.window = Duration::from_secs(10);
        let (_, upstream) = live(&mut world, audio);
        // 15 s until the loss is noticed, and then the window.
        pass_at_idle_limit(&mut world, upstream, Duration::from_secs(24));
        assert_eq!(world.reasons(), [(1, EndReason::Silent)]);
        let connection = (world.upstream_peer(), world.resolved.len());
        assert_eq!(connection, (Some(upstream), 1), "{audio:?} {adds_silence}");
        // The first one, and then every two seconds until silence is written or the stream ends.
        let times = times_of(&world, upstream, repeated.0, repeated.1);
        assert!(times.len() >= 8, "{audio:?} {adds_silence}: {times:?}");
        world.pass(Duration::from_secs(5));
        assert!(world.switchboard.is_empty(), "it ends all the same");
    }
}

#[test]
fn an_upstream_that_was_sent_no_frame_gets_nothing_before_the_first() {
    let mut world = World::new();
    world.publisher("a", 1, &[URL]);
    world.pass(Duration::from_secs(10));
    let upstream = world.upstream_peer().expect("connected");
    assert!(bodies(&world, upstream, MediaKind::Video).len() <= 1);
}

#[test]
fn the_keep_alive_of_a_quiet_publisher_keeps_it_and_is_not_passed_on() {
    let mut world = World::new();
    let (publisher, upstream) = live(&mut world, Some((AAC_HEADER, AAC_FRAME)));
    let player = world.player("a");
    let played = world.peers[&player].media.len();
    // Headgate repeats its configuration; Wowza and Flash send empty messages.
    for body in [AAC_HEADER, &[], AAC_HEADER, &[], AAC_HEADER, &[]] {
        pass_at_idle_limit(&mut world, upstream, Duration::from_secs(10));
        world.send(publisher, MediaKind::Audio, 1_960, body);
    }
    assert!(world.reasons().is_empty(), "{:?}", world.reasons());
    assert_eq!(world.peers[&player].media.len(), played);
    assert!(bodies(&world, upstream, MediaKind::Audio).iter().all(|(_, body)| !body.is_empty()));
    world.pass(Duration::from_secs(16));
    assert_eq!(world.reasons(), [(1, EndReason::Silent)]);
}
