//! Payloads and markers as no standard allows them: what can be repaired is shown, and nothing incomplete ever leaves.

use super::tests::{IDR, PPS, SLICE, SPS, fu_a, run, stap_a, with_lengths};
use super::*;
use crate::payload::FU_END;

type Packets = Vec<(bool, Vec<u8>)>;
type Pack<'a> = &'a dyn Fn(&[Vec<u8>]) -> Packets;

/// The NAL units of picture `n`: every 50th is a keyframe; each has two slices.
fn picture(n: u32) -> Vec<Vec<u8>> {
    let fill = [n as u8 | 0x80; 60];
    let slices = |header: u8| {
        [&[0x88, n as u8][..], &[0x08, n as u8]].map(|head| [&[header][..], head, &fill].concat())
    };
    if n.is_multiple_of(50) {
        [vec![SPS.to_vec(), PPS.to_vec()], slices(0x65).to_vec()].concat()
    } else {
        slices(0x41).to_vec()
    }
}

fn as_single(nals: &[Vec<u8>]) -> Packets {
    let last = nals.len() - 1;
    nals.iter().enumerate().map(|(n, nal)| (n == last, nal.clone())).collect()
}

fn joined(nals: &[Vec<u8>], code: &[u8]) -> Vec<u8> {
    nals.iter().flat_map(|nal| [code, nal].concat()).collect()
}

/// 200 pictures packed by `pack`, several packets available at a time as behind a pause; returns the counters.
fn publish(pack: impl Fn(&[Vec<u8>]) -> Packets, is_burst: bool) -> PayloadCounters {
    let mut depacketizer = Depacketizer::new(&[]);
    let mut units = Vec::new();
    for n in 0..201 {
        for (marker, payload) in pack(&picture(n)) {
            let mut emit = |unit: AccessUnit| units.push(unit);
            depacketizer.handle_payload(n, marker, &payload, &mut emit);
            // The packets of the first picture are all there when the source begins.
            if n > 0 && !is_burst {
                depacketizer.finish_marked(&mut emit);
            }
        }
        depacketizer.finish_marked(&mut |unit| units.push(unit));
    }
    for (n, unit) in (0..200).zip(&units) {
        let nals = picture(n);
        let slices: Vec<&[u8]> =
            nals.iter().filter(|nal| nal[0] & 0x1f < 6).map(|nal| &nal[..]).collect();
        assert_eq!(unit.timestamp, n);
        assert_eq!(unit.data, with_lengths(&slices), "picture {n}");
    }
    assert!(units.len() >= 200, "{} of 200", units.len());
    depacketizer.counters()
}

#[test]
fn sound_packings_count_nothing_and_complete_each_picture_at_its_marker() {
    let fragmented = |nals: &[Vec<u8>]| {
        let mut packets: Packets = Vec::new();
        for nal in nals {
            packets.extend(fu_a(nal, nal.len().min(4)).into_iter().map(|piece| (false, piece)));
        }
        packets.last_mut().expect("a packet").0 = true;
        packets
    };
    let aggregated = |nals: &[Vec<u8>]| {
        vec![(true, stap_a(&nals.iter().map(|nal| &nal[..]).collect::<Vec<_>>()))]
    };
    for is_burst in [false, true] {
        assert_eq!(publish(as_single, is_burst), PayloadCounters::default());
        assert_eq!(publish(fragmented, is_burst), PayloadCounters::default());
        assert_eq!(publish(aggregated, is_burst), PayloadCounters::default());
    }
}

