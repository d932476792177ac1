//! The first moments of a publish: sound waits for the first picture, so that both begin together. Pure.

use std::collections::VecDeque;

use headgate_media::{Frame, FrameKind, Track};

/// Sound that a picture may find waiting, in microseconds: a camera that takes longer does not keep it back.
const PATIENCE_US: i64 = 2_000_000;
/// Sound this much older than the first picture still goes out with it, in microseconds.
const LEAD_US: i64 = 60_000;

/// Holds the sound back until a picture is there.
#[derive(Debug)]
pub(crate) struct Opening {
    held: VecDeque<Frame>,
    is_over: bool,
}

impl Opening {
    /// With one track alone there is nothing to wait for.
    #[must_use]
    pub(crate) const fn new(has_both: bool) -> Self {
        Self { held: VecDeque::new(), is_over: !has_both }
    }

    /// The next frame that may go out, of those that came.
    pub(crate) fn poll(&mut self, frames: &mut VecDeque<Frame>) -> Option<Frame> {
        while !self.is_over {
            let frame = frames.pop_front()?;
            self.handle_frame(frame);
        }
        self.held.pop_front().or_else(|| frames.pop_front())
    }

    fn handle_frame(&mut self, frame: Frame) {
        let begins_us = match frame.track() {
            Track::Video | Track::Script => Some(frame.timestamp.as_micros() - LEAD_US),
            Track::Audio => {
                let first = self.held.iter().find(|held| !is_configuration(held));
                let since = first.map_or(frame.timestamp, |first| first.timestamp).as_micros();
                // Nobody waits for it any longer: all that is held goes out.
                (frame.timestamp.as_micros() - since > PATIENCE_US).then_some(since)
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

    fn sound(from: i64, to: i64) -> VecDeque<Frame> {
        let configuration = frame(Codec::Opus, FrameKind::Configuration, from);
        let packets = (from..to).step_by(20);
        std::iter::once(configuration)
            .chain(packets.map(|at| frame(Codec::Opus, FrameKind::Audio, at)))
            .collect()
    }

    fn drain(opening: &mut Opening, frames: &mut VecDeque<Frame>) -> Vec<(FrameKind, i64)> {
        std::iter::from_fn(|| opening.poll(frames))
            .map(|frame| (frame.kind, frame.timestamp.as_millis()))
            .collect()
    }

    #[test]
    fn sound_from_long_before_the_first_picture_stays_behind() {
        let (mut opening, mut frames) = (Opening::new(true), sound(0, 200));
        assert!(drain(&mut opening, &mut frames).is_empty());
        frames.push_back(frame(Codec::H264, FrameKind::Configuration, 190));
        frames.push_back(frame(Codec::H264, FrameKind::Keyframe, 190));
        frames.push_back(frame(Codec::Opus, FrameKind::Audio, 200));
        let kinds = drain(&mut opening, &mut frames);
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
    fn a_picture_that_does_not_come_costs_no_sound() {
        let (mut opening, mut frames) = (Opening::new(true), sound(0, 2_020));
        assert!(drain(&mut opening, &mut frames).is_empty());
        frames.push_back(frame(Codec::Opus, FrameKind::Audio, 2_020));
        assert_eq!(drain(&mut opening, &mut frames).len(), 103);
    }

    #[test]
    fn one_track_alone_waits_for_nobody() {
        let (mut opening, mut frames) = (Opening::new(false), sound(0, 40));
        assert_eq!(drain(&mut opening, &mut frames).len(), 3);
    }
}
