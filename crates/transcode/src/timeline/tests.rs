use super::*;

const PACKET: usize = 960;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

/// A packet that arrives this long after the start.
fn packet(micros: i64, start: Instant, arrived_us: i64) -> Arriving {
    let arrived = start + Duration::from_micros(arrived_us.unsigned_abs());
    Arriving { timestamp: at(micros), samples: PACKET, at: arrived, in_pause: false }
}

/// A packet of which nothing is known but its timestamp.
fn stamped(micros: i64) -> Arriving {
    packet(micros, Instant::now(), 0)
}

fn started_at(start: Instant) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.begin_segment(at(0));
    timeline.handle_packet(&packet(0, start, 0), PACKET);
    timeline
}

fn started() -> Timeline {
    started_at(Instant::now())
}

#[test]
fn a_packet_is_placed_by_its_timestamp() {
    let timeline = started();
    assert_eq!(Timeline::default().arrival(&stamped(7), Evidence::Before), Arrival::First);
    for (micros, expected) in [
        (20_000, Arrival::Continues),
        (29_999, Arrival::Continues),
        (10_001, Arrival::Continues),
        (0, Arrival::Continues),
        (30_000, Arrival::Missing(480)),
        (40_000, Arrival::Missing(960)),
        (41_000, Arrival::Missing(960)),
        (1_020_000, Arrival::Missing(48_000)),
        (1_020_001, Arrival::Discontinuity),
        (-480_000, Arrival::Continues),
        (-480_001, Arrival::Back),
        (i64::MAX, Arrival::Discontinuity),
        (i64::MIN, Arrival::Back),
    ] {
        let packet = stamped(micros);
        assert_eq!(timeline.arrival(&packet, Evidence::Confirmed), expected, "{micros}");
        let arrival = timeline.arrival(&packet, Evidence::Refuted);
        assert_eq!(arrival, Arrival::ContinuesUnstamped, "{micros}");
    }
}

#[test]
fn a_packet_that_the_time_passed_does_not_account_for_is_doubtful() {
    let start = Instant::now();
    let timeline = started_at(start);
    for (micros, arrived_us, is_doubtful) in [
        (20_000, 0, false),
        (29_999, 0, false),
        (40_000, 20_000, true),
        (40_000, 40_000, false),
        (3_600_000_000, 20_000, true),
        (5_000_000, 4_999_999, true),
        (5_000_000, 5_000_000, false),
        (-480_000, 20_000, false),
        (-480_001, 20_000, true),
    ] {
        let arriving = packet(micros, start, arrived_us);
        let arrival = timeline.arrival(&arriving, Evidence::Before);
        assert_eq!(arrival == Arrival::Doubtful, is_doubtful, "{micros} after {arrived_us}");
    }
    let late = Arriving { in_pause: true, ..packet(420_000, start, 320_000) };
    assert_eq!(timeline.arrival(&late, Evidence::Before), Arrival::Missing(19_200));
}

#[test]
fn a_doubtful_packet_is_confirmed_by_one_that_continues_it() {
    let timeline = started();
    for (doubtful, next, is_confirmed) in [
        (5_000_000, 5_020_000, true),
        (5_000_000, 5_420_000, true),
        (5_000_000, 5_011_000, true),
        (5_000_000, 5_000_000, false),
        (5_000_000, 40_000, false),
        (5_000_000, 9_000_000, false),
        (60_000, 80_000, true),
        (60_000, 40_000, false),
        (60_000, 60_000, false),
        (-5_000_000, -4_980_000, true),
        (-5_000_000, 40_000, false),
    ] {
        let evidence = timeline.evidence(&stamped(doubtful), at(next));
        assert_eq!(evidence == Evidence::Confirmed, is_confirmed, "{doubtful}, {next}");
    }
}

#[test]
fn a_clock_that_counts_too_little_and_is_corrected_gets_no_silence_for_it() {
    for counted in [18_375, 19_800, 19_950] {
        let (mut timeline, mut inserted, mut filled) = (started(), 0, 0);
        for n in 1..3_000 {
            if n * (20_000 - counted) - inserted >= 300_000 {
                inserted += 300_000;
            }
            let arriving = stamped(n * counted + inserted);
            match timeline.arrival(&arriving, Evidence::Confirmed) {
                Arrival::Missing(samples) => {
                    filled += samples;
                    timeline.handle_filling(samples);
                }
                arrival => assert_eq!(arrival, Arrival::Continues),
            }
            timeline.handle_packet(&arriving, PACKET);
            while timeline.has_unsent() {
                timeline.send_frame();
            }
            let end = timeline.ticks(arriving.timestamp) + PACKET as i64 * TICKS_PER_SAMPLE;
            let ahead = timeline.input_time() - end;
            assert!(ahead <= 320 * 1_000 * TICKS_PER_MICRO, "{counted}: {ahead}");
        }
        // As much as the frames were shortened, at most.
        assert!(filled <= 3_000 * PACKET / 250, "{counted}: {filled}");
    }
}

#[test]
fn a_clock_that_goes_back_continues_where_it_was_or_where_the_time_passed_says() {
    for (passed_us, continues_at) in [(20_000, 20_000), (3_000_000, 3_000_000)] {
        let start = Instant::now();
        let mut timeline = started_at(start);
        let back = packet(-3_600_000_000, start, passed_us);
        timeline.follow_back(&back);
        assert_eq!(timeline.ticks(back.timestamp), continues_at * TICKS_PER_MICRO);
    }
}

#[test]
fn three_frames_take_64_ms_exactly() {
    let mut timeline = Timeline::default();
    timeline.begin_segment(at(1_000));
    let sent: Vec<_> = (0..7).map(|_| timeline.send_frame().as_micros()).collect();
    assert_eq!(sent, [1_000, 22_333, 43_666, 65_000, 86_333, 107_666, 129_000]);
}

#[test]
fn small_deviations_are_ignored() {
    let mut timeline = started();
    timeline.handle_packet(&stamped(25_000), PACKET);
    timeline.send_frame();
    assert_eq!(timeline.next_timestamp(), at(21_333));
}

#[test]
fn larger_deviations_are_corrected_slowly() {
    for deviation in [8_000, -8_000] {
        let (mut timeline, mut last) = (started(), 0);
        for packet in 1..1_000 {
            timeline.handle_packet(&stamped(packet * 20_000 + deviation), PACKET);
            while timeline.has_unsent() {
                let now = timeline.send_frame().as_micros();
                assert!(last == 0 || (now - last - 21_333).abs() <= 86, "{now} after {last}");
                last = now;
            }
        }
        let frames = timeline.sent_frames;
        assert!((last - (frames - 1) * 64_000 / 3 - deviation).abs() <= 2, "{last}");
    }
}

#[test]
fn a_segment_never_starts_before_the_previous_one_ends() {
    let mut timeline = started();
    timeline.send_frame();
    timeline.begin_segment(at(5));
    assert_eq!(timeline.next_timestamp(), at(21_333));
    timeline.begin_segment(at(9_000_000));
    assert_eq!(timeline.next_timestamp(), at(9_000_000));
}