#[test]
fn every_picture_of_a_sender_with_malformed_payloads_is_shown() {
    let with = |change: fn(Vec<u8>) -> Vec<u8>| {
        move |nals: &[Vec<u8>]| -> Packets {
            as_single(nals).into_iter().map(|(marker, nal)| (marker, change(nal))).collect()
        }
    };
    let aggregate = |trailing: &'static [u8]| {
        move |nals: &[Vec<u8>]| -> Packets {
            let nals: Vec<_> = nals.iter().map(|nal| &nal[..]).collect();
            vec![(true, [&stap_a(&nals)[..], trailing].concat())]
        }
    };
    let whole = |code: &'static [u8]| move |nals: &[Vec<u8>]| vec![(true, joined(nals, code))];
    let in_fragments = |code: &'static [u8], without_first: usize| {
        move |nals: &[Vec<u8>]| -> Packets {
            let frame = joined(nals, code)[without_first..].to_vec();
            let pieces = fu_a(&frame, 4);
            let last = pieces.len() - 1;
            pieces.into_iter().enumerate().map(|(n, piece)| (n == last, piece)).collect()
        }
    };
    let extra = |odd: &'static [u8]| {
        move |nals: &[Vec<u8>]| -> Packets {
            let odd = std::iter::once((false, odd.to_vec()));
            odd.chain(as_single(nals)).collect()
        }
    };
    type Pack = Box<dyn Fn(&[Vec<u8>]) -> Packets>;
    let table: Vec<(&str, Pack)> = vec![
        (
            "one fragment",
            Box::new(with(|nal| {
                [&[nal[0] & 0xe0 | FU_A, FU_START | FU_END | nal[0] & 0x1f], &nal[1..]].concat()
            })),
        ),
        ("forbidden bit", Box::new(with(|nal| [&[nal[0] | 0x80], &nal[1..]].concat()))),
        (
            "forbidden bit of fragments",
            Box::new(|nals: &[Vec<u8>]| {
                let mut packets: Packets = Vec::new();
                for nal in nals {
                    packets.extend(fu_a(nal, 2).into_iter().map(|mut piece| {
                        piece[0] |= 0x80;
                        (false, piece)
                    }));
                }
                packets.last_mut().expect("a packet").0 = true;
                packets
            }),
        ),
        ("start code", Box::new(with(|nal| [&[0, 0, 0, 1][..], &nal].concat()))),
        ("short start code", Box::new(with(|nal| [&[0, 0, 1][..], &nal].concat()))),
        ("length", Box::new(with(|nal| [&(nal.len() as u32).to_be_bytes()[..], &nal].concat()))),
        (
            "forbidden bit after a start code",
            Box::new(with(|nal| [&[0, 0, 0, 1, nal[0] | 0x80], &nal[1..]].concat())),
        ),
        (
            "forbidden bit after a length",
            Box::new(with(|nal| {
                [&(nal.len() as u32).to_be_bytes()[..], &[nal[0] | 0x80], &nal[1..]].concat()
            })),
        ),
        (
            "forbidden bits in annex B",
            Box::new(|nals: &[Vec<u8>]| {
                let odd = |nal: &Vec<u8>| [&[nal[0] | 0x80], &nal[1..]].concat();
                vec![(true, joined(&nals.iter().map(odd).collect::<Vec<_>>(), &[0, 0, 0, 1]))]
            }),
        ),
        ("padded by one", Box::new(aggregate(&[0]))),
        ("padded by two", Box::new(aggregate(&[0, 0]))),
        ("padded by nine", Box::new(aggregate(&[0; 9]))),
        ("padded with others", Box::new(aggregate(&[0xff, 0xff, 0xff, 0xff]))),
        ("empty and reserved members", Box::new(aggregate(&[0, 0, 0, 1, 31, 0, 2, 24, 0]))),
        ("annex B", Box::new(whole(&[0, 0, 0, 1]))),
        ("annex B, short", Box::new(whole(&[0, 0, 1]))),
        ("annex B in fragments", Box::new(in_fragments(&[0, 0, 0, 1], 0))),
        ("annex B in fragments, without the first code", Box::new(in_fragments(&[0, 0, 0, 1], 4))),
        (
            "joined slices",
            Box::new(|nals: &[Vec<u8>]| {
                let (first, rest) = nals.split_at(nals.len() - 2);
                let frame = joined(rest, &[0, 0, 0, 1])[4..].to_vec();
                first.iter().map(|nal| (false, nal.clone())).chain([(true, frame)]).collect()
            }),
        ),
        (
            "nested aggregate",
            Box::new(|nals: &[Vec<u8>]| {
                let inside = stap_a(&nals.iter().map(|nal| &nal[..]).collect::<Vec<_>>());
                vec![(true, stap_a(&[&inside]))]
            }),
        ),
        ("type 0", Box::new(extra(&[0]))),
        ("type 0 with data", Box::new(extra(&[0x60, 1, 2, 3]))),
        ("type 30", Box::new(extra(&[30, 1]))),
        ("type 31", Box::new(extra(&[0x7f, 1]))),
        ("STAP-B", Box::new(extra(&[25, 0, 0, 0, 1, 0x65]))),
        ("MTAP", Box::new(extra(&[26, 0, 0, 0, 9, 1]))),
        ("FU-B", Box::new(extra(&[29, 0x9f, 0, 0, 1, 2]))),
        ("fragment without header", Box::new(extra(&[0x7c]))),
        ("SEI without its beginning", Box::new(extra(&[0x1c, 0x46, 1]))),
        ("aggregate with a cut SEI", Box::new(extra(&[0x18, 0, 9, 6, 1]))),
    ];
    for (name, pack) in table {
        println!("{name}");
        let counters = publish(&pack, false);
        assert!(counters.malformed >= 200, "{name}: {counters:?}");
        assert_eq!((counters.misplaced_markers, counters.disposable_lost), (0, 0), "{name}");
    }
}

