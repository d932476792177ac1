//! Limits the messages of one kind per second, averaged over a window.

use std::time::{Duration, Instant};

/// The window over which a rate is averaged: encoders send many messages at once when they start.
const WINDOW_S: u32 = 10;

/// A token bucket that holds a window's worth and is refilled every second.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: u32,
    left: u32,
    refilled_at: Instant,
}

impl Rate {
    pub(crate) const fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, left: per_second.saturating_mul(WINDOW_S), refilled_at: now }
    }

    /// Counts one message; false when it exceeds the rate.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let seconds = now.saturating_duration_since(self.refilled_at).as_secs();
        if seconds > 0 {
            self.refilled_at += Duration::from_secs(seconds);
            let seconds = u32::try_from(seconds).unwrap_or(WINDOW_S).min(WINDOW_S);
            let full = self.per_second.saturating_mul(WINDOW_S);
            self.left = self.per_second.saturating_mul(seconds).saturating_add(self.left).min(full);
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a thousand messages are admitted at `now`.
    fn taken(rate: &mut Rate, now: Instant) -> usize {
        (0..1000).take_while(|_| rate.take(now)).count()
    }

    #[test]
    fn a_full_window_may_arrive_at_once_and_a_second_restores_its_share() {
        let start = Instant::now();
        let mut rate = Rate::new(3, start);
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(taken(&mut rate, start), 30);
        assert_eq!(taken(&mut rate, after(999)), 0);
        assert_eq!(taken(&mut rate, after(1000)), 3);
        assert_eq!(taken(&mut rate, after(3500)), 6);
        assert_eq!(taken(&mut rate, after(4000)), 3, "the half second was not lost");
        assert_eq!(taken(&mut rate, after(86_400_000)), 30, "no more than a window is saved up");
    }
}
