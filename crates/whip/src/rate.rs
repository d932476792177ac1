//! So many of a kind in a second, and no more. Pure.

use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Counts one kind of input.
#[derive(Debug)]
pub(crate) struct RateLimit {
    limit: u32,
    second: Instant,
    count: u32,
}

impl RateLimit {
    /// `limit` of them a second.
    pub(crate) const fn new(limit: u32, now: Instant) -> Self {
        Self { limit, second: now, count: 0 }
    }

    /// One came; false when it is one too many.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        if now >= self.second + SECOND {
            (self.second, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.limit
    }
}
