//! One sender's reports (RFC 3550 6.4.1): how long after their capture its packets arrive. Pure.
//!
//! A report names the RTP time of the moment at which it is sent, so the time of its arrival shows the latency of the
//! packets, whatever its NTP time is. NTP times are exact, and are used as far as they agree with that.

use crate::clock_rates::MILLI_US;
use crate::lateness::Extremes;

/// Longest latency from capture to arrival that a report may claim.
const LATENCY_LIMIT_US: i64 = 5_000 * MILLI_US;
/// Packets cannot arrive before their capture. Reports that were delayed, or that name their last packet's time, make it
/// look so by this much at most.
const EARLY_LIMIT_US: i64 = 300 * MILLI_US;
/// A latency that exceeds the known one by this counts only if the next report says the same.
const CHANGE_LIMIT_US: i64 = 100 * MILLI_US;
/// A longer one that the first report claims counts only if the next report says the same.
const FIRST_LIMIT_US: i64 = 350 * MILLI_US;
/// The first report is wrong if this many in a row agree that the latency is shorter by more than so much.
const DOUBTING_REPORTS: i64 = 3;
const DOUBTED_US: i64 = 60 * MILLI_US;
/// How far the NTP times of both tracks may contradict the arrivals of their reports, besides observed jitter.
const TOLERANCE_US: i64 = 25 * MILLI_US;
/// With more jitter than this the arrivals of reports show no latency.
const ERROR_LIMIT_US: i64 = 40 * MILLI_US;
/// What jitter is taken to be before it is observed.
const FIRST_SPREAD_US: i64 = 40 * MILLI_US;
/// After this many reports in a row that are not credible, those before them are not either.
const INCREDIBLE_LIMIT: u32 = 3;
/// Clocks may drift apart: the longest latency is forgotten at this rate, in millionths.
const DRIFT_PPM: i64 = 500;

/// The latency of a track's packets. The jitter of reports only makes it look shorter.
#[derive(Clone, Copy, Debug)]
struct Latency {
    longest: i64,
    spread: i64,
    reports: i64,
    arrival: i64,
}

impl Latency {
    /// How far it may be wrong: the more reports, the nearer the fastest of them is to the truth.
    const fn error(&self) -> i64 {
        self.spread / self.reports
    }
}

/// The latencies of reports in a row that agree, with that of a further one: if it does not agree, it alone.
fn agreeing(before: Extremes, latency_us: i64) -> Extremes {
    let newest = Extremes::of(latency_us);
    let all = before.with(newest);
    if all.most - all.least > TOLERANCE_US { newest } else { all }
}

/// The reports of one track's sender.
#[derive(Debug, Default)]
pub(crate) struct SenderReports {
    latency: Option<Latency>,
    /// A latency that awaits its confirmation.
    unconfirmed: Option<i64>,
    /// While the first report alone shows the longest latency: those in a row that agree on a shorter one.
    shorter: Option<Extremes>,
    /// Reports in a row that were not credible.
    incredible: u32,
    /// Where the newest credible report puts NTP time 0 on the timeline, in microseconds.
    ntp_zero: Option<i64>,
}

impl SenderReports {
    /// Takes a report that arrived at `arrival` about position `timeline_us`. `late_us`: the least lateness of the
    /// track's packets. False: it is not credible.
    pub(crate) fn handle(
        &mut self,
        arrival: i64,
        ntp_us: i64,
        timeline_us: i64,
        late_us: i64,
    ) -> bool {
        let latency_us = late_us + timeline_us - arrival;
        let Some(latency) = self.credible(arrival, latency_us) else {
            self.incredible = self.incredible.saturating_add(1);
            if self.incredible >= INCREDIBLE_LIMIT {
                (self.latency, self.ntp_zero) = (None, None);
            }
            return false;
        };
        (self.unconfirmed, self.incredible) = (None, 0);
        self.latency = Some(latency);
        self.ntp_zero = Some(timeline_us - ntp_us);
        true
    }

    /// The latency with that of a further report; `None` if that contradicts what is known.
    fn credible(&mut self, arrival: i64, latency_us: i64) -> Option<Latency> {
        if !(-EARLY_LIMIT_US..=LATENCY_LIMIT_US).contains(&latency_us) {
            return None;
        }
        let first = Latency { longest: latency_us, spread: FIRST_SPREAD_US, reports: 1, arrival };
        match self.latency {
            None if self.incredible == 0 && latency_us <= FIRST_LIMIT_US => {
                self.shorter = Some(Extremes::EMPTY);
                return Some(first);
            }
            None => {}
            Some(known) => {
                let forgotten = (arrival - known.arrival).max(0) * DRIFT_PPM / 1_000_000;
                let longest = known.longest - forgotten;
                let shorter = longest - latency_us;
                if (-CHANGE_LIMIT_US..=EARLY_LIMIT_US).contains(&shorter) {
                    let doubted = self.shorter.filter(|_| shorter > DOUBTED_US);
                    self.shorter = doubted.map(|before| agreeing(before, latency_us));
                    if let Some(Extremes { most, count: DOUBTING_REPORTS.., .. }) = self.shorter {
                        self.shorter = None;
                        return Some(Latency { longest: most, reports: DOUBTING_REPORTS, ..first });
                    }
                    return Some(Latency {
                        longest: longest.max(latency_us),
                        spread: shorter.abs().max(known.spread * 3 / 4),
                        reports: known.reports + 1,
                        arrival,
                    });
                }
            }
        }
        let before = self.unconfirmed.replace(latency_us);
        before.filter(|before| (latency_us - before).abs() <= CHANGE_LIMIT_US).map(|_| first)
    }

    /// Whether there is a credible report.
    pub(crate) const fn is_known(&self) -> bool {
        self.latency.is_some()
    }
}

/// How much longer than the video's the audio's latency is, and whether that is exact. The least lateness of each
/// track's packets is given. `None` until both have reported.
pub(crate) fn latency_difference(
    (audio, audio_late): (&SenderReports, i64),
    (video, video_late): (&SenderReports, i64),
) -> Option<(i64, bool)> {
    let (of_audio, of_video) = (audio.latency?, video.latency?);
    let by_arrival = of_audio.longest.max(0) - of_video.longest.max(0);
    let by_ntp = (audio_late + audio.ntp_zero?) - (video_late + video.ntp_zero?);
    let error = of_audio.error() + of_video.error();
    if (by_ntp - by_arrival).abs() <= TOLERANCE_US + error {
        return Some((by_ntp, true));
    }
    (error <= ERROR_LIMIT_US).then_some((by_arrival, false))
}
