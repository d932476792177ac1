//! The workload that `scripts/instructions.mjs` counts under valgrind: the path of a publish's bytes through a worker,
//! without sockets. All input is prepared beforehand, for the longest run, so that the difference between two runs of
//! different lengths is the path's.

use std::io::IoSlice;
use std::time::Duration;

use bytes::Bytes;
use headgate_rtmp::MediaKind;

use super::super::SessionKey;
use super::peer::{Peer, Remote, take};
use super::whip::Client;
use super::world::World;

/// Frame sizes of a real x264 clip, two seconds of 720p25 at 2 Mbit/s.
const RECORDING: &str = include_str!("../../../../bench/recordings/x264-720p25-2mbps.txt");
/// Bytes of an AAC frame at 128 kbit/s, and of an Opus packet at 64.
const SOUND_BYTES: usize = 341;
const OPUS_BYTES: usize = 160;
const PICTURE: Duration = Duration::from_millis(40);
/// Video frames that are prepared, at least as many as any run feeds.
const PICTURES_MADE: u32 = 1_600;

fn sizes() -> Vec<usize> {
    RECORDING.split_ascii_whitespace().filter_map(|size| size.parse().ok()).collect()
}

/// Number of video frames that this run feeds.
fn pictures() -> usize {
    std::env::var("PICTURES").ok().and_then(|of| of.parse().ok()).unwrap_or(50)
}

/// The bytes of a publisher, one piece for each video frame and its audio.
fn wire(world: &mut World, publisher: SessionKey) -> Vec<Vec<u8>> {
    let sizes = sizes();
    let Some(Peer { remote: Remote::Client(client), .. }) = world.peers.get_mut(&publisher) else {
        panic!("a publisher")
    };
    client.send_media(MediaKind::Audio, 0, &[], &Bytes::from_static(&[0xaf, 0, 0x12, 0x10]));
    let sound = Bytes::from([&[0xaf, 1][..], &[0x55; SOUND_BYTES]].concat());
    let pictures = (0..PICTURES_MADE).zip(sizes.iter().cycle()).map(|(n, size)| {
        let is_keyframe = (n as usize).is_multiple_of(sizes.len());
        let mut body = vec![if is_keyframe { 0x17 } else { 0x27 }, 1, 0, 0, 0];
        body.extend_from_slice(&u32::try_from(size - 9).expect("small").to_be_bytes());
        body.push(if is_keyframe { 0x65 } else { 0x41 });
        body.resize(*size, 0x55);
        client.send_media(MediaKind::Video, n * 40, &[], &Bytes::from(body));
        for half in [0, 21] {
            client.send_media(MediaKind::Audio, n * 40 + half, &[], &sound);
        }
        take(client.output_mut(), usize::MAX)
    });
    pictures.collect()
}

/// Writes what is due to sockets that accept everything; returns the number of bytes.
fn write_all(world: &mut World) -> usize {
    let mut written = 0;
    world.switchboard.settle();
    for key in world.switchboard.poll_ready() {
        world.switchboard.fill(key);
        let Some(output) = world.switchboard.output_mut(key) else { continue };
        let mut count = 0;
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 64];
            let filled = output.io_slices(&mut slices);
            let bytes = slices[..filled].iter().map(|slice| slice.len()).sum();
            output.consume(bytes);
            count += bytes;
        }
        world.switchboard.handle_written(key, count, false);
        written += count;
    }
    written
}

/// One wake-up of a worker for one video frame over RTMP: bytes in, bytes out.
fn feed_bytes(world: &mut World, publisher: SessionKey, bytes: &[u8]) -> usize {
    world.now += PICTURE;
    world.switchboard.begin(world.now);
    world.switchboard.handle_timeout();
    if world.switchboard.begin_turn(publisher) {
        world.switchboard.handle_input(publisher, bytes);
        world.switchboard.end_read(publisher, false);
    }
    // A turn may leave work for the next one.
    let mut written = write_all(world);
    while world.switchboard.begin_turn(publisher) && world.switchboard.end_read(publisher, false) {
        written += write_all(world);
    }
    written + write_all(world)
}

#[test]
fn rtmp_to_a_push() {
    let mut world = World::new();
    let publisher = world.publisher("cam", 1, &["rtmp://up.example/live/cam"]);
    feed_wire(world, publisher, 1);
}

#[test]
fn rtmp_to_twenty_players() {
    let mut world = World::new();
    let publisher = world.publisher("cam", 1, &[]);
    for _ in 0..20 {
        world.player("cam");
    }
    feed_wire(world, publisher, 20);
}

/// Feeds the bytes of `publisher` and checks that each of `readers` got all of them.
fn feed_wire(mut world: World, publisher: SessionKey, readers: usize) {
    let wire = wire(&mut world, publisher);
    let (mut fed, mut written) = (0, 0);
    for bytes in wire.iter().take(pictures()) {
        fed += bytes.len();
        written += feed_bytes(&mut world, publisher, bytes);
    }
    // Chunks of a different size have different headers.
    assert!(written.abs_diff(fed * readers) < fed * readers / 50, "{written} of {readers} x {fed}");
}

#[test]
fn whip_to_a_push_of_opus() {
    let mut world = World::new();
    let mut client = Client::connect_with(&mut world, 1, &["rtmp://up.example/live/cam"]);
    let sizes = sizes();
    let mut fed = 0;
    let datagrams: Vec<(usize, Vec<Vec<u8>>)> = (0..PICTURES_MADE)
        .zip(sizes.iter().cycle())
        .map(|(n, size)| {
            let is_keyframe = (n as usize).is_multiple_of(sizes.len());
            let at = world.now + PICTURE * (n + 1);
            (*size, client.record_media(at, n, is_keyframe, *size, OPUS_BYTES))
        })
        .collect();
    let mut written = 0;
    for (size, mut datagrams) in datagrams.into_iter().take(pictures()) {
        world.now += PICTURE;
        world.switchboard.begin(world.now);
        world.switchboard.handle_timeout();
        for datagram in &mut datagrams {
            world.switchboard.handle_datagram(client.path, datagram);
        }
        written += write_all(&mut world);
        world.switchboard.poll_actions();
        fed += size + 2 * OPUS_BYTES;
    }
    assert!(written.abs_diff(fed) < fed / 20, "{written} of {fed}");
}
