//! A reader that takes its stream at a crawl: each byte it takes counts as progress, and yet it will never catch up.

use std::time::{Duration, Instant};

/// A reader that is behind may read slower than a tenth of the stream for so long.
const SLOW_LIMIT: Duration = Duration::from_secs(30);
/// The part of the stream that it must read at least.
const LEAST_SHARE: u64 = 10;

/// What one reader took, while it was behind, of what its stream had for it.
#[derive(Debug, Default)]
pub(super) struct LeastRate {
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    /// Bytes the stream had offered when it began.
    offered: u64,
    taken: u64,
}

impl LeastRate {
    /// The socket took `taken` bytes; the stream has offered `offered` so far; `is_behind`: more waits for the socket.
    /// False: it reads slower than it may.
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

    /// A reader of 100 kB/s that takes so many bytes a second, for a minute.
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
