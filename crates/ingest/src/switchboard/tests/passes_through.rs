//! What a broadcaster sends besides plain video and audio, and whether a player, an upstream and a preview get it.

use std::time::Duration;

use bytes::Bytes;
use headgate_rtmp::MediaKind::{Script, Video};

use super::super::SessionKey;
use super::super::message::Message;
use super::whip::Client;
use super::world::World;
use crate::publish::preview_pipe::{PreviewRead, PreviewReader, preview_pipe};
use crate::session::whip_publisher::WhipOrder;

const URL: &str = "rtmp://u/live/x";

/// A script data message with this name.
fn script(name: &str) -> Vec<u8> {
    let length = u16::try_from(name.len()).expect("short");
    let object = b"\x08\0\0\0\x01\0\x04text\x02\0\x05Hello\0\0\x09";
    [&[2][..], &length.to_be_bytes(), name.as_bytes(), object].concat()
}

fn preview(world: &mut World) -> PreviewReader {
    let record = world.publishes.find(1).expect("it runs");
    let (writer, reader) = preview_pipe(Box::new(|| {}));
    world.switchboard.handle_message(Message::OpenPreview { stream: record.stream, writer });
    world.settle();
    reader
}

fn flv(reader: &PreviewReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let PreviewRead::Batch(batch) = reader.read() {
        bytes.extend(batch);
    }
    bytes
}

fn has(world: &World, reader: SessionKey, body: &[u8]) -> bool {
    world.peers[&reader].media.iter().any(|message| message.payload == body)
}

fn is_in(part: &[u8], whole: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

#[test]
fn script_data_reaches_players_upstreams_and_previews_byte_for_byte() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 20);
    world.pass(Duration::from_millis(40));
    let (player, reader) = (world.player("a"), preview(&mut world));
    let upstream = world.upstream_peer().expect("connected");
    let names =
        ["onMetaData", "onTextData", "onCuePoint", "onFI", "onCaptionInfo", "onTimecode", "own"];
    for (n, name) in (1..).zip(names) {
        let set_data_frame = [&b"\x02\0\x0d@setDataFrame"[..], &script(name)].concat();
        for (kind, body) in
            [(18, script(name)), (15, [&[0][..], &script(name)].concat()), (18, set_data_frame)]
        {
            world.send_message(publisher, kind, &body);
        }
        world.send_frame(publisher, n, 20);
        world.pass(Duration::from_millis(40));
    }
    world.pass(Duration::from_secs(1));
    let flv = flv(&reader);
    for name in names {
        let body = script(name);
        assert!(has(&world, player, &body) && has(&world, upstream, &body), "{name}");
        assert!(is_in(&body, &flv), "{name}");
    }
}

#[test]
fn captions_and_timecodes_in_sei_stay_inside_their_pictures() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 20);
    world.pass(Duration::from_millis(40));
    let (player, reader) = (world.player("a"), preview(&mut world));
    let upstream = world.upstream_peer().expect("connected");
    // user_data_registered_itu_t_t35 with A/53 captions (ATSC A/53 part 4, 6.2.3), picture timing, and a slice.
    let captions = b"\0\0\0\x0e\x06\x04\x0b\xb5\0\x31GA94\x03\x41\xff\x80";
    let timing = b"\0\0\0\x05\x06\x01\x01\x34\x80";
    let body = [&b"\x27\x01\0\0\0"[..], captions, timing, b"\0\0\0\x04\x41\x9a\x02\x80"].concat();
    world.send(publisher, Video, 40, &body);
    world.pass(Duration::from_secs(1));
    assert!(has(&world, player, &body) && has(&world, upstream, &body));
    assert!(is_in(&body, &flv(&reader)));
}

#[test]
fn a_caption_and_a_timecode_with_every_frame_at_60_fps_are_all_passed_on() {
    let mut world = World::new();
    let publisher = world.publisher("a", 1, &[URL]);
    world.send_frame(publisher, 0, 20);
    world.pass(Duration::from_millis(40));
    let player = world.player("a");
    let upstream = world.upstream_peer().expect("connected");
    for n in 1..=60 * 60 {
        world.send(publisher, Script, n * 1_000 / 60, &script("onTextData"));
        world.send(publisher, Script, n * 1_000 / 60, &script("onFI"));
        world.send(publisher, Video, n * 1_000 / 60, b"\x27\x01\0\0\0picture");
        if n % 3 == 0 {
            world.pass(Duration::from_millis(50));
        }
    }
    for reader in [player, upstream] {
        let scripts = world.peers[&reader].media.iter().filter(|of| of.kind == Script).count();
        assert_eq!(scripts, 2 * 60 * 60);
    }
    assert!(world.reasons().is_empty());
}

#[test]
fn data_of_a_page_reaches_players_and_upstreams() {
    let mut world = World::new();
    let mut client = Client::connect_with(&mut world, 1, &[URL]);
    for _ in 0..30 {
        client.send_media(&mut world);
    }
    let (player, reader) = (world.player("cam1"), preview(&mut world));
    let upstream = world.upstream_peer().expect("connected");
    for name in ["onCuePoint", "onTextData", "onMetaData"] {
        let stream = world.publishes.find(1).expect("it runs").stream;
        let order = WhipOrder::SendData(Bytes::from(script(name)));
        world.switchboard.handle_message(Message::Order { stream, order });
        world.settle();
        client.send_media(&mut world);
    }
    world.pass(Duration::from_secs(1));
    let flv = flv(&reader);
    for name in ["onCuePoint", "onTextData"] {
        let body = script(name);
        assert!(has(&world, player, &body) && has(&world, upstream, &body), "{name}");
        assert!(is_in(&body, &flv), "{name}");
    }
    // Merged with ours.
    for media in [&world.peers[&player].media, &world.peers[&upstream].media] {
        let metadata = media.iter().rfind(|of| of.payload.starts_with(b"\x02\0\x0aonMetaData"));
        let metadata = metadata.expect("metadata");
        assert!(is_in(b"Hello", &metadata.payload) && is_in(b"videocodecid", &metadata.payload));
    }
}
