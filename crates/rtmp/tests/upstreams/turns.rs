//! An upstream that sends at full speed: how much one turn reads, and when the session ends.

use headgate_rtmp::{ClientConfig, Limits};

use crate::fake::{Upstream, player, publisher};

/// A full header on message stream 1 and a payload.
fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let [.., l0, l1, l2] = payload.len().to_be_bytes();
    [&[3, 0, 0, 0, l0, l1, l2, kind, 1, 0, 0, 0][..], payload].concat()
}

#[test]
fn a_flood_of_messages_is_read_in_bounded_turns() {
    for config in [publisher(), player()] {
        let mut upstream = Upstream::starting_with(config);
        let flood = message(9, &[0x27]).repeat(1900);
        let before = upstream.client.input_bytes();
        upstream.says(&flood);
        let mut turns = 1;
        while upstream.client.has_unread_input() {
            assert!(!upstream.client.takes_input());
            assert!(upstream.events().len() <= Limits::default().turn_work as usize / 32);
            upstream.says(&[]);
            turns += 1;
        }
        assert!(upstream.client.takes_input());
        assert_eq!(turns, (1900 * 33_usize).div_ceil(Limits::default().turn_work as usize));
        assert_eq!(upstream.client.input_bytes() - before, flood.len() as u64);
    }
}

#[test]
fn an_upstream_that_floods_with_anything_but_media_is_read_and_gets_few_answers() {
    let mut command = b"\x02\0\x01x".to_vec();
    command.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    for (kind, payload) in [
        (3, &[0; 4][..]),
        (4, &[0, 7, 0, 0, 0, 0]),
        (4, &[0, 6, 0, 0, 0, 9]),
        (18, &[5]),
        (20, &command),
    ] {
        let limits = Limits { turn_work: u32::MAX, ..Limits::default() };
        let mut upstream = Upstream::starting_with(ClientConfig { limits, ..publisher() });
        let message = message(kind, payload);
        for _ in 0..10_000 {
            upstream.says(&message);
        }
        assert!(upstream.client.output().pending_bytes() <= 500 * 18 + 1000, "{kind}");
    }
}

#[test]
fn nothing_is_read_after_the_end() {
    let mut upstream = Upstream::starting();
    upstream.client.end();
    upstream.says(&[0xff; 100]);
    assert!(upstream.client.takes_input() && !upstream.client.has_unread_input());
}
