use super::*;

const NTP_START: u64 = 3_900_000_000 << 32;
const SOUND: u32 = 11;
const PICTURE: u32 = 12;

fn ntp(millis: u64) -> u64 {
    NTP_START + ((millis << 32) / 1000)
}

fn at(start: Instant, millis: u64) -> Instant {
    start + Duration::from_millis(millis)
}

#[test]
fn both_tracks_start_by_arrival_and_continue_by_their_own_clocks() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    assert_eq!(clock.stamp_audio(start, SOUND, 7000), Timestamp::ZERO);
    // 960 samples later, 5 ms late.
    assert_eq!(clock.stamp_audio(at(start, 25), SOUND, 7960), Timestamp::from_millis(20));
    assert_eq!(clock.stamp_video(at(start, 80), PICTURE, 123), Timestamp::from_millis(80));
    assert_eq!(clock.stamp_video(at(start, 190), PICTURE, 9123), Timestamp::from_millis(180));
}

#[test]
fn time_continues_when_clocks_wrap() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, u32::MAX - 479);
    assert_eq!(clock.stamp_audio(at(start, 20), SOUND, 480), Timestamp::from_millis(20));
    clock.stamp_video(start, PICTURE, u32::MAX);
    assert_eq!(clock.stamp_video(at(start, 40), PICTURE, 3599), Timestamp::from_millis(40));
}

/// Reports every second from clocks whose packets arrive `late_ms` apart, 25 video frames a second, for four seconds.
/// Returns the offset left after the second pair of reports, and the shortest and the longest step.
fn slewed(late_ms: i64) -> (i64, i64, i64) {
    let (start, mut clock) = (at(Instant::now(), 0), Clock::default());
    let (sound_ms, picture_ms) = ((-late_ms).max(0) as u64, late_ms.max(0) as u64);
    let (mut last, mut steps, mut left) = (None, (i64::MAX, i64::MIN), i64::MAX);
    for n in 0..100_u32 {
        let millis = u64::from(n) * 40;
        let sound = clock.stamp_audio(at(start, millis + sound_ms), SOUND, n * 1920);
        let picture = clock.stamp_video(at(start, millis + picture_ms), PICTURE, n * 3600);
        if let Some(last) = last.replace(picture) {
            let step = picture.as_micros() - Timestamp::as_micros(last);
            steps = (steps.0.min(step), steps.1.max(step));
        }
        if n % 25 == 24 {
            if n == 49 {
                left = (picture.as_micros() - sound.as_micros()).abs();
            }
            clock.handle_audio_report(SOUND, ntp(millis), n * 1920);
            clock.handle_video_report(PICTURE, ntp(millis), n * 3600);
        }
    }
    assert!(clock.skew_us().expect("compared").abs() < 1000);
    (left, steps.0, steps.1)
}

#[test]
fn clocks_that_start_300_ms_apart_are_together_at_the_second_report_without_a_jump() {
    for late_ms in [300, -300, 100, -100, 20] {
        let (left, shortest, longest) = slewed(late_ms);
        assert!(left <= 20_000, "{late_ms} ms late leaves {left} us");
        assert!(shortest >= 20_000 && longest <= 60_000, "{late_ms}: {shortest} to {longest}");
    }
}

#[test]
fn after_a_clock_jump_time_continues_as_expected_and_never_goes_back() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_video(start, PICTURE, 1_000_000);
    let stamp = clock.stamp_video(at(start, 40), PICTURE, 2_000_000_000);
    assert_eq!(stamp, Timestamp::from_millis(40));
    let later = clock.stamp_video(at(start, 80), PICTURE, 2_000_003_600);
    assert_eq!(later, Timestamp::from_millis(80));
}

#[test]
fn a_day_of_clock_drift_is_corrected_without_a_jump() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    // 200 ppm fast: 17 s in a day.
    for second in 0..86_400_u64 {
        let rtp = (second * 90_018) as u32;
        let stamp = clock.stamp_video(at(start, second * 1000), PICTURE, rtp);
        assert_eq!(stamp.as_micros(), second as i64 * 1_000_200);
    }
}

#[test]
fn a_new_source_continues_where_the_old_one_would_be() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_video(at(start, 0), PICTURE, 5_000);
    clock.stamp_video(at(start, 40), PICTURE, 8_600);
    // Within five seconds of the old clock by chance, but still a different clock.
    let stamp = clock.stamp_video(at(start, 140), 77, 98_600);
    assert_eq!(stamp, Timestamp::from_millis(140));
    assert_eq!(clock.stamp_video(at(start, 180), 77, 102_200), Timestamp::from_millis(180));
}

#[test]
fn a_source_that_reported_before_its_first_packet_starts_at_the_right_time() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.handle_audio_report(SOUND, ntp(0), 0);
    clock.handle_video_report(PICTURE, ntp(0), 0);
    // It arrives 150 ms late; its correct time is 40 ms.
    assert_eq!(clock.stamp_video(at(start, 190), PICTURE, 3600), Timestamp::from_millis(40));
}

#[test]
fn a_report_with_a_broken_clock_is_ignored() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.stamp_video(start, PICTURE, 0);
    clock.handle_audio_report(SOUND, ntp(0), 0);
    clock.handle_video_report(PICTURE, ntp(9000), 0);
    assert_eq!(clock.skew_us(), Some(0));
}

#[test]
fn a_clock_that_jumps_with_every_packet_never_exceeds_32_bits() {
    let start = Instant::now();
    let mut clock = Clock::default();
    let mut rtp = 0_u32;
    for n in 0..10_000 {
        rtp = rtp.wrapping_add(0x7fff_0000);
        clock.stamp_audio(start + Duration::from_millis(n * 20), 7, rtp);
        assert!(clock.audio.last_rtp <= i64::from(u32::MAX));
    }
}

