//! The first moments of a publish: audio waits for the first video frame, so that both start together. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind, Track};

/// How long audio waits for a video frame, both by its own timestamps and by the wall clock: a camera that takes
/// longer, or an audio clock that has stopped, does not hold it back.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_US: i64 = PATIENCE.as_micros() as i64;
/// Audio up to this much older than the first video frame is still sent with it, in microseconds.
const LEAD_US: i64 = 60_000;
/// Memory for waiting audio: two seconds of Opus at its highest bitrate, 510 kbit/s, twice over.
const HELD_LIMIT_BYTES: usize = 256 << 10;

/// Holds audio back until the first video frame arrives.
#[derive(Debug)]
pub(crate) struct Opening {
    held: VecDeque<Frame>,
    held_bytes: usize,
    /// When the first frame began to wait.
    since: Option<Instant>,
    is_over: bool,
}

impl Opening {
    /// With a single track there is nothing to wait for.
    #[must_use]
    pub(crate) const fn new(has_both: bool) -> Self {
        Self { held: VecDeque::new(), held_bytes: 0, since: None, is_over: !has_both }
    }

    /// The next frame that may be forwarded, from those received until `now`.
    pub(crate) fn poll(&mut self, now: Instant, frames: &mut VecDeque<Frame>) -> Option<Frame> {
        while !self.is_over {
            self.handle_timeout(now);
            if self.is_over {
                break;
            }
            let frame = frames.pop_front()?;
            self.handle_frame(now, frame);
        }
        self.held.pop_front().or_else(|| frames.pop_front())
    }

    /// Ends the wait once it has lasted long enough.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.is_over |= self.poll_timeout().is_some_and(|at| now >= at);
    }

    /// When the held frames are released in any case.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.since.filter(|_| !self.is_over).map(|since| since + PATIENCE)
    }

    fn handle_frame(&mut self, now: Instant, frame: Frame) {
        self.since.get_or_insert(now);
        self.held_bytes += frame.data.len() + size_of::<Frame>();
        let begins_us = match frame.track() {
            Track::Video | Track::Script => Some(frame.timestamp.as_micros() - LEAD_US),
            Track::Audio => {
                let first = self.held.iter().find(|held| !is_configuration(held));
                let since = first.map_or(frame.timestamp, |first| first.timestamp).as_micros();
                // The wait is over: everything held is released.
                let is_enough = frame.timestamp.as_micros() - since > PATIENCE_US
                    || self.held_bytes > HELD_LIMIT_BYTES;
                is_enough.then_some(since)
            }
        };
        if let Some(begins_us) = begins_us {
            self.is_over = true;
            self.held
                .retain(|held| is_configuration(held) || held.timestamp.as_micros() >= begins_us);
        }
        self.held.push_back(frame);
    }
}

fn is_configuration(frame: &Frame) -> bool {
    frame.kind == FrameKind::Configuration
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use headgate_media::{Codec, Timestamp};

    use super::*;

    fn frame(codec: Codec, kind: FrameKind, millis: i64) -> Frame {
        let timestamp = Timestamp::from_millis(millis);
        Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(b"x") }
    }

    fn audio(from: i64, to: i64) -> VecDeque<Frame> {
        let configuration = frame(Codec::Opus, FrameKind::Configuration, from);
        let packets = (from..to).step_by(20);
        std::iter::once(configuration)
            .chain(packets.map(|at| frame(Codec::Opus, FrameKind::Audio, at)))
            .collect()
    }

    fn drain(
        opening: &mut Opening,
        now: Instant,
        frames: &mut VecDeque<Frame>,
    ) -> Vec<(FrameKind, i64)> {
        std::iter::from_fn(|| opening.poll(now, frames))
            .map(|frame| (frame.kind, frame.timestamp.as_millis()))
            .collect()
    }

    #[test]
    fn audio_from_long_before_the_first_video_frame_is_dropped() {
        let (mut opening, mut frames, now) = (Opening::new(true), audio(0, 200), Instant::now());
        assert!(drain(&mut opening, now, &mut frames).is_empty());
        frames.push_back(frame(Codec::H264, FrameKind::Configuration, 190));
        frames.push_back(frame(Codec::H264, FrameKind::Keyframe, 190));
        frames.push_back(frame(Codec::Opus, FrameKind::Audio, 200));
        let kinds = drain(&mut opening, now, &mut frames);
        assert_eq!(
            kinds,
            [
                (FrameKind::Configuration, 0),
                (FrameKind::Audio, 140),
                (FrameKind::Audio, 160),
                (FrameKind::Audio, 180),
                (FrameKind::Configuration, 190),
                (FrameKind::Keyframe, 190),
                (FrameKind::Audio, 200),
            ]
        );
    }

    #[test]
    fn a_missing_video_frame_costs_no_audio() {
        let (mut opening, mut frames, now) = (Opening::new(true), audio(0, 2_020), Instant::now());
        assert!(drain(&mut opening, now, &mut frames).is_empty());
        frames.push_back(frame(Codec::Opus, FrameKind::Audio, 2_020));
        assert_eq!(drain(&mut opening, now, &mut frames).len(), 103);
    }

    #[test]
    fn a_stopped_audio_clock_is_not_waited_for_longer_than_any_other() {
        let (mut opening, start) = (Opening::new(true), Instant::now());
        let mut frames: VecDeque<_> =
            (0..10).map(|_| frame(Codec::Opus, FrameKind::Audio, 0)).collect();
        assert!(drain(&mut opening, start, &mut frames).is_empty());
        assert_eq!(opening.poll_timeout(), Some(start + PATIENCE));
        let early = start + PATIENCE - Duration::from_millis(1);
        assert!(drain(&mut opening, early, &mut frames).is_empty());
        assert_eq!(drain(&mut opening, start + PATIENCE, &mut frames).len(), 10);
        assert_eq!(opening.poll_timeout(), None);
    }

    #[test]
    fn audio_that_waits_is_bounded_in_memory() {
        let (mut opening, now) = (Opening::new(true), Instant::now());
        let mut frames = VecDeque::new();
        let mut left = 0;
        for _ in 0..100_000 {
            frames.push_back(frame(Codec::Opus, FrameKind::Audio, 0));
            left += drain(&mut opening, now, &mut frames).len();
            assert!(opening.held.len() * size_of::<Frame>() <= HELD_LIMIT_BYTES + 1000);
        }
        assert_eq!(left, 100_000);
    }

    #[test]
    fn a_single_track_does_not_wait() {
        let (mut opening, mut frames) = (Opening::new(false), audio(0, 40));
        assert_eq!(drain(&mut opening, Instant::now(), &mut frames).len(), 3);
    }
}
