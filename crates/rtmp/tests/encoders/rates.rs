//! How many commands, script data messages and control messages a second one encoder may send.

use std::time::Duration;

use headgate_rtmp::Error;

use crate::support::{
    ABORT, ACKNOWLEDGEMENT, AGGREGATE, COMMAND_AMF3, DATA, DATA_AMF3, Encoder, SET_PEER_BANDWIDTH,
    USER_CONTROL, WINDOW_ACK_SIZE, command, null, string,
};

/// Sends messages of these kinds in turn until one is rejected; returns how many were accepted, and the error.
fn taken(encoder: &mut Encoder, messages: &[(u8, &[u8])]) -> (usize, Error) {
    for (taken, (kind, payload)) in messages.iter().cycle().take(100_000).enumerate() {
        if let Err(error) = encoder.try_message(3, *kind, 1, payload) {
            return (taken, error);
        }
        encoder.replies();
        encoder.events();
    }
    panic!("no limit at all");
}

#[test]
fn script_data_is_limited_to_60_messages_a_second_over_ten_seconds() {
    let cue = string("onCuePoint");
    let cue: [(u8, &[u8]); 2] = [(DATA, &cue), (DATA_AMF3, &cue)];
    let mut encoder = Encoder::publishing();
    assert_eq!(taken(&mut encoder, &cue), (600, Error::ScriptRateLimit));
    encoder.pass(Duration::from_millis(999));
    assert_eq!(taken(&mut encoder, &cue), (0, Error::ScriptRateLimit));
    encoder.pass(Duration::from_millis(1));
    assert_eq!(taken(&mut encoder, &cue), (60, Error::ScriptRateLimit));
}

#[test]
fn script_data_within_an_aggregate_counts_as_well() {
    // Two messages of one byte: type, size, time, stream, body, back pointer.
    let part = [DATA, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 12];
    let (taken, error) = taken(&mut Encoder::publishing(), &[(AGGREGATE, &part.repeat(2))]);
    assert_eq!((taken, error), (300, Error::ScriptRateLimit));
}

#[test]
fn control_messages_are_limited_to_50_a_second_over_ten_seconds() {
    let controls: [(u8, &[u8]); 5] = [
        (ABORT, &[0, 0, 0, 9]),
        (ACKNOWLEDGEMENT, &[0, 0, 0, 9]),
        (USER_CONTROL, &[0, 6, 0, 0, 0, 9]),
        (WINDOW_ACK_SIZE, &[0, 1, 0, 0]),
        (SET_PEER_BANDWIDTH, &[0, 1, 0, 0, 2]),
    ];
    let mut encoder = Encoder::publishing();
    assert_eq!(taken(&mut encoder, &controls), (500, Error::ControlRateLimit));
    encoder.pass(Duration::from_secs(1));
    assert_eq!(taken(&mut encoder, &controls), (50, Error::ControlRateLimit));
}

#[test]
fn chunk_sizes_are_control_messages() {
    // A size below 128 would be rejected for another reason.
    let size: (u8, &[u8]) = (1, &[0, 0, 0, 128]);
    assert_eq!(taken(&mut Encoder::publishing(), &[size]), (500, Error::ControlRateLimit));
}

#[test]
fn commands_are_limited_to_20_a_second_over_ten_seconds() {
    let amf0 = command("getStreamLength", 0.0, &[null()]);
    let amf3 = [&[0][..], &amf0].concat();
    let commands: [(u8, &[u8]); 2] = [(20, &amf0), (COMMAND_AMF3, &amf3)];
    let mut encoder = Encoder::new();
    assert_eq!(taken(&mut encoder, &commands), (200, Error::CommandRateLimit));
    encoder.pass(Duration::from_secs(1));
    assert_eq!(taken(&mut encoder, &commands), (20, Error::CommandRateLimit));
}

#[test]
fn media_has_no_limit_of_messages_per_second() {
    let mut encoder = Encoder::publishing();
    for _ in 0..5000 {
        encoder.message(6, 9, 1, &[0x27]);
    }
    assert_eq!(encoder.media().len(), 5000);
}
