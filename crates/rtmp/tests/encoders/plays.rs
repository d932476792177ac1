//! Real players, and the exact messages with which a play starts, is refused and ends.

use std::time::Duration;

use headgate_rtmp::ServerEvent;

use crate::support::{Encoder, Reply, USER_CONTROL, null, number, reply, status, string};
use crate::{created, stream_begin};

#[test]
fn ffmpeg_plays() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "createStream", 2.0, &[null()]);
    encoder.command(0, "getStreamLength", 3.0, &[null(), string("cam")]);
    let length = reply(0, "_result", 3.0, &[null(), number(0.0)]);
    assert_eq!(encoder.replies(), [created(2.0), length]);
    encoder.command(1, "play", 4.0, &[null(), string("cam"), number(-2000.0)]);
    encoder.message(2, USER_CONTROL, 1, &[0, 3, 0, 0, 0, 1, 0, 0, 0x0b, 0xb8]);
    assert_eq!(encoder.asked(), ("cam".into(), None));
    let status = |code| reply(1, "onStatus", 0.0, &[null(), status("status", code, "Playing")]);
    let want = [stream_begin(), status("NetStream.Play.Reset"), status("NetStream.Play.Start")];
    assert_eq!(encoder.accept_play(), want);
}

#[test]
fn rtmpdump_subscribes_before_it_plays() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "FCSubscribe", 3.0, &[null(), string("cam")]);
    let started = status("status", "NetStream.Play.Start", "Subscribed");
    assert_eq!(encoder.replies(), [reply(0, "onFCSubscribe", 0.0, &[null(), started])]);
}

#[test]
fn an_unknown_stream_is_refused_on_the_message_stream_of_the_play() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "play", 4.0, &[null(), string("cam")]);
    encoder.asked();
    let refused = status("error", "NetStream.Play.StreamNotFound", "No such stream");
    assert_eq!(encoder.refuse_play(), [reply(1, "onStatus", 0.0, &[null(), refused])]);
    assert_eq!(encoder.events(), [ServerEvent::Close]);
}

#[test]
fn the_end_of_a_stream_is_a_status_and_an_end_of_stream() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "play", 4.0, &[null(), string("cam")]);
    encoder.asked();
    encoder.accept_play();
    let ended = status("status", "NetStream.Play.UnpublishNotify", "The stream has ended");
    let eof = Reply { kind: USER_CONTROL, stream: 0, payload: vec![0, 1, 0, 0, 0, 1] };
    assert_eq!(encoder.end_play(), [reply(1, "onStatus", 0.0, &[null(), ended]), eof]);
    assert_eq!(encoder.events(), [ServerEvent::Close]);
}

#[test]
fn a_second_play_is_refused_because_one_is_running() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "play", 4.0, &[null(), string("cam")]);
    encoder.asked();
    encoder.accept_play();
    for (asked, answered) in [(1, 1), (0, 1), (2, 2)] {
        encoder.command(asked, "play", 5.0, &[null(), string("two")]);
        let refused = status("error", "NetStream.Play.Failed", "One play per connection");
        assert_eq!(encoder.replies(), [reply(answered, "onStatus", 0.0, &[null(), refused])]);
    }
    assert_eq!(encoder.events(), []);
}

#[test]
fn a_play_that_is_repeated_goes_on() {
    let mut encoder = Encoder::connected();
    for transaction in [4.0, 5.0] {
        encoder.command(1, "play", transaction, &[null(), string("cam"), number(-2000.0)]);
    }
    assert_eq!(encoder.asked().0, "cam");
    assert_eq!(encoder.replies(), []);
    encoder.accept_play();
    encoder.command(1, "play", 6.0, &[null(), string("cam")]);
    let started = status("status", "NetStream.Play.Start", "Playing");
    assert_eq!(encoder.replies(), [reply(1, "onStatus", 0.0, &[null(), started])]);
    assert_eq!(encoder.events(), []);
}

#[test]
fn a_player_is_pinged_with_our_time_while_it_plays() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "play", 4.0, &[null(), string("cam")]);
    encoder.asked();
    assert_eq!(encoder.ping(), []);
    encoder.accept_play();
    encoder.pass(Duration::from_millis(0x1_0203));
    let payload = vec![0, 6, 0, 1, 2, 3];
    assert_eq!(encoder.ping(), [Reply { kind: USER_CONTROL, stream: 0, payload }]);
    encoder.message(2, USER_CONTROL, 0, &[0, 7, 0, 1, 2, 3]);
    assert_eq!((encoder.replies(), encoder.events()), (vec![], vec![]));
    encoder.end_play();
    assert_eq!(encoder.ping(), []);
}
