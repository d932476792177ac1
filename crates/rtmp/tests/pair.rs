//! Our client and our server against each other: publishing here, playing and timeouts in modules.

#[path = "pair/plays.rs"]
mod plays;
#[path = "support/pair.rs"]
mod support;
#[path = "pair/waits.rs"]
mod waits;

use bytes::Bytes;
use headgate_rtmp::{
    ClientConfig, ClientEvent, ClientRole, MediaKind, MediaMessage, Refusal, RefusalKind,
    ServerConfig, ServerEvent,
};
use support::{Pair, Random, Splits, client_config};

/// Frames of all kinds and lengths, with timestamps on both sides of the 24-bit limit.
fn frames() -> Vec<MediaMessage> {
    let lengths = [1, 5, 127, 128, 129, 255, 256, 4000, 65_535, 65_536, 65_537, 300_000];
    let mut random = Random::new(7);
    let mut frames = Vec::new();
    for (n, length) in lengths.into_iter().cycle().take(36).enumerate() {
        let kind = if n % 3 == 0 { MediaKind::Audio } else { MediaKind::Video };
        let payload: Bytes = (0..length).map(|_| random.below(256) as u8).collect();
        let timestamp = 0x00ff_fff0 + n as u32;
        frames.push(MediaMessage { kind, timestamp, payload });
    }
    frames
}

/// Sends them from the client, with the first bytes of each as its header.
fn send_from_client(pair: &mut Pair, frames: &[MediaMessage]) {
    for frame in frames {
        let (header, payload) = frame.payload.split_at(frame.payload.len().min(5));
        let payload = frame.payload.slice_ref(payload);
        pair.client.send_media(frame.kind, frame.timestamp, header, &payload);
    }
}

fn refused(code: &str, description: &str, kind: RefusalKind) -> [ClientEvent; 2] {
    let (code, description) = (code.into(), description.into());
    [ClientEvent::Refused { code, description, kind }, ClientEvent::Close]
}

