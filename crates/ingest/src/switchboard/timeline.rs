//! Where a stream's time stands, over all the publishers that it has: a successor's frames go on behind those of the
//! publisher that was lost, as much later as it came, and its video begins with a keyframe. Pure arithmetic.
//!
//! The first publisher's timestamps are its own and never rewritten.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::aac::Silence;
use headgate_media::{Codec, Frame, FrameKind, Timestamp, opus};

/// A hole in the audio up to which silence fills it from where it began: beyond, players would wait that long for what
/// comes next.
const FILL_LIMIT: Duration = Duration::from_secs(1);
/// A successor's first frame comes so long after the newest one of each track at least: as long as most audio lasts.
const FRAME_US: i64 = 24_000;

/// What keeps a time of its own. AAC made of Opus runs behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Video,
    /// AAC or MP3.
    Audio,
    Opus,
}

/// What becomes of a publisher's frame.
pub(super) enum Placed {
    /// It is passed on with its own timestamp.
    AsItIs,
    /// This is passed on.
    Moved(Frame),
    /// It is not passed on.
    LeftOut,
}

/// The clock of one stream.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The publishers' newest frame, and when it came.
    newest: Option<(Timestamp, Instant)>,
    /// Newest timestamp of each line; of video when it is shown.
    lines: [Option<Timestamp>; 3],
    /// Of a successor what is added to its timestamps, µs.
    shift_us: Option<i64>,
    /// Lines on which nothing of the successor has passed.
    awaited: [bool; 3],
}

impl Timeline {
    /// Whether a publisher has sent any media.
    pub(super) const fn has_begun(&self) -> bool {
        self.newest.is_some()
    }

    /// A frame of the publisher's that is passed on as it is, or was placed.
    pub(super) fn note(&mut self, frame: &Frame, now: Instant) {
        if let Some(line) = line_of(frame) {
            self.newest = Some((frame.timestamp, now));
            self.lines[line as usize] = Some(shown_at(frame));
        }
    }

    /// What the stream's time has come to, if it went on at the pace of the clock since its newest frame.
    pub(super) fn position(&self, now: Instant) -> Timestamp {
        let Some((timestamp, since)) = self.newest else { return Timestamp::ZERO };
        later(timestamp, micros(now.saturating_duration_since(since)))
    }

    /// A successor's first frame has come: its time goes on at [`Timeline::position`], or behind what has passed.
    pub(super) fn splice(&mut self, first: Timestamp, now: Instant) {
        let after = self.lines.iter().flatten().map(|newest| later(*newest, FRAME_US));
        let begin = after.fold(self.position(now), Timestamp::max);
        self.shift_us = Some(begin.as_micros().saturating_sub(first.as_micros()));
        self.awaited = [true; 3];
    }

    /// A publisher's frame in the stream's time; `None` for what cannot be passed on: video before a successor's first
    /// keyframe, and audio of a time that has passed.
    pub(super) fn place(&mut self, frame: &Frame) -> Option<Frame> {
        let Some(shift) = self.shift_us else { return Some(frame.clone()) };
        let Some(line) = line_of(frame) else {
            // Headers are stamped 0 even in the middle of a clock, cue points as their encoder likes.
            let newest = self.at_newest(frame);
            let timestamp = later(frame.timestamp, shift).max(newest.timestamp);
            let is_stamped = frame.timestamp != Timestamp::ZERO;
            return Some(if is_stamped { Frame { timestamp, ..newest } } else { newest });
        };
        let mut timestamp = later(frame.timestamp, shift);
        if line == Line::Video && self.awaited[line as usize] {
            if frame.kind != FrameKind::Keyframe {
                return None;
            }
            let floor = self.lines[line as usize].map_or(timestamp, |newest| later(newest, 1_000));
            if timestamp < floor {
                // It began before the audio did. All that follows is later by as much.
                self.shift_us = Some(shift + floor.as_micros() - timestamp.as_micros());
                timestamp = floor;
            }
        }
        let placed = Frame { timestamp, ..frame.clone() };
        self.may_pass(&placed).then_some(placed)
    }

    /// A header at the stream's newest time.
    pub(super) fn at_newest(&self, header: &Frame) -> Frame {
        let timestamp = self.lines.iter().flatten().max().copied().unwrap_or_default();
        Frame { timestamp, ..header.clone() }
    }

    /// Whether a placed frame, or one made of such, is behind what has passed on its line.
    fn may_pass(&mut self, frame: &Frame) -> bool {
        let Some(line) = line_of(frame) else { return true };
        let awaited = &mut self.awaited[line as usize];
        let is_late =
            *awaited && self.lines[line as usize].is_some_and(|newest| frame.timestamp <= newest);
        *awaited &= is_late;
        !is_late
    }

    /// Whether AAC that was made of the publisher's audio may be passed on; notes that it was.
    pub(super) fn pass_made(&mut self, frame: &Frame) -> bool {
        let may_pass = self.may_pass(frame);
        if may_pass && let Some(line) = line_of(frame) {
            self.lines[line as usize] = Some(frame.timestamp);
        }
        may_pass
    }

    /// The publisher's audio is no Opus any more.
    pub(super) fn forget_opus(&mut self) {
        self.lines[Line::Opus as usize] = None;
    }

    /// Whether timestamps are rewritten.
    pub(super) const fn is_spliced(&self) -> bool {
        self.shift_us.is_some()
    }

    /// Silent frames up to a time, on the lines that have had frames: `aac` for AAC, if there is such a frame.
    pub(super) fn silence(&mut self, to: Timestamp, aac: Option<&Silence>) -> Vec<Frame> {
        let mut frames = Vec::new();
        if let Some(Silence { data, duration_us }) = aac {
            let silence = (Line::Audio, Codec::Aac, data.clone(), *duration_us);
            self.fill(to, silence, &mut frames);
        }
        let data = Bytes::from_static(&opus::SILENCE);
        self.fill(to, (Line::Opus, Codec::Opus, data, opus::SILENCE_US), &mut frames);
        frames
    }

    fn fill(
        &mut self,
        to: Timestamp,
        (line, codec, data, duration_us): (Line, Codec, Bytes, i64),
        frames: &mut Vec<Frame>,
    ) {
        let Some(newest) = &mut self.lines[line as usize] else { return };
        let mut next = later(*newest, duration_us);
        if to.as_micros().saturating_sub(next.as_micros()) > micros(FILL_LIMIT) {
            next = to;
        }
        while next <= to {
            let (kind, data) = (FrameKind::Audio, data.clone());
            frames.push(Frame { codec, kind, timestamp: next, composition_ms: 0, data });
            *newest = next;
            next = later(next, duration_us);
        }
    }
}

const fn line_of(frame: &Frame) -> Option<Line> {
    match (frame.kind, frame.codec) {
        (FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable, _) => Some(Line::Video),
        (FrameKind::Audio, Codec::Opus) => Some(Line::Opus),
        (FrameKind::Audio, _) => Some(Line::Audio),
        (FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script, _) => None,
    }
}

/// Decode time, and of what is shown later that.
fn shown_at(frame: &Frame) -> Timestamp {
    later(frame.timestamp, i64::from(frame.composition_ms.max(0)) * 1_000)
}

const fn later(timestamp: Timestamp, micros: i64) -> Timestamp {
    Timestamp::from_micros(timestamp.as_micros().saturating_add(micros))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
