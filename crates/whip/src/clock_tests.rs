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

/// The timestamp of a video frame that is shown when it is decoded.
fn stamp_video(clock: &mut Clock, now: Instant, ssrc: u32, rtp: u32) -> Timestamp {
    let shown = clock.stamp_video(now, ssrc, rtp);
    clock.place_video(FrameTime { decode: shown, shown }).shown
}

#[test]
fn both_tracks_start_by_arrival_and_continue_by_their_own_clocks() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    assert_eq!(clock.stamp_audio(start, SOUND, 7000), Timestamp::ZERO);
    // 960 samples later, 5 ms late.
    assert_eq!(clock.stamp_audio(at(start, 25), SOUND, 7960), Timestamp::from_millis(20));
    assert_eq!(stamp_video(&mut clock, at(start, 80), PICTURE, 123), Timestamp::from_millis(80));
    assert_eq!(stamp_video(&mut clock, at(start, 190), PICTURE, 9123), Timestamp::from_millis(180));
}

#[test]
fn time_continues_when_clocks_wrap() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, u32::MAX - 479);
    assert_eq!(clock.stamp_audio(at(start, 20), SOUND, 480), Timestamp::from_millis(20));
    stamp_video(&mut clock, start, PICTURE, u32::MAX);
    assert_eq!(stamp_video(&mut clock, at(start, 40), PICTURE, 3599), Timestamp::from_millis(40));
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
        let picture = stamp_video(&mut clock, at(start, millis + picture_ms), PICTURE, n * 3600);
        if let Some(last) = last.replace(picture) {
            let step = picture.as_micros() - Timestamp::as_micros(last);
            steps = (steps.0.min(step), steps.1.max(step));
        }
        if n % 25 == 24 {
            if n == 49 {
                left = (picture.as_micros() - sound.as_micros()).abs();
            }
            clock.handle_audio_report(at(start, millis), SOUND, ntp(millis), n * 1920);
            clock.handle_video_report(at(start, millis), PICTURE, ntp(millis), n * 3600);
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
fn a_day_of_clock_drift_is_corrected_without_a_jump() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    // 200 ppm fast: 17 s in a day.
    for second in 0..86_400_u64 {
        let rtp = (second * 90_018) as u32;
        let stamp = stamp_video(&mut clock, at(start, second * 1000), PICTURE, rtp);
        assert_eq!(stamp.as_micros(), second as i64 * 1_000_200);
    }
}

#[test]
fn a_new_source_continues_where_the_old_one_would_be() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    stamp_video(&mut clock, at(start, 0), PICTURE, 5_000);
    stamp_video(&mut clock, at(start, 40), PICTURE, 8_600);
    // Within five seconds of the old clock by chance, but still a different clock.
    let stamp = stamp_video(&mut clock, at(start, 140), 77, 98_600);
    assert_eq!(stamp, Timestamp::from_millis(140));
    assert_eq!(stamp_video(&mut clock, at(start, 180), 77, 102_200), Timestamp::from_millis(180));
}

#[test]
fn a_source_that_reported_before_its_first_packet_starts_at_the_right_time() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.handle_audio_report(start, SOUND, ntp(0), 0);
    clock.handle_video_report(start, PICTURE, ntp(0), 0);
    // It arrives 150 ms late; its correct time is 40 ms.
    assert_eq!(stamp_video(&mut clock, at(start, 190), PICTURE, 3600), Timestamp::from_millis(40));
}

#[test]
fn a_report_with_a_broken_clock_is_ignored() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    stamp_video(&mut clock, start, PICTURE, 0);
    clock.handle_audio_report(start, SOUND, ntp(0), 0);
    clock.handle_video_report(start, PICTURE, ntp(9000), 0);
    assert_eq!(clock.skew_us(), Some(0));
}

