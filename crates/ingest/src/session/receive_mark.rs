//! How many waiting bytes of a broadcaster wake its worker: more than an audio frame, if the next video frame comes
//! soon.
//!
//! The kernel wakes a reader once that many bytes wait (SO_RCVLOWAT, socket(7)). A read takes everything that waits.

use std::time::{Duration, Instant};

/// Longest time that bytes may wait: a frame interval at 24 frames a second, plus the sender's jitter.
const WAIT_LIMIT: Duration = Duration::from_millis(48);
/// Video frames over which a stream's frame rate is measured.
const FRAMES: u32 = 50;
/// Longest average interval between video frames for which a mark is used.
const APART_LIMIT: Duration = Duration::from_millis(45);
/// A larger mark gains nothing.
const MARK_LIMIT: usize = 64 << 10;
/// Mark with which every byte wakes the worker.
const NO_MARK: usize = 1;

/// The receive mark of one publish, derived from the sizes and the rate of its video frames.
#[derive(Debug)]
pub(crate) struct ReceiveMark {
    /// Half the size of the shortest recent video frame: fewer bytes can only be audio.
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

    /// Notes that the socket was read.
    pub(crate) const fn handle_read(&mut self, now: Instant) {
        self.read_at = now;
    }

    /// Notes a video frame of `bytes` bytes.
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

    /// Complete messages were found only because the deadline passed: video frames have become less frequent.
    pub(crate) const fn handle_late(&mut self, now: Instant) {
        *self = Self { read_at: self.read_at, ..Self::new(now) };
    }

    /// The mark to set while `missing` bytes of a message are outstanding.
    pub(crate) fn bytes(&self, missing: usize) -> usize {
        match (self.mark, missing) {
            (NO_MARK, _) => NO_MARK,
            (mark, 0) => mark,
            (_, missing) => missing.min(MARK_LIMIT),
        }
    }

    /// When to read the socket however few bytes wait.
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
    fn without_steady_frames_every_byte_wakes_the_reader() {
        for (frames, apart_ms) in [(0, 40), (FRAMES - 1, 40), (FRAMES, 66)] {
            let (mark, _) = after(frames, apart_ms);
            assert_eq!((mark.bytes(0), mark.deadline()), (1, None), "{apart_ms}");
        }
    }

    #[test]
    fn a_shorter_frame_lowers_the_mark_and_a_missing_one_removes_it() {
        let (mut mark, now) = after(FRAMES, 40);
        mark.handle_video_frame(700, now);
        assert_eq!(mark.bytes(0), 350);
        mark.handle_late(now);
        assert_eq!((mark.bytes(0), mark.deadline()), (1, None));
    }
}
