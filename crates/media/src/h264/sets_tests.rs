use super::super::bits::tests::Writer;
use super::*;

/// x264, High, 1280x720 with scaling 4:2:0.
const HIGH: &[u8] = &[
    0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9, 0x40, 0x50, 0x05, 0xbb, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00,
    0x10, 0x00, 0x00, 0x03, 0x03, 0x20, 0xf1, 0x83, 0x19, 0x60,
];
/// OpenH264 in Chromium, constrained Baseline, 1280x720.
const BASELINE: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];

/// Baseline without cropping, `width` and 16 pixels high.
fn sps(id: u32, width: u32) -> Vec<u8> {
    let sized = Writer::default().number(id).number(0).number(2).number(1).bit(false);
    let sized = sized.number(width / 16 - 1).number(0).bit(true).bit(true).bit(false).bit(false);
    sized.nal(&[0x67, 66, 0xc0, 30])
}

fn pps(id: u32, sps_id: u32, more: u32) -> Vec<u8> {
    Writer::default().number(id).number(sps_id).number(more).nal(&[0x68])
}

fn idr(pps_id: u32) -> Vec<u8> {
    Writer::default().number(0).number(7).number(pps_id).number(5).nal(&[0x65])
}

fn width(sets: &ParameterSets) -> Option<u32> {
    sets.sps().map(|sps| sps.width)
}

#[test]
fn a_configuration_follows_both_sets_and_every_change_of_their_bytes() {
    let mut sets = ParameterSets::default();
    assert_eq!(sets.handle_nal(BASELINE), SetChange::Changed);
    assert_eq!(sets.poll_configuration(), None);
    assert_eq!(sets.handle_nal(PPS), SetChange::Changed);
    let record = sets.poll_configuration().expect("complete");
    assert_eq!(&record[..6], [1, 0x42, 0xc0, 0x1f, 0xff, 0xe1]);
    assert_eq!(&record[6..8], [0, BASELINE.len() as u8]);
    assert!(record.ends_with(PPS));
    assert_eq!(sets.handle_nal(BASELINE), SetChange::Known);
    assert_eq!(sets.handle_nal(PPS), SetChange::Known);
    assert_eq!(sets.poll_configuration(), None);
    sets.handle_nal(HIGH);
    let record = sets.poll_configuration().expect("changed");
    assert!(record.ends_with(&[0xfd, 0xf8, 0xf8, 0]), "High profile carries the sample format");
}

#[test]
fn nal_units_that_are_not_parameter_sets_are_ignored() {
    let mut sets = ParameterSets::default();
    for nal in [&[][..], &[0x67], &[0x68], &[0x65, 1, 2, 3, 4, 5], &[0x67; 2000]] {
        assert_eq!(sets.handle_nal(nal), SetChange::Refused);
    }
    let long = |length: usize| [&pps(0, 0, 1)[..], &vec![0xff; length - 2]].concat();
    assert_eq!((pps(0, 0, 1).len(), long(1_024).len()), (2, 1_024));
    assert_eq!(sets.handle_nal(&long(1_025)), SetChange::Refused);
    assert_eq!(sets.handle_nal(&long(1_024)), SetChange::Changed);
    for id in 0..300 {
        sets.handle_nal(&pps(id, 0, 1));
        sets.handle_nal(&sps(id, 320));
    }
    assert!(sets.pps.len() <= PPS_LIMIT && sets.sps.len() <= SPS_LIMIT);
}

#[test]
fn size_and_configuration_come_from_the_set_that_the_idr_slices_activate() {
    let mut sets = ParameterSets::default();
    for (id, width) in [(0, 320), (1, 640)] {
        sets.handle_nal(&sps(id, width));
        sets.handle_nal(&pps(id, id, 1));
    }
    sets.activate(&idr(0));
    assert_eq!(width(&sets), Some(320));
    let small = sets.poll_configuration().expect("new");
    assert!(small.ends_with(&pps(0, 0, 1)) && small[5] == 0xe1);
    sets.activate(&idr(0));
    assert_eq!(sets.poll_configuration(), None);
    sets.activate(&idr(1));
    assert_eq!(width(&sets), Some(640));
    assert!(sets.poll_configuration().expect("another is active").ends_with(&pps(1, 1, 1)));
    // A slice with an unknown PPS, and one that ends before its id, change nothing.
    sets.activate(&idr(9));
    sets.activate(&[0x65, 0x88]);
    assert_eq!((width(&sets), sets.poll_configuration()), (Some(640), None));
}

