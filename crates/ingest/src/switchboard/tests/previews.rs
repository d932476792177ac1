//! Previews: FLV for the gateway, which is not counted and delays no one.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::world::World;
use crate::publish::preview_pipe::{PreviewEnd, PreviewRead, PreviewReader, preview_pipe};
use crate::switchboard::SessionKey;
use crate::switchboard::message::Message;

fn open(world: &mut World, client_id: u64) -> PreviewReader {
    let record = world.publishes.find(client_id).expect("it runs");
    let (writer, reader) = preview_pipe(Box::new(|| {}));
    let message = Message::OpenPreview { stream: record.stream, writer };
    world.switchboard.handle_message(message);
    world.settle();
    reader
}

/// Reads everything that waits, and the end.
fn read(reader: &PreviewReader) -> (Vec<u8>, Option<PreviewEnd>) {
    let mut bytes = Vec::new();
    loop {
        match reader.read() {
            PreviewRead::Batch(batch) => bytes.extend(batch),
            PreviewRead::Waiting => return (bytes, None),
            PreviewRead::Ended(end) => return (bytes, Some(end)),
        }
    }
}

/// Kind, timestamp and first two body bytes of each tag; `flv` begins with a tag.
fn tags(flv: &[u8]) -> Vec<(u8, u32, [u8; 2])> {
    let (mut rest, mut tags) = (flv, Vec::new());
    while let &[kind, s0, s1, s2, t0, t1, t2, t3, _, _, _, b0, b1, ..] = rest {
        let length = 15 + u32::from_be_bytes([0, s0, s1, s2]) as usize;
        tags.push((kind, u32::from_be_bytes([t3, t0, t1, t2]), [b0, b1]));
        rest = rest.get(length..).expect("whole tags");
    }
    assert!(rest.is_empty(), "whole tags");
    tags
}

fn is_counted(world: &World) -> (u64, u64, u64) {
    let posted = world.snapshot(1);
    (posted.subscribers, posted.bytes_out, posted.dropped_frames)
}

/// Sends a frame of 200 kB, every tenth of them a keyframe.
fn send_large(world: &mut World, publisher: SessionKey, n: u32) {
    let picture = crate::sample::picture(n.is_multiple_of(10), n, 200_000);
    world.send(publisher, MediaKind::Video, n * 40, &picture);
}

#[test]
fn a_preview_starts_at_the_cached_keyframe_at_time_0_and_follows_in_batches() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    for n in 0..28 {
        world.send_frame(publisher, n, 10);
    }
    let reader = open(&mut world, 1);
    let (flv, end) = read(&reader);
    assert_eq!((&flv[..13], end), (&b"FLV\x01\x01\0\0\0\x09\0\0\0\0"[..], None));
    let first = tags(&flv[13..]);
    let video: Vec<_> = first.iter().filter(|tag| tag.0 == 9).map(|tag| (tag.1, tag.2)).collect();
    assert_eq!(video, [(0, [0x17, 0]), (0, [0x17, 1]), (40, [0x27, 1]), (80, [0x27, 1])]);
    world.send_frame(publisher, 28, 10);
    assert_eq!(read(&reader), (Vec::new(), None), "the batch fills");
    world.pass(Duration::from_millis(110));
    let more: Vec<_> = tags(&read(&reader).0).iter().map(|tag| tag.1).collect();
    assert_eq!(more, [120]);
    world.hang_up(publisher);
    world.pass(Duration::from_millis(20));
    assert_eq!(read(&reader).1, Some(PreviewEnd::PublishEnded));
    assert!(world.switchboard.is_empty());
}

#[test]
fn a_preview_counts_neither_as_a_reader_nor_in_bytes_nor_in_dropped_frames() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 10);
    let stopped = open(&mut world, 1);
    let reader = open(&mut world, 1);
    let mut previewed = 0;
    for n in 1..200 {
        send_large(&mut world, publisher, n);
        world.pass(Duration::from_millis(40));
        previewed += read(&reader).0.len();
    }
    assert!(previewed > 39_000_000, "{previewed}");
    assert_eq!(is_counted(&world), (0, 0, 0));
    drop((stopped, reader));
    world.pass(Duration::from_secs(2));
    assert_eq!(is_counted(&world), (0, 0, 0));
}

#[test]
fn an_unread_preview_is_bounded_and_resumes_at_a_keyframe_without_affecting_players() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 10);
    let player = world.player("a");
    let reader = open(&mut world, 1);
    for n in 1..200 {
        send_large(&mut world, publisher, n);
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(world.frames(player).len(), 200, "it has no waiting frames");
    let (held, end) = read(&reader);
    // The pipe's limit, and the frame that may exceed it.
    assert!(held.len() < 800_000 && end.is_none(), "{}", held.len());
    world.pass(Duration::from_millis(200));
    let next = tags(&read(&reader).0);
    let first = next.iter().find(|tag| tag.0 == 9).expect("video");
    assert_eq!(first.2, [0x17, 1], "it resumes at a keyframe");
    assert!(first.1 > 4_000, "and near the newest: {first:?}");
}

#[test]
fn a_preview_ends_within_a_second_of_its_reader_and_immediately_after_its_stream_ended() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 10);
    let sessions = world.switchboard.sessions.len();
    let record = world.publishes.find(1).expect("it runs");
    drop(open(&mut world, 1));
    assert_eq!(world.switchboard.sessions.len(), sessions + 1);
    world.pass(Duration::from_millis(1_100));
    assert_eq!(world.switchboard.sessions.len(), sessions);
    world.hang_up(publisher);
    world.pass(Duration::from_secs(1));
    let (writer, reader) = preview_pipe(Box::new(|| {}));
    let stream = record.stream;
    world.switchboard.handle_message(Message::OpenPreview { stream, writer });
    assert_eq!(reader.read(), PreviewRead::Ended(PreviewEnd::PublishEnded));
}

#[test]
fn a_panic_in_the_turn_of_a_preview_ends_only_the_preview() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[]);
    world.send_frame(publisher, 0, 10);
    let reader = open(&mut world, 1);
    let key = world.switchboard.sessions.keys().find(|key| *key != publisher).expect("it is there");
    world.switchboard.turn(key, |_, _, _| panic!("a bug"));
    world.settle();
    assert_eq!(read(&reader).1, Some(PreviewEnd::InternalError));
    world.send_frame(publisher, 1, 10);
    assert!(world.publishes.find(1).is_some());
}
