//! One track's RTP clock → a timeline that goes on with the wall clock (RFC 3550 5.1). Pure.
//!
//! What the sender's clock counts is kept to the microsecond. Time that passes without being counted is inserted; a
//! clock that restarts or jumps continues where it would be.

use headgate_media::{Irregularity, IrregularityCounts};

use crate::clock_rates::{AUDIO_RATE, MILLI_US, VIDEO_RATE};
use crate::lateness::{FAR_US, FAST_US, FastRun, Lateness};
use crate::sender_reports::SenderReports;

/// A timestamp this much further ahead than the time passed is a jump of the sender's clock.
const JUMP_US: i64 = 500 * MILLI_US;
/// The same for audio, whose packets follow each other closely and do not wait at their sender.
const AUDIO_JUMP_US: i64 = 100 * MILLI_US;
/// A timestamp that goes back further than this is a jump. Audio is in order.
const AUDIO_BACK_LIMIT_US: i64 = 120 * MILLI_US;
/// Video may be reordered.
const VIDEO_BACK_LIMIT_US: i64 = 1_000 * MILLI_US;
/// How far the timeline may get ahead of the arrival times, apart from [`AHEAD_PER_MILLE`].
const AHEAD_LIMIT_US: i64 = 5_000 * MILLI_US;
/// A clock may be this much too fast for ever.
const AHEAD_PER_MILLE: i64 = 1;
/// How long a timestamp that is not followed yet lasts, unless it ends a pause.
const OUTLIER_STEP_US: i64 = 20 * MILLI_US;
/// Packets that were lost together are repeated together. Packets that stay late for longer than this, while the other
/// track is on time, come from a clock that stood still.
const LATE_RUN_US: i64 = 80 * MILLI_US;
/// A track is on time if a packet arrived within this time…
const RECENT_US: i64 = 200 * MILLI_US;
/// …and was late by less than this.
const ON_TIME_US: i64 = 100 * MILLI_US;
/// For this long after its start a track's least lateness may still be found; later it changes as clocks drift, by
/// [`DRIFT_PPM`] at most.
const START_US: i64 = 5_000 * MILLI_US;
const DRIFT_PPM: i64 = 200;
/// Inserted time that the network may have caused is not worth a word.
const NAMED_US: i64 = 200 * MILLI_US;
/// Senders whose reports are kept until their first packet is in order: simulcast layers and new sources.
const EARLY_REPORTS_LIMIT: usize = 8;

/// A report of a sender that is not (yet) the track's source.
#[derive(Clone, Copy, Debug)]
struct EarlyReport {
    ssrc: u32,
    arrival: i64,
    ntp_us: i64,
    rtp: u32,
}

/// Consecutive packets that were late by [`FAR_US`] or more.
#[derive(Clone, Copy, Debug)]
struct LateRun {
    since: i64,
    least: i64,
}

/// One track's clock. Times are microseconds of the session's timeline.
#[derive(Debug)]
pub(crate) struct TrackClock {
    rate: i64,
    /// Timestamps go back by this much at most because frames are reordered.
    back_limit: i64,
    /// They get ahead of the time passed by this much at most.
    jump_limit: i64,
    /// Whether packets may wait at their sender while those of the other track are sent.
    may_wait: bool,
    started: i64,
    ssrc: Option<u32>,
    last_rtp: i64,
    last_arrival: i64,
    /// The position of the newest packet, without what was inserted.
    last_us: i64,
    /// That of the newest packet whose timestamp was not followed: those after it are not placed before it.
    floor_us: i64,
    /// The position of extended RTP time `base_rtp`.
    base_us: i64,
    base_rtp: i64,
    /// Time that passed and was not counted by the sender.
    inserted_us: i64,
    lateness: Lateness,
    /// The newest packet began a step of `lateness`.
    begins_step: bool,
    last_late: i64,
    least_late: i64,
    fast: Option<FastRun>,
    /// What the least lateness is held to be: more is due to a clock that stood still.
    usual_late: i64,
    late_run: Option<LateRun>,
    /// RTP time and arrival of a single packet whose timestamp was not followed.
    outlier: Option<(u32, i64)>,
    pub(crate) reports: SenderReports,
    early: Vec<EarlyReport>,
}

impl TrackClock {
    /// The clock of audio.
    pub(crate) fn of_audio() -> Self {
        Self::new(AUDIO_RATE, (AUDIO_BACK_LIMIT_US, AUDIO_JUMP_US), false)
    }

    /// The clock of video.
    pub(crate) fn of_video() -> Self {
        Self::new(VIDEO_RATE, (VIDEO_BACK_LIMIT_US, JUMP_US), true)
    }

