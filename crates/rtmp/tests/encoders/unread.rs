//! Peers that provoke answers from the server and do not read them.

use headgate_rtmp::{Error, Limits};

use crate::support::{ACKNOWLEDGEMENT, Encoder, USER_CONTROL, WINDOW_ACK_SIZE, null, string};

/// Most bytes queued for a peer.
const LIMIT: usize = 64 << 10;
/// Length of a ping response with its header.
const PONG_BYTES: usize = 12 + 6;
const PING: [u8; 6] = [0, 6, 1, 2, 3, 4];

/// A publishing encoder without a limit on control messages.
fn unbounded() -> Encoder {
    let limits = Limits { controls_per_second: u32::MAX, ..Limits::default() };
    let mut encoder = Encoder::with_limits(limits).and_connected().and_publishing();
    encoder.replies();
    encoder
}

/// Sends pings until the server rejects one; returns how many it answered.
fn pings_answered(encoder: &mut Encoder) -> (usize, Error) {
    for answered in 0..100_000 {
        if let Err(error) = encoder.try_message(2, USER_CONTROL, 0, &PING) {
            return (answered, error);
        }
    }
    panic!("no limit at all");
}

#[test]
fn answers_to_pings_wait_up_to_64_kib() {
    let mut encoder = unbounded();
    assert_eq!(pings_answered(&mut encoder), (LIMIT / PONG_BYTES, Error::AnswerBytesLimit));
    assert!(encoder.unread_bytes() <= LIMIT + PONG_BYTES);
}

#[test]
fn unread_answers_may_reach_the_limit() {
    let limits = Limits { answer_bytes: 10 * PONG_BYTES, ..Limits::default() };
    let mut encoder = Encoder::with_limits(limits);
    assert_eq!(pings_answered(&mut encoder), (10, Error::AnswerBytesLimit));
}

#[test]
fn pings_in_one_piece_do_not_bypass_the_limit() {
    let mut encoder = unbounded();
    let ping = [&[2, 0, 0, 0, 0, 0, 6, USER_CONTROL, 0, 0, 0, 0][..], &PING].concat();
    let answered = encoder.try_chunks(&ping.repeat(50_000));
    assert_eq!(answered, Err(Error::AnswerBytesLimit));
    assert!(encoder.unread_bytes() <= LIMIT + PONG_BYTES);
}

#[test]
fn a_peer_that_reads_may_ping_indefinitely() {
    let mut encoder = unbounded();
    for _ in 0..50 {
        for _ in 0..1000 {
            encoder.message(2, USER_CONTROL, 0, &PING);
        }
        assert_eq!(encoder.replies().len(), 1000);
    }
}

#[test]
fn acknowledgements_of_every_byte_count_too() {
    let mut encoder = unbounded();
    encoder.message(2, WINDOW_ACK_SIZE, 0, &[0, 0, 0, 1]);
    let taken = (0..100_000).find(|_| encoder.try_message(2, ACKNOWLEDGEMENT, 0, &[]).is_err());
    assert!(taken.is_some_and(|taken| taken <= LIMIT / 16), "{taken:?}");
}

#[test]
fn commands_are_answered_within_the_limit_up_to_their_own() {
    let mut encoder = Encoder::connected();
    let long = "x".repeat(200);
    let end = (0..1000)
        .find_map(|_| encoder.try_command(0, "createStream", 2.0, &[null(), string(&long)]).err());
    assert_eq!(end, Some(Error::CommandRateLimit));
    assert!(encoder.unread_bytes() <= LIMIT);
}