#[test]
fn changed_content_under_a_known_id_takes_effect() {
    let mut sets = ParameterSets::default();
    sets.handle_nal(&sps(0, 320));
    sets.handle_nal(&pps(0, 0, 1));
    sets.activate(&idr(0));
    assert!(sets.poll_configuration().is_some());
    assert_eq!(sets.handle_nal(&sps(0, 1280)), SetChange::Changed);
    sets.activate(&idr(0));
    assert_eq!(width(&sets), Some(1280));
    assert!(sets.poll_configuration().is_some());
}

#[test]
fn beyond_the_limit_the_least_recently_used_set_is_dropped_but_not_the_active_one() {
    let mut sets = ParameterSets::default();
    sets.handle_nal(&pps(0, 0, 1));
    for id in 0..=8 {
        sets.handle_nal(&sps(id, 16 * (id + 10)));
        sets.handle_nal(&pps(id, id, 1));
        if id == 0 {
            sets.activate(&idr(0));
        }
    }
    assert_eq!(width(&sets), Some(160));
    sets.activate(&idr(8));
    assert_eq!(width(&sets), Some(288), "the ninth id is taken");
    sets.activate(&idr(1));
    assert_eq!(width(&sets), Some(288), "the least recently used one is gone");
    sets.activate(&idr(0));
    assert_eq!(width(&sets), Some(160));
}

#[test]
fn ids_outside_the_range_of_the_standard_are_rejected() {
    let mut sets = ParameterSets::default();
    assert_eq!(sets.handle_nal(&sps(31, 320)), SetChange::Changed);
    assert_eq!(sets.handle_nal(&sps(32, 320)), SetChange::Refused);
    assert_eq!(sets.handle_nal(&pps(255, 31, 1)), SetChange::Changed);
    assert_eq!(sets.handle_nal(&pps(256, 31, 1)), SetChange::Refused);
    assert_eq!(sets.handle_nal(&pps(255, 32, 1)), SetChange::Refused);
    // The highest ids are activated like all others.
    sets.handle_nal(&sps(0, 640));
    sets.activate(&idr(255));
    assert_eq!(width(&sets), Some(320));
}

#[test]
fn one_kind_of_parameter_set_alone_is_not_enough() {
    let mut sets = ParameterSets::default();
    assert!(!sets.is_complete());
    sets.handle_nal(PPS);
    assert!(!sets.is_complete());
    sets.handle_nal(BASELINE);
    assert!(sets.is_complete());
    let mut sets = ParameterSets::default();
    sets.handle_nal(BASELINE);
    assert!(!sets.is_complete());
}

#[test]
fn a_sample_format_that_does_not_exist_makes_no_configuration() {
    let configuration = |chroma, luma_depth, chroma_depth| {
        let format = Writer::default().number(0).number(chroma);
        let format = if chroma == 3 { format.bit(false) } else { format };
        let sps = format.number(luma_depth).number(chroma_depth).nal(&[0x67, 100, 0, 31]);
        let mut sets = ParameterSets::default();
        sets.handle_nal(&sps);
        sets.handle_nal(PPS);
        sets.poll_configuration()
    };
    let record = configuration(3, 6, 5).expect("4:4:4 of 14 and 13 bits");
    assert!(record.ends_with(&[0xff, 0xfe, 0xfd, 0]));
    for (chroma, luma_depth, chroma_depth) in [(4, 0, 0), (1, 7, 0), (1, 0, 7)] {
        assert_eq!(configuration(chroma, luma_depth, chroma_depth), None);
    }
}

#[test]
fn activating_the_only_set_changes_nothing() {
    let mut sets = ParameterSets::default();
    sets.handle_nal(&sps(0, 320));
    sets.handle_nal(&pps(0, 0, 1));
    assert!(sets.poll_configuration().is_some());
    sets.activate(&idr(0));
    assert_eq!(sets.poll_configuration(), None);
}
