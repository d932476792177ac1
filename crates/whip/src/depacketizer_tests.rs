use super::reading::{ACCESS_UNIT_LIMIT, CHANGED_PPS_LIMIT};
use super::*;
use crate::payload::FU_END;

pub(super) const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40];
pub(super) const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
pub(super) const IDR: &[u8] = &[0x65, 0x88, 1, 2, 3];
pub(super) const SLICE: &[u8] = &[0x41, 0x9a, 4, 5, 6];

pub(super) fn stap_a(nals: &[&[u8]]) -> Vec<u8> {
    let mut payload = vec![0x78];
    for nal in nals {
        payload.extend_from_slice(&(nal.len() as u16).to_be_bytes());
        payload.extend_from_slice(nal);
    }
    payload
}

pub(super) fn fu_a(nal: &[u8], pieces: usize) -> Vec<Vec<u8>> {
    let body: Vec<_> = nal[1..].chunks(nal.len().div_ceil(pieces)).collect();
    let last = body.len() - 1;
    body.iter()
        .enumerate()
        .map(|(n, piece)| {
            let flags = if n == 0 { FU_START } else { 0 } | if n == last { FU_END } else { 0 };
            [&[nal[0] & 0xe0 | FU_A, flags | nal[0] & 0x1f], *piece].concat()
        })
        .collect()
}

pub(super) fn with_lengths(nals: &[&[u8]]) -> Vec<u8> {
    nals.iter().flat_map(|nal| [&(nal.len() as u32).to_be_bytes()[..], nal].concat()).collect()
}

/// Timestamp, marker, payload; `None` is a gap.
pub(super) type Input<'a> = Option<(u32, bool, &'a [u8])>;