    fn new(rate: u32, (back_limit, jump_limit): (i64, i64), may_wait: bool) -> Self {
        Self {
            rate: i64::from(rate),
            back_limit,
            jump_limit,
            may_wait,
            started: 0,
            ssrc: None,
            last_rtp: 0,
            last_arrival: 0,
            last_us: 0,
            floor_us: 0,
            base_us: 0,
            base_rtp: 0,
            inserted_us: 0,
            lateness: Lateness::default(),
            begins_step: false,
            last_late: 0,
            least_late: 0,
            fast: None,
            usual_late: 0,
            late_run: None,
            outlier: None,
            reports: SenderReports::default(),
            early: Vec::new(),
        }
    }

    /// The position of a packet without [`TrackClock::inserted_us`], which is up to date after the call.
    /// `is_other_on_time`: the other track's packets are not late.
    pub(crate) fn map(
        &mut self,
        arrival: i64,
        (ssrc, rtp): (u32, u32),
        is_other_on_time: bool,
        irregularities: &mut IrregularityCounts,
    ) -> i64 {
        if self.ssrc != Some(ssrc) {
            self.change_source(arrival, ssrc, rtp);
            return self.last_us;
        }
        let extended = self.extend(rtp);
        let position = self.to_us(extended);
        if self.is_jump(arrival, position) {
            return self.handle_jump(arrival, rtp, irregularities);
        }
        if self.outlier.take().is_some() {
            irregularities.add(Irregularity::TimeOutlier, 1);
        }
        let position = position.max(self.floor_us);
        self.last_rtp = extended;
        self.last_us = position;
        let inserted = self.insert(arrival, is_other_on_time);
        self.last_arrival = arrival;
        if inserted >= NAMED_US {
            irregularities.add(Irregularity::TimeStopped, 1);
        }
        position
    }

    /// Takes a report of `ssrc`; true if it is credible and of the current source.
    pub(crate) fn handle_report(&mut self, arrival: i64, ssrc: u32, ntp: u64, rtp: u32) -> bool {
        // A sender without a wall clock reports 0.
        if ntp == 0 {
            return false;
        }
        let ntp_us = micros_of(ntp);
        if self.ssrc == Some(ssrc) {
            return self.take_report(arrival, ntp_us, rtp);
        }
        self.early.retain(|early| early.ssrc != ssrc);
        if self.early.len() >= EARLY_REPORTS_LIMIT {
            self.early.remove(0);
        }
        self.early.push(EarlyReport { ssrc, arrival, ntp_us, rtp });
        false
    }

    /// The source of the newest packet.
    pub(crate) const fn ssrc(&self) -> Option<u32> {
        self.ssrc
    }

    /// Time that was inserted until now.
    pub(crate) const fn inserted_us(&self) -> i64 {
        self.inserted_us
    }

    /// The least lateness of the packets of the last seconds.
    pub(crate) const fn least_late(&self) -> i64 {
        self.least_late
    }

    /// Whether [`TrackClock::least_late`] may have changed, but for a single packet that was faster.
    pub(crate) const fn begins_step(&self) -> bool {
        self.begins_step
    }

    /// Whether [`TrackClock::least_late`] covers enough packets to be relied on.
    pub(crate) fn is_settled(&self) -> bool {
        self.late_run.is_none() && self.lateness.is_settled()
    }

    /// Whether packets arrive now, and without delay.
    pub(crate) const fn is_on_time(&self, now: i64) -> bool {
        self.ssrc.is_some()
            && now - self.last_arrival <= RECENT_US
            && self.last_late - self.least_late <= ON_TIME_US
            && self.late_run.is_none()
    }

    /// Extends a 32-bit RTP timestamp to the nearest value.
    const fn extend(&self, rtp: u32) -> i64 {
        self.last_rtp + (rtp.wrapping_sub(self.last_rtp as u32) as i32) as i64
    }

    const fn to_us(&self, rtp: i64) -> i64 {
        self.base_us + (rtp - self.base_rtp) * 1_000_000 / self.rate
    }

    const fn is_jump(&self, arrival: i64, position: i64) -> bool {
        let step = position - self.last_us;
        let late = arrival - position - self.inserted_us;
        let ahead_limit =
            AHEAD_LIMIT_US + (arrival - self.started).saturating_mul(AHEAD_PER_MILLE) / 1000;
        step < -self.back_limit
            || late < -ahead_limit
            || (step - (arrival - self.last_arrival) > self.jump_limit
                && late < self.least_late - self.jump_limit
                && late < -self.jump_limit)
    }

    /// A timestamp far from its neighbours is not followed; after a second one the clock is another.
    fn handle_jump(&mut self, arrival: i64, rtp: u32, counts: &mut IrregularityCounts) -> i64 {
        if let Some((outlier, arrived)) = self.outlier {
            let step = i64::from(rtp.wrapping_sub(outlier) as i32) * 1_000_000 / self.rate;
            let is_confirmed = (step - (arrival - arrived)).abs() <= JUMP_US;
            let kind = match is_confirmed {
                true => Irregularity::TimeStep,
                false => Irregularity::TimeOutlier,
            };
            counts.add(kind, 1);
            self.anchor(arrival, rtp);
            return self.last_us;
        }
        self.outlier = Some((rtp, arrival));
        let passed = arrival - self.last_arrival;
        let is_pause = passed >= JUMP_US;
        self.floor_us =
            self.last_us + if is_pause { passed } else { passed.clamp(0, OUTLIER_STEP_US) };
        self.floor_us
    }

