//! Detects a subscriber that reads far too slowly: every byte counts as progress, and yet it will never catch up.

use std::time::{Duration, Instant};

/// How long a subscriber that is behind may read less than a tenth of the stream.
const SLOW_LIMIT: Duration = Duration::from_secs(30);
/// One part in this many of the stream is the minimum that it must read.
const LEAST_SHARE: u64 = 10;

/// What one subscriber took of what its stream offered while it was behind.
#[derive(Debug, Default)]
pub(super) struct LeastRate {
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    /// Bytes that the stream had offered when the window began.
    offered: u64,
    taken: u64,
}

impl LeastRate {
    /// The socket accepted `taken` bytes; the stream has offered `offered` bytes so far; `is_behind`: more waits for
    /// the socket. Returns false if the subscriber reads too slowly.
    pub(super) fn handle_written(
        &mut self,
        taken: usize,
        offered: u64,
        is_behind: bool,
        now: Instant,
    ) -> bool {
        if !is_behind {
            self.window = None;
            return true;
        }
        let window = self.window.get_or_insert(Window { since: now, offered, taken: 0 });
        window.taken += taken as u64;
        if now < window.since + SLOW_LIMIT {
            return true;
        }
        let Window { offered: before, taken, .. } = *window;
        self.window = None;
        taken * LEAST_SHARE >= offered.saturating_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a reader of a 100 kB/s stream that takes `per_second` bytes a second is kept for a minute.
    fn is_kept(per_second: usize, is_behind: bool) -> bool {
        let (start, mut rate) = (Instant::now(), LeastRate::default());
        (0..60).all(|n| {
            let now = start + Duration::from_secs(n);
            rate.handle_written(per_second, n * 100_000, is_behind, now)
        })
    }

    #[test]
    fn a_reader_slower_than_a_tenth_of_its_stream_for_half_a_minute_is_too_slow() {
        assert!(!is_kept(1, true));
        assert!(!is_kept(9_000, true));
        assert!(is_kept(10_000, true));
        assert!(is_kept(1, false), "one that has everything is never too slow");
    }
}
