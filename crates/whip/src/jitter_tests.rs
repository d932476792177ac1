use std::collections::VecDeque;

use super::*;

pub(super) struct Track {
    pub(super) jitter: Jitter,
    start: Instant,
    pub(super) out: Vec<i64>,
}

impl Track {
    fn new(can_ask: bool) -> Self {
        Self { jitter: Jitter::new(can_ask), start: Instant::now(), out: Vec::new() }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    /// A track whose source has begun: `sequence` arrived long ago.
    pub(super) fn begun(can_ask: bool, sequence: u16) -> Self {
        let mut track = Self::new(can_ask);
        track.packet(0, 1, sequence);
        track.start += START_WAIT;
        track.wait(0);
        track
    }

    pub(super) fn packet(&mut self, millis: u64, ssrc: u32, sequence: u16) -> bool {
        self.packet_or_repeat(millis, ssrc, sequence, false)
    }

    pub(super) fn packet_or_repeat(
        &mut self,
        millis: u64,
        ssrc: u32,
        sequence: u16,
        is_repeated: bool,
    ) -> bool {
        self.stamped(millis, ssrc, (sequence, 0), is_repeated)
    }

    pub(super) fn stamped(
        &mut self,
        millis: u64,
        ssrc: u32,
        (sequence, timestamp): (u16, u32),
        is_repeated: bool,
    ) -> bool {
        let header = RtpHeader {
            marker: false,
            payload_type: 96,
            sequence,
            timestamp,
            ssrc,
            payload_at: 0,
            payload_end: 1,
        };
        let now = self.at(millis);
        let out = &mut self.out;
        self.jitter
            .handle_packet(now, &header, &[1], is_repeated, &mut |ordered| note(out, ordered))
    }

    pub(super) fn wait(&mut self, millis: u64) -> Vec<u16> {
        let now = self.at(millis);
        let out = &mut self.out;
        self.jitter.handle_timeout(now, &mut |ordered| note(out, ordered));
        let mut asked = Vec::new();
        self.jitter.poll_nack(now, &mut asked);
        asked
    }
}

/// Notes packets by their number, and gaps as a negative count.
fn note(out: &mut Vec<i64>, ordered: Ordered<'_>) {
    out.push(match ordered {
        Ordered::Packet(header, ..) => i64::from(header.sequence),
        Ordered::Gap(count) => -(count as i64),
        Ordered::Restart => -1,
    });
}

#[test]
fn packets_in_order_pass_immediately_and_across_the_wrap() {
    let mut track = Track::begun(true, 65534);
    for sequence in [65535, 0, 1] {
        track.packet(0, 1, sequence);
    }
    assert_eq!(track.out, [65534, 65535, 0, 1]);
    assert_eq!(track.jitter.poll_timeout(), None);
}

#[test]
fn a_source_with_reordered_first_packets_starts_with_its_first() {
    let mut track = Track::new(true);
    for (millis, sequence) in [(0, 12), (3, 13), (15, 9), (16, 11)] {
        assert!(track.packet(millis, 1, sequence));
    }
    track.wait(19);
    assert!(track.out.is_empty());
    assert!(track.wait(20).is_empty());
    assert_eq!(track.out, [9]);
    assert_eq!(track.wait(22), [10]);
    assert!(track.packet(30, 1, 10));
    // The source has begun.
    assert!(!track.packet(31, 1, 8));
    assert_eq!(track.out, [9, 10, 11, 12, 13]);
    assert_eq!(track.jitter.counters().late, 1);
}

#[test]
fn reordered_packets_are_ordered_without_a_request() {
    let mut track = Track::begun(true, 10);
    for sequence in [12, 11, 13] {
        track.packet(0, 1, sequence);
    }
    assert_eq!(track.out, [10, 11, 12, 13]);
    assert!(track.wait(10).is_empty());
}

#[test]
fn a_lost_packet_is_requested_until_it_arrives() {
    let mut track = Track::begun(true, 10);
    track.packet(0, 1, 12);
    assert!(track.wait(2).is_empty());
    assert_eq!(track.wait(7), [11]);
    assert!(track.wait(50).is_empty());
    assert_eq!(track.wait(120), [11]);
    assert!(track.packet(150, 1, 11));
    assert!(!track.packet(151, 1, 11));
    assert_eq!(track.out, [10, 11, 12]);
    let counters = track.jitter.counters();
    assert_eq!((counters.requested, counters.recovered, counters.late), (2, 1, 1));
}

#[test]
fn a_late_original_does_not_count_for_the_round_trip() {
    let mut track = Track::begun(true, 10);
    track.packet(0, 1, 12);
    assert_eq!(track.wait(6), [11]);
    track.packet(12, 1, 11);
    assert_eq!(track.jitter.rtt(), None);
    track.packet(20, 1, 14);
    assert_eq!(track.wait(26), [13]);
    track.packet_or_repeat(130, 1, 13, true);
    assert_eq!(
        track.jitter.rtt(),
        Some((Duration::from_millis(80) * 7 + Duration::from_millis(104)) / 8)
    );
}

#[test]
fn a_gap_is_requested_as_long_as_it_is_waited_for() {
    for round_trip in [2, 20, 60, 120] {
        let mut track = Track::begun(true, 10);
        // The round trip has been measured.
        for sequence in (12..=112).step_by(2) {
            let at = u64::from(sequence) * 200;
            track.packet(at, 1, sequence);
            assert_eq!(track.wait(at + 6), [sequence - 1]);
            track.packet_or_repeat(at + 6 + round_trip, 1, sequence - 1, true);
        }
        track.packet(30_000, 1, 114);
        let asked: Vec<u64> = (0..500).filter(|ms| !track.wait(30_000 + ms).is_empty()).collect();
        let last = asked.last().copied().unwrap_or_default();
        assert!(asked.len() >= 7 && last >= 420, "{round_trip} ms: {asked:?}");
    }
}

#[test]
fn on_a_slow_path_a_gap_is_waited_for_until_the_fourth_repetition_and_at_most_a_second() {
    for (round_trip, until) in [(200, 920), (100, 520), (60, 500), (900, 1_000)] {
        let mut track = Track::begun(true, 10);
        for sequence in (12..=112).step_by(2) {
            let at = u64::from(sequence) * 2_000;
            track.packet(at, 1, sequence);
            for ms in (6..6 + round_trip).step_by(10) {
                track.wait(at + ms);
            }
            track.packet_or_repeat(at + 6 + round_trip, 1, sequence - 1, true);
        }
        track.out.clear();
        track.packet(300_000, 1, 114);
        track.wait(300_000 + until - 1);
        assert!(track.out.is_empty(), "{round_trip} ms: {:?}", track.out);
        track.wait(300_000 + until);
        assert_eq!(track.out, [-1, 114], "{round_trip} ms");
        let measured = track.jitter.rtt().expect("it was answered").as_millis();
        assert!(measured.abs_diff(round_trip.into()) <= 10, "{measured} of {round_trip} ms");
    }
}

#[test]
fn a_gap_is_given_up_in_time() {
    for (can_ask, until, later) in [(true, 1_000, 500), (false, 60, 60)] {
        let mut track = Track::begun(can_ask, 10);
        for sequence in [13, 14, 16] {
            track.packet(0, 1, sequence);
        }
        track.wait(until - 1);
        assert_eq!(track.out, [10]);
        track.wait(until);
        assert_eq!(track.out, [10, -2, 13, 14, -1, 16]);
        assert_eq!(track.jitter.counters().lost, 3);
        // No request was answered: the next hole is not waited for as long.
        track.packet(2_000, 1, 18);
        track.wait(2_000 + later - 1);
        assert_eq!(track.out.last(), Some(&16));
        track.wait(2_000 + later);
        assert_eq!(track.out[6..], [-1, 18]);
    }
}

#[test]
fn a_new_source_or_a_far_jump_restarts_the_order_after_a_gap() {
    let mut track = Track::begun(true, 10);
    track.packet(0, 1, 12);
    track.packet(0, 2, 500);
    track.packet(0, 2, 501);
    track.packet(0, 2, 30_000);
    track.packet(0, 2, 30_001);
    track.wait(20);
    assert_eq!(track.out, [10, -1, 12, -1, 500, 501, -1, 30_000, 30_001]);
}

#[test]
fn packets_that_wait_for_a_gap_are_bounded() {
    let mut track = Track::begun(true, 0);
    for sequence in 2..=2000 {
        track.packet(0, 1, sequence);
    }
    assert!(track.jitter.waiting.len() <= WAITING_LIMIT);
    assert_eq!(track.out.len(), 2001);
}

#[test]
fn each_jump_costs_one_run_and_missing_packets_are_bounded() {
    let mut track = Track::begun(true, 0);
    let mut sequence = 0_u16;
    for packet in 0..20_000_u64 {
        // Steps as large as a loss may be, as often as possible.
        let step = if packet % 2 == 0 { 1_999 } else { 900 };
        sequence = sequence.wrapping_add(step);
        track.packet(packet / 100, 1, sequence);
        // Every second packet confirms the one before it, and both may wait.
        assert!(track.jitter.waiting.len() <= 2);
    }
    for packet in 0..20_000_u64 {
        sequence = sequence.wrapping_add(2);
        track.packet(200 + packet / 100, 1, sequence);
        // Each waits behind its own run, and the number of runs is limited.
        assert!(track.jitter.waiting.len() <= 256);
    }
    // No packet is emitted out of order or twice.
    let packets = track.out.iter().filter(|entry| **entry >= 0).count();
    assert!(packets > 30_000, "{packets}");
}

#[test]
fn a_turn_requests_each_packet_once_and_the_next_turn_is_later() {
    let mut track = Track::begun(true, 0);
    track.packet(0, 1, 300);
    track.packet(0, 1, 301);
    let mut asked = Vec::new();
    let mut now = track.jitter.poll_timeout().expect("a gap");
    let mut turns = 0;
    while now < track.at(50) {
        let before = asked.len();
        track.jitter.handle_timeout(now, &mut |_| {});
        track.jitter.poll_nack(now, &mut asked);
        assert!(asked.len() - before <= 64);
        track.jitter.poll_nack(now, &mut asked);
        let next = track.jitter.poll_timeout().expect("still a gap");
        assert!(next > now, "what is due stays due");
        now = next;
        turns += 1;
    }
    assert!(turns <= 12, "{turns}");
    let mut once = asked.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!((once.len(), asked.len()), (299, 299), "every packet, and none before its pause");
}

#[test]
fn packets_around_an_arrival_in_a_long_gap_are_still_requested() {
    let mut track = Track::begun(true, 0);
    track.packet(0, 1, 10);
    assert!(track.packet(1, 1, 4));
    assert!(track.packet(2, 1, 9));
    assert!(!track.packet(2, 1, 9));
    assert_eq!(track.wait(6), [1, 2, 3, 5, 6, 7, 8]);
    for sequence in [1, 2, 3, 8, 7, 6, 5] {
        assert!(track.packet(20, 1, sequence));
    }
    assert_eq!(track.out, (0..=10).collect::<Vec<_>>());
    assert_eq!(track.jitter.counters().recovered, 7);
    assert_eq!(track.jitter.poll_timeout(), None);
}

#[test]
fn two_sources_that_take_turns_do_not_restart_the_order() {
    let mut track = Track::begun(true, 10);
    for n in 1..=200_u16 {
        track.packet(u64::from(n) * 10, 1, 10 + n);
        track.packet(u64::from(n) * 10 + 5, 2, 5_000 + n);
        track.wait(u64::from(n) * 10 + 5);
    }
    track.wait(3_000);
    let gaps = track.out.iter().filter(|entry| **entry < 0).count();
    assert_eq!(gaps, 1, "the new source is followed, once");
    let packets = track.out.iter().filter(|entry| **entry >= 5_000).count();
    assert_eq!(packets, 200);
}

#[test]
fn waiting_packets_are_bounded_in_bytes() {
    let mut jitter = Jitter::new(true);
    let (now, payload) = (Instant::now(), vec![7; 60_000]);
    for sequence in (0..900_u16).filter(|sequence| *sequence != 1) {
        let (marker, payload_type, timestamp, ssrc) = (false, 96, 0, 1);
        let (payload_at, payload_end) = (0, payload.len());
        let header =
            RtpHeader { marker, payload_type, sequence, timestamp, ssrc, payload_at, payload_end };
        jitter.handle_packet(now, &header, &payload, false, &mut |_| {});
        assert!(jitter.waiting_bytes <= WAITING_LIMIT_BYTES);
    }
}

/// Packets given up in 20 minutes on a path with this round trip (ms) that loses one in twenty each way. Like
/// libwebrtc, the sender repeats a packet once per round trip, however often it is requested.
fn given_up_in_20_minutes(round_trip: u64) -> u64 {
    const STEP_MS: u64 = 8;
    let one_way = round_trip / 2;
    let mut dice = 1_u32;
    let mut is_lost = || {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        dice >> 16 < 0x1_0000 / 20
    };
    let mut track = Track::begun(true, 0);
    let mut repeated_at: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut requests, mut repeats) = (VecDeque::new(), VecDeque::new());
    for ms in 1..20 * 60_000_u64 {
        if ms % STEP_MS == 0 && !is_lost() {
            track.packet(ms, 1, (ms / STEP_MS) as u16);
        }
        while let Some((_, sequence)) = repeats.pop_front_if(|(at, _): &mut (u64, u16)| *at <= ms) {
            track.packet_or_repeat(ms, 1, sequence, true);
        }
        let asked = track.wait(ms);
        if !asked.is_empty() && !is_lost() {
            requests.push_back((ms + one_way, asked));
        }
        while let Some((_, asked)) = requests.pop_front_if(|(at, _): &mut (u64, _)| *at <= ms) {
            for sequence in asked {
                let is_due = repeated_at.get(&sequence).is_none_or(|at| ms >= at + round_trip);
                if is_due {
                    repeated_at.insert(sequence, ms);
                    repeats.extend((!is_lost()).then_some((ms + one_way, sequence)));
                }
            }
        }
        repeated_at.retain(|_, at| ms < *at + 5_000);
        track.out.clear();
    }
    track.jitter.counters().lost
}

#[test]
fn a_path_that_loses_one_in_twenty_costs_hardly_a_picture() {
    for round_trip in [20, 60, 100, 120, 150, 200] {
        let given_up = given_up_in_20_minutes(round_trip);
        println!("{round_trip} ms: {given_up} of 150,000 given up");
        assert!(given_up <= 3, "{round_trip} ms: {given_up} of 150,000 given up");
    }
}