    fn change_source(&mut self, arrival: i64, ssrc: u32, rtp: u32) {
        if self.ssrc.is_none() {
            self.started = arrival;
        }
        self.anchor(arrival, rtp);
        self.ssrc = Some(ssrc);
        self.reports = SenderReports::default();
        if let Some(at) = self.early.iter().position(|early| early.ssrc == ssrc) {
            let EarlyReport { arrival, ntp_us, rtp, .. } = self.early.swap_remove(at);
            self.take_report(arrival, ntp_us, rtp);
        }
    }

    /// Counting restarts where the old clock would be by now, so that a clock that jumps with every packet never
    /// overflows.
    fn anchor(&mut self, arrival: i64, rtp: u32) {
        let position =
            (arrival - self.usual_late - self.inserted_us).max(self.last_us).max(self.floor_us);
        self.base_rtp = i64::from(rtp);
        self.base_us = position;
        self.last_rtp = self.base_rtp;
        self.last_us = position;
        self.last_arrival = arrival;
        self.late_run = None;
        self.outlier = None;
        self.lateness = Lateness::default();
        self.last_late = arrival - position - self.inserted_us;
        self.least_late = self.last_late;
        self.fast = None;
        self.lateness.note(arrival, self.last_late);
    }

    /// Notes how late the newest packet is, and inserts the time that the clock is known to have missed.
    fn insert(&mut self, arrival: i64, is_other_on_time: bool) -> i64 {
        let late = arrival - self.last_us - self.inserted_us;
        self.last_late = late;
        if late < self.least_late - FAST_US && !self.is_so_fast(arrival, late) {
            self.begins_step = false;
            return 0;
        }
        self.fast = self.fast.and_then(FastRun::interrupted);
        self.least_late = self.least_late.min(late);
        let begins_step = self.lateness.note(arrival, late);
        self.begins_step = begins_step;
        let inserted = self.after_run(arrival, late, is_other_on_time).or_else(|| {
            begins_step.then(|| self.lateness.stopped(self.usual_late, is_other_on_time)).flatten()
        });
        if let Some((inserted, complete)) = inserted {
            self.inserted_us += inserted;
            self.last_late -= inserted;
            self.lateness.handle_inserted(inserted, complete, self.last_late);
            (self.late_run, self.fast) = (None, None);
            self.least_late = self.lateness.least().unwrap_or(self.last_late);
        } else if begins_step {
            self.follow_drift(arrival);
        }
        inserted.map_or(0, |(inserted, _)| inserted)
    }

    /// Whether a packet that is faster than all others shows how fast the network is, with others about as fast.
    #[cold]
    fn is_so_fast(&mut self, arrival: i64, late: i64) -> bool {
        if !self.lateness.is_settled() {
            return true;
        }
        let run = FastRun::with(self.fast, arrival, late);
        let is_proven = run.lasts(arrival);
        self.fast = (!is_proven).then_some(run);
        is_proven
    }

    /// The lateness of the packets that have been late without a break, if that is the clock's fault.
    fn after_run(
        &mut self,
        arrival: i64,
        late: i64,
        is_other_on_time: bool,
    ) -> Option<(i64, usize)> {
        let behind = late - self.usual_late;
        if behind < FAR_US {
            self.late_run = None;
            return None;
        }
        let run = self.late_run.get_or_insert(LateRun { since: arrival, least: behind });
        run.least = run.least.min(behind);
        let is_stopped = is_other_on_time && !self.may_wait && arrival - run.since >= LATE_RUN_US;
        is_stopped.then_some((run.least, 0))
    }

    fn follow_drift(&mut self, arrival: i64) {
        if self.lateness.is_settled()
            && let Some(least) = self.lateness.least()
        {
            self.least_late = least;
        }
        let most = match arrival - self.started <= START_US {
            true => i64::MAX,
            false => (arrival - self.last_arrival).max(500 * MILLI_US) * DRIFT_PPM / 1_000_000,
        };
        // Upwards it is inserted.
        self.usual_late -= (self.usual_late - self.least_late).clamp(0, most);
    }

    fn take_report(&mut self, arrival: i64, ntp_us: i64, rtp: u32) -> bool {
        let position = self.to_us(self.extend(rtp)) + self.inserted_us;
        let is_known = self.late_run.is_none() && self.fast.is_none();
        is_known && self.reports.handle(arrival, ntp_us, position, self.least_late)
    }
}

/// NTP has seconds in the upper half and fractions in the lower.
const fn micros_of(ntp: u64) -> i64 {
    let fraction = ((ntp & 0xffff_ffff) * 1_000_000) >> 32;
    (ntp >> 32) as i64 * 1_000_000 + fraction as i64
}

#[cfg(test)]
#[path = "track_clock_tests.rs"]
mod tests;
