//! From the monotonic clock, by which the core lives, to the wall clock, which people read.

use std::time::{Instant, SystemTime};

/// What the wall clock showed at `then`, when it shows `wall` at `now`.
pub(super) fn wall_time(then: Instant, now: Instant, wall: SystemTime) -> SystemTime {
    wall.checked_sub(now.saturating_duration_since(then)).unwrap_or(wall)
}
