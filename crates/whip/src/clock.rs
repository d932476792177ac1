//! RTP clocks and sender reports → one timeline (RFC 3550 6.4.1). Pure.
//!
//! Every track starts at once, by arrival. When sender reports tell the true offset between the tracks, the video's
//! timeline is slewed to the audio's, never jumped: sound is what a listener hears stumble.

use std::time::{Duration, Instant};

use headgate_media::Timestamp;

/// Opus (RFC 7587 4.1).
pub const AUDIO_RATE: u32 = 48_000;
/// H.264 (RFC 6184 8.2.1).
pub const VIDEO_RATE: u32 = 90_000;
/// A timestamp this far from where arrival would put it starts a new mapping.
const JUMP_LIMIT_US: i64 = 5_000_000;
/// The video's offset changes by at most this share of the time that passes, in thousandths.
const SLEW_PER_MILLE: i64 = 50;
/// An offset that a report claims beyond this is a broken sender clock.
const OFFSET_LIMIT_US: i64 = 2_000_000;

/// Where a sender's clock stood when it made a report.
#[derive(Clone, Copy, Debug)]
struct Report {
    ntp_us: i64,
    rtp: i64,
}

/// One track's clock.
#[derive(Debug)]
struct TrackClock {
    rate: i64,
    last_rtp: Option<i64>,
    /// Timeline position, in µs, of extended RTP time `base_rtp`.
    base_us: i64,
    base_rtp: i64,
    report: Option<Report>,
    last_us: i64,
}

impl TrackClock {
    const fn new(rate: u32) -> Self {
        Self {
            rate: rate as i64,
            last_rtp: None,
            base_us: 0,
            base_rtp: 0,
            report: None,
            last_us: i64::MIN,
        }
    }

    /// Extends a 32-bit RTP timestamp by the nearest turn.
    const fn extend(&self, rtp: u32) -> i64 {
        match self.last_rtp {
            Some(last) => last + (rtp.wrapping_sub(last as u32) as i32) as i64,
            None => rtp as i64,
        }
    }

    const fn to_us(&self, rtp: i64) -> i64 {
        self.base_us + (rtp - self.base_rtp) * 1_000_000 / self.rate
    }

    /// The timeline position of a sender's wall clock, by this track's newest report.
    fn at_ntp(&self, ntp_us: i64) -> Option<i64> {
        let report = self.report?;
        self.last_rtp?;
        Some(self.to_us(report.rtp) + (ntp_us - report.ntp_us))
    }
}

/// One session's timeline.
#[derive(Debug)]
pub struct Clock {
    start: Option<Instant>,
    audio: TrackClock,
    video: TrackClock,
    /// How far the video's mapping still has to move.
    correction_us: i64,
    slewed_at: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            start: None,
            audio: TrackClock::new(AUDIO_RATE),
            video: TrackClock::new(VIDEO_RATE),
            correction_us: 0,
            slewed_at: 0,
        }
    }
}

impl Clock {
    /// Timestamp of an audio packet sampled at `rtp`.
    pub fn stamp_audio(&mut self, now: Instant, rtp: u32) -> Timestamp {
        let arrival = self.arrival(now);
        Timestamp::from_micros(stamp(&mut self.audio, arrival, rtp))
    }

    /// Decode timestamp and composition time in milliseconds of a picture sampled at `rtp`.
    pub fn stamp_video(&mut self, now: Instant, rtp: u32) -> (Timestamp, i32) {
        let arrival = self.arrival(now);
        self.slew(arrival);
        let sampled = {
            let video = &mut self.video;
            map(video, arrival, rtp)
        };
        // A sender with B-frames goes back: decode time does not.
        let decode = sampled.max(self.video.last_us.saturating_add(1000));
        self.video.last_us = decode;
        let composition_ms = i32::try_from((sampled - decode) / 1000).unwrap_or(0);
        (Timestamp::from_micros(decode), composition_ms)
    }

    /// Sender report of the audio track: its wall clock (64-bit NTP) at an RTP time.
    pub fn handle_audio_report(&mut self, ntp: u64, rtp: u32) {
        note_report(&mut self.audio, ntp, rtp);
        self.compare();
    }

    /// Sender report of the video track.
    pub fn handle_video_report(&mut self, ntp: u64, rtp: u32) {
        note_report(&mut self.video, ntp, rtp);
        self.compare();
    }

    /// How far picture and sound are still apart by the sender's reports, in microseconds; 0 before two reports.
    #[must_use]
    pub const fn skew_us(&self) -> i64 {
        self.correction_us
    }

    fn arrival(&mut self, now: Instant) -> i64 {
        let start = *self.start.get_or_insert(now);
        micros(now.saturating_duration_since(start))
    }

    fn compare(&mut self) {
        let Some(report) = self.video.report else { return };
        let (Some(by_audio), Some(by_video)) =
            (self.audio.at_ntp(report.ntp_us), self.video.at_ntp(report.ntp_us))
        else {
            return;
        };
        let correction = by_audio - by_video;
        self.correction_us = if correction.abs() > OFFSET_LIMIT_US { 0 } else { correction };
    }

