//! Maps samples to time, for input and output. Independent of the codecs.
//!
//! Time is counted in sixths of a microsecond: a sample at 48 kHz lasts exactly 125.

use crate::Timestamp;
use crate::aac::SAMPLES_PER_FRAME;

const TICKS_PER_MICRO: i64 = 6;
const TICKS_PER_SAMPLE: i64 = 125;
const TICKS_PER_FRAME: i64 = SAMPLES_PER_FRAME as i64 * TICKS_PER_SAMPLE;
const TICKS_PER_SECOND: i64 = 1_000_000 * TICKS_PER_MICRO;

/// Incoming timestamps further from zero than this (4,500 years) are clamped to it, so that sums cannot overflow.
const LIMIT_MICROS: i64 = 1 << 57;
/// Earlier than any timestamp by more than the longest hole that is filled.
const LONG_AGO: i64 = -2 * LIMIT_MICROS * TICKS_PER_MICRO;
/// A hole longer than this (1 s) is not filled: a player treats it as an interruption anyway, and a jump in the
/// timestamps by an hour must not cost an hour of encoding. The audio continues after it at its own timestamp.
const LIMIT_GAP: i64 = TICKS_PER_SECOND;
/// How far incoming timestamps may deviate from the sample count (5 ms) before the output follows them.
const TOLERANCE: i64 = TICKS_PER_SECOND / 200;
/// How much longer or shorter one frame may be while following them: 0.4 %, or 85 µs.
const SLEW_PER_FRAME: i64 = TICKS_PER_FRAME / 250;
/// Missing samples are counted in steps of 2.5 ms, the shortest Opus frame.
const GAP_STEP_SAMPLES: i64 = 120;

/// How a packet relates to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is the first packet.
    First,
    /// It continues where the last one ended.
    Continues,
    /// This many samples are missing before it; at most a second.
    Missing(usize),
    /// Its time has already been sent, for example a duplicate or a straggler: it is not played.
    Late,
    /// More than a second is missing.
    Discontinuity,
}

/// The timeline of one stream's audio.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    // End of the last packet by its own timestamp; `None` before the first.
    expected: Option<i64>,
    // Time of the segment's sample 0, as corrected so far.
    origin: i64,
    // Samples received and frames sent since the segment began.
    received_samples: i64,
    sent_frames: i64,
    // The part of the deviation that is still to be distributed over frames.
    correction: i64,
}

impl Timeline {
    /// How a packet of this many samples relates to those before it.
    pub(super) fn arrival(&self, timestamp: Timestamp, samples: usize) -> Arrival {
        let Some(expected) = self.expected else { return Arrival::First };
        let (time, half) = (ticks(timestamp), samples as i64 * TICKS_PER_SAMPLE / 2);
        let gap = time - expected;
        if gap > LIMIT_GAP || time - self.input_time() > LIMIT_GAP + half {
            Arrival::Discontinuity
        } else if gap >= half {
            // Of a clock that counts less than the packets last, the samples are ahead already.
            let gap = gap.min(time - self.input_time());
            if gap < half {
                return Arrival::Continues;
            }
            let steps = (gap / TICKS_PER_SAMPLE + GAP_STEP_SAMPLES / 2) / GAP_STEP_SAMPLES;
            Arrival::Missing((steps.max(1) * GAP_STEP_SAMPLES) as usize)
        } else if gap > -half || gap < -LIMIT_GAP {
            // A clock that jumped far back is accepted, but the output only slews towards it.
            Arrival::Continues
        } else {
            Arrival::Late
        }
    }

    /// Begins a segment at a timestamp, or at the end of the output if that is later.
    pub(super) fn begin_segment(&mut self, timestamp: Timestamp) {
        let end = match self.expected {
            Some(_) => self.output_time(),
            None => i64::MIN,
        };
        self.origin = ticks(timestamp).max(end);
        (self.received_samples, self.sent_frames, self.correction) = (0, 0, 0);
    }

