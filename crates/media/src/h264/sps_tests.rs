use super::super::bits::tests::Writer;
use super::*;

const X264_PYRAMID: &[u8] = &[
    0x67, 0x64, 0x00, 0x1e, 0xac, 0xd9, 0x40, 0xa0, 0x2f, 0xf9, 0x70, 0x11, 0x00, 0x00, 0x03, 0x00,
    0x01, 0x00, 0x00, 0x03, 0x00, 0x32, 0x0f, 0x16, 0x2d, 0x96,
];
const X264_PLAIN: &[u8] = &[
    0x67, 0x64, 0x00, 0x1e, 0xac, 0xd1, 0x00, 0xa0, 0x2f, 0xf9, 0x70, 0x11, 0x00, 0x00, 0x03, 0x00,
    0x01, 0x00, 0x00, 0x03, 0x00, 0x32, 0x0f, 0x16, 0x2d, 0x12,
];
const X264_NONE: &[u8] = &[
    0x67, 0x64, 0x00, 0x1e, 0xac, 0xb2, 0x01, 0x40, 0x5f, 0xf2, 0xe0, 0x22, 0x00, 0x00, 0x03, 0x00,
    0x02, 0x00, 0x00, 0x03, 0x00, 0x64, 0x1e, 0x2c, 0x5c, 0x90,
];

#[test]
fn sizes_and_the_reorder_depth_are_parsed() {
    let table: [(&[u8], Option<u32>); 3] = [
        // x264, High 640x360: with a pyramid of three B-frames, with two non-reference B-frames, and without B-frames.
        (X264_PYRAMID, Some(2)),
        (X264_PLAIN, Some(1)),
        (X264_NONE, Some(0)),
    ];
    for (sps, depth) in table {
        let read = read_sps(sps).expect("valid");
        assert_eq!(read.reorder_depth, depth, "{sps:02x?}");
    }
    assert_eq!(read_sps(X264_PLAIN).map(|sps| (sps.width, sps.height)), Some((640, 360)));
}

#[test]
fn every_truncation_is_parsed_without_a_panic() {
    for length in 0..X264_PYRAMID.len() {
        let _ = read_sps(&X264_PYRAMID[..length]);
    }
}

/// A size of 640x368 in frames, not cropped, after the fields in `before`.
fn sized(before: Writer) -> Writer {
    before.number(4).bit(false).numbers(&[39, 22]).bit(true).bit(true).bit(false)
}

/// A bitstream restriction with this reorder depth.
fn restricted(before: Writer, depth: u32) -> Vec<u8> {
    let restriction = before.bit(true).bit(true).bit(true).numbers(&[2, 1, 16, 16, depth, 4]);
    restriction.nal(&[0x67, 77, 0, 30])
}

fn main_profile() -> Writer {
    // seq_parameter_set_id, log2_max_frame_num_minus4, pic_order_cnt_type 0 with its one number.
    sized(Writer::default().numbers(&[0, 2, 0, 2]))
}

#[test]
fn all_fields_before_the_reorder_depth_are_skipped() {
    let plain = main_profile().bit(true).fixed(0, 7);
    assert_eq!(read_sps(&restricted(plain, 3)).and_then(|sps| sps.reorder_depth), Some(3));
    let model = |before: Writer| {
        // Two schedules, each of two numbers and a bit.
        let schedules = before.number(1).fixed(0x35, 8);
        let schedules = schedules.numbers(&[900, 9_000]).bit(true).numbers(&[800, 70]).bit(false);
        schedules.fixed(0xa_5a5a, 20)
    };
    let everything = main_profile().bit(true);
    // Explicit aspect ratio, overscan, colour description, chroma location and timing.
    let everything = everything.bit(true).fixed(255, 8).fixed(0x0004_0003, 32).bit(true).bit(true);
    let everything = everything.bit(true).fixed(0b1010, 4).bit(true).fixed(0x01_0d01, 24);
    let everything = everything.bit(true).numbers(&[2, 5]);
    let everything = everything.bit(true).fixed(1001, 32).fixed(60_000, 32).bit(true);
    // HRD parameters of both kinds, and the low delay flag after them.
    let everything = model(model(everything.bit(true)).bit(true)).bit(true);
    let read = read_sps(&restricted(everything, 2)).expect("valid");
    assert_eq!((read.width, read.height, read.reorder_depth), (640, 368, Some(2)));
}

