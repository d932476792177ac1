//! How long each side waits for the other, on virtual time.

use std::time::Duration;

use headgate_rtmp::Error;

use crate::support::Pair;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
/// C0 and C1; C2 is one byte shorter.
const HELLO_BYTES: usize = 1 + 1536;

#[test]
fn a_server_gives_up_after_5_seconds_without_a_handshake() {
    let mut pair = Pair::publish();
    assert_eq!(pair.advance(5 * SECOND - MOMENT).0, Ok(()));
    assert_eq!(pair.advance(MOMENT).0, Err(Error::HandshakeLimit));
}

#[test]
fn a_client_gives_up_after_5_seconds_without_a_handshake() {
    let mut pair = Pair::publish();
    assert_eq!(pair.advance(5 * SECOND - MOMENT).1, Ok(()));
    assert_eq!(pair.advance(MOMENT).1, Err(Error::HandshakeLimit));
}

#[test]
fn a_handshake_byte_by_byte_gains_no_time() {
    let mut pair = Pair::publish();
    for _ in 0..4 {
        pair.carry_to_server(1);
        assert_eq!(pair.advance(SECOND).0, Ok(()));
    }
    pair.carry_to_server(1);
    assert_eq!(pair.advance(SECOND).0, Err(Error::HandshakeLimit));
}

#[test]
fn a_server_waits_10_seconds_for_a_publish_the_handshake_included() {
    let mut pair = Pair::publish();
    pair.carry_to_server(usize::MAX);
    pair.carry_to_client(usize::MAX);
    assert_eq!(pair.advance(4 * SECOND).0, Ok(()));
    // C2, and nothing after it.
    pair.carry_to_server(HELLO_BYTES - 1);
    assert_eq!(pair.advance(6 * SECOND - MOMENT).0, Ok(()));
    assert_eq!(pair.advance(MOMENT).0, Err(Error::CommandLimit));
}

#[test]
fn a_client_waits_10_seconds_for_the_answer_to_connect() {
    let mut pair = Pair::publish();
    pair.carry_to_server(usize::MAX);
    pair.carry_to_client(usize::MAX);
    assert_eq!(pair.advance(10 * SECOND - MOMENT).1, Ok(()));
    assert_eq!(pair.advance(MOMENT).1, Err(Error::AnswerLimit));
}

#[test]
fn a_client_waits_30_seconds_for_the_publish_to_start() {
    let mut pair = Pair::publish();
    pair.exchange();
    assert_eq!(pair.advance(30 * SECOND - MOMENT).1, Ok(()));
    assert_eq!(pair.advance(MOMENT).1, Err(Error::AnswerLimit));
}

#[test]
fn a_server_sets_no_time_limit_for_the_decision() {
    let mut pair = Pair::publish();
    pair.exchange();
    assert_eq!(pair.server.poll_timeout(), None);
    assert_eq!(pair.advance(60 * SECOND).0, Ok(()));
}

#[test]
fn a_running_publish_has_no_timeout() {
    let mut pair = Pair::publish().allowed();
    assert_eq!(pair.advance(3600 * SECOND), (Ok(()), Ok(())));
    assert_eq!((pair.server.poll_timeout(), pair.client.poll_timeout()), (None, None));
}
