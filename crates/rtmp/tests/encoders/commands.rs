//! Commands out of the usual order: unknown, repeated, early, too many.

use std::time::Duration;

use headgate_rtmp::{Dropped, Error, ServerEvent};

use crate::support::{
    Encoder, Reply, USER_CONTROL, null, number, reply, status, string, undefined,
};
use crate::{announces_fc_publish, created, fine, publishes_on_stream_1, stream_begin};

/// 20 a second over ten seconds.
const COMMANDS: usize = 200;

/// Sends 1,000 commands; returns how many of them the server answered.
fn commands_answered(encoder: &mut Encoder) -> usize {
    for _ in 0..1_000 {
        encoder.command(0, "_checkbw", 2.0, &[null()]);
    }
    encoder.replies().len()
}

#[test]
fn an_unknown_command_gets_a_success_reply() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "theirOwnThing", 9.0, &[null(), string("x"), number(1.0)]);
    assert_eq!(encoder.replies(), [reply(0, "_result", 9.0, &[null(), null()])]);
}

#[test]
fn an_unknown_command_with_transaction_0_is_ignored() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "theirOwnThing", 0.0, &[null()]);
    assert_eq!(encoder.replies(), []);
}

#[test]
fn commands_around_a_publish_are_answered_before_and_after_it_is_allowed() {
    let mut encoder = Encoder::connected();
    for is_allowed in [false, true] {
        for (name, value) in
            [("releaseStream", undefined()), ("_checkbw", null()), ("getStreamLength", number(0.0))]
        {
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
fn an_fc_publish_that_follows_the_publish_is_answered_immediately() {
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
fn commands_before_connect_are_ignored() {
    let mut encoder = Encoder::new();
    encoder.command(0, "createStream", 2.0, &[null()]);
    encoder.command(1, "publish", 3.0, &[null(), string("cam"), string("live")]);
    assert_eq!((encoder.replies(), encoder.events()), (vec![], vec![]));
}

#[test]
fn another_app_is_refused_and_the_connection_closed() {
    let mut encoder = Encoder::new();
    encoder.connect(&[("app", string("vod"))]);
    let refused = status(
        "error",
        "NetConnection.Connect.InvalidApp",
        "There is no such app: the server address is rtmp://host/live",
    );
    let want = reply(0, "_error", 1.0, &[null(), refused]);
    assert_eq!(encoder.replies().last(), Some(&want));
    assert_eq!(encoder.events(), [ServerEvent::AppRefused, ServerEvent::Close]);
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
fn a_second_publish_is_a_bad_name_and_does_not_affect_the_first() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.allow();
    encoder.events();
    for (asked, answered) in [(1, 1), (0, 1), (2, 2)] {
        encoder.command(asked, "publish", 6.0, &[null(), string("two"), string("live")]);
        let text = "One publish per connection";
        let refused = status("error", "NetStream.Publish.BadName", text);
        assert_eq!(encoder.replies(), [reply(answered, "onStatus", 0.0, &[null(), refused])]);
    }
    assert_eq!(encoder.events(), []);
}

#[test]
fn a_publish_that_is_repeated_is_answered_again() {
    let mut encoder = Encoder::connected();
    for transaction in [5.0, 6.0] {
        encoder.command(1, "publish", transaction, &[null(), string("cam"), string("live")]);
    }
    assert_eq!(encoder.asked().0, "cam");
    let again = publishes_on_stream_1();
    assert_eq!(encoder.allow(), [stream_begin(), again.clone(), again.clone()]);
    encoder.command(1, "publish", 7.0, &[null(), string("cam"), string("live")]);
    assert_eq!((encoder.replies(), encoder.events()), (vec![again], vec![]));
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
fn every_command_that_ends_a_publish_ends_it() {
    for name in ["FCUnpublish", "deleteStream", "closeStream"] {
        let mut encoder = Encoder::publishing();
        encoder.command(1, name, 0.0, &[null(), string("cam")]);
        assert_eq!(encoder.events(), [ServerEvent::PublishEnded, ServerEvent::Close], "{name}");
        assert_eq!(encoder.replies(), [], "{name}");
    }
}

#[test]
fn an_unpublish_before_the_decision_takes_effect_after_it() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.asked();
    encoder.command(1, "closeStream", 0.0, &[null()]);
    assert_eq!(encoder.events(), []);
    assert_eq!(encoder.allow(), [stream_begin(), publishes_on_stream_1()]);
    assert_eq!(encoder.events(), [ServerEvent::PublishEnded, ServerEvent::Close]);
}

#[test]
fn media_before_the_decision_waits_and_is_not_lost() {
    let mut encoder = Encoder::connected();
    encoder.set_chunk_size(60_000);
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.asked();
    // A relay does not wait: its headers, and an IDR longer than the limit before the decision.
    let idr = vec![0x17; 200_000];
    let [.., l0, l1, l2] = idr.len().to_be_bytes();
    encoder.message(6, 9, 1, &[0x17, 0, 0, 0, 0, 1]);
    encoder.chunks(&[&[6, 0, 0, 40, l0, l1, l2, 9, 1, 0, 0, 0], &idr[..40_000]].concat());
    assert_eq!((encoder.events(), encoder.replies()), (vec![], vec![]));
    encoder.allow();
    encoder.chunks(&[&idr[40_000..60_000], &[0xc6], &idr[60_000..120_000]].concat());
    encoder.chunks(&[&[0xc6], &idr[120_000..180_000], &[0xc6], &idr[180_000..]].concat());
    let media = encoder.media();
    let lengths: Vec<_> = media.iter().map(|message| message.payload.len()).collect();
    assert_eq!((lengths, media[1].timestamp), (vec![6, 200_000], 40));
}

#[test]
fn a_denied_relay_gets_the_denial_whatever_it_still_sends() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.asked();
    // The first chunk of a video frame.
    encoder.chunks(&[&[6, 0, 0, 40, 3, 0, 0, 9, 1, 0, 0, 0][..], &[0; 128]].concat());
    let denied = status("error", "NetStream.Publish.Denied", "no");
    assert_eq!(encoder.deny("no"), [reply(1, "onStatus", 0.0, &[null(), denied])]);
    assert_eq!(encoder.events(), [ServerEvent::Close]);
    assert_eq!(encoder.try_chunks(&[0xff; 200_000]), Ok(()));
}

#[test]
fn media_is_reported_only_for_an_allowed_publish() {
    let media = |encoder: &mut Encoder| {
        for (kind, body) in [(8, &[0x17, 1][..]), (9, &[0x17, 1]), (18, &[2, 0, 1, b'x'])] {
            encoder.message(6, kind, 1, body);
        }
        encoder.events()
    };
    let mut encoder = Encoder::new();
    assert_eq!(media(&mut encoder), [], "before connect");
    let mut encoder = Encoder::connected();
    assert_eq!(media(&mut encoder), [], "before publish");
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.asked();
    assert_eq!(media(&mut encoder), [], "before the decision");
    encoder.allow();
    assert_eq!(encoder.media().len(), 3);
    assert_eq!(media(&mut encoder).len(), 3);
    let mut player = Encoder::connected();
    player.command(1, "play", 4.0, &[null(), string("cam")]);
    player.asked();
    assert_eq!(media(&mut player), [], "of a player that waits");
    player.accept_play();
    assert_eq!(media(&mut player), [], "of a player");
}

#[test]
fn two_publishes_in_one_write_are_one_request() {
    let mut encoder = Encoder::connected();
    for name in ["cam", "two"] {
        encoder.command(1, "publish", 5.0, &[null(), string("cam"), string(name)]);
    }
    assert_eq!(encoder.asked().0, "cam");
    let text = "One publish per connection";
    let refused = status("error", "NetStream.Publish.BadName", text);
    assert!(encoder.allow().contains(&reply(1, "onStatus", 0.0, &[null(), refused])));
    assert_eq!(encoder.events(), []);
}

#[test]
fn at_most_one_message_of_input_is_kept_while_a_publish_is_undecided() {
    let mut encoder = Encoder::connected();
    encoder.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
    assert_eq!(encoder.try_chunks(&[0; 65_536]), Ok(()));
    assert_eq!(encoder.try_chunks(&[0]), Err(Error::PartialLimit));
}

#[test]
fn a_ping_is_answered_with_its_timestamp() {
    let mut encoder = Encoder::connected();
    encoder.message(2, USER_CONTROL, 0, &[0, 6, 1, 2, 3, 4]);
    let payload = vec![0, 7, 1, 2, 3, 4];
    assert_eq!(encoder.replies(), [Reply { kind: USER_CONTROL, stream: 0, payload }]);
}

#[test]
fn at_most_two_hundred_commands_are_answered_at_once() {
    let mut encoder = Encoder::connected();
    assert_eq!(commands_answered(&mut encoder), COMMANDS - 1);
}

#[test]
fn twenty_commands_a_second_are_answered_indefinitely() {
    let mut encoder = Encoder::connected();
    for _ in 0..100 {
        encoder.pass(Duration::from_secs(1));
        for _ in 0..20 {
            encoder.command(0, "_checkbw", 2.0, &[null()]);
        }
        assert_eq!(encoder.replies().len(), 20);
    }
}

#[test]
fn an_hour_of_silence_accumulates_no_allowance_for_commands() {
    let mut encoder = Encoder::connected();
    encoder.pass(Duration::from_secs(3600));
    assert_eq!(commands_answered(&mut encoder), COMMANDS);
}

#[test]
fn commands_beyond_the_rate_are_named_and_those_that_end_a_publish_are_heard() {
    let mut encoder = Encoder::publishing();
    commands_answered(&mut encoder);
    let events = encoder.events();
    assert!(events.len() > 700, "{}", events.len());
    assert!(events.iter().all(|event| *event == ServerEvent::Dropped(Dropped::Excess)));
    encoder.command(0, "FCUnpublish", 0.0, &[null(), string("cam")]);
    assert_eq!(encoder.events(), [ServerEvent::PublishEnded, ServerEvent::Close]);
}