/// Each NAL unit in fragments of four bytes.
fn in_fragments(nals: &[Vec<u8>]) -> Packets {
    let mut packets: Packets =
        nals.iter().flat_map(|nal| fu_a(nal, 4)).map(|piece| (false, piece)).collect();
    packets.last_mut().expect("a packet").0 = true;
    packets
}

#[test]
fn what_comes_between_the_fragments_of_a_slice_costs_itself() {
    let table: &[&[u8]] = &[
        SPS,
        PPS,
        &[&[0xe7], &SPS[1..]].concat(),
        &stap_a(&[SPS, PPS]),
        &stap_a(&[&[9, 0x10], &[6, 5, 1, 0, 0x80]]),
        &[0x18, 0, 0],
        &[0x7f, 1],
        &[0x60, 1, 2, 3],
        &[6, 5, 1, 0, 0x80],
        &[9, 0x10],
        &[0x0c, 0xff],
        &[0x1c, 0x06, 1],
        &[25, 0, 0, 0, 1, 6],
        &[29, 0x86, 0, 0, 1],
    ];
    for odd in table {
        let pack = |nals: &[Vec<u8>]| {
            let mut packets = in_fragments(nals);
            let last = packets.len() - 1;
            packets.insert(last, (false, odd.to_vec()));
            packets
        };
        let counters = publish(pack, false);
        assert!((200..=201).contains(&counters.malformed), "{odd:02x?}: {counters:?}");
    }
}

#[test]
fn a_packet_with_a_wrong_timestamp_costs_no_picture() {
    for pack in [&in_fragments as Pack<'_>, &as_single] {
        for wrong in 0..pack(&picture(1)).len() {
            let (mut depacketizer, mut units) = (Depacketizer::new(&[]), Vec::new());
            for n in 0..201 {
                for (place, (marker, payload)) in pack(&picture(n)).into_iter().enumerate() {
                    let is_wrong = n % 20 == 7 && place == wrong;
                    let timestamp = if is_wrong { n + 1_000_000 } else { n };
                    let mut emit = |unit: AccessUnit| units.push(unit);
                    depacketizer.handle_payload(timestamp, marker, &payload, &mut emit);
                    depacketizer.finish_marked(&mut emit);
                }
            }
            assert_eq!(units.len(), 201, "packet {wrong}");
            for (n, unit) in (0..).zip(&units) {
                let nals = picture(n);
                let slices: Vec<&[u8]> =
                    nals.iter().filter(|nal| nal[0] & 0x1f < 6).map(|nal| &nal[..]).collect();
                assert_eq!(unit.data, with_lengths(&slices), "packet {wrong} of {n}");
                assert!(unit.timestamp == n || wrong == 0, "packet {wrong} of {n}");
            }
        }
    }
}

#[test]
fn every_picture_of_a_sender_with_misplaced_markers_is_shown() {
    let on_each = |nals: &[Vec<u8>]| nals.iter().map(|nal| (true, nal.clone())).collect();
    let on_slices = |nals: &[Vec<u8>]| -> Packets {
        nals.iter().map(|nal| (nal[0] & 0x1f < 6, nal.clone())).collect()
    };
    let on_fragments = |nals: &[Vec<u8>]| -> Packets {
        nals.iter().flat_map(|nal| fu_a(nal, 3)).map(|piece| (true, piece)).collect()
    };
    let nowhere = |nals: &[Vec<u8>]| nals.iter().map(|nal| (false, nal.clone())).collect();
    let on_first =
        |nals: &[Vec<u8>]| nals.iter().enumerate().map(|(n, nal)| (n == 0, nal.clone())).collect();
    for is_burst in [false, true] {
        let packs: [Pack; 5] = [&on_each, &on_slices, &on_fragments, &nowhere, &on_first];
        for (at, pack) in packs.into_iter().enumerate() {
            let counters = publish(pack, is_burst);
            assert!(counters.misplaced_markers >= 200, "{at}: {counters:?}");
            assert_eq!(counters.malformed, 0, "{at}");
        }
    }
}

#[test]
fn a_single_missing_marker_delays_one_picture_and_changes_nothing_else() {
    let mut depacketizer = Depacketizer::new(&[]);
    let key = stap_a(&[SPS, PPS, IDR]);
    let first = run(&mut depacketizer, &[Some((1, true, &key)), Some((2, false, SLICE))]);
    assert_eq!(first.len(), 1);
    assert_eq!(run(&mut depacketizer, &[Some((3, true, SLICE))]).len(), 2);
    assert_eq!(run(&mut depacketizer, &[Some((4, true, SLICE))]).len(), 1);
    assert_eq!(depacketizer.counters().misplaced_markers, 1);
}

