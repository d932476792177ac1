//! How many bytes of a broadcaster wake its worker: not an audio frame alone, where the next video frame comes soon.
//!
//! The kernel wakes a reader once so many bytes wait (SO_RCVLOWAT, socket(7)). A read takes what there is.

use std::time::{Duration, Instant};

/// Bytes wait so long at most: a frame interval at 24 frames a second, and the sender's jitter.
const WAIT_LIMIT: Duration = Duration::from_millis(48);
/// Video frames over which a stream's rhythm is measured.
const FRAMES: u32 = 50;
/// They come at least so often, on average.
const APART_LIMIT: Duration = Duration::from_millis(45);
/// A mark beyond this gains nothing.
const MARK_LIMIT: usize = 64 << 10;
/// Every byte wakes.
const NO_MARK: usize = 1;

/// The mark of one publish, from the sizes and the rhythm of its video frames.
#[derive(Debug)]
pub(crate) struct ReceiveMark {
    /// Half of the shortest video frame of late: with fewer bytes there is only audio.
    mark: usize,
    shortest: usize,
    frames: u32,
    since: Instant,
    read_at: Instant,
}

impl ReceiveMark {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { mark: NO_MARK, shortest: MARK_LIMIT, frames: 0, since: now, read_at: now }
    }

    /// The socket was read.
    pub(crate) const fn handle_read(&mut self, now: Instant) {
        self.read_at = now;
    }

    /// A video frame of so many bytes came.
    pub(crate) fn handle_video_frame(&mut self, bytes: usize, now: Instant) {
        self.shortest = self.shortest.min(bytes);
        self.mark = self.mark.min((bytes / 2).max(NO_MARK));
        self.frames += 1;
        if self.frames == FRAMES {
            let is_steady = now.saturating_duration_since(self.since) <= APART_LIMIT * FRAMES;
            let mark = if is_steady { (self.shortest / 2).max(NO_MARK) } else { NO_MARK };
            *self = Self { mark, read_at: self.read_at, ..Self::new(now) };
        }
    }

    /// Whole messages were found by the clock alone: video frames do not come as often as they did.
    pub(crate) const fn handle_late(&mut self, now: Instant) {
        *self = Self { read_at: self.read_at, ..Self::new(now) };
    }

    /// The mark to set while `missing` bytes of a message are still to come.
    pub(crate) fn bytes(&self, missing: usize) -> usize {
        match (self.mark, missing) {
            (NO_MARK, _) => NO_MARK,
            (mark, 0) => mark,
            (_, missing) => missing.min(MARK_LIMIT),
        }
    }

    /// When the socket is to be read whatever waits there.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (self.mark > NO_MARK).then(|| self.read_at + WAIT_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(frames: u32, apart_ms: u64) -> (ReceiveMark, Instant) {
        let mut now = Instant::now();
        let mut mark = ReceiveMark::new(now);
        for n in 0..frames {
            now += Duration::from_millis(apart_ms);
            mark.handle_read(now);
            mark.handle_video_frame(if n == 7 { 3_000 } else { 10_000 }, now);
        }
        (mark, now)
    }

    #[test]
    fn half_of_the_shortest_of_steady_frames_is_the_mark() {
        let (mark, now) = after(FRAMES, 40);
        assert_eq!((mark.bytes(0), mark.deadline()), (1_500, Some(now + WAIT_LIMIT)));
        assert_eq!((mark.bytes(500), mark.bytes(1 << 20)), (500, MARK_LIMIT));
    }

    #[test]
    fn without_steady_frames_every_byte_wakes() {
        for (frames, apart_ms) in [(0, 40), (FRAMES - 1, 40), (FRAMES, 66)] {
            let (mark, _) = after(frames, apart_ms);
            assert_eq!((mark.bytes(0), mark.deadline()), (1, None), "{apart_ms}");
        }
    }

    #[test]
    fn a_shorter_frame_lowers_the_mark_and_one_that_stays_away_takes_it_off() {
        let (mut mark, now) = after(FRAMES, 40);
        mark.handle_video_frame(700, now);
        assert_eq!(mark.bytes(0), 350);
        mark.handle_late(now);
        assert_eq!((mark.bytes(0), mark.deadline()), (1, None));
    }
}
