//! Conversion from the monotonic clock, which the core uses, to the wall clock, which people read.

use std::time::{Instant, SystemTime};

/// The wall-clock time of `then`, given that `now` is `wall`.
pub(super) fn wall_time(then: Instant, now: Instant, wall: SystemTime) -> SystemTime {
    wall.checked_sub(now.saturating_duration_since(then)).unwrap_or(wall)
}
