//! RTP clocks and sender reports → one timeline (RFC 3550 6.4.1). Pure.
//!
//! Every track starts without waiting, placed by arrival time. From there each follows its own RTP clock, into which
//! time that passed without being counted is inserted. The video's timeline is slewed to the audio's and never jumps: by
//! sender reports as far as they are credible, else by how late the packets of each track arrive. The audio's is left
//! alone, because a listener would hear the change.

use std::time::{Duration, Instant};

use headgate_media::{IrregularityCounts, Timestamp};

use crate::clock_rates::MILLI_US;
pub use crate::clock_rates::{AUDIO_RATE, VIDEO_RATE};
use crate::reorder::FrameTime;
use crate::sender_reports::latency_difference;
use crate::track_clock::TrackClock;

/// Least distance between two decode times: RTMP counts milliseconds.
const STEP_US: i64 = MILLI_US;
/// A correction is finished after this: before the next report of a sender that reports every second.
const SLEW_TIME_US: i64 = 800 * MILLI_US;
/// During a correction the video runs slower or faster by at most this share, in thousandths.
const SLEW_LIMIT_PER_MILLE: i64 = 500;
/// And by at least this share, so that the last milliseconds do not take forever.
const SLEW_LEAST_PER_MILLE: i64 = 20;
/// The offset of the tracks by arrival times varies with the network: less than this is left alone.
const ARRIVAL_TOLERANCE_US: i64 = 25 * MILLI_US;
/// A difference between the latencies of both tracks beyond this is not believed.
const LATENCY_LIMIT_US: i64 = 2_000 * MILLI_US;
/// No offset between the tracks is corrected beyond this.
const CORRECTION_LIMIT_US: i64 = 10_000 * MILLI_US;

/// One session's timeline.
#[derive(Debug)]
pub struct Clock {
    start: Option<Instant>,
    audio: TrackClock,
    video: TrackClock,
    last_audio: i64,
    /// Decode time of the newest frame before and after it was placed.
    last_decode: i64,
    last_placed: i64,
    /// How far the video's timeline is moved to match the audio's, how far it has to be, and how fast it moves.
    correction_us: i64,
    target_us: i64,
    slew_per_mille: i64,
    /// The newest video frame is the first of its source: it need not be slewed.
    is_new_video: bool,
    irregularities: IrregularityCounts,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            start: None,
            audio: TrackClock::of_audio(),
            video: TrackClock::of_video(),
            last_audio: 0,
            last_decode: 0,
            last_placed: -STEP_US,
            correction_us: 0,
            target_us: 0,
            slew_per_mille: SLEW_LEAST_PER_MILLE,
            is_new_video: false,
            irregularities: IrregularityCounts::default(),
        }
    }
}

impl Clock {
    /// Timestamp of an audio packet of `ssrc` sampled at `rtp` that arrived at `arrived`. It never goes back.
    pub fn stamp_audio(&mut self, arrived: Instant, ssrc: u32, rtp: u32) -> Timestamp {
        let arrival = self.arrival(arrived);
        let is_other_on_time = self.video.is_on_time(arrival);
        let counts = &mut self.irregularities;
        let position = self.audio.map(arrival, (ssrc, rtp), is_other_on_time, counts);
        self.last_audio = self.last_audio.max(position + self.audio.inserted_us());
        self.follow_received();
        Timestamp::from_micros(self.last_audio)
    }

    /// When a frame of `ssrc` sampled at `rtp`, whose first packet arrived at `arrived`, is to be shown, by its own
    /// clock: `reorder` derives its decode time from it, and [`Clock::place_video`] puts both on the timeline.
    pub fn stamp_video(&mut self, arrived: Instant, ssrc: u32, rtp: u32) -> Timestamp {
        let arrival = self.arrival(arrived);
        let is_other_on_time = self.audio.is_on_time(arrival);
        self.is_new_video |= self.video.ssrc() != Some(ssrc);
        let counts = &mut self.irregularities;
        let position = self.video.map(arrival, (ssrc, rtp), is_other_on_time, counts);
        if self.is_new_video {
            self.follow_reports();
        }
        self.follow_received();
        Timestamp::from_micros(position)
    }

