//! When a broadcaster's bytes wake us: not for a sound alone, where the next picture takes it along soon. Pure.
//!
//! The kernel wakes a reader once so many bytes wait (SO_RCVLOWAT, socket 7): its mark. A read takes what there is.

use std::time::{Duration, Instant};

/// Bytes wait so long at most: a picture of a stream with 24 in a second, and the jitter of its sender.
const WAIT_LIMIT: Duration = Duration::from_millis(48);
/// Pictures by which a stream is judged.
const PICTURES: u32 = 50;
/// They come at least so often, on average.
const APART_LIMIT: Duration = Duration::from_millis(45);
/// A mark beyond this gains nothing.
const MARK_LIMIT: usize = 64 << 10;
/// Every byte wakes.
const NO_MARK: usize = 1;

/// What the pictures of one publish say about its mark.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Half of the shortest picture of late: with fewer bytes there is only sound.
    mark: usize,
    shortest: usize,
    pictures: u32,
    since: Instant,
    looked_at: Instant,
}

impl Gathering {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { mark: NO_MARK, shortest: MARK_LIMIT, pictures: 0, since: now, looked_at: now }
    }

    /// The socket was read.
    pub(crate) const fn handle_read(&mut self, now: Instant) {
        self.looked_at = now;
    }

    /// A picture of so many bytes came.
    pub(crate) fn handle_picture(&mut self, bytes: usize, now: Instant) {
        self.shortest = self.shortest.min(bytes);
        self.mark = self.mark.min((bytes / 2).max(NO_MARK));
        self.pictures += 1;
        if self.pictures == PICTURES {
            let is_steady = now.saturating_duration_since(self.since) <= APART_LIMIT * PICTURES;
            let mark = if is_steady { (self.shortest / 2).max(NO_MARK) } else { NO_MARK };
            *self = Self { mark, looked_at: self.looked_at, ..Self::new(now) };
        }
    }

    /// Whole messages were found by the clock: their picture does not come as often as it did.
    pub(crate) const fn handle_late(&mut self, now: Instant) {
        *self = Self { looked_at: self.looked_at, ..Self::new(now) };
    }

    /// The mark to set while `missing` bytes of a message are still to come.
    pub(crate) fn mark(&self, missing: usize) -> usize {
        match (self.mark, missing) {
            (NO_MARK, _) => NO_MARK,
            (mark, 0) => mark,
            (_, missing) => missing.min(MARK_LIMIT),
        }
    }

    /// When the socket is to be read whatever waits there.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.mark > NO_MARK).then(|| self.looked_at + WAIT_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pictures: u32, apart_ms: u64) -> (Gathering, Instant) {
        let mut now = Instant::now();
        let mut gathering = Gathering::new(now);
        for n in 0..pictures {
            now += Duration::from_millis(apart_ms);
            gathering.handle_read(now);
            gathering.handle_picture(if n == 7 { 3_000 } else { 10_000 }, now);
        }
        (gathering, now)
    }

    #[test]
    fn half_of_the_shortest_of_steady_pictures_is_the_mark() {
        let (gathering, now) = after(PICTURES, 40);
        assert_eq!((gathering.mark(0), gathering.deadline()), (1_500, Some(now + WAIT_LIMIT)));
        assert_eq!((gathering.mark(500), gathering.mark(1 << 20)), (500, MARK_LIMIT));
    }

    #[test]
    fn without_steady_pictures_every_byte_wakes() {
        for (pictures, apart_ms) in [(0, 40), (PICTURES - 1, 40), (PICTURES, 66)] {
            let (gathering, _) = after(pictures, apart_ms);
            assert_eq!((gathering.mark(0), gathering.deadline()), (1, None), "{apart_ms}");
        }
    }

    #[test]
    fn a_shorter_picture_lowers_the_mark_and_one_that_stays_away_takes_it_off() {
        let (mut gathering, now) = after(PICTURES, 40);
        gathering.handle_picture(700, now);
        assert_eq!(gathering.mark(0), 350);
        gathering.handle_late(now);
        assert_eq!((gathering.mark(0), gathering.deadline()), (1, None));
    }
}
