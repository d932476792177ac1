//! Maps samples to time, for input and output. Independent of the codecs, and pure: time is an argument.
//!
//! A packet whose timestamp neither continues those before it nor is accounted for by the time passed is doubtful: it
//! is placed once the packet after it is known, which either continues it or not.
//!
//! Time is counted in sixths of a microsecond: a sample at 48 kHz lasts exactly 125.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use headgate_media::Timestamp;
use headgate_media::aac::SAMPLES_PER_FRAME;

const TICKS_PER_MICRO: i64 = 6;
const TICKS_PER_SAMPLE: i64 = 125;
const TICKS_PER_FRAME: i64 = SAMPLES_PER_FRAME as i64 * TICKS_PER_SAMPLE;
const TICKS_PER_SECOND: i64 = 1_000_000 * TICKS_PER_MICRO;

/// Incoming timestamps further from zero than this (4,500 years) are clamped to it, so that sums cannot overflow.
const LIMIT_MICROS: i64 = 1 << 57;
/// A hole longer than this (1 s) is not filled: a player treats it as an interruption anyway, and a jump in the
/// timestamps by an hour must not cost an hour of encoding. The audio continues after it at its own timestamp.
const LIMIT_GAP: i64 = TICKS_PER_SECOND;
/// How far the samples may get ahead of the timestamps before packets are left out: a publisher may stamp some packets
/// alike, and timestamps that went back stand still for a while. One that goes back further is doubtful.
const LIMIT_AHEAD: i64 = TICKS_PER_SECOND / 2;
/// The packets of a pause come when the sender pleases: the time passed accounts for this much more.
const PAUSE_TOLERANCE: i64 = TICKS_PER_SECOND / 10;
/// How far incoming timestamps may deviate from the sample count (5 ms) before the output follows them.
const TOLERANCE: i64 = TICKS_PER_SECOND / 200;
/// How much longer or shorter one frame may be while following them: 0.4 %, or 85 µs.
const SLEW_PER_FRAME: i64 = TICKS_PER_FRAME / 250;
/// Missing samples are counted in steps of 2.5 ms, the shortest Opus frame.
const GAP_STEP_SAMPLES: i64 = 120;

/// A packet to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) timestamp: Timestamp,
    pub(super) samples: usize,
    /// When it arrived.
    pub(super) at: Instant,
    /// It belongs to a pause, or is the first after one.
    pub(super) in_pause: bool,
}

/// What is known about a packet's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Only those before it.
    Before,
    /// It was doubtful, and the packet after it continues it.
    Confirmed,
    /// It was doubtful, and the packet after it does not continue it.
    Refuted,
}

/// How a packet relates to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is the first packet.
    First,
    /// It continues where the last one ended.
    Continues,
    /// The same, although its timestamp says otherwise.
    ContinuesUnstamped,
    /// The sender's clock has gone back: [`Timeline::follow_back`].
    Back,
    /// This many samples are missing before it; at most a second.
    Missing(usize),
    /// More samples have come than time has passed by its timestamp: it is not played.
    Late,
    /// More than a second is missing.
    Discontinuity,
    /// It cannot be placed yet.
    Doubtful,
}

/// The timeline of one stream's audio.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    // End of the last packet by its own timestamp; `None` before the first.
    expected: Option<i64>,
    // The last packet that was placed by its timestamp, and when it arrived.
    followed: Option<(i64, Instant)>,
    // Added to timestamps since the sender's clock went back.
    shift: i64,
    // Time of the segment's sample 0, as corrected so far.
    origin: i64,
    // Samples received and frames sent since the segment began.
    received_samples: i64,
    sent_frames: i64,
    // The part of the deviation that is still to be distributed over frames.
    correction: i64,
}

impl Timeline {
    /// How a packet relates to those before it.
    pub(super) fn arrival(&self, packet: &Arriving, evidence: Evidence) -> Arrival {
        let Some(expected) = self.expected else { return Arrival::First };
        if evidence == Evidence::Refuted {
            return Arrival::ContinuesUnstamped;
        }
        let time = self.ticks(packet.timestamp);
        let half = packet.samples as i64 * TICKS_PER_SAMPLE / 2;
        // Of a clock that counts less than the packets last, the samples are ahead already.
        let (gap, gap_in_samples) = (time - expected, time - self.input_time());
        let is_gap = gap > LIMIT_GAP || gap.min(gap_in_samples) >= half;
        let is_back = gap < -LIMIT_AHEAD;
        let is_doubtful = is_back || is_gap && !self.is_accounted_for(time, packet);
        if is_doubtful && evidence == Evidence::Before {
            Arrival::Doubtful
        } else if is_back {
            Arrival::Back
        } else if gap > LIMIT_GAP || gap_in_samples > LIMIT_GAP + half {
            Arrival::Discontinuity
        } else if is_gap {
            let gap = gap.min(gap_in_samples);
            let steps = (gap / TICKS_PER_SAMPLE + GAP_STEP_SAMPLES / 2) / GAP_STEP_SAMPLES;
            Arrival::Missing((steps.max(1) * GAP_STEP_SAMPLES) as usize)
        } else if gap <= -half && gap_in_samples < -LIMIT_AHEAD {
            Arrival::Late
        } else {
            Arrival::Continues
        }
    }

