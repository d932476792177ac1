//! Pauses between attempts to connect to an upstream.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause, also used after a refusal.
const LONGEST: Duration = Duration::from_secs(30);
/// After sending for this long an attempt counts as a success and resets the pauses.
pub(crate) const GOOD_SENDING: Duration = Duration::from_secs(30);

/// Pauses that double from one second to thirty, each with a random variation of a fifth.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    failures: u32,
}

impl Retry {
    /// The pause before the next attempt; `random` is any 64 random bits.
    pub(crate) fn pause(&mut self, refused: bool, random: u64) -> Duration {
        let base =
            if refused { LONGEST } else { (FIRST * (1 << self.failures.min(5))).min(LONGEST) };
        self.failures = self.failures.saturating_add(1);
        // 0.8 … 1.2 of the base.
        base * 4 / 5 + base * u32::try_from(random % 401).unwrap_or(0) / 1000
    }

    /// The connection has lasted for [`GOOD_SENDING`].
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_thirty_seconds_with_a_fifth_of_jitter() {
        let mut retry = Retry::default();
        let middle: Vec<u64> = (0..7).map(|_| retry.pause(false, 200).as_secs()).collect();
        assert_eq!(middle, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(Retry::default().pause(false, 0), Duration::from_millis(800));
        assert_eq!(Retry::default().pause(false, 400), Duration::from_millis(1200));
        assert_eq!(Retry::default().pause(true, 200), LONGEST);
    }
}
