//! How busy a media worker is: the share of a core that its thread took over the last seconds.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What one measurement spans. A worker that sleeps longer measures when it wakes.
const SPAN: Duration = Duration::from_secs(2);
/// Parts of a core that a load is kept in.
const WHOLE: f64 = 1_000_000.0;

/// One worker's newest measurement; its thread writes, anybody reads.
#[derive(Debug)]
pub(crate) struct WorkerLoad {
    start: Instant,
    measured_ms: AtomicU64,
    millionths: AtomicU32,
}

impl WorkerLoad {
    /// Nothing is measured yet.
    pub(super) const fn new(start: Instant) -> Self {
        Self { start, measured_ms: AtomicU64::new(0), millionths: AtomicU32::new(0) }
    }

    /// Share of a core, 0 to 1. A worker that has not measured for two spans has slept: 0.
    pub(crate) fn share(&self, now: Instant) -> f64 {
        let measured = Duration::from_millis(self.measured_ms.load(Ordering::Relaxed));
        if now.saturating_duration_since(self.start + measured) > SPAN * 2 {
            return 0.0;
        }
        f64::from(self.millionths.load(Ordering::Relaxed)) / WHOLE
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and a million"
    )]
    fn put(&self, share: f64, now: Instant) {
        let since = now.saturating_duration_since(self.start).as_millis();
        self.millionths.store((share.clamp(0.0, 1.0) * WHOLE) as u32, Ordering::Relaxed);
        self.measured_ms.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Measures the thread that calls it.
#[derive(Debug)]
pub(super) struct LoadMeter {
    measured_at: Instant,
    /// Processor time of the thread at that moment.
    taken: Duration,
}

impl LoadMeter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { measured_at: now, taken: Duration::ZERO }
    }

    /// Measures when it is time; a comparison otherwise.
    pub(super) fn measure(&mut self, now: Instant, load: &WorkerLoad) {
        let span = now.saturating_duration_since(self.measured_at);
        if span < SPAN {
            return;
        }
        let taken = processor_time();
        load.put(taken.saturating_sub(self.taken).as_secs_f64() / span.as_secs_f64(), now);
        (self.measured_at, self.taken) = (now, taken);
    }
}

/// What the calling thread has taken of a processor so far.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_takes_a_share_that_is_forgotten_when_it_sleeps() {
        let start = Instant::now();
        let (load, mut meter) = (WorkerLoad::new(start), LoadMeter::new(start));
        assert_eq!(load.share(start), 0.0);
        while processor_time() < Duration::from_millis(40) {
            std::hint::spin_loop();
        }
        meter.measure(start + SPAN / 2, &load);
        assert_eq!(load.share(start + SPAN / 2), 0.0, "not yet");
        let now = start + SPAN;
        meter.measure(now, &load);
        assert!(load.share(now) >= 0.02 && load.share(now) <= 1.0, "{}", load.share(now));
        assert_eq!(load.share(now + SPAN * 3), 0.0);
    }
}
