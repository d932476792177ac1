//! How many script data messages and pings a second of one encoder count, and that the excess ends nothing.

use std::time::Duration;

use headgate_rtmp::{Dropped, ServerEvent};

use crate::support::{
    ABORT, ACKNOWLEDGEMENT, AGGREGATE, DATA, DATA_AMF3, Encoder, SET_CHUNK_SIZE,
    SET_PEER_BANDWIDTH, USER_CONTROL, WINDOW_ACK_SIZE, string,
};

/// Sends `count` messages of these kinds in turn; returns how many were passed on, and how many were dropped.
fn sent(encoder: &mut Encoder, messages: &[(u8, &[u8])], count: usize) -> (usize, usize) {
    let (mut media, mut dropped) = (0, 0);
    for (kind, payload) in messages.iter().cycle().take(count) {
        encoder.message(3, *kind, 1, payload);
        for event in encoder.events() {
            match event {
                ServerEvent::Media(_) => media += 1,
                ServerEvent::Dropped(Dropped::Excess) => dropped += 1,
                event => panic!("{event:?}"),
            }
        }
    }
    (media, dropped)
}

#[test]
fn script_data_beyond_250_messages_a_second_over_ten_seconds_is_dropped() {
    let cue = string("onCuePoint");
    let cue: [(u8, &[u8]); 2] = [(DATA, &cue), (DATA_AMF3, &cue)];
    let mut encoder = Encoder::publishing();
    assert_eq!(sent(&mut encoder, &cue, 4_000), (2_500, 1_500));
    encoder.pass(Duration::from_millis(999));
    assert_eq!(sent(&mut encoder, &cue, 100), (0, 100));
    encoder.pass(Duration::from_millis(1));
    assert_eq!(sent(&mut encoder, &cue, 300), (250, 50));
    encoder.message(6, 9, 1, &[0x27, 1]);
    assert_eq!(encoder.media().len(), 1, "video is not affected");
}

#[test]
fn a_caption_and_a_timecode_with_every_frame_at_120_fps_pass_for_an_hour() {
    let (caption, timecode) = (string("onTextData"), string("onFI"));
    let mut encoder = Encoder::publishing();
    for _ in 0..3_600 {
        encoder.pass(Duration::from_secs(1));
        assert_eq!(sent(&mut encoder, &[(DATA, &caption), (DATA, &timecode)], 240), (240, 0));
    }
}

#[test]
fn script_data_within_an_aggregate_counts_as_well() {
    // Two messages of four bytes: type, size, time, stream, body, back pointer.
    let part = [DATA, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, b'x', 0, 0, 0, 15];
    let two = part.repeat(2);
    assert_eq!(sent(&mut Encoder::publishing(), &[(AGGREGATE, &two)], 2_000), (2_500, 1_500));
}

#[test]
fn only_pings_are_limited_among_control_messages() {
    let controls: [(u8, &[u8]); 6] = [
        (ABORT, &[0, 0, 0, 9]),
        (ACKNOWLEDGEMENT, &[0, 0, 0, 9]),
        (USER_CONTROL, &[0, 3, 0, 0, 0, 9]),
        (WINDOW_ACK_SIZE, &[0, 1, 0, 0]),
        (SET_PEER_BANDWIDTH, &[0, 1, 0, 0, 2]),
        (SET_CHUNK_SIZE, &[0, 0, 0, 128]),
    ];
    let mut encoder = Encoder::publishing();
    assert_eq!(sent(&mut encoder, &controls, 6_000), (0, 0));
    encoder.replies();
    let ping: (u8, &[u8]) = (USER_CONTROL, &[0, 6, 0, 0, 0, 9]);
    assert_eq!(sent(&mut encoder, &[ping], 600), (0, 100));
    let pongs = encoder.replies().into_iter().filter(|reply| reply.kind == USER_CONTROL);
    assert_eq!(pongs.count(), 500);
}

#[test]
fn media_has_no_limit_of_messages_per_second() {
    let mut encoder = Encoder::publishing();
    for _ in 0..5000 {
        encoder.message(6, 9, 1, &[0x27]);
    }
    assert_eq!(encoder.media().len(), 5000);
}
