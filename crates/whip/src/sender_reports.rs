//! One sender's reports (RFC 3550 6.4.1): how long after their capture its packets arrive. Pure.
//!
//! A report names the RTP time of the moment at which it is sent, so the time of its arrival is evidence too. The NTP
//! times of both tracks are compared only if they come from the same clock.

use crate::clock::MILLI_US;

/// Longest latency from capture to arrival that a report may claim.
const LATENCY_LIMIT_US: i64 = 5_000 * MILLI_US;
/// Packets cannot arrive before their capture. Senders that report their last packet's time, and jitter, make it look so
/// by this much at most.
const EARLY_LIMIT_US: i64 = 100 * MILLI_US;
/// A latency that differs this much from the last one counts only if the next report says the same.
const CHANGE_LIMIT_US: i64 = 100 * MILLI_US;
/// A report whose NTP time is this far from the expected one comes from a clock that was set.
const NTP_STEP_US: i64 = 500 * MILLI_US;
/// How far apart two tracks' NTP clocks may seem because of the time their reports travel, besides observed jitter: the
/// more reports, the nearer the fastest of them are to each other.
const NTP_TOLERANCE_US: i64 = 25 * MILLI_US;
/// Clocks may drift apart: the least time that a report travels is forgotten at this rate, in millionths.
const DRIFT_PPM: i64 = 500;

/// The sender's wall clock at a position of the timeline, by its newest credible report.
#[derive(Clone, Copy, Debug)]
struct Credible {
    ntp_us: i64,
    timeline_us: i64,
    latency_us: i64,
}

/// The reports of one track's sender.
#[derive(Debug, Default)]
pub(crate) struct SenderReports {
    credible: Option<Credible>,
    /// A latency that awaits its confirmation.
    unconfirmed: Option<i64>,
    travel: Option<Travel>,
}

/// Arrival minus NTP time of the reports: the time they travel, and the offset between the sender's clock and ours.
#[derive(Clone, Copy, Debug)]
struct Travel {
    least: i64,
    spread: i64,
    reports: i64,
    arrival: i64,
}

impl Travel {
    fn with(previous: Option<Self>, arrival: i64, ntp_us: i64) -> Self {
        let travelled = arrival - ntp_us;
        let first = Self { least: travelled, spread: 0, reports: 1, arrival };
        let Some(previous) = previous else { return first };
        let forgotten = (arrival - previous.arrival).max(0) * DRIFT_PPM / 1_000_000;
        let expected = previous.least + forgotten;
        if (travelled - expected).abs() > NTP_STEP_US {
            return first;
        }
        let spread = (travelled - expected).abs().max(previous.spread * 3 / 4);
        let reports = previous.reports + 1;
        Self { least: expected.min(travelled), spread, reports, arrival }
    }
}

impl SenderReports {
    /// Takes a report that arrived at `arrival` about position `timeline_us`. `late_us`: the least lateness of the
    /// track's packets; `None` while it is not known. False: it is not credible.
    pub(crate) fn handle(
        &mut self,
        (arrival, ntp_us): (i64, i64),
        timeline_us: i64,
        late_us: Option<i64>,
    ) -> bool {
        let travel = Travel::with(self.travel, arrival, ntp_us);
        self.travel = Some(travel);
        let Some(late_us) = late_us else { return false };
        let latency_us = late_us + timeline_us - ntp_us - travel.least;
        if !(-EARLY_LIMIT_US..=LATENCY_LIMIT_US).contains(&latency_us) {
            return false;
        }
        let is_near = |other: i64| (latency_us - other).abs() <= CHANGE_LIMIT_US;
        let is_change = self.credible.is_some_and(|last| !is_near(last.latency_us));
        if is_change && !self.unconfirmed.is_some_and(is_near) {
            self.unconfirmed = Some(latency_us);
            return false;
        }
        self.unconfirmed = None;
        self.credible = Some(Credible { ntp_us, timeline_us, latency_us });
        true
    }

    /// Whether there is a credible report.
    pub(crate) const fn is_known(&self) -> bool {
        self.credible.is_some()
    }
}

/// How much longer than the video's the audio's latency is, and whether the sender's wall clock says so, which is
/// exact. The least lateness of each track is given. `None` until both have reported.
pub(crate) fn latency_difference(
    (audio, audio_late): (&SenderReports, i64),
    (video, video_late): (&SenderReports, i64),
) -> Option<(i64, bool)> {
    let (of_audio, of_video) = (audio.credible?, video.credible?);
    let (by_audio, by_video) = (audio.travel?, video.travel?);
    let jitter = by_audio.spread / by_audio.reports + by_video.spread / by_video.reports;
    let tolerance = NTP_TOLERANCE_US + jitter;
    let is_same_clock = (by_audio.least - by_video.least).abs() <= tolerance;
    let least = by_audio.least.min(by_video.least);
    let latency = |report: Credible, late: i64| {
        let latency = match is_same_clock {
            true => late + report.timeline_us - report.ntp_us - least,
            false => report.latency_us,
        };
        latency.max(0)
    };
    Some((latency(of_audio, audio_late) - latency(of_video, video_late), is_same_clock))
}