    /// What the packet after a doubtful one says about it.
    pub(super) fn evidence(&self, doubtful: &Arriving, next: Timestamp) -> Evidence {
        let length = doubtful.samples as i64 * TICKS_PER_SAMPLE;
        let next = self.ticks(next);
        let after = next - self.ticks(doubtful.timestamp) - length;
        let otherwise = next - self.expected.unwrap_or(next) - length;
        let is_continued = after > -length / 2 && after <= LIMIT_GAP && after < otherwise.abs();
        if is_continued { Evidence::Confirmed } else { Evidence::Refuted }
    }

    /// Whether no more time lies between the last packet and this one than has passed.
    fn is_accounted_for(&self, time: i64, packet: &Arriving) -> bool {
        let Some((followed, since)) = self.followed else { return true };
        let passed = ticks_of(packet.at.saturating_duration_since(since));
        let tolerance = if packet.in_pause { PAUSE_TOLERANCE } else { 0 };
        time - followed <= passed.saturating_add(tolerance)
    }

    /// Begins a segment at a timestamp, or at the end of the output if that is later.
    pub(super) fn begin_segment(&mut self, timestamp: Timestamp) {
        let end = match self.expected {
            Some(_) => self.output_time(),
            None => i64::MIN,
        };
        self.origin = self.ticks(timestamp).max(end);
        (self.received_samples, self.sent_frames, self.correction) = (0, 0, 0);
    }

    /// Counts samples that were generated without a packet.
    pub(super) fn handle_filling(&mut self, samples: usize) {
        self.received_samples += samples as i64;
    }

    /// The sender's clock has gone back to a packet's timestamp: its time continues where the last packet ended, or as
    /// much later as the time passed says.
    pub(super) fn follow_back(&mut self, packet: &Arriving) {
        let expected = self.expected.unwrap_or_default();
        let passed = |(followed, since): (i64, Instant)| {
            followed.saturating_add(ticks_of(packet.at.saturating_duration_since(since)))
        };
        let by_arrival = self.followed.map_or(expected, passed);
        let is_pause = by_arrival > expected + PAUSE_TOLERANCE;
        let position = if is_pause { by_arrival } else { expected };
        self.shift += position - self.ticks(packet.timestamp);
    }

    /// Counts a packet of this many samples and measures the deviation of its timestamp from the sample count.
    pub(super) fn handle_packet(&mut self, packet: &Arriving, samples: usize) {
        let time = self.ticks(packet.timestamp);
        let deviation = time - self.input_time();
        if self.correction != 0 || deviation.abs() > TOLERANCE {
            self.correction = deviation;
        }
        self.received_samples += samples as i64;
        self.expected = Some(time + samples as i64 * TICKS_PER_SAMPLE);
        self.followed = Some((time, packet.at));
    }

    /// Counts a packet of this many samples whose timestamp means nothing.
    pub(super) fn handle_unstamped(&mut self, samples: usize) {
        self.received_samples += samples as i64;
        self.expected = self.expected.map(|expected| expected + samples as i64 * TICKS_PER_SAMPLE);
    }

    /// Counts one frame as sent and returns its timestamp.
    pub(super) fn send_frame(&mut self) -> Timestamp {
        let timestamp = self.next_timestamp();
        let step = self.correction.clamp(-SLEW_PER_FRAME, SLEW_PER_FRAME);
        self.correction -= step;
        self.origin += step;
        self.sent_frames += 1;
        timestamp
    }

    /// The timestamp of the next frame to be sent.
    pub(super) fn next_timestamp(&self) -> Timestamp {
        Timestamp::from_micros(self.output_time().div_euclid(TICKS_PER_MICRO))
    }

    /// Whether samples were received that no sent frame contains.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent_frames * i64::from(SAMPLES_PER_FRAME) < self.received_samples
    }

    fn ticks(&self, timestamp: Timestamp) -> i64 {
        let own = timestamp.as_micros().clamp(-LIMIT_MICROS, LIMIT_MICROS) * TICKS_PER_MICRO;
        (own + self.shift).clamp(-LIMIT_MICROS * TICKS_PER_MICRO, LIMIT_MICROS * TICKS_PER_MICRO)
    }

    fn input_time(&self) -> i64 {
        self.origin + self.received_samples * TICKS_PER_SAMPLE
    }

    fn output_time(&self) -> i64 {
        self.origin + self.sent_frames * TICKS_PER_FRAME
    }
}

const fn ticks_of(duration: Duration) -> i64 {
    (duration.as_micros() as i64).saturating_mul(TICKS_PER_MICRO)
}
