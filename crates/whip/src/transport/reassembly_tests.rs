use proptest::prelude::*;

use super::*;

const HELLO: u8 = 1;

/// One fragment as it is on the wire.
fn fragment(kind: u8, sequence: u16, whole: &[u8], from: usize, to: usize) -> Vec<u8> {
    let three = |value: usize| [(value >> 16) as u8, (value >> 8) as u8, value as u8];
    let part = &whole[from..to];
    let head = [&[kind][..], &three(whole.len()), &sequence.to_be_bytes(), &three(from)].concat();
    [&head[..], &three(part.len()), part].concat()
}

fn body(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

fn reassembler() -> Reassembler {
    Reassembler::new(&[HELLO])
}

fn bodies(reassembler: &mut Reassembler) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| reassembler.poll()).map(|message| message.body).collect()
}

#[test]
fn a_part_that_is_repeated_with_another_split_completes_the_message() {
    let whole = body(1_800, 1);
    // Each pair is a range; the second part was lost, and everything is repeated with another split.
    let splits: [&[(usize, usize)]; 5] = [
        &[(0, 1_200), (0, 900), (900, 1_800)],
        &[(0, 1_200), (0, 600), (600, 1_300), (1_300, 1_800)],
        &[(600, 1_800), (0, 700)],
        &[(1_799, 1_800), (0, 1_799)],
        &[(0, 20), (10, 1_000), (5, 15), (999, 1_800)],
    ];
    for split in splits {
        let mut reassembler = reassembler();
        for &(from, to) in split {
            assert_eq!(reassembler.poll(), None);
            assert!(reassembler.handle_record(&fragment(HELLO, 0, &whole, from, to)));
        }
        assert_eq!(bodies(&mut reassembler), std::slice::from_ref(&whole), "{split:?}");
    }
}

#[test]
fn several_fragments_and_messages_in_one_record_are_all_read() {
    let (one, two, three) = (body(50, 1), body(70, 2), Vec::new());
    let record = [
        fragment(16, 1, &two, 30, 70),
        fragment(HELLO, 0, &one, 0, 50),
        fragment(14, 2, &three, 0, 0),
        fragment(16, 1, &two, 0, 30),
    ]
    .concat();
    let mut reassembler = reassembler();
    assert!(reassembler.handle_record(&record));
    assert_eq!(bodies(&mut reassembler), [one, two, three]);
}

#[test]
fn an_unusable_fragment_costs_only_itself() {
    let whole = body(100, 1);
    let overlong = body(MESSAGE_LIMIT + 1, 1);
    let mut beyond = fragment(HELLO, 0, &whole, 0, 100);
    beyond[3] = 99;
    let unusable = [
        fragment(HELLO, 0, &whole, 40, 40),
        fragment(HELLO, 0, &overlong, 0, 200),
        fragment(16, 0, &whole, 0, 100),
        fragment(HELLO, WINDOW as u16, &whole, 0, 100),
        beyond,
    ];
    for odd in unusable {
        let mut reassembler = reassembler();
        assert!(!reassembler.handle_record(&odd), "{odd:02x?}");
        let both = [odd, fragment(HELLO, 0, &whole, 0, 100)].concat();
        assert!(reassembler.handle_record(&both));
        assert_eq!(bodies(&mut reassembler), std::slice::from_ref(&whole));
    }
}

#[test]
fn what_was_read_before_a_truncated_fragment_is_kept() {
    let whole = body(100, 1);
    let record =
        [fragment(HELLO, 0, &whole, 0, 100), fragment(16, 1, &whole, 0, 100)[..60].to_vec()]
            .concat();
    let mut reassembler = reassembler();
    assert!(reassembler.handle_record(&record));
    assert_eq!(bodies(&mut reassembler), [whole]);
}

#[test]
fn an_honest_repetition_replaces_what_came_before_it() {
    let (whole, forged, shorter) = (body(100, 1), body(100, 9), body(90, 9));
    for other in [&forged, &shorter] {
        let mut reassembler = reassembler();
        reassembler.handle_record(&fragment(HELLO, 0, other, 0, 60));
        for (from, to) in [(0, 60), (60, 100)] {
            reassembler.handle_record(&fragment(HELLO, 0, &whole, from, to));
        }
        assert_eq!(bodies(&mut reassembler), std::slice::from_ref(&whole));
    }
}

#[test]
fn a_complete_message_is_returned_once_and_its_repetition_is_no_fault() {
    let whole = body(100, 1);
    let mut reassembler = reassembler();
    for _ in 0..3 {
        assert!(reassembler.handle_record(&fragment(HELLO, 0, &whole, 0, 100)));
    }
    assert_eq!(bodies(&mut reassembler).len(), 1);
    assert!(reassembler.handle_record(&fragment(HELLO, 0, &whole, 0, 100)));
    assert_eq!(reassembler.poll(), None);
}

#[test]
fn what_is_held_is_bounded_and_follows_what_arrived() {
    let whole = body(MESSAGE_LIMIT, 1);
    let mut reassembler = reassembler();
    reassembler.handle_record(&fragment(HELLO, 0, &whole, 0, 10));
    assert_eq!(reassembler.held, 10, "the announced length alone reserves nothing");
    let last = MESSAGE_LIMIT - 1;
    for sequence in 0..100 {
        reassembler.handle_record(&fragment(HELLO, sequence, &whole, last, last + 1));
        assert!(reassembler.held <= HELD_LIMIT);
    }
    let kept = reassembler.partials.iter().flatten().filter(|part| !part.body.is_empty()).count();
    assert_eq!(kept, HELD_LIMIT / MESSAGE_LIMIT);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the sizes, order and repetitions, each message comes out once, whole and in order.
    #[test]
    fn any_split_of_a_flight_is_put_together(
        lengths in prop::collection::vec(0_usize..2_500, 1..6),
        cuts in prop::collection::vec((0_usize..6, 0_usize..2_500, 1_usize..1_300), 0..40),
        step in 1_usize..1_300,
        seed in any::<u64>(),
    ) {
        let flight: Vec<Vec<u8>> =
            lengths.iter().enumerate().map(|(n, length)| body(*length, n as u8)).collect();
        let mut parts = Vec::new();
        for (n, whole) in flight.iter().enumerate() {
            let starts = (0..whole.len().max(1)).step_by(step);
            parts.extend(starts.map(|from| (n, from, (from + step).min(whole.len()))));
        }
        for (n, from, length) in cuts {
            if let Some(whole) = flight.get(n) && from < whole.len() {
                parts.push((n, from, (from + length).min(whole.len())));
            }
        }
        let mut random = seed | 1;
        for at in (1..parts.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            parts.swap(at, (random >> 33) as usize % (at + 1));
        }
        let mut reassembler = reassembler();
        let mut found = Vec::new();
        for (n, from, to) in parts {
            let kind = if n == 0 { HELLO } else { 16 };
            reassembler.handle_record(&fragment(kind, n as u16, &flight[n], from, to));
            found.extend(bodies(&mut reassembler));
        }
        prop_assert_eq!(found, flight);
        prop_assert_eq!(reassembler.held, 0);
    }
}
