//! Commands out of the usual order: unknown, repeated, early, too many; and those of players.

use std::time::Duration;

use headgate_rtmp::{Error, ServerEvent};

use crate::support::{
    AGGREGATE, DATA, Encoder, Reply, USER_CONTROL, boolean, null, number, object, reply, status,
    string, undefined,
};
use crate::{announces_fc_publish, created, fine, publishes_on_stream_1, stream_begin};

/// 20 a second over ten seconds.
const COMMANDS: usize = 200;

/// Sends what needs no answer until the server has had enough; returns how many it took.
fn commands_taken(encoder: &mut Encoder) -> (usize, Error) {
    for taken in 0..100_000 {
        if let Err(error) = encoder.try_command(0, "onBWDone", 0.0, &[null()]) {
            return (taken, error);
        }
    }
    panic!("no limit at all");
}

#[test]
fn an_unknown_command_is_told_that_it_is_fine() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "theirOwnThing", 9.0, &[null(), string("x"), number(1.0)]);
    assert_eq!(encoder.replies(), [reply(0, "_result", 9.0, &[null(), null()])]);
}

#[test]
fn an_unknown_command_with_transaction_0_is_passed_over() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "theirOwnThing", 0.0, &[null()]);
    assert_eq!(encoder.replies(), []);
}

#[test]
fn commands_around_a_publish_are_answered_before_and_after_it_is_allowed() {
    let mut encoder = Encoder::connected();
    for is_allowed in [false, true] {
        for (name, value) in [
            ("releaseStream", undefined()),
            ("_checkbw", null()),
            ("getStreamLength", number(0.0)),
            ("createStream", number(1.0)),
        ] {
            encoder.command(0, name, 7.0, &[null(), string("cam")]);
            let want = reply(0, "_result", 7.0, &[null(), value]);
            assert_eq!(encoder.replies(), [want], "{name}, allowed: {is_allowed}");
            encoder.command(0, name, 0.0, &[null(), string("cam")]);
            assert_eq!(encoder.replies(), [], "{name} without a transaction");
        }
        if !is_allowed {
            encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
            assert_eq!(encoder.allow(), [stream_begin(), publishes_on_stream_1()]);
        }
    }
}

#[test]
fn an_fc_publish_that_comes_after_the_publish_is_announced_at_once() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.allow();
    encoder.command(0, "FCPublish", 6.0, &[null(), string("cam")]);
    assert_eq!(encoder.replies(), [fine(6.0), announces_fc_publish()]);
    encoder.command(0, "FCPublish", 0.0, &[null(), string("cam")]);
    assert_eq!(encoder.replies(), [announces_fc_publish()], "transaction 0 asks for no result");
}

#[test]
fn an_answer_to_us_is_not_answered() {
    let mut encoder = Encoder::connected();
    for name in ["_result", "_error", "onStatus"] {
        encoder.command(0, name, 3.0, &[null()]);
    }
    assert_eq!(encoder.replies(), []);
}

#[test]
fn commands_before_connect_are_passed_over() {
    let mut encoder = Encoder::new();
    encoder.command(0, "createStream", 2.0, &[null()]);
    encoder.command(1, "publish", 3.0, &[null(), string("cam"), string("live")]);
    assert_eq!((encoder.replies(), encoder.events()), (vec![], vec![]));
}

#[test]
fn another_app_is_refused_and_the_connection_closed() {
    let mut encoder = Encoder::new();
    encoder.connect(&[("app", string("vod"))]);
    let refused = status("error", "NetConnection.Connect.InvalidApp", "There is no such app");
    let want = reply(0, "_error", 1.0, &[null(), refused]);
    assert_eq!(encoder.replies().last(), Some(&want));
    assert_eq!(encoder.events(), [ServerEvent::Close]);
}

#[test]
fn an_app_may_end_in_a_slash() {
    let mut encoder = Encoder::new();
    encoder.connect(&[("app", string("live/"))]);
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    assert_eq!(encoder.asked(), ("cam".into(), None));
}

