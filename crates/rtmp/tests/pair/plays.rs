//! Our client plays from our server.

use headgate_rtmp::{ClientEvent, MediaMessage, Refusal, RefusalKind, ServerEvent};

use crate::support::Pair;
use crate::{frames, long_times, refused};

#[test]
fn a_player_gets_frames_in_order_byte_for_byte() {
    let mut pair = Pair::play().playing();
    send_from_server(&mut pair, &frames());
    pair.exchange();
    assert!(pair.media_at_client() == frames(), "a frame changed on its way");
}

#[test]
fn a_player_gets_timestamps_beyond_24_31_and_32_bits() {
    let mut pair = Pair::play().playing();
    send_from_server(&mut pair, &long_times());
    pair.exchange();
    assert!(pair.media_at_client() == long_times(), "a time changed on its way");
}

#[test]
fn a_play_is_requested_with_its_name() {
    let mut pair = Pair::play();
    pair.exchange();
    let events = pair.server_events();
    let [ServerEvent::PlayRequested(target)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(&target.name[..], b"cam");
}

#[test]
fn an_unknown_stream_is_refused_to_a_player() {
    let mut pair = Pair::play();
    pair.exchange();
    pair.server.refuse_play(Refusal::BadName, "No such stream");
    pair.exchange();
    let want = refused("NetStream.Play.StreamNotFound", "No such stream", RefusalKind::Unknown);
    assert_eq!(pair.client_events(), want);
}

#[test]
fn a_player_is_notified_that_its_stream_has_ended() {
    let mut pair = Pair::play().playing();
    pair.server.end_play();
    pair.exchange();
    let (code, description) =
        ("NetStream.Play.UnpublishNotify".into(), "The stream has ended".into());
    let ended = ClientEvent::Ended { code, description };
    assert_eq!(pair.client_events(), [ended, ClientEvent::Close]);
}

#[test]
fn a_player_that_accepts_no_track_is_notified_and_closed() {
    let mut pair = Pair::play().playing();
    pair.server.fail_play("The video is hevc, which the player does not list");
    pair.exchange();
    let code = "NetStream.Play.NoSupportedTrackFound".into();
    let description = "The video is hevc, which the player does not list".into();
    let ended = ClientEvent::Ended { code, description };
    assert_eq!(pair.client_events(), [ended, ClientEvent::Close]);
    assert_eq!(pair.server_events(), [ServerEvent::Close]);
}

#[test]
fn a_player_that_leaves_ends_only_its_play() {
    let mut pair = Pair::play().playing();
    pair.client.end();
    pair.carry_to_server(usize::MAX);
    assert_eq!(pair.server_events(), [ServerEvent::PlayEnded, ServerEvent::Close]);
}

fn send_from_server(pair: &mut Pair, frames: &[MediaMessage]) {
    for frame in frames {
        let (header, payload) = frame.payload.split_at(frame.payload.len().min(2));
        let payload = frame.payload.slice_ref(payload);
        pair.server.send_media(frame.kind, frame.timestamp, header, &payload);
    }
}