#[test]
fn pictures_that_repeat_a_timestamp_are_separate_pictures() {
    let mut depacketizer = Depacketizer::new(&[]);
    let key = stap_a(&[SPS, PPS, IDR]);
    let input = [Some((1, true, &key[..])), Some((1, true, SLICE)), Some((1, true, SLICE))];
    assert_eq!(run(&mut depacketizer, &input).len(), 3);
    assert_eq!(depacketizer.counters(), PayloadCounters::default());
}

#[test]
fn markers_that_begin_to_be_misplaced_cost_one_group_and_nothing_incomplete_follows() {
    let mut depacketizer = Depacketizer::new(&[]);
    let (key, second): (_, &[u8]) = (stap_a(&[SPS, PPS, IDR]), &[0x41, 0x1a, 4]);
    let mut shown = run(&mut depacketizer, &[Some((1, true, &key)), Some((2, true, SLICE))]);
    for n in 3..20 {
        let head = if n == 10 { &key[..] } else { SLICE };
        let second = if n == 10 { &[0x65, 0x08, 4][..] } else { second };
        shown.extend(run(&mut depacketizer, &[Some((n, true, head)), Some((n, true, second))]));
    }
    let times: Vec<_> = shown.iter().map(|unit| unit.0).collect();
    // The third left before it was known that it had another slice.
    assert_eq!(times, [&[1, 2, 3][..], &(10..19).collect::<Vec<_>>()].concat());
    let whole = shown.iter().filter(|unit| unit.0 > 3).all(|unit| unit.2.len() > 12);
    assert!(whole && depacketizer.markers.is_distrusted());
}

#[test]
fn a_sender_is_trusted_again_after_a_hundred_proper_pictures() {
    let mut depacketizer = Depacketizer::new(&[]);
    let (key, second): (_, &[u8]) = (stap_a(&[SPS, PPS, IDR]), &[0x41, 0x1a, 4]);
    let wrong = [Some((1, true, SPS)), Some((1, true, &key[..]))];
    assert!(run(&mut depacketizer, &wrong).is_empty());
    for n in 2..102 {
        assert_eq!(
            run(&mut depacketizer, &[Some((n, false, SLICE)), Some((n, true, second))]).len(),
            1
        );
    }
    let now = run(&mut depacketizer, &[Some((102, false, SLICE)), Some((102, true, second))]);
    assert_eq!(now.len(), 2, "it and the one before");
    assert_eq!(run(&mut depacketizer, &[Some((103, true, SLICE))]).len(), 1);
}

#[test]
fn a_picture_that_lacks_a_part_is_withheld() {
    let key = stap_a(&[SPS, PPS, IDR]);
    let table: &[&[&[u8]]] = &[
        // A slice without data, or cut off inside its aggregate.
        &[&[0x18, 0, 1, 0x65, 0]],
        &[&[0x78, 0, 9, 0x65, 1]],
        &[&[0x78, 0, 9, 0x41, 1]],
        // A fragment without a start, without an end, interrupted, without its header.
        &[&[0x7c, 0x05, 1, 2]],
        &[&[0x7c, 0x85, 0x88, 1]],
        &[&[0x7c, 0x85, 0x88, 1], IDR, &[0x7c, 0x45, 3]],
        &[&[0x7c, 0x85, 0x88, 1], &[0x7c, 0x85, 0x88, 1]],
        &[&[0x7c, 0x85, 0x88, 1], &[0x7c, 0x41, 1]],
        &[&[0x7c, 0x85, 0x88, 1], &[0x7c], &[0x7c, 0x45, 3]],
        // A fragment inside an aggregate, and slices in the interleaved mode.
        &[&[0x78, 0, 3, 0x7c, 0x85, 0x88]],
        &[SLICE, &[25, 0, 0, 0, 3, 0x41, 0x1a, 1]],
        &[SLICE, &[26, 0, 0, 0, 3, 0, 0, 0, 0x41, 0x1a, 1]],
        &[SLICE, &[29, 0x81, 0, 0, 0x1a, 1]],
    ];
    for payloads in table {
        let mut depacketizer = Depacketizer::new(&[SPS.to_vec(), PPS.to_vec()]);
        let mut input = vec![Some((1, true, &key[..]))];
        for (n, payload) in payloads.iter().enumerate() {
            input.push(Some((2, n + 1 == payloads.len(), payload)));
        }
        input.push(Some((3, true, SLICE)));
        input.push(Some((4, true, &key[..])));
        let times: Vec<_> = run(&mut depacketizer, &input).iter().map(|unit| unit.0).collect();
        assert_eq!(times, [1, 4], "{payloads:02x?}");
        assert!(depacketizer.counters().malformed > 0, "{payloads:02x?}");
    }
}
