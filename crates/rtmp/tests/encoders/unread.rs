//! Peers that provoke answers from the server and do not read them.

use std::time::Duration;

use headgate_rtmp::{Error, Limits};

use crate::support::{ACKNOWLEDGEMENT, Encoder, USER_CONTROL, WINDOW_ACK_SIZE, null};

/// Most bytes queued for a peer.
const LIMIT: usize = 64 << 10;
/// Length of a ping response with its header.
const PONG_BYTES: usize = 12 + 6;
const PING: [u8; 6] = [0, 6, 1, 2, 3, 4];

/// A publishing encoder without a limit on control messages.
fn unbounded() -> Encoder {
    let limits = Limits { pings_per_second: u32::MAX, ..Limits::default() };
    let mut encoder = Encoder::with_limits(limits).and_connected().and_publishing();
    encoder.replies();
    encoder
}

/// Sends pings; returns how many bytes of answers wait afterwards.
fn unread_pongs(encoder: &mut Encoder) -> usize {
    for _ in 0..10_000 {
        encoder.message(2, USER_CONTROL, 0, &PING);
    }
    encoder.unread_bytes()
}

#[test]
fn answers_to_pings_wait_up_to_32_kib_and_further_pings_are_not_answered() {
    let mut encoder = unbounded();
    let waiting = unread_pongs(&mut encoder);
    assert!((LIMIT / 2..LIMIT / 2 + PONG_BYTES).contains(&waiting), "{waiting}");
    assert_eq!(encoder.events().len(), 10_000 - waiting / PONG_BYTES);
    encoder.replies();
    encoder.message(2, USER_CONTROL, 0, &PING);
    assert_eq!(encoder.replies().len(), 1, "when they are read, pings are answered again");
}

#[test]
fn pings_in_one_piece_do_not_bypass_the_limit() {
    let mut encoder = unbounded();
    let ping = [&[2, 0, 0, 0, 0, 0, 6, USER_CONTROL, 0, 0, 0, 0][..], &PING].concat();
    encoder.chunks(&ping.repeat(50_000));
    assert!(encoder.unread_bytes() < LIMIT / 2 + PONG_BYTES);
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
fn acknowledgements_of_every_byte_wait_up_to_32_kib() {
    let mut encoder = unbounded();
    encoder.message(2, WINDOW_ACK_SIZE, 0, &[0, 0, 0, 1]);
    for _ in 0..10_000 {
        encoder.message(2, ACKNOWLEDGEMENT, 0, &[]);
    }
    assert!(encoder.unread_bytes() < LIMIT / 2 + 16);
    encoder.replies();
    encoder.message(2, ACKNOWLEDGEMENT, 0, &[]);
    assert_eq!(encoder.replies().len(), 1);
}

#[test]
fn answers_to_commands_end_the_connection_when_64_kib_of_them_wait() {
    let mut encoder = Encoder::connected();
    let end = (0..100).find_map(|_| {
        encoder.pass(Duration::from_secs(1));
        let create = |_| encoder.try_command(0, "createStream", 2.0, &[null()]).err();
        (0..20).find_map(create)
    });
    assert_eq!(end, Some(Error::AnswerBytesLimit));
    assert!(encoder.unread_bytes() <= LIMIT + 64);
}