#[test]
fn a_missing_or_impossible_reorder_depth_is_none() {
    let depth = |sps: &[u8]| read_sps(sps).expect("its size is known").reorder_depth;
    assert_eq!(depth(&main_profile().bit(false).nal(&[0x67, 77, 0, 30])), None);
    let unrestricted = main_profile().bit(true).fixed(0, 7).bit(false).bit(false);
    assert_eq!(depth(&unrestricted.nal(&[0x67, 77, 0, 30])), None);
    let plain = || main_profile().bit(true).fixed(0, 7);
    assert_eq!(depth(&restricted(plain(), 16)), Some(16));
    assert_eq!(depth(&restricted(plain(), 17)), None);
}

#[test]
fn baseline_and_output_in_decoding_order_reorder_nothing() {
    let of = |profile, order: &[u32]| {
        let sps = sized(Writer::default().numbers(&[0, 2]).numbers(order)).bit(false);
        read_sps(&sps.nal(&[0x67, profile, 0, 30])).expect("valid").reorder_depth
    };
    assert_eq!(of(66, &[0, 2]), Some(0));
    assert_eq!(of(77, &[2]), Some(0));
    assert_eq!(of(77, &[0, 2]), None);
}

#[test]
fn a_picture_order_by_a_cycle_of_offsets_is_skipped() {
    let cycle = Writer::default().numbers(&[0, 2, 1]).bit(true).numbers(&[3, 4, 2, 8, 9]);
    let sps = sized(cycle).bit(false).nal(&[0x67, 77, 0, 30]);
    assert_eq!(resolution(&sps), Some((640, 368)));
}

fn resolution(sps: &[u8]) -> Option<(u32, u32)> {
    read_sps(sps).map(|sps| (sps.width, sps.height))
}

#[test]
fn fields_and_every_sample_format_are_cropped_in_their_own_units() {
    // [chroma_format_idc, whether it codes frames only] and the pixels cropped per unit on each side.
    for (chroma, frames_only, across, down) in [
        (0, true, 1, 1),
        (1, true, 2, 2),
        (2, true, 2, 1),
        (3, true, 1, 1),
        (1, false, 2, 4),
        (2, false, 2, 2),
    ] {
        let format = Writer::default().numbers(&[0, chroma]);
        let format = if chroma == 3 { format.bit(false) } else { format };
        let format = format.numbers(&[0, 0]).bit(false).bit(false);
        let size = format.numbers(&[2, 2, 4]).bit(false).numbers(&[39, 22]);
        let size = if frames_only { size.bit(true) } else { size.bit(false).bit(true) };
        let cropped = size.bit(true).bit(true).numbers(&[1, 2, 3, 4]).bit(false);
        let sps = cropped.nal(&[0x67, 100, 0, 30]);
        let height = if frames_only { 368 } else { 736 };
        let want = (640 - 3 * across, height - 7 * down);
        assert_eq!(resolution(&sps), Some(want), "chroma {chroma}, frames {frames_only}");
    }
}

#[test]
fn scaling_lists_are_skipped_in_their_full_length() {
    // delta_scale as se(v): 2n - 1 for n, 2n for -n.
    let list = |writer: Writer, size: usize| {
        (0..size).fold(writer, |writer, n| writer.number([3, 4][n % 2]))
    };
    let lists = Writer::default().numbers(&[0, 1, 0, 0]).bit(false).bit(true);
    let lists = list(lists.bit(true), 16).bit(false);
    // Its third step reaches 0: the rest repeats the last value.
    let lists = lists.bit(true).numbers(&[5, 6, 16]).fixed(0, 3);
    let lists = list(lists.bit(true), 64).bit(false);
    let sps = sized(lists.numbers(&[2, 2])).bit(false).nal(&[0x67, 100, 0, 30]);
    assert_eq!(resolution(&sps), Some((640, 368)));
}
