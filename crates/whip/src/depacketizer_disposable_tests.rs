//! Lost pictures that no other refers to are left out; those that others refer to withhold what follows.

use super::tests::{PPS, fu_a, stap_a};
use super::*;

/// 640x360 by x264, with B-frames.
const SPS: &[u8] = include_bytes!("fixtures/sps_640x360");

/// A picture's only slice with this frame_num, coded in `bits` bits.
fn slice(header: u8, number: u32, bits: u8, fill: u8) -> Vec<u8> {
    // first_mb_in_slice 0, slice_type 5, pic_parameter_set_id 0.
    let mut text = "1001101".to_owned();
    text.extend((0..bits).rev().map(|bit| if number >> bit & 1 == 1 { '1' } else { '0' }));
    text.push('1');
    while !text.len().is_multiple_of(8) {
        text.push('0');
    }
    let bytes = text
        .as_bytes()
        .chunks(8)
        .map(|eight| eight.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit == b'1')));
    [header].into_iter().chain(bytes).chain([fill | 0x80; 40]).collect()
}

/// The packets of 41 pictures: a keyframe, then a reference and two disposable pictures in turn; another keyframe at 30.
/// Disposable ones take three packets, the others one.
fn pictures() -> Vec<(u32, bool, Vec<u8>)> {
    let bits = headgate_media::h264::read_sps(SPS).and_then(|sps| sps.frame_num_bits);
    let bits = bits.expect("frames only");
    let (mut packets, mut reference) = (Vec::new(), 0);
    for n in 0..41 {
        match n % 30 {
            0 => {
                reference = 0;
                packets.push((n, true, stap_a(&[SPS, PPS, &slice(0x65, 0, bits, n as u8)])));
            }
            of if of % 3 == 1 => {
                reference = (reference + 1) % (1 << bits);
                packets.push((n, true, slice(0x41, reference, bits, n as u8)));
            }
            _ => {
                let nal = slice(0x01, (reference + 1) % (1 << bits), bits, n as u8);
                let pieces = fu_a(&nal, 3);
                assert_eq!(pieces.len(), 3);
                packets
                    .extend(pieces.into_iter().enumerate().map(|(at, piece)| (n, at == 2, piece)));
            }
        }
    }
    packets
}

/// The pictures shown when these packets, as (picture, packet of it), are lost, and how many were counted as left out.
fn shown_without(lost: &[(u32, usize)]) -> (Vec<u32>, u64) {
    shown_of(pictures(), lost)
}

fn shown_of(packets: Vec<(u32, bool, Vec<u8>)>, lost: &[(u32, usize)]) -> (Vec<u32>, u64) {
    let (mut depacketizer, mut times) = (Depacketizer::new(&[]), Vec::new());
    let (mut gap, mut at, mut open) = (0, 0, u32::MAX);
    for (n, marker, payload) in packets {
        at = if open == n { at + 1 } else { 0 };
        open = n;
        if lost.contains(&(n, at)) {
            gap += 1;
            continue;
        }
        let mut emit = |unit: AccessUnit| times.push(unit.timestamp);
        if gap > 0 {
            depacketizer.handle_gap(std::mem::take(&mut gap), &mut emit);
        }
        depacketizer.handle_payload(n, marker, &payload, &mut emit);
        depacketizer.finish_marked(&mut emit);
    }
    (times, depacketizer.counters().disposable_lost)
}

#[test]
fn a_lost_disposable_picture_is_left_out_whichever_of_its_packets_was_lost() {
    let table: [&[(u32, usize)]; 8] = [
        &[(12, 0)],
        &[(12, 1)],
        &[(12, 2)],
        &[(12, 0), (12, 1)],
        &[(12, 1), (12, 2)],
        &[(12, 0), (12, 1), (12, 2)],
        &[(11, 2), (12, 0)],
        &[(11, 0), (11, 1), (11, 2), (12, 0), (12, 1), (12, 2)],
    ];
    for lost in table {
        let (times, left_out) = shown_without(lost);
        let expected: Vec<u32> =
            (0..41).filter(|n| lost.iter().all(|(picture, _)| picture != n)).collect();
        assert_eq!(times, expected, "{lost:?}");
        assert!(left_out > 0, "{lost:?}");
    }
    assert_eq!(shown_without(&[]), ((0..41).collect(), 0));
}

#[test]
fn a_lost_reference_withholds_everything_until_the_next_keyframe() {
    let table: [&[(u32, usize)]; 4] = [
        &[(13, 0)],
        &[(12, 2), (13, 0)],
        &[(12, 0), (12, 1), (12, 2), (13, 0)],
        &[(13, 0), (14, 0), (14, 1), (14, 2), (15, 0)],
    ];
    for lost in table {
        let (times, _) = shown_without(lost);
        let first = lost[0].0;
        let expected: Vec<u32> = (0..first).chain(30..41).collect();
        assert_eq!(times, expected, "{lost:?}");
    }
}

#[test]
fn a_loss_before_the_numbers_are_proven_is_taken_for_that_of_a_reference() {
    // A picture of one packet: nothing else shows what it was.
    let (times, _) = shown_without(&[(2, 0), (2, 1), (2, 2)]);
    assert_eq!(times, (0..2).chain(30..41).collect::<Vec<_>>());
}

#[test]
fn a_loss_may_have_held_a_pps_of_a_sender_that_changes_them_between_keyframes() {
    let mut packets = pictures();
    for (_, _, payload) in packets.iter_mut().filter(|(n, _, _)| *n == 4) {
        *payload = stap_a(&[&[0x68, 0xce, 0x38, 0x80], payload]);
    }
    assert_eq!(shown_of(packets.clone(), &[]).0, (0..41).collect::<Vec<_>>());
    let (times, _) = shown_of(packets, &[(12, 0), (12, 1), (12, 2)]);
    assert_eq!(times, (0..12).chain(30..41).collect::<Vec<_>>());
}
