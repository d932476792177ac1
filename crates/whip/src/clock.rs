//! RTP clocks and sender reports → one timeline (RFC 3550 6.4.1). Pure.
//!
//! Every track starts without waiting, placed by arrival time. When sender reports reveal the true offset between the
//! tracks, the video's timeline is slewed to the audio's and never jumps; the audio's is left alone, because a listener
//! would hear the change.

use std::time::{Duration, Instant};

use headgate_media::Timestamp;

/// Opus (RFC 7587 4.1).
pub const AUDIO_RATE: u32 = 48_000;
/// H.264 (RFC 6184 8.2.1).
pub const VIDEO_RATE: u32 = 90_000;
/// A timestamp step that differs this much from the time passed starts a new mapping: the sender's clock was reset.
const JUMP_LIMIT_US: i64 = 5_000_000;
/// A correction is finished after this: before the next report of a sender that reports every second.
const SLEW_TIME_US: i64 = 800_000;
/// During a correction the video runs slower or faster by at most this share, in thousandths.
const SLEW_LIMIT_PER_MILLE: i64 = 500;
/// And by at least this share, so that the last milliseconds do not take forever.
const SLEW_LEAST_PER_MILLE: i64 = 20;
/// A reported offset beyond this means a broken sender clock, unless arrival times show the same offset. A microphone
/// that delivers nothing for a while stops its RTP clock: what is not a new mapping has to be corrected.
const OFFSET_LIMIT_US: i64 = JUMP_LIMIT_US;
/// How far a larger reported offset may differ from that of the arrival times, which is our own doing: when everything
/// that was sent during an outage arrives at its end, a track that goes on there gets a new mapping, and one that waits
/// for a keyframe does not.
const ARRIVAL_TOLERANCE_US: i64 = 2_000_000;
/// Senders whose reports are kept until their first packet is in order: simulcast layers and new sources.
const EARLY_REPORTS_LIMIT: usize = 8;

/// The sender's wall clock and RTP clock at the moment of a report.
#[derive(Clone, Copy, Debug)]
struct Report {
    ntp_us: i64,
    rtp: i64,
}

/// A report of a sender that is not (yet) the track's source.
#[derive(Clone, Copy, Debug)]
struct EarlyReport {
    ssrc: u32,
    ntp_us: i64,
    rtp: u32,
}

/// One track's clock.
#[derive(Debug)]
struct TrackClock {
    rate: i64,
    ssrc: Option<u32>,
    last_rtp: i64,
    /// Timeline position and arrival of the newest sample, in µs.
    last_mapped: i64,
    last_arrival: i64,
    /// Timeline position, in µs, of extended RTP time `base_rtp`.
    base_us: i64,
    base_rtp: i64,
    report: Option<Report>,
    early: Vec<EarlyReport>,
    last_us: i64,
}

impl TrackClock {
    const fn new(rate: u32) -> Self {
        Self {
            rate: rate as i64,
            ssrc: None,
            last_rtp: 0,
            last_mapped: 0,
            last_arrival: 0,
            base_us: 0,
            base_rtp: 0,
            report: None,
            early: Vec::new(),
            last_us: i64::MIN,
        }
    }

    /// Extends a 32-bit RTP timestamp to the nearest value.
    const fn extend(&self, rtp: u32) -> i64 {
        self.last_rtp + (rtp.wrapping_sub(self.last_rtp as u32) as i32) as i64
    }

    const fn to_us(&self, rtp: i64) -> i64 {
        self.base_us + (rtp - self.base_rtp) * 1_000_000 / self.rate
    }

    /// How far the timeline is ahead of the arrival times, in µs, by the newest sample.
    const fn lead_us(&self) -> i64 {
        self.last_mapped - self.last_arrival
    }

    /// The timeline position of a sender's wall-clock time, by this track's newest report.
    fn at_ntp(&self, ntp_us: i64) -> Option<i64> {
        let report = self.report?;
        Some(self.to_us(report.rtp) + (ntp_us - report.ntp_us))
    }

    /// The timeline position of an RTP time. A new sender, or one whose clock was reset, continues where the old one
    /// would be by now.
    fn map(&mut self, arrival: i64, ssrc: u32, rtp: u32) -> i64 {
        let expected = match self.ssrc {
            Some(_) => self.last_mapped + (arrival - self.last_arrival),
            None => arrival,
        };
        let is_known = self.ssrc == Some(ssrc);
        let mut extended = if is_known { self.extend(rtp) } else { i64::from(rtp) };
        if !is_known || (self.to_us(extended) - expected).abs() > JUMP_LIMIT_US {
            // Counting restarts here, so that a clock that jumps with every packet never overflows.
            extended = i64::from(rtp);
            self.base_rtp = extended;
            self.base_us = expected.max(self.last_us);
            self.report = None;
        }
        self.last_rtp = extended;
        if !is_known {
            self.ssrc = Some(ssrc);
            if let Some(at) = self.early.iter().position(|early| early.ssrc == ssrc) {
                let EarlyReport { ntp_us, rtp, .. } = self.early.swap_remove(at);
                self.report = Some(Report { ntp_us, rtp: self.extend(rtp) });
            }
        }
        self.last_mapped = self.to_us(extended);
        self.last_arrival = arrival;
        self.last_mapped
    }

