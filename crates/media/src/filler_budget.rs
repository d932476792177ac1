//! How much media a filler may generate, silence for example: as much as time passes and 5 s more, whatever a
//! publisher's timestamps ask for. Pure: time is an argument.

use std::time::{Duration, Instant};

/// What may be generated at once, besides the time passed.
const AHEAD_LIMIT: Duration = Duration::from_secs(5);
/// Limit of what is saved up while nothing is generated: what arrives after an outage may need as much at once.
const SAVED_LIMIT: Duration = Duration::from_secs(60);

/// The budget of one filler.
#[derive(Clone, Copy, Debug, Default)]
pub struct FillerBudget {
    /// What may still be generated at the time of the newest request; `None` before the first.
    left: Option<(Duration, Instant)>,
}

impl FillerBudget {
    /// Takes this much media time at `now`; false, and takes nothing, if less is left.
    pub fn take(&mut self, media_us: i64, now: Instant) -> bool {
        let wanted = Duration::from_micros(u64::try_from(media_us).unwrap_or_default());
        let left = self.left.map_or(AHEAD_LIMIT, |(left, since)| {
            let limit = left.max(SAVED_LIMIT);
            (left + now.saturating_duration_since(since)).min(limit)
        });
        let rest = left.checked_sub(wanted);
        self.left = Some((rest.unwrap_or(left), now));
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `count` requests are granted, one every `pause_ms`.
    fn granted(budget: &mut FillerBudget, now: Instant, (count, pause_ms): (u32, u64)) -> usize {
        let at = |n: u32| now + Duration::from_millis(pause_ms * u64::from(n));
        (0..count).filter(|n| budget.take(1_000_000, at(*n))).count()
    }

    #[test]
    fn five_seconds_more_than_the_time_passed_are_granted() {
        let now = Instant::now();
        assert_eq!(granted(&mut FillerBudget::default(), now, (100, 0)), 5);
        assert_eq!(granted(&mut FillerBudget::default(), now, (1_000, 100)), 5 + 99);
        assert_eq!(granted(&mut FillerBudget::default(), now, (100, 1_000)), 100);
    }

    #[test]
    fn at_most_a_minute_is_saved_up() {
        let (mut budget, now) = (FillerBudget::default(), Instant::now());
        assert!(budget.take(0, now));
        let later = now + Duration::from_secs(3_600);
        assert_eq!(granted(&mut budget, later, (100, 0)), 60);
        assert!(!budget.take(i64::MAX, later + Duration::from_secs(3_600)));
    }
}
