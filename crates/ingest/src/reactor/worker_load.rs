//! How busy a media worker is and how late it serves its input, measured by the worker itself over the last second.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Duration of one measurement. A worker that sleeps longer measures when it wakes.
const SPAN: Duration = Duration::from_secs(1);
/// A worker without a measurement for this long was asleep.
const SLEPT: Duration = Duration::from_secs(4);
/// Shares are stored as integers in this many parts.
const WHOLE: f64 = 1_000_000.0;

/// What one worker measured of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerStatus {
    /// Share of one core's time that its thread used, 0 to 1.
    pub load: f64,
    /// Share of the time that its turns took, including time spent waiting for a processor, 0 to 1.
    pub busy: f64,
    /// Average delay of input until it is served, beyond the intended interval between turns.
    pub late: Duration,
}

/// One worker's newest measurement; its thread writes, any thread reads.
#[derive(Debug)]
pub(crate) struct WorkerLoad {
    start: Instant,
    measured_ms: AtomicU64,
    load: AtomicU32,
    busy: AtomicU32,
    late_micros: AtomicU32,
}

impl WorkerLoad {
    /// Without a measurement yet.
    pub(super) const fn new(start: Instant) -> Self {
        let [load, busy, late_micros] = [const { AtomicU32::new(0) }; 3];
        Self { start, measured_ms: AtomicU64::new(0), load, busy, late_micros }
    }

    /// The newest measurement; all zero for a worker that was asleep.
    pub(crate) fn status(&self, now: Instant) -> WorkerStatus {
        let measured = Duration::from_millis(self.measured_ms.load(Ordering::Relaxed));
        if now.saturating_duration_since(self.start + measured) > SLEPT {
            return WorkerStatus::default();
        }
        let share = |of: &AtomicU32| f64::from(of.load(Ordering::Relaxed)) / WHOLE;
        let late = Duration::from_micros(self.late_micros.load(Ordering::Relaxed).into());
        WorkerStatus { load: share(&self.load), busy: share(&self.busy), late }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and a million"
    )]
    fn put(&self, status: WorkerStatus, now: Instant) {
        let since = now.saturating_duration_since(self.start).as_millis();
        let millionths = |share: f64| (share.clamp(0.0, 1.0) * WHOLE) as u32;
        self.load.store(millionths(status.load), Ordering::Relaxed);
        self.busy.store(millionths(status.busy), Ordering::Relaxed);
        let late = u32::try_from(status.late.as_micros()).unwrap_or(u32::MAX);
        self.late_micros.store(late, Ordering::Relaxed);
        self.measured_ms.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Measures the thread that calls it.
#[derive(Debug)]
pub(super) struct LoadMeter {
    measured_at: Instant,
    /// Processor time of the thread at that moment.
    taken: Duration,
    /// Time spent in turns since then.
    busy: Duration,
    /// Sum over the turns since then of the squared excess duration, s².
    late_squares: f64,
}

impl LoadMeter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { measured_at: now, taken: Duration::ZERO, busy: Duration::ZERO, late_squares: 0.0 }
    }

    /// Notes a turn: it worked for `worked` and took `took` in total where `meant` was intended.
    pub(super) fn note_turn(&mut self, worked: Duration, took: Duration, meant: Duration) {
        self.busy += worked;
        self.late_squares += took.saturating_sub(meant).as_secs_f64().powi(2);
    }

    /// Measures if a span has passed; otherwise costs one comparison.
    pub(super) fn measure(&mut self, now: Instant, load: &WorkerLoad) {
        let span = now.saturating_duration_since(self.measured_at);
        if span < SPAN {
            return;
        }
        let taken = processor_time();
        let of_span = |time: Duration| time.as_secs_f64() / span.as_secs_f64();
        // Input that arrives during a turn waits for its end: on average half the excess, weighted by the share of
        // time.
        let late = self.late_squares / 2.0 / span.as_secs_f64();
        let status = WorkerStatus {
            load: of_span(taken.saturating_sub(self.taken)),
            busy: of_span(self.busy),
            late: Duration::try_from_secs_f64(late).unwrap_or_default(),
        };
        load.put(status, now);
        *self = Self { taken, ..Self::new(now) };
    }
}

/// Processor time that the calling thread has used so far.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_a_busy_thread_rises_and_falls_when_it_sleeps() {
        let start = Instant::now();
        let (load, mut meter) = (WorkerLoad::new(start), LoadMeter::new(start));
        assert_eq!(load.status(start), WorkerStatus::default());
        while processor_time() < Duration::from_millis(40) {
            std::hint::spin_loop();
        }
        meter.measure(start + SPAN / 2, &load);
        assert_eq!(load.status(start + SPAN / 2).load, 0.0, "not yet");
        let now = start + SPAN;
        meter.measure(now, &load);
        let share = load.status(now).load;
        assert!((0.04..=1.0).contains(&share), "{share}");
        assert_eq!(load.status(now + SLEPT * 2), WorkerStatus::default());
    }

    #[test]
    fn long_turns_make_it_late_and_short_ones_do_not() {
        let start = Instant::now();
        let (load, mut meter) = (WorkerLoad::new(start), LoadMeter::new(start));
        let [turn, long] = [2, 42].map(Duration::from_millis);
        for _ in 0..400 {
            meter.note_turn(turn / 4, turn, turn);
        }
        meter.measure(start + SPAN, &load);
        let status = load.status(start + SPAN);
        assert_eq!((status.busy, status.late), (0.2, Duration::ZERO));
        // All time spent in turns of 42 ms that should have taken 2 ms: 24 a second, each 40 ms too long.
        for _ in 0..24 {
            meter.note_turn(long, long, turn);
        }
        meter.measure(start + SPAN * 2, &load);
        let status = load.status(start + SPAN * 2);
        assert!(status.busy > 0.99, "{status:?}");
        assert_eq!(status.late.as_micros(), 19_200);
        // A single such turn hardly counts.
        meter.note_turn(long, long, turn);
        meter.measure(start + SPAN * 3, &load);
        assert_eq!(load.status(start + SPAN * 3).late.as_micros(), 800);
    }
}