#[test]
fn an_app_cut_inside_the_arguments_means_the_same_stream() {
    let mut encoder = Encoder::new();
    encoder.connect(&[("app", string("live/cam?u=a"))]);
    encoder.command(1, "publish", 5.0, &[null(), string("b"), string("live")]);
    assert_eq!(encoder.asked(), ("cam".into(), Some("u=a/b".into())));
}

#[test]
fn a_second_publish_is_a_bad_name_and_leaves_the_first_alone() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.allow();
    encoder.events();
    encoder.command(1, "publish", 6.0, &[null(), string("two"), string("live")]);
    let text = "One publish per connection";
    let refused = status("error", "NetStream.Publish.BadName", text);
    assert_eq!(encoder.replies(), [reply(1, "onStatus", 0.0, &[null(), refused])]);
    assert_eq!(encoder.events(), []);
}

#[test]
fn a_stream_deleted_before_any_publish_ends_nothing() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "deleteStream", 2.0, &[null(), number(1.0)]);
    encoder.command(0, "createStream", 3.0, &[null()]);
    assert_eq!(encoder.replies().last(), Some(&created(3.0)));
    assert_eq!(encoder.events(), []);
}

#[test]
fn a_ping_is_answered_with_its_own_time() {
    let mut encoder = Encoder::connected();
    encoder.message(2, USER_CONTROL, 0, &[0, 6, 1, 2, 3, 4]);
    let payload = vec![0, 7, 1, 2, 3, 4];
    assert_eq!(encoder.replies(), [Reply { kind: USER_CONTROL, stream: 0, payload }]);
}

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
    let data = |values: &[Vec<u8>]| Reply { kind: DATA, stream: 1, payload: values.concat() };
    let data_start = object(&[("code", string("NetStream.Data.Start"))]);
    let want = [
        stream_begin(),
        status("NetStream.Play.Reset"),
        status("NetStream.Play.Start"),
        data(&[string("|RtmpSampleAccess"), boolean(true), boolean(true)]),
        data(&[string("onStatus"), data_start]),
    ];
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
fn two_hundred_commands_at_once_are_taken_and_no_more() {
    let mut encoder = Encoder::connected();
    assert_eq!(commands_taken(&mut encoder), (COMMANDS - 1, Error::CommandRateLimit));
}

#[test]
fn twenty_commands_a_second_are_taken_for_ever() {
    let mut encoder = Encoder::connected();
    for _ in 0..100 {
        encoder.pass(Duration::from_secs(1));
        for _ in 0..20 {
            encoder.command(0, "onBWDone", 0.0, &[null()]);
        }
    }
}

#[test]
fn an_hour_of_silence_saves_up_no_commands() {
    let mut encoder = Encoder::connected();
    encoder.pass(Duration::from_secs(3600));
    assert_eq!(commands_taken(&mut encoder), (COMMANDS, Error::CommandRateLimit));
}

#[test]
fn an_aggregate_of_4096_messages_is_taken_apart_and_one_of_more_refused() {
    let aggregate = |count: usize| {
        let mut encoder = Encoder::connected();
        encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
        encoder.allow();
        encoder.events();
        // An empty video message and its back pointer (RTMP 7.1.6).
        let empty = [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11];
        let taken = encoder.try_message(4, AGGREGATE, 1, &empty.repeat(count));
        taken.map(|()| encoder.events().len())
    };
    assert_eq!(aggregate(4096), Ok(4096));
    assert_eq!(aggregate(4097), Err(Error::MessageLimit));
}

#[test]
fn metadata_within_an_aggregate_is_at_most_64_kib_too() {
    let aggregate = |length: usize| {
        let mut encoder = Encoder::connected();
        encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
        encoder.allow();
        let [.., l0, l1, l2] = length.to_be_bytes();
        let metadata = [&[18, l0, l1, l2, 0, 0, 0, 0, 0, 0, 0][..], &vec![5; length]].concat();
        encoder.try_message(4, AGGREGATE, 1, &metadata)
    };
    assert_eq!(aggregate(65_536), Ok(()));
    assert_eq!(aggregate(65_537), Err(Error::MessageLimit));
}