    /// The place of a frame on the timeline. Frames come in decoding order; decode times never go back.
    pub fn place_video(&mut self, frame: FrameTime) -> FrameTime {
        let (decode, shown) = (frame.decode.as_micros(), frame.shown.as_micros());
        let inserted = self.video.inserted_us();
        // A new track needs no slewing: if reports give its offset, it starts there.
        let is_new = std::mem::take(&mut self.is_new_video);
        if is_new && decode + inserted + self.target_us > self.last_placed.max(-1) {
            self.correction_us = self.target_us;
        } else {
            self.slew((decode - self.last_decode).max(0));
        }
        self.last_decode = decode;
        let shift = inserted + self.correction_us;
        self.last_placed = (decode + shift).max(self.last_placed + STEP_US);
        let shown = (shown + shift).max(self.last_placed);
        FrameTime {
            decode: Timestamp::from_micros(self.last_placed),
            shown: Timestamp::from_micros(shown),
        }
    }

    /// Takes a sender report of an audio sender that arrived at `now`: its wall clock (64-bit NTP) at an RTP time.
    pub fn handle_audio_report(&mut self, now: Instant, ssrc: u32, ntp: u64, rtp: u32) {
        let arrival = self.arrival(now);
        if self.audio.handle_report(arrival, ssrc, ntp, rtp) {
            self.follow_reports();
        }
    }

    /// Takes a sender report of a video sender, in the same form.
    pub fn handle_video_report(&mut self, now: Instant, ssrc: u32, ntp: u64, rtp: u32) {
        let arrival = self.arrival(now);
        if self.video.handle_report(arrival, ssrc, ntp, rtp) {
            self.follow_reports();
        }
    }

    /// How far video and audio are still apart by the sender's reports, in microseconds; `None` until both have
    /// reported.
    #[must_use]
    pub fn skew_us(&self) -> Option<i64> {
        let is_known = self.audio.reports.is_known() && self.video.reports.is_known();
        is_known.then_some(self.target_us - self.correction_us)
    }

    /// What was irregular about the clocks since the last call.
    pub fn take_irregularities(&mut self) -> IrregularityCounts {
        std::mem::take(&mut self.irregularities)
    }

    fn arrival(&mut self, now: Instant) -> i64 {
        let start = *self.start.get_or_insert(now);
        micros(now.saturating_duration_since(start))
    }

    /// How far the video has to be moved so that both tracks are equally late, apart from the latencies that reports
    /// show; and whether that is exact.
    fn offset(&self) -> (i64, bool) {
        let (audio, video) = (self.audio.least_late(), self.video.least_late());
        let by_reports =
            latency_difference((&self.audio.reports, audio), (&self.video.reports, video));
        let (difference, is_exact) = by_reports
            .filter(|(difference, _)| difference.abs() <= LATENCY_LIMIT_US)
            .unwrap_or((0, false));
        let offset = video - audio + difference;
        (offset.clamp(-CORRECTION_LIMIT_US, CORRECTION_LIMIT_US), is_exact)
    }

    fn follow_reports(&mut self) {
        let (offset, is_exact) = self.offset();
        if is_exact {
            self.move_to(offset);
        }
    }

    fn follow_received(&mut self) {
        let is_due = self.audio.begins_step() || self.video.begins_step();
        if is_due && self.audio.is_settled() && self.video.is_settled() {
            let (offset, _) = self.offset();
            if (offset - self.target_us).abs() > ARRIVAL_TOLERANCE_US {
                self.move_to(offset);
            }
        }
    }

    fn move_to(&mut self, offset: i64) {
        self.target_us = offset;
        let share = (self.target_us - self.correction_us).abs() * 1000 / SLEW_TIME_US;
        self.slew_per_mille = share.clamp(SLEW_LEAST_PER_MILLE, SLEW_LIMIT_PER_MILLE);
    }

    /// Moves the video's timeline while `passed` of its own time goes by: never far enough for it to go backwards.
    fn slew(&mut self, passed: i64) {
        let step = passed * self.slew_per_mille / 1000;
        self.correction_us += (self.target_us - self.correction_us).clamp(-step, step);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "clock_virtual_tests.rs"]
mod world;