    fn note_report(&mut self, ssrc: u32, ntp: u64, rtp: u32) {
        // NTP: seconds in the upper half, fractions in the lower.
        let seconds = (ntp >> 32) as i64;
        let fraction = (((ntp & 0xffff_ffff) * 1_000_000) >> 32) as i64;
        let ntp_us = seconds * 1_000_000 + fraction;
        if self.ssrc == Some(ssrc) {
            self.report = Some(Report { ntp_us, rtp: self.extend(rtp) });
            return;
        }
        self.early.retain(|early| early.ssrc != ssrc);
        if self.early.len() >= EARLY_REPORTS_LIMIT {
            self.early.remove(0);
        }
        self.early.push(EarlyReport { ssrc, ntp_us, rtp });
    }
}

/// One session's timeline.
#[derive(Debug)]
pub struct Clock {
    start: Option<Instant>,
    audio: TrackClock,
    video: TrackClock,
    /// How far the video's mapping still has to move, and how fast it moves.
    correction_us: i64,
    slew_per_mille: i64,
    is_compared: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            start: None,
            audio: TrackClock::new(AUDIO_RATE),
            video: TrackClock::new(VIDEO_RATE),
            correction_us: 0,
            slew_per_mille: SLEW_LEAST_PER_MILLE,
            is_compared: false,
        }
    }
}

impl Clock {
    /// Timestamp of an audio packet of `ssrc` sampled at `rtp`.
    pub fn stamp_audio(&mut self, now: Instant, ssrc: u32, rtp: u32) -> Timestamp {
        let arrival = self.arrival(now);
        // An audio timestamp never goes back.
        let mapped = self.audio.map(arrival, ssrc, rtp).max(self.audio.last_us);
        self.audio.last_us = mapped;
        Timestamp::from_micros(mapped)
    }

    /// When a frame of `ssrc` sampled at `rtp` is to be shown; `reorder` derives its decode time from it.
    pub fn stamp_video(&mut self, now: Instant, ssrc: u32, rtp: u32) -> Timestamp {
        let arrival = self.arrival(now);
        let is_new = self.video.ssrc != Some(ssrc);
        let before = self.video.last_mapped;
        let mut mapped = self.video.map(arrival, ssrc, rtp);
        if is_new {
            // A new track needs no slewing: if reports give its offset, it starts there.
            self.compare();
            if mapped + self.correction_us > self.video.last_us.max(-1) {
                mapped += self.correction_us;
                self.video.base_us += self.correction_us;
                self.video.last_mapped = mapped;
                self.correction_us = 0;
            }
        } else {
            mapped += self.slew(mapped - before);
        }
        self.video.last_us = self.video.last_us.max(mapped);
        Timestamp::from_micros(mapped)
    }

    /// Takes a sender report of an audio sender: its wall clock (64-bit NTP) at an RTP time.
    pub fn handle_audio_report(&mut self, ssrc: u32, ntp: u64, rtp: u32) {
        self.audio.note_report(ssrc, ntp, rtp);
        self.compare();
    }

    /// Takes a sender report of a video sender, in the same form.
    pub fn handle_video_report(&mut self, ssrc: u32, ntp: u64, rtp: u32) {
        self.video.note_report(ssrc, ntp, rtp);
        self.compare();
    }

    /// How far video and audio are still apart by the sender's reports, in microseconds; `None` until both have
    /// reported.
    #[must_use]
    pub fn skew_us(&self) -> Option<i64> {
        self.is_compared.then_some(self.correction_us)
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
        let by_arrival = self.audio.lead_us() - self.video.lead_us();
        let is_plausible = correction.abs() <= OFFSET_LIMIT_US
            || (correction - by_arrival).abs() <= ARRIVAL_TOLERANCE_US;
        self.is_compared = true;
        self.correction_us = if is_plausible { correction } else { 0 };
        let share = self.correction_us.abs() * 1000 / SLEW_TIME_US;
        self.slew_per_mille = share.clamp(SLEW_LEAST_PER_MILLE, SLEW_LIMIT_PER_MILLE);
    }

    /// How far the video's mapping moves while `passed` of its own time goes by: never far enough for it to go
    /// backwards.
    fn slew(&mut self, passed: i64) -> i64 {
        let step = passed.max(0) * self.slew_per_mille / 1000;
        let moved = self.correction_us.clamp(-step, step);
        self.video.base_us += moved;
        self.video.last_mapped += moved;
        self.correction_us -= moved;
        moved
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
