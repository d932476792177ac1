//! Rates of one track, measured over the time between two readings. Pure.

use std::time::{Duration, Instant};

/// A reading sooner than this after the last one returns the same rates.
const WINDOW_LEAST: Duration = Duration::from_millis(500);

/// The rates of the last window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) kbps: u32,
    pub(crate) frames_per_second: f64,
}

/// The meter of one track.
#[derive(Debug)]
pub(crate) struct Meter {
    since: Instant,
    bytes: u64,
    frames: u32,
    rates: Rates,
    last_keyframe: Option<Instant>,
    gop: Option<Duration>,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        let (rates, last_keyframe, gop) = (Rates::default(), None, None);
        Self { since: now, bytes: 0, frames: 0, rates, last_keyframe, gop }
    }

    /// Counts received payload bytes.
    pub(crate) const fn note_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts a complete access unit.
    pub(crate) fn note_unit(&mut self, now: Instant, is_keyframe: bool) {
        self.frames += 1;
        if is_keyframe {
            self.gop = self.last_keyframe.map(|last| now.saturating_duration_since(last));
            self.last_keyframe = Some(now);
        }
    }

    /// The rates since the last reading.
    pub(crate) fn read(&mut self, now: Instant) -> Rates {
        let window = now.saturating_duration_since(self.since);
        if window >= WINDOW_LEAST {
            let millis = window.as_millis().max(1);
            self.rates = Rates {
                kbps: u32::try_from(u128::from(self.bytes) * 8 / millis).unwrap_or(u32::MAX),
                frames_per_second: f64::from(self.frames) / window.as_secs_f64(),
            };
            (self.since, self.bytes, self.frames) = (now, 0, 0);
        }
        self.rates
    }

    /// When the newest keyframe arrived.
    #[must_use]
    pub(crate) const fn last_keyframe(&self) -> Option<Instant> {
        self.last_keyframe
    }

    /// Time between the two newest keyframes.
    #[must_use]
    pub(crate) const fn gop(&self) -> Option<Duration> {
        self.gop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_cover_the_last_window_and_the_gop_the_last_two_keyframes() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut meter = Meter::new(start);
        for n in 0..50_u64 {
            meter.note_bytes(2500);
            meter.note_unit(at(n * 40), n % 25 == 0);
        }
        let rates = meter.read(at(2000));
        assert_eq!((rates.kbps, rates.frames_per_second.round() as u32), (500, 25));
        assert_eq!(meter.gop(), Some(Duration::from_secs(1)));
        assert_eq!(meter.read(at(2499)), rates, "half a second is not over");
        assert_eq!(meter.read(at(2500)), Rates::default());
    }
}