/// Feeds payloads as (timestamp, marker, payload); `None` is a gap.
pub(super) fn run(
    depacketizer: &mut Depacketizer,
    input: &[Input<'_>],
) -> Vec<(u32, bool, Vec<u8>)> {
    let mut units = Vec::new();
    for item in input {
        let mut emit = |unit: AccessUnit| {
            units.push((unit.timestamp, unit.is_keyframe, unit.data.to_vec()));
        };
        match item {
            Some((timestamp, marker, payload)) => {
                depacketizer.handle_payload(*timestamp, *marker, payload, &mut emit);
                depacketizer.finish_marked(&mut emit);
            }
            None => depacketizer.handle_gap(1, &mut emit),
        }
    }
    units
}

#[test]
fn single_nal_aggregate_and_fragments_make_the_same_access_unit() {
    let idr: Vec<u8> = [&[0x65, 0x88][..], &[7; 100]].concat();
    let whole = with_lengths(&[&idr]);
    let sets = stap_a(&[SPS, PPS]);
    let all_in_one = stap_a(&[SPS, PPS, &idr]);
    let fragments = fu_a(&idr, 4);
    let fragmented: Vec<_> = fragments
        .iter()
        .enumerate()
        .map(|(n, piece)| Some((1, n + 1 == fragments.len(), &piece[..])))
        .collect();
    let cases: [Vec<Input<'_>>; 3] = [
        vec![Some((1, false, SPS)), Some((1, false, PPS)), Some((1, true, &idr))],
        vec![Some((1, true, &all_in_one))],
        [vec![Some((1, false, &sets[..]))], fragmented].concat(),
    ];
    for case in cases {
        assert_eq!(run(&mut Depacketizer::new(&[]), &case), [(1, true, whole.clone())]);
    }
}

#[test]
fn the_configuration_precedes_the_first_keyframe_and_is_repeated_only_when_it_changes() {
    let mut depacketizer = Depacketizer::new(&[]);
    let mut seen = Vec::new();
    let bigger = [&SPS[..6], &[0x55]].concat();
    for (timestamp, sps) in [(1, SPS), (2, SPS), (3, &bigger)] {
        let payload = stap_a(&[sps, PPS, IDR]);
        let mut emit = |unit: AccessUnit| seen.push(unit.configuration.is_some());
        depacketizer.handle_payload(timestamp, true, &payload, &mut emit);
        depacketizer.finish_marked(&mut emit);
    }
    assert_eq!(seen, [true, false, true]);
}

#[test]
fn parameter_sets_of_the_offer_suffice_for_a_sender_that_never_repeats_them() {
    let mut depacketizer = Depacketizer::new(&[SPS.to_vec(), PPS.to_vec()]);
    assert_eq!(run(&mut depacketizer, &[Some((1, true, IDR))]).len(), 1);
    let after_loss = [None, Some((2, true, SLICE)), Some((3, true, IDR))];
    assert_eq!(run(&mut depacketizer, &after_loss).len(), 1);
}

#[test]
fn delimiters_and_filler_are_dropped_and_sei_is_kept() {
    let sei: &[u8] = &[6, 5, 1, 9];
    let payload = stap_a(&[&[9, 0x10], SPS, PPS, sei, IDR, &[12, 0xff, 0x80]]);
    let units = run(&mut Depacketizer::new(&[]), &[Some((1, true, &payload))]);
    assert_eq!(units, [(1, true, with_lengths(&[sei, IDR]))]);
}

#[test]
fn an_access_unit_ends_with_its_timestamp_when_the_marker_is_missing() {
    let sets = stap_a(&[SPS, PPS, IDR]);
    let mut depacketizer = Depacketizer::new(&[]);
    let units = run(
        &mut depacketizer,
        &[Some((1, false, &sets)), Some((2, false, SLICE)), Some((3, false, SLICE))],
    );
    assert_eq!(units.iter().map(|unit| unit.0).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn after_a_gap_everything_is_withheld_until_the_next_complete_keyframe() {
    let key = stap_a(&[SPS, PPS, IDR]);
    let second_slice: &[u8] = &[0x65, 0x08, 1];
    let mut depacketizer = Depacketizer::new(&[]);
    let units = run(
        &mut depacketizer,
        &[
            Some((1, true, &key)),
            Some((2, true, SLICE)),
            None,
            Some((3, true, SLICE)),
            Some((4, true, second_slice)),
            // The loss may have included its parameter sets.
            Some((5, true, IDR)),
            Some((6, true, &key)),
            Some((7, true, SLICE)),
        ],
    );
    assert_eq!(units.iter().map(|unit| unit.0).collect::<Vec<_>>(), [1, 2, 6, 7]);
    assert_eq!(depacketizer.withheld(), 3);
}

#[test]
fn a_sender_that_stops_repeating_parameter_sets_is_trusted_at_its_second_keyframe() {
    let key = stap_a(&[SPS, PPS, IDR]);
    let mut depacketizer = Depacketizer::new(&[]);
    let units = run(
        &mut depacketizer,
        &[
            Some((1, true, &key)),
            None,
            Some((2, true, IDR)),
            Some((3, true, SLICE)),
            Some((4, true, IDR)),
            Some((5, true, SLICE)),
        ],
    );
    assert_eq!(units.iter().map(|unit| unit.0).collect::<Vec<_>>(), [1, 4, 5]);
}

#[test]
fn padding_is_not_an_access_unit_and_an_endless_access_unit_is_dropped() {
    let mut depacketizer = Depacketizer::new(&[SPS.to_vec(), PPS.to_vec()]);
    assert_eq!(run(&mut depacketizer, &[Some((1, true, &[]))]), []);
    let start = [&[0x7c, 0x85, 0x88][..], &[1; 60_000]].concat();
    let middle = [&[0x7c, 0x05][..], &[1; 60_000]].concat();
    run(&mut depacketizer, &[Some((2, false, &start))]);
    for _ in 0..100 {
        run(&mut depacketizer, &[Some((2, false, &middle))]);
    }
    assert!(depacketizer.unit.len() <= ACCESS_UNIT_LIMIT);
    assert_eq!(run(&mut depacketizer, &[Some((3, true, IDR))]).len(), 1);
}

#[test]
fn an_idr_without_its_middle_fragment_is_never_passed_on() {
    let idr: Vec<u8> = [&[0x65, 0x88][..], &[7; 100]].concat();
    let (sets, fragments) = (stap_a(&[SPS, PPS]), fu_a(&idr, 3));
    let mut depacketizer = Depacketizer::new(&[]);
    let units = run(
        &mut depacketizer,
        &[
            Some((1, false, &sets)),
            Some((1, false, &fragments[0])),
            None,
            Some((1, true, &fragments[2])),
            Some((2, true, SLICE)),
        ],
    );
    assert!(units.is_empty(), "{units:?}");
    assert!(depacketizer.awaits_keyframe());
    let key = stap_a(&[SPS, PPS, IDR]);
    assert_eq!(run(&mut depacketizer, &[Some((3, true, &key))]).len(), 1);
}

#[test]
fn an_idr_without_one_of_its_two_slices_is_never_passed_on() {
    let (sets, second): (_, &[u8]) = (stap_a(&[SPS, PPS]), &[0x65, 0x08, 1]);
    let table: [&[Input<'_>]; 3] = [
        &[Some((1, false, IDR)), None, Some((2, true, SLICE))],
        &[None, Some((1, true, second)), Some((2, true, SLICE))],
        // Only the packet with the marker is missing, and the next access unit follows a gap.
        &[Some((1, false, IDR)), None, Some((2, true, IDR))],
    ];
    for case in table {
        let mut depacketizer = Depacketizer::new(&[]);
        let input = [&[Some((1, false, &sets[..]))], case].concat();
        let units = run(&mut depacketizer, &input);
        assert!(units.iter().all(|unit| unit.0 != 1), "{units:?}");
    }
}

#[test]
fn a_pps_that_changes_between_keyframes_is_sent_with_the_frame_that_needs_it() {
    let key = stap_a(&[SPS, PPS, IDR]);
    let changed: &[u8] = &[0x68, 0xce, 0x3c, 0x81];
    let with_pps = stap_a(&[changed, SLICE]);
    let again = stap_a(&[changed, SLICE]);
    let mut depacketizer = Depacketizer::new(&[]);
    let mut units = Vec::new();
    let mut feed = |timestamp, payload: &[u8]| {
        let mut emit = |unit| units.push(unit);
        depacketizer.handle_payload(timestamp, true, payload, &mut emit);
        depacketizer.finish_marked(&mut emit);
    };
    feed(1, &key);
    feed(2, SLICE);
    feed(3, &with_pps);
    feed(4, &again);
    // In a packet of its own, before the frame that needs it.
    feed(5, PPS);
    feed(6, SLICE);
    // An SPS for the next keyframe has no use before it.
    feed(6, &stap_a(&[&[0x67, 0x42, 0xc0, 0x1f, 0x4c], SLICE]));
    feed(7, &stap_a(&[SPS, changed, IDR]));
    let data: Vec<_> = units.iter().map(|unit| unit.data.to_vec()).collect();
    let plain = with_lengths(&[SLICE]);
    let expected = [
        with_lengths(&[IDR]),
        plain.clone(),
        with_lengths(&[changed, SLICE]),
        plain,
        with_lengths(&[PPS, SLICE]),
        with_lengths(&[SLICE]),
        with_lengths(&[IDR]),
    ];
    assert_eq!(data, expected);
    let configurations: Vec<_> =
        units.iter().filter_map(|unit| unit.configuration.as_ref()).collect();
    assert_eq!(configurations.len(), 2);
    assert!(configurations[1].ends_with(changed), "the next keyframe has the newest sets");
}

#[test]
fn endless_parameter_set_changes_between_keyframes_are_dropped() {
    let mut depacketizer = Depacketizer::new(&[]);
    let key = stap_a(&[SPS, PPS, IDR]);
    assert_eq!(run(&mut depacketizer, &[Some((1, true, &key))]).len(), 1);
    for n in 0..100_u8 {
        let changed = [&[0x68, 0xce, n][..], &[7; 500]].concat();
        run(&mut depacketizer, &[Some((2, false, &changed))]);
        assert!(depacketizer.changed_pps.len() <= CHANGED_PPS_LIMIT);
    }
    assert!(run(&mut depacketizer, &[Some((2, true, SLICE))]).is_empty());
    assert!(depacketizer.awaits_keyframe());
}

#[test]
fn an_idr_without_its_first_slice_is_never_passed_on_even_without_parameter_sets() {
    let second: &[u8] = &[0x65, 0x08, 1];
    // The offer contains its parameter sets: the loss may have been the first slice alone.
    let mut depacketizer = Depacketizer::new(&[SPS.to_vec(), PPS.to_vec()]);
    let input = [Some((1, true, IDR)), None, Some((2, true, second)), Some((3, true, SLICE))];
    let times: Vec<_> = run(&mut depacketizer, &input).iter().map(|unit| unit.0).collect();
    assert_eq!(times, [1]);
}

#[test]
fn parameter_set_changes_between_keyframes_may_take_8_kib() {
    let key = stap_a(&[SPS, PPS, IDR]);
    // With its length each takes 1 KiB.
    let changed = |n: u8| [&[0x68, 0xce, n][..], &[7; 1_017]].concat();
    for (last, leaves) in [(8, true), (9, false)] {
        let mut depacketizer = Depacketizer::new(&[]);
        run(&mut depacketizer, &[Some((1, true, &key))]);
        for n in 1..=last {
            assert_eq!(run(&mut depacketizer, &[Some((2, false, &changed(n)))]), []);
        }
        let units = run(&mut depacketizer, &[Some((2, true, SLICE))]);
        assert_eq!(units.len(), usize::from(leaves), "{last} of them");
    }
}

#[test]
fn a_track_that_begins_between_keyframes_waits_for_one() {
    let mut depacketizer = Depacketizer::new(&[SPS.to_vec(), PPS.to_vec()]);
    let input = [Some((1, true, SLICE)), Some((2, true, IDR)), Some((3, true, SLICE))];
    let units = run(&mut depacketizer, &input);
    assert_eq!(
        units.iter().map(|unit| (unit.0, unit.1)).collect::<Vec<_>>(),
        [(2, true), (3, false)]
    );
}

#[test]
fn a_recovery_point_is_a_place_to_start_after_a_loss_and_where_no_idr_comes() {
    let recovery = stap_a(&[&[6, 6, 2, 0x0c, 0x24, 0x80], SLICE]);
    let mut depacketizer = Depacketizer::new(&[]);
    let key = stap_a(&[SPS, PPS, IDR]);
    let second = 90_000;
    let input = [
        Some((0, true, &key[..])),
        Some((second, true, &recovery)),
        None,
        Some((2 * second, true, SLICE)),
        Some((3 * second, true, &recovery)),
        Some((3 * second + 3_000, true, SLICE)),
        Some((4 * second, true, &recovery)),
        Some((5 * second, true, &key)),
        Some((6 * second, true, &recovery)),
    ];
    let units = run(&mut depacketizer, &input);
    let starts: Vec<_> = units.iter().map(|unit| (unit.0, unit.1)).collect();
    let want = [
        (0, true),
        (second, false),
        (3 * second, true),
        (3 * second + 3_000, false),
        (4 * second, true),
        (5 * second, true),
        (6 * second, false),
    ];
    assert_eq!(starts, want);
    assert!(!depacketizer.awaits_keyframe());
}

#[test]
fn other_sei_messages_and_a_recovery_point_with_a_hole_are_no_place_to_start() {
    let user_data = stap_a(&[&[6, 5, 3, 6, 6, 6, 0x80], SLICE]);
    let mut depacketizer = Depacketizer::new(&[SPS.to_vec(), PPS.to_vec()]);
    let sei: &[u8] = &[6, 6, 2, 0x0c, 0x24, 0x80];
    let input = [
        Some((1, true, IDR)),
        None,
        Some((2, true, &user_data[..])),
        Some((3, false, sei)),
        None,
        Some((3, true, SLICE)),
        Some((4, true, SLICE)),
    ];
    assert_eq!(run(&mut depacketizer, &input).len(), 1);
    assert!(depacketizer.awaits_keyframe());
}