#[test]
fn a_clock_that_jumps_with_every_packet_follows_when_they_arrive() {
    let start = Instant::now();
    let mut clock = Clock::default();
    let mut rtp = 0_u32;
    for n in 0..10_000 {
        rtp = rtp.wrapping_add(0x7fff_0000);
        let stamp = clock.stamp_audio(at(start, n * 20), 7, rtp).as_millis();
        assert!((stamp - (n * 20) as i64).abs() <= 20, "{stamp} ms");
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
            let picture = stamp_video(&mut clock, now, PICTURE, sampled_ms * 90).as_micros();
            apart = (picture - sound.as_micros()).abs();
            let step = last.replace(picture).map_or(0, |last| picture - last);
            if sampled > 16_600 {
                longest = step.max(longest);
            }
        }
        if sampled % 1_000 == 980 {
            clock.handle_audio_report(now, SOUND, ntp(sampled), sampled_ms * 48);
            clock.handle_video_report(now, PICTURE, ntp(sampled), sampled_ms * 90);
        }
    }
    assert!(apart <= 20_000, "{apart} us apart 20 s after the outage");
    assert!(longest <= 60_000, "a step of {longest} us");
}

#[test]
fn reports_of_the_newest_eight_sources_are_kept_until_their_packets_arrive() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.handle_audio_report(start, SOUND, ntp(0), 0);
    for ssrc in 100..109 {
        clock.handle_video_report(start, ssrc, ntp(0), 0);
    }
    // Each arrives 150 ms late; its correct time is 40 ms.
    let mut stamp = |ssrc| stamp_video(&mut clock, at(start, 190), ssrc, 3_600).as_millis();
    assert_eq!(stamp(100), 190, "the oldest report is gone");
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    clock.handle_audio_report(start, SOUND, ntp(0), 0);
    for ssrc in 101..109 {
        clock.handle_video_report(start, ssrc, ntp(0), 0);
    }
    assert_eq!(stamp_video(&mut clock, at(start, 190), 101, 3_600).as_millis(), 40);
}

#[test]
fn a_clock_that_jumps_is_followed_from_its_second_timestamp_on() {
    for rtp in [2_000_000_000_u32, 3_000_000_000, 500_000] {
        let (start, mut clock) = (Instant::now(), Clock::default());
        stamp_video(&mut clock, start, PICTURE, 1_000_000);
        stamp_video(&mut clock, at(start, 40), PICTURE, 1_003_600);
        let stamp = stamp_video(&mut clock, at(start, 80), PICTURE, rtp);
        assert_eq!(stamp, Timestamp::from_millis(60), "not yet followed");
        let later = stamp_video(&mut clock, at(start, 120), PICTURE, rtp + 3_600);
        assert_eq!(later, Timestamp::from_millis(120));
    }
}

#[test]
fn the_skew_is_unknown_before_both_tracks_have_reported() {
    let (start, mut clock) = (Instant::now(), Clock::default());
    clock.stamp_audio(start, SOUND, 0);
    stamp_video(&mut clock, at(start, 300), PICTURE, 0);
    assert_eq!(clock.skew_us(), None);
    clock.handle_audio_report(start, SOUND, ntp(0), 0);
    assert_eq!(clock.skew_us(), None);
    clock.handle_video_report(start, PICTURE, ntp(0), 0);
    assert_eq!(clock.skew_us(), Some(-300_000));
}

#[test]
fn latencies_that_differ_by_two_seconds_are_corrected_and_larger_ones_not_believed() {
    for (late_ms, left) in [(2_000, -2_000_000), (2_001, 0)] {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_audio(start, SOUND, 0);
        stamp_video(&mut clock, at(start, late_ms), PICTURE, 0);
        clock.handle_audio_report(start, SOUND, ntp(0), 0);
        clock.handle_video_report(start, PICTURE, ntp(0), 0);
        assert_eq!(clock.skew_us(), None, "{late_ms} ms, claimed once");
        clock.handle_video_report(start, PICTURE, ntp(0), 0);
        assert_eq!(clock.skew_us(), Some(left), "{late_ms} ms");
    }
}
