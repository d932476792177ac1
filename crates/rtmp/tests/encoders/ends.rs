//! Every way in which encoders say that they are done, and what looks like one and is none.

use headgate_rtmp::ServerEvent;

use crate::support::{
    COMMAND, COMMAND_AMF3, Encoder, boolean, command, null, number, reply, status, string,
    undefined,
};

const ENDED: [ServerEvent; 2] = [ServerEvent::PublishEnded, ServerEvent::Close];

fn cut_string() -> Vec<u8> {
    vec![2, 0, 9, b'c', b'a']
}

#[test]
fn a_publish_without_a_name_ends_the_publish_and_is_answered() {
    let arguments: [&[Vec<u8>]; 10] = [
        &[],
        &[null()],
        &[null(), string("")],
        &[null(), null()],
        &[null(), boolean(false)],
        &[null(), undefined()],
        &[null(), string(""), string("live")],
        // AMF3: false, null, and an empty string.
        &[null(), vec![17, 2]],
        &[null(), vec![17, 1]],
        &[null(), vec![17, 6, 1]],
    ];
    for arguments in arguments {
        for (kind, prefix) in [(COMMAND, &[][..]), (COMMAND_AMF3, &[0]), (COMMAND_AMF3, &[])] {
            let mut encoder = Encoder::publishing();
            let payload = [prefix, &command("publish", 9.0, arguments)].concat();
            encoder.message(3, kind, 1, &payload);
            let events = encoder.events();
            assert!(events.ends_with(&ENDED), "{arguments:x?} {events:?}");
            let ended = status("status", "NetStream.Unpublish.Success", "The publish has ended");
            let want = reply(1, "onStatus", 0.0, &[null(), ended]);
            assert_eq!(encoder.replies().last(), Some(&want));
        }
    }
}

#[test]
fn a_closing_command_ends_the_publish_whatever_its_arguments() {
    for name in ["FCUnpublish", "unpublish", "deleteStream", "closeStream", "close"] {
        for stream in [0, 1, 7] {
            for arguments in [
                &[][..],
                &[null()],
                &[null(), string("another?k=v")],
                &[null(), number(1.0)],
                &[null(), number(0.0)],
                &[null(), number(f64::NAN)],
                &[null(), number(77.0)],
                &[null(), undefined()],
                &[vec![17, 1], vec![17, 4, 1]],
                &[null(), cut_string()],
            ] {
                let mut encoder = Encoder::publishing();
                encoder.command(stream, name, 0.0, arguments);
                let events = encoder.events();
                assert!(events.ends_with(&ENDED), "{name} {arguments:x?} {events:?}");
            }
        }
    }
}

#[test]
fn what_concerns_another_stream_of_the_peer_ends_nothing() {
    let mut encoder = Encoder::connected();
    for id in [1.0, 2.0] {
        encoder.command(0, "createStream", 2.0, &[null()]);
        assert_eq!(encoder.replies(), [reply(0, "_result", 2.0, &[null(), number(id)])]);
    }
    let mut encoder = encoder.and_publishing();
    encoder.command(0, "deleteStream", 0.0, &[null(), number(2.0)]);
    encoder.command(2, "closeStream", 0.0, &[null()]);
    encoder.command(2, "publish", 0.0, &[null(), boolean(false)]);
    assert_eq!(encoder.events(), []);
    // Never given out: it can only mean the one stream.
    encoder.command(0, "deleteStream", 0.0, &[null(), number(3.0)]);
    assert_eq!(encoder.events(), ENDED);
}

#[test]
fn a_publish_on_the_second_stream_ends_with_that_one() {
    let mut encoder = Encoder::connected();
    encoder.command(0, "createStream", 2.0, &[null()]);
    encoder.command(0, "createStream", 3.0, &[null()]);
    encoder.command(2, "publish", 5.0, &[null(), string("cam"), string("live")]);
    encoder.allow();
    encoder.events();
    encoder.command(0, "deleteStream", 0.0, &[null(), number(1.0)]);
    assert_eq!(encoder.events(), []);
    encoder.command(0, "deleteStream", 0.0, &[null(), number(2.0)]);
    assert_eq!(encoder.events(), ENDED);
}

#[test]
fn what_comes_with_every_start_ends_nothing_in_mid_publish() {
    for (name, arguments) in [
        // Pipelined by encoders that do not wait for answers.
        ("releaseStream", vec![null(), string("cam")]),
        ("FCPublish", vec![null(), string("cam")]),
        ("createStream", vec![null()]),
        ("publish", vec![null(), string("cam"), string("live")]),
        ("publish", vec![null(), string("two")]),
        // A name may have been there.
        ("publish", vec![null(), cut_string()]),
        ("publish", vec![null(), number(7.0)]),
        ("publish", vec![null(), boolean(true)]),
        ("pause", vec![null(), boolean(true), number(0.0)]),
    ] {
        let mut encoder = Encoder::publishing();
        encoder.command(1, name, 0.0, &arguments);
        let events = encoder.events();
        let is_harmless = events.iter().all(|event| matches!(event, ServerEvent::Dropped(_)));
        assert!(is_harmless, "{name} {arguments:x?} {events:?}");
    }
    // StreamEOF is an event of servers; an end of sequence is also sent in mid-stream.
    let mut encoder = Encoder::publishing();
    encoder.message(2, 4, 0, &[0, 1, 0, 0, 0, 1]);
    encoder.message(6, 9, 1, &[0x17, 2]);
    assert_eq!(encoder.media().len(), 1);
}

#[test]
fn without_a_publish_a_closing_command_ends_nothing() {
    for name in ["FCUnpublish", "unpublish", "deleteStream", "closeStream", "close"] {
        let mut encoder = Encoder::connected();
        encoder.command(0, name, 2.0, &[null(), number(1.0)]);
        assert_eq!((encoder.replies().len(), encoder.events()), (1, vec![]), "{name}");
        encoder.and_publishing();
    }
}

#[test]
fn a_player_ends_its_play_in_the_same_ways() {
    for name in ["deleteStream", "closeStream", "close"] {
        let mut player = Encoder::connected();
        player.command(1, "play", 4.0, &[null(), string("cam")]);
        player.accept_play();
        player.events();
        player.command(1, name, 0.0, &[null()]);
        assert_eq!(player.events(), [ServerEvent::PlayEnded, ServerEvent::Close], "{name}");
    }
}