#[test]
fn an_offset_of_five_seconds_is_corrected_and_unknown_before_both_reports() {
    for (offset_ms, left) in [(5_000, 5_000_000), (5_001, 0)] {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_audio(start, SOUND, 0);
        clock.stamp_video(start, PICTURE, 0);
        assert_eq!(clock.skew_us(), None);
        clock.handle_audio_report(SOUND, ntp(10_000), 0);
        assert_eq!(clock.skew_us(), None);
        clock.handle_video_report(PICTURE, ntp(10_000 + offset_ms), 0);
        assert_eq!(clock.skew_us().map(i64::abs), Some(left), "{offset_ms} ms");
    }
}

#[test]
fn after_a_stalled_microphone_audio_and_video_are_together_again() {
    for stall_ms in [500, 3_000, 4_900, 7_000] {
        let (start, mut clock) = (Instant::now(), Clock::default());
        let (mut audio_rtp, mut apart) = (0, i64::MAX);
        for n in 0..1_000_u32 {
            let millis = u64::from(n) * 40;
            let picture = clock.stamp_video(at(start, millis), PICTURE, n * 3_600);
            let is_stalled = (10_000..10_000 + stall_ms).contains(&millis);
            if !is_stalled {
                let sound = clock.stamp_audio(at(start, millis), SOUND, audio_rtp);
                apart = (picture.as_micros() - sound.as_micros()).abs();
            }
            if n % 25 == 24 && !is_stalled {
                clock.handle_audio_report(SOUND, ntp(millis), audio_rtp);
                clock.handle_video_report(PICTURE, ntp(millis), n * 3_600);
            }
            audio_rtp += if is_stalled { 0 } else { 1_920 };
        }
        assert!(apart <= 20_000, "{apart} us apart after a stall of {stall_ms} ms");
    }
}

#[test]
fn after_an_outage_that_moved_only_the_audio_both_tracks_are_together_again() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    let (mut apart, mut longest, mut last) = (i64::MAX, 0, None);
    for sampled in (0..36_700_u64).step_by(20) {
        // Nothing arrives from 10 s to 16.5 s; then everything that was sent meanwhile, within 160 ms.
        let arrived = match sampled.checked_sub(10_000) {
            Some(waited) => sampled.max(16_500 + waited / 40),
            None => sampled,
        };
        let (now, sampled_ms) = (at(start, arrived), sampled as u32);
        let sound = clock.stamp_audio(now, SOUND, sampled_ms * 48);
        // A packet is lost at 9.95 s: what follows is withheld until the keyframe of 16.6 s.
        if sampled.is_multiple_of(40) && !(9_950..16_600).contains(&sampled) {
            let picture = clock.stamp_video(now, PICTURE, sampled_ms * 90).as_micros();
            apart = (picture - sound.as_micros()).abs();
            let step = last.replace(picture).map_or(0, |last| picture - last);
            if sampled > 16_600 {
                longest = step.max(longest);
            }
        }
        if sampled % 1_000 == 980 {
            clock.handle_audio_report(SOUND, ntp(sampled), sampled_ms * 48);
            clock.handle_video_report(PICTURE, ntp(sampled), sampled_ms * 90);
        }
    }
    assert!(apart <= 20_000, "{apart} us apart 20 s after the outage");
    assert!(longest <= 60_000, "a step of {longest} us");
}

#[test]
fn a_larger_offset_is_corrected_if_arrival_times_confirm_it_to_two_seconds() {
    for (late_ms, left) in [(0, 7_000_000), (2_000, 9_000_000), (2_001, 0)] {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_audio(start, SOUND, 0);
        // Seven seconds of audio arrive at once, and are mapped to begin at their arrival.
        for second in 0..=7 {
            clock.stamp_audio(at(start, 7_000), SOUND, second * 48_000);
        }
        clock.stamp_video(at(start, 7_000), PICTURE, 0);
        clock.handle_audio_report(SOUND, ntp(7_000), 7 * 48_000);
        clock.handle_video_report(PICTURE, ntp(7_000 + late_ms), 0);
        assert_eq!(clock.skew_us(), Some(left), "{late_ms} ms");
    }
}

#[test]
fn a_step_of_five_seconds_is_kept_and_a_longer_one_counts_as_a_new_clock() {
    for (step, millis) in [(450_000, 5_000), (450_001, 0)] {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_video(start, PICTURE, 0);
        let stamp = clock.stamp_video(start, PICTURE, step);
        assert_eq!(stamp, Timestamp::from_millis(millis), "{step} ticks");
    }
}

#[test]
fn reports_of_the_newest_eight_sources_are_kept_until_their_packets_arrive() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.handle_audio_report(SOUND, ntp(0), 0);
    for ssrc in 100..109 {
        clock.handle_video_report(ssrc, ntp(0), 0);
    }
    // Each arrives 150 ms late; its correct time is 40 ms.
    let mut stamp = |ssrc| Clock::stamp_video(&mut clock, at(start, 190), ssrc, 3_600).as_millis();
    assert_eq!(stamp(100), 190, "the oldest report is gone");
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.handle_audio_report(SOUND, ntp(0), 0);
    for ssrc in 101..109 {
        clock.handle_video_report(ssrc, ntp(0), 0);
    }
    assert_eq!(clock.stamp_video(at(start, 190), 101, 3_600).as_millis(), 40);
}