    fn slew(&mut self, arrival: i64) {
        let step = (arrival - self.slewed_at).max(0) * SLEW_PER_MILLE / 1000;
        self.slewed_at = arrival;
        let moved = self.correction_us.clamp(-step, step);
        self.video.base_us += moved;
        self.correction_us -= moved;
    }
}

/// Maps and keeps the order: an audio timestamp never goes back.
fn stamp(track: &mut TrackClock, arrival: i64, rtp: u32) -> i64 {
    let mapped = map(track, arrival, rtp).max(track.last_us);
    track.last_us = mapped;
    mapped
}

/// Timeline position of an RTP time; the first one, and one that is far off, is placed by arrival.
fn map(track: &mut TrackClock, arrival: i64, rtp: u32) -> i64 {
    let extended = track.extend(rtp);
    let mapped = track.to_us(extended);
    if track.last_rtp.is_none() || (mapped - arrival).abs() > JUMP_LIMIT_US {
        track.base_rtp = extended;
        track.base_us = arrival.max(track.last_us);
        track.report = None;
    }
    track.last_rtp = Some(extended);
    track.to_us(extended)
}

fn note_report(track: &mut TrackClock, ntp: u64, rtp: u32) {
    // NTP: seconds above, fractions below.
    let seconds = (ntp >> 32) as i64;
    let fraction = (((ntp & 0xffff_ffff) * 1_000_000) >> 32) as i64;
    if track.last_rtp.is_some() {
        let rtp = track.extend(rtp);
        track.report = Some(Report { ntp_us: seconds * 1_000_000 + fraction, rtp });
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NTP_START: u64 = 3_900_000_000 << 32;

    fn ntp(millis: u64) -> u64 {
        NTP_START + ((millis << 32) / 1000)
    }

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn both_tracks_start_at_once_by_arrival_and_go_on_by_their_own_clocks() {
        let (start, mut clock) = (Instant::now(), Clock::default());
        assert_eq!(clock.stamp_audio(start, 7000), Timestamp::ZERO);
        // 960 samples later, 5 ms late.
        assert_eq!(clock.stamp_audio(at(start, 25), 7960), Timestamp::from_millis(20));
        assert_eq!(clock.stamp_video(at(start, 80), 123), (Timestamp::from_millis(80), 0));
        assert_eq!(clock.stamp_video(at(start, 190), 9123), (Timestamp::from_millis(180), 0));
    }

    #[test]
    fn clocks_that_wrap_go_on() {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_audio(start, u32::MAX - 479);
        assert_eq!(clock.stamp_audio(at(start, 20), 480), Timestamp::from_millis(20));
        clock.stamp_video(start, u32::MAX);
        assert_eq!(clock.stamp_video(at(start, 40), 3599).0, Timestamp::from_millis(40));
    }

    #[test]
    fn sender_reports_slew_the_picture_to_the_sound_without_a_jump() {
        let (start, mut clock) = (Instant::now(), Clock::default());
        // Both were sampled at the same moment; the picture arrived 100 ms later.
        clock.stamp_audio(start, 0);
        clock.stamp_video(at(start, 100), 0);
        clock.handle_audio_report(ntp(0), 0);
        clock.handle_video_report(ntp(0), 0);
        assert!((clock.skew_us() + 100_000).abs() < 10);
        let mut last = 100_000;
        for n in 1..=100_u32 {
            let (stamp, _) = clock.stamp_video(at(start, 100 + u64::from(n) * 40), n * 3600);
            let step = stamp.as_micros() - last;
            assert!((37_900..=40_100).contains(&step), "{step}");
            last = stamp.as_micros();
        }
        assert!((last - 4_000_000).abs() <= 1000, "{last}");
        assert!(clock.skew_us().abs() < 10);
    }

    #[test]
    fn a_clock_that_jumps_is_placed_by_arrival_again_and_never_goes_back() {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_video(start, 1_000_000);
        let (stamp, _) = clock.stamp_video(at(start, 40), 2_000_000_000);
        assert_eq!(stamp, Timestamp::from_millis(40));
        let (later, _) = clock.stamp_video(at(start, 80), 2_000_000_000);
        assert!(later > stamp);
    }

    #[test]
    fn pictures_out_of_order_keep_their_time_in_the_composition() {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_video(start, 0);
        assert_eq!(clock.stamp_video(at(start, 40), 10_800), (Timestamp::from_millis(120), 0));
        let (decode, composition_ms) = clock.stamp_video(at(start, 80), 3600);
        assert_eq!(decode.as_millis(), 121);
        assert_eq!(composition_ms, -81);
    }

    #[test]
    fn a_report_of_a_broken_clock_is_not_followed() {
        let (start, mut clock) = (Instant::now(), Clock::default());
        clock.stamp_audio(start, 0);
        clock.stamp_video(start, 0);
        clock.handle_audio_report(ntp(0), 0);
        clock.handle_video_report(ntp(9000), 0);
        assert_eq!(clock.skew_us(), 0);
    }
}
