use super::super::reassembly::{MESSAGE_HEADER, MESSAGE_LIMIT};
use super::*;

fn record(kind: u8, epoch: u16, sequence: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0xfe, 0xfd];
    bytes.extend_from_slice(&epoch.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, sequence]);
    bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A fragment of a ClientHello, or of a ClientKeyExchange when it is not the first message.
fn fragment(sequence: u8, length: usize, offset: usize, body: &[u8]) -> Vec<u8> {
    let three = |value: usize| [(value >> 16) as u8, (value >> 8) as u8, value as u8];
    let kind = if sequence == 0 { CLIENT_HELLO } else { 16 };
    [&[kind][..], &three(length), &[0, sequence], &three(offset), &three(body.len()), body].concat()
}

fn gate() -> Gate {
    Gate::new(false)
}

#[test]
fn a_flight_of_whole_messages_passes_unchanged() {
    let flight = [
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 0, &[7; 100])),
        record(CHANGE_CIPHER_SPEC, 0, 1, &[1]),
        record(HANDSHAKE, 1, 0, &[9; 40]),
    ]
    .concat();
    assert_eq!(gate().admit(&flight).as_deref(), Some(&flight[..]));
}

#[test]
fn a_message_in_parts_passes_in_one_record_once_it_is_whole() {
    let whole = record(HANDSHAKE, 0, 0, &fragment(0, 100, 0, &[7; 100]));
    let part = |from: usize, to: usize| fragment(0, 100, from, &vec![7; to - from]);
    // In one record, in two records of a datagram, in tiny ones, overlapping, and backwards.
    let datagrams: [Vec<Vec<u8>>; 5] = [
        vec![record(HANDSHAKE, 0, 3, &[part(0, 40), part(40, 100)].concat())],
        vec![
            [record(HANDSHAKE, 0, 3, &part(0, 40)), record(HANDSHAKE, 0, 4, &part(40, 100))]
                .concat(),
        ],
        (0..100).map(|at| record(HANDSHAKE, 0, at as u8, &part(at, at + 1))).collect(),
        vec![record(HANDSHAKE, 0, 1, &part(0, 70)), record(HANDSHAKE, 0, 2, &part(30, 100))],
        vec![record(HANDSHAKE, 0, 2, &part(60, 100)), record(HANDSHAKE, 0, 1, &part(0, 60))],
    ];
    for split in datagrams {
        let mut gate = gate();
        let admitted: Vec<_> = split.iter().filter_map(|datagram| gate.admit(datagram)).collect();
        assert_eq!(admitted, [&whole[..]]);
        assert_eq!(gate.dropped(), 0, "an incomplete message is no fault");
    }
}

#[test]
fn messages_pass_in_order_and_once_whatever_the_order_of_their_datagrams() {
    let hello = record(HANDSHAKE, 0, 0, &fragment(0, 60, 0, &[7; 60]));
    let exchange = record(HANDSHAKE, 0, 1, &fragment(1, 60, 0, &[8; 60]));
    let change = record(CHANGE_CIPHER_SPEC, 0, 2, &[1]);
    let finished = record(HANDSHAKE, 1, 0, &[9; 40]);
    let mut gate = gate();
    assert_eq!(gate.admit(&finished), None, "the library forgets a Finished before its epoch");
    assert_eq!(gate.admit(&exchange), None);
    assert_eq!(
        gate.admit(&hello).as_deref(),
        Some(&[hello.clone(), exchange.clone()].concat()[..])
    );
    let rest = gate.admit(&change);
    assert_eq!(rest.as_deref(), Some(&[change.clone(), finished].concat()[..]));
    for repeated in [hello, exchange, change] {
        assert_eq!(gate.admit(&repeated), None);
    }
    assert_eq!(gate.dropped(), 0);
}

#[test]
fn records_that_break_the_library_do_not_pass() {
    let table = [
        record(ALERT, 0, 0, &[2, 40]),
        record(APPLICATION_DATA, 0, 0, &[1]),
        record(24, 0, 0, &[1]),
        record(HANDSHAKE, 0, 0, &[]),
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 0, &[])),
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 5, &[1])),
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 100, &[])),
        record(HANDSHAKE, 0, 0, &fragment(0, 20_000, 0, &[1; 200])),
        record(HANDSHAKE, 0, 0, &fragment(0, 0x1_0064, 0, &[1; 100])),
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 0x1_0000, &[1; 100])),
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 90, &[1; 20])),
        record(HANDSHAKE, 0, 0, &fragment(0, 100, 0, &[1; 100])[..50]),
        record(APPLICATION_DATA, 1, 0, &[1; 30]),
        record(HANDSHAKE, 2, 0, &[1; 30]),
        vec![22, 0xfe],
    ];
    for datagram in table {
        assert_eq!(gate().admit(&datagram), None, "{datagram:02x?}");
    }
}

