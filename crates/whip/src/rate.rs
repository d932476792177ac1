//! Limits how many inputs of one kind are accepted per second. Pure.

use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Counts inputs of one kind.
#[derive(Debug)]
pub(crate) struct RateLimit {
    limit: u32,
    second: Instant,
    count: u32,
}

impl RateLimit {
    /// Admits `limit` inputs per second.
    pub(crate) const fn new(limit: u32, now: Instant) -> Self {
        Self { limit, second: now, count: 0 }
    }

    /// Counts one input; false when it exceeds the limit.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        if now >= self.second + SECOND {
            (self.second, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_beyond_the_rate_are_admitted_again_in_the_next_second() {
        let start = Instant::now();
        let mut rate = RateLimit::new(2, start);
        let mut admit = |millis| rate.admit(start + Duration::from_millis(millis));
        assert_eq!([0, 500, 999].map(&mut admit), [true, true, false]);
        assert_eq!([1_000, 1_000, 1_999].map(&mut admit), [true, true, false]);
        assert!(admit(2_000));
    }
}