    /// Discards what was received and not sent; the next packet is a discontinuity.
    pub(super) fn abandon_segment(&mut self) {
        self.origin = self.output_time();
        (self.received_samples, self.sent_frames, self.correction) = (0, 0, 0);
        self.expected = Some(LONG_AGO);
    }

    /// Counts samples that were generated without a packet.
    pub(super) fn handle_filling(&mut self, samples: usize) {
        self.received_samples += samples as i64;
    }

    /// Counts a packet and measures the deviation of its timestamp from the sample count.
    pub(super) fn handle_packet(&mut self, timestamp: Timestamp, samples: usize) {
        let time = ticks(timestamp);
        let deviation = time - self.input_time();
        if self.correction != 0 || deviation.abs() > TOLERANCE {
            self.correction = deviation;
        }
        self.received_samples += samples as i64;
        self.expected = Some(time + samples as i64 * TICKS_PER_SAMPLE);
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

    fn input_time(&self) -> i64 {
        self.origin + self.received_samples * TICKS_PER_SAMPLE
    }

    fn output_time(&self) -> i64 {
        self.origin + self.sent_frames * TICKS_PER_FRAME
    }
}

fn ticks(timestamp: Timestamp) -> i64 {
    timestamp.as_micros().clamp(-LIMIT_MICROS, LIMIT_MICROS) * TICKS_PER_MICRO
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 960;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn started() -> Timeline {
        let mut timeline = Timeline::default();
        timeline.begin_segment(at(0));
        timeline.handle_packet(at(0), PACKET);
        timeline
    }

    #[test]
    fn a_packet_is_placed_by_its_timestamp() {
        let timeline = started();
        assert_eq!(Timeline::default().arrival(at(7), PACKET), Arrival::First);
        for (micros, expected) in [
            (20_000, Arrival::Continues),
            (29_999, Arrival::Continues),
            (10_001, Arrival::Continues),
            (10_000, Arrival::Late),
            (0, Arrival::Late),
            (30_000, Arrival::Missing(480)),
            (40_000, Arrival::Missing(960)),
            (41_000, Arrival::Missing(960)),
            (1_020_000, Arrival::Missing(48_000)),
            (1_020_001, Arrival::Discontinuity),
            (-980_000, Arrival::Late),
            (-980_001, Arrival::Continues),
            (i64::MAX, Arrival::Discontinuity),
            (i64::MIN, Arrival::Continues),
        ] {
            assert_eq!(timeline.arrival(at(micros), PACKET), expected, "{micros}");
        }
    }

    #[test]
    fn a_clock_that_counts_too_little_and_is_corrected_gets_no_silence_for_it() {
        for counted in [18_375, 19_800, 19_950] {
            let (mut timeline, mut inserted, mut filled) = (started(), 0, 0);
            for packet in 1..3_000 {
                if packet * (20_000 - counted) - inserted >= 300_000 {
                    inserted += 300_000;
                }
                let time = at(packet * counted + inserted);
                match timeline.arrival(time, PACKET) {
                    Arrival::Missing(samples) => {
                        filled += samples;
                        timeline.handle_filling(samples);
                    }
                    arrival => assert_eq!(arrival, Arrival::Continues),
                }
                timeline.handle_packet(time, PACKET);
                while timeline.has_unsent() {
                    timeline.send_frame();
                }
                let ahead = timeline.input_time() - ticks(time) - PACKET as i64 * TICKS_PER_SAMPLE;
                assert!(ahead <= 320 * 1_000 * TICKS_PER_MICRO, "{counted}: {ahead}");
            }
            // As much as the frames were shortened, at most.
            assert!(filled <= 3_000 * PACKET / 250, "{counted}: {filled}");
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
        timeline.handle_packet(at(25_000), PACKET);
        timeline.send_frame();
        assert_eq!(timeline.next_timestamp(), at(21_333));
    }

    #[test]
    fn larger_deviations_are_corrected_slowly() {
        for deviation in [8_000, -8_000] {
            let (mut timeline, mut last) = (started(), 0);
            for packet in 1..1_000 {
                timeline.handle_packet(at(packet * 20_000 + deviation), PACKET);
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
}