#[test]
fn a_bad_record_beside_a_good_one_is_removed() {
    let good = record(HANDSHAKE, 0, 0, &fragment(0, 10, 0, &[1; 10]));
    let alert = record(ALERT, 0, 0, &[2, 40]);
    for both in
        [[alert.clone(), good.clone()].concat(), [good.clone(), alert[..5].to_vec()].concat()]
    {
        assert_eq!(gate().admit(&both).as_deref(), Some(&good[..]));
    }
}

#[test]
fn an_alert_in_plaintext_is_noted() {
    let mut gate = gate();
    gate.admit(&record(ALERT, 0, 0, &[2, 70]));
    assert_eq!(gate.alert(), Some(70));
}

#[test]
fn records_before_completion_are_bounded_in_number_and_bytes() {
    let mut gate = gate();
    gate.admit(&record(CHANGE_CIPHER_SPEC, 0, 0, &[1]));
    let early = record(HANDSHAKE, 1, 0, &[1; 30]);
    let passed = (0..20_000).filter(|_| gate.admit(&early).is_some()).count();
    assert_eq!(passed, EARLY_RECORD_LIMIT as usize);
    let mut gate = Gate::new(false);
    let held = (0..20_000).filter(|_| gate.admit(&early).is_some()).count();
    assert_eq!((held, gate.early.len()), (0, early.len() * EARLY_RECORD_LIMIT as usize));
    let mut gate = Gate::new(false);
    let big = |sequence| record(HANDSHAKE, 0, 0, &fragment(sequence, 8000, 0, &[1; 8000]));
    assert_eq!((0..100).filter(|sequence| gate.admit(&big(*sequence)).is_some()).count(), 8);
}

#[test]
fn every_limit_of_a_handshake_may_be_reached() {
    let admitted = |datagram: &dyn Fn(u8) -> Vec<u8>| {
        let mut gate = gate();
        (0..200).filter(|sequence| gate.admit(&datagram(*sequence)).is_some()).count()
    };
    let whole = |length: usize| {
        move |sequence| record(HANDSHAKE, 0, 0, &fragment(sequence, length, 0, &vec![1; length]))
    };
    assert_eq!(admitted(&whole(1)), 200);
    let [longest, longer] =
        [MESSAGE_LIMIT, MESSAGE_LIMIT + 1].map(|length| admitted(&whole(length)));
    assert_eq!((longest, longer), (3, 0));
    assert_eq!(admitted(&whole(0)), 200, "as a ServerHelloDone is");
    // 64 datagrams of exactly 1 KiB.
    assert_eq!(admitted(&whole(1_024 - RECORD_HEADER - MESSAGE_HEADER)), 64);
    let mut gate = gate();
    let tiny = record(HANDSHAKE, 0, 0, &fragment(0, 10, 0, &[1]));
    (0..2_000).for_each(|_| drop(gate.admit(&tiny)));
    assert_eq!(gate.dropped(), 2_000 - u64::from(HANDSHAKE_DATAGRAM_LIMIT));
}

#[test]
fn after_completion_only_protected_records_pass_and_few_handshakes() {
    let mut gate = gate();
    gate.complete();
    assert_eq!(gate.admit(&record(HANDSHAKE, 0, 0, &fragment(0, 9, 0, &[1; 9]))), None);
    assert_eq!(gate.admit(&record(CHANGE_CIPHER_SPEC, 0, 0, &[1])), None);
    let finished = record(HANDSHAKE, 1, 0, &[1; 40]);
    assert_eq!((0..100).filter(|_| gate.admit(&finished).is_some()).count(), 8);
    assert!(gate.admit(&record(ALERT, 1, 0, &[1; 30])).is_some());
}

#[test]
fn only_the_first_message_of_a_client_asks_for_an_association() {
    let first = record(HANDSHAKE, 0, 0, &fragment(0, 100, 50, &[1; 50]));
    assert!(is_first_flight(&first));
    assert!(is_first_flight(&[record(ALERT, 0, 0, &[2, 40]), first.clone()].concat()));
    for (at, other) in [(0, ALERT), (4, 1), (RECORD_HEADER, 2), (RECORD_HEADER + 5, 1)] {
        let mut changed = first.clone();
        changed[at] = other;
        assert!(!is_first_flight(&changed), "{other} at {at}");
    }
}