#[test]
fn a_publish_is_requested_with_app_name_and_arguments() {
    let mut pair = Pair::publish();
    pair.exchange();
    let events = pair.server_events();
    let [ServerEvent::PublishRequested(target)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((target.app.as_str(), &target.name[..]), ("live", &b"cam"[..]));
    assert_eq!(target.arguments.as_deref(), Some(&b"passcode=s%2Fx"[..]));
}

#[test]
fn a_publish_is_not_ready_before_it_is_allowed() {
    let mut pair = Pair::publish();
    pair.exchange();
    assert_eq!(pair.client_events(), []);
}

#[test]
fn an_allowed_publish_is_ready() {
    let mut pair = Pair::publish();
    pair.exchange();
    pair.server.allow();
    pair.exchange();
    assert_eq!(pair.client_events(), [ClientEvent::Ready]);
}

#[test]
fn a_denied_publish_gets_the_reason() {
    let mut pair = Pair::publish();
    pair.exchange();
    pair.server.deny(Refusal::Denied, "The customer says no");
    pair.exchange();
    let want = refused("NetStream.Publish.Denied", "The customer says no", RefusalKind::Denied);
    assert_eq!(pair.client_events(), want);
}

#[test]
fn an_occupied_name_is_a_bad_name() {
    let mut pair = Pair::publish();
    pair.exchange();
    pair.server.deny(Refusal::BadName, "Already live");
    pair.exchange();
    assert_eq!(
        pair.client_events(),
        refused("NetStream.Publish.BadName", "Already live", RefusalKind::Occupied)
    );
}

#[test]
fn a_server_that_refuses_closes() {
    let mut pair = Pair::publish();
    pair.exchange();
    pair.server_events();
    pair.server.deny(Refusal::Denied, "no");
    assert_eq!(pair.server_events(), [ServerEvent::Close]);
}

#[test]
fn another_app_is_refused_at_connect() {
    let client = ClientConfig { app: "vod".into(), ..client_config(ClientRole::Publish) };
    let mut pair = Pair::new(ServerConfig::default(), client, Splits::Whole);
    pair.exchange();
    let want = refused(
        "NetConnection.Connect.InvalidApp",
        "There is no such app: the server address is rtmp://host/live",
        RefusalKind::InvalidApp,
    );
    assert_eq!(pair.client_events(), want);
}

#[test]
fn frames_arrive_in_order_byte_for_byte() {
    let mut pair = Pair::publish().allowed();
    send_from_client(&mut pair, &frames());
    pair.exchange();
    assert!(pair.media_at_server() == frames(), "a frame changed on its way");
}

#[test]
fn frames_arrive_the_same_however_the_network_splits_them() {
    for seed in 1..5 {
        let mut pair = Pair::publish_in_pieces(seed).allowed();
        send_from_client(&mut pair, &frames());
        pair.exchange();
        assert!(pair.media_at_server() == frames(), "a frame changed on its way, seed {seed}");
    }
}

/// Times on both sides of the 24-, 31- and 32-bit limits, on frames of two chunks.
fn long_times() -> Vec<MediaMessage> {
    let times = [0x00ff_fffe, 0x00ff_ffff, 0x0100_0000, 0x7fff_fff0, 0x8000_0010, u32::MAX, 0, 40];
    let payload = Bytes::from(vec![7; 70_000]);
    let frame =
        |timestamp| MediaMessage { kind: MediaKind::Video, timestamp, payload: payload.clone() };
    times.map(frame).to_vec()
}

#[test]
fn timestamps_beyond_24_31_and_32_bits_arrive() {
    let mut pair = Pair::publish_in_pieces(3).allowed();
    send_from_client(&mut pair, &long_times());
    pair.exchange();
    assert!(pair.media_at_server() == long_times(), "a time changed on its way");
}

#[test]
fn frames_sent_before_the_publish_is_allowed_are_dropped() {
    let mut pair = Pair::publish();
    pair.exchange();
    send_from_client(&mut pair, &frames());
    assert!(pair.client.output().is_empty());
}

#[test]
fn metadata_arrives_without_set_data_frame() {
    let metadata = Bytes::from_static(b"\x02\x00\x0aonMetaData\x08\x00\x00\x00\x00\x00\x00\x09");
    let mut pair = Pair::publish().allowed();
    pair.client.send_media(MediaKind::Script, 0, &[], &metadata);
    let on_wire = pair.client.output().pending_bytes();
    pair.exchange();
    let want = MediaMessage { kind: MediaKind::Script, timestamp: 0, payload: metadata.clone() };
    assert_eq!(pair.media_at_server(), [want]);
    assert_eq!(on_wire, 12 + b"\x02\x00\x0d@setDataFrame".len() + metadata.len());
}

#[test]
fn a_long_publish_is_acknowledged() {
    let mut pair = Pair::publish().allowed();
    let payload = Bytes::from(vec![7; 1 << 20]);
    for n in 0..3 {
        pair.client.send_media(MediaKind::Video, n, &[], &payload);
    }
    pair.carry_to_server(2_400_000);
    assert_eq!(pair.server.output().pending_bytes(), 0);
    pair.carry_to_server(usize::MAX);
    assert_eq!(pair.server.output().pending_bytes(), 12 + 4);
}

#[test]
fn a_client_that_ends_ends_the_publish() {
    let mut pair = Pair::publish().allowed();
    pair.client.end();
    assert_eq!(pair.client_events(), [ClientEvent::Close]);
    pair.carry_to_server(usize::MAX);
    assert_eq!(pair.server_events(), [ServerEvent::PublishEnded, ServerEvent::Close]);
}

#[test]
fn a_server_that_ends_a_publish_names_the_reason() {
    let mut pair = Pair::publish().allowed();
    pair.server.end_publish("NetStream.Publish.Rejected", "Time is up");
    pair.exchange();
    let (code, description) = ("NetStream.Publish.Rejected".into(), "Time is up".into());
    let ended = ClientEvent::Ended { code, description };
    assert_eq!(pair.client_events(), [ended, ClientEvent::Close]);
}

#[test]
fn both_sides_learn_the_codecs_of_the_other() {
    let four_cc_list = vec!["hvc1".to_owned(), "Opus".to_owned()];
    let client = ClientConfig { four_cc_list, ..client_config(ClientRole::Publish) };
    let mut pair = Pair::new(ServerConfig::default(), client, Splits::Whole);
    pair.exchange();
    assert_eq!(pair.server.four_cc_list(), ["hvc1", "Opus"]);
    assert!(pair.client.four_cc_list().contains(&"Opus".to_owned()));
}
