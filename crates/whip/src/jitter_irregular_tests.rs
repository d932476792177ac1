//! Numbers that are far from the others or belong to nothing that is missing, and requests without an answer.

use super::tests::Track;

#[test]
fn a_single_number_far_from_the_others_is_ignored() {
    for far in [11_u16 + 65, 10 + 1_500, 10 + 2_500, 30_000, 65_000, 60_000] {
        let mut track = Track::begun(true, 10);
        track.packet(0, 1, 11);
        // The same again does not confirm it, nor does another one elsewhere.
        for stray in [far, far, far.wrapping_add(20_000)] {
            assert!(!track.packet(1, 1, stray), "{far}");
        }
        for n in 12..40 {
            assert!(track.packet(u64::from(n), 1, n), "{far}: {n}");
            assert!(track.wait(u64::from(n)).is_empty());
        }
        assert!(track.packet(51, 1, 40));
        assert_eq!(track.out, (10..=40).collect::<Vec<_>>(), "{far}");
        assert_eq!(track.jitter.counters().lost, 0);
    }
}

#[test]
fn a_single_packet_of_another_source_is_ignored_and_none_of_a_new_one_is_lost() {
    let mut track = Track::begun(true, 10);
    for n in 11..40 {
        if n % 10 == 0 {
            assert!(!track.packet(u64::from(n) * 20, 1_000 + u32::from(n), n + 500));
        }
        assert!(track.packet(u64::from(n) * 20, 1, n), "{n}");
    }
    assert_eq!(track.out, (10..40).collect::<Vec<_>>());
    assert!(!track.packet(800, 2, 900));
    assert!(track.packet(801, 2, 901) && track.packet(802, 2, 902));
    track.wait(830);
    assert_eq!(track.out[30..], [-1, 900, 901, 902]);
    assert_eq!((track.jitter.counters().late, track.jitter.counters().lost), (2, 0));
}

#[test]
fn a_burst_of_losses_is_requested_as_soon_as_a_second_packet_confirms_it() {
    let mut track = Track::begun(true, 10);
    track.packet(0, 1, 211);
    assert!(track.packet(1, 1, 212));
    assert_eq!(track.wait(7).len(), 64);
    for n in 11..=210 {
        track.packet_or_repeat(20, 1, n, true);
    }
    assert_eq!(track.out, (10..=212).collect::<Vec<_>>());
    assert_eq!(track.jitter.counters().late, 0);
}

#[test]
fn a_retransmission_with_a_number_that_is_not_missing_changes_nothing() {
    let mut track = Track::begun(true, 10);
    track.packet(0, 1, 12);
    for wrong in [13, 14, 60, 300, 2_500, 30_000, 10, 12, 9, 65_000] {
        assert!(!track.packet_or_repeat(1, 1, wrong, true), "{wrong}");
        assert!(
            !track.packet_or_repeat(1, 1, wrong.wrapping_add(1), true) || wrong == 10,
            "{wrong}"
        );
    }
    track.packet(2, 1, 13);
    assert_eq!(track.out, [10, 11, 12, 13]);
}

#[test]
fn after_two_unanswered_packets_the_next_is_not_waited_for_until_an_answer_comes() {
    let mut track = Track::begun(true, 10);
    let mut now = 0;
    let mut given_up_after = |track: &mut Track, sequence: u16| {
        now += 2_000;
        track.packet(now, 1, sequence);
        let before = track.jitter.counters().lost;
        (0..2_000).find(|ms| {
            track.wait(now + ms);
            track.jitter.counters().lost > before
        })
    };
    let waits = [12, 14, 16, 18].map(|sequence| given_up_after(&mut track, sequence));
    assert_eq!(waits, [Some(1_000), Some(500), Some(30), Some(30)]);
    assert_eq!(track.jitter.counters().unanswered, 3);
    assert!(track.jitter.is_unanswered());
    // An answer that is too late is one.
    assert!(!track.packet_or_repeat(8_100, 1, 17, true));
    assert!(!track.jitter.is_unanswered());
    track.packet(8_200, 1, 20);
    track.wait(8_200 + 499);
    assert_eq!(track.out.last(), Some(&18));
}

#[test]
fn numbers_that_go_back_cost_less_than_two_seconds_whatever_the_clock_does() {
    // Packets of 20 ms: how far their numbers go back, and by what their RTP time moves.
    for back in [2, 70, 500, 1_000, 1_999, 2_001] {
        for moved in [0, 1 << 30, 3 << 30] {
            let mut track = Track::begun(false, 40_000);
            let mut send = |n: u16, sequence: u16, moved: u32| {
                let (millis, timestamp) = (u64::from(n) * 20, u32::from(n) * 960);
                let stamp = (sequence, timestamp.wrapping_add(moved));
                let is_taken = track.stamped(millis, 1, stamp, false);
                track.wait(millis + 19);
                is_taken
            };
            assert!((1..2_100).all(|n| send(n, 40_000 + n, 0)));
            let lost = (2_100..2_400).filter(|n| !send(*n, 40_000 + n - back, moved)).count();
            assert!(lost < 100, "{lost} by {back} and {moved}");
        }
    }
}

#[test]
fn late_packets_are_late_however_many_and_whatever_is_shown_first() {
    let mut track = Track::begun(false, 40_000);
    assert!((1..100).all(|n| track.stamped(0, 1, (40_000 + n, 3_000 * u32::from(n)), false)));
    for n in 60..80 {
        // Of pictures that are decoded before they are shown.
        let shown = 3_000 * u32::from(n) + 90_000;
        assert!(!track.stamped(1, 1, (40_000 + n, shown), false));
    }
    assert!(track.stamped(2, 1, (40_100, 300_000), false));
    assert_eq!(track.jitter.counters().late, 20);
    assert_eq!(track.out.len(), 101);
}
