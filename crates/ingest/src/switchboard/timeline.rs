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

/// Frames are decoded so long before an earlier one is shown, at most.
const REORDER_US: i64 = 1_000_000;
/// Frames of a group of pictures that was kept are so far apart when they are passed on at once.
const CATCH_UP_US: i64 = 2_000;

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
    /// Newest timestamp of each line; of video when the last of it is shown.
    lines: [Option<Timestamp>; 3],
    /// Of a successor what is added to its timestamps, µs.
    shift_us: Option<i64>,
    /// Of a successor of which a group of pictures was kept: what came before is passed on at once.
    lead: Option<Lead>,
    /// Lines on which nothing of the successor has passed.
    awaited: [bool; 3],
}

/// The time of a kept group of pictures, pressed together so that its newest frame is on time. It keeps the order of
/// all times of decoding and of showing.
#[derive(Clone, Copy, Debug)]
struct Lead {
    /// The publisher's own time of the group's newest frame: from here on time passes as it does.
    newest: Timestamp,
    /// What the group lasts, and what is left of it.
    from_us: i64,
    to_us: i64,
}

impl Lead {
    /// How much later than its own time something of the group is.
    const fn delay_us(&self, timestamp: Timestamp) -> i64 {
        let before = self.newest.as_micros() - timestamp.as_micros();
        if before <= 0 { 0 } else { before - before.saturating_mul(self.to_us) / self.from_us }
    }
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
            let shown = shown_at(frame);
            // With B-frames an earlier frame is shown later; a clock that was set back is another matter.
            let is_later =
                |of: &Timestamp| (0..REORDER_US).contains(&(of.as_micros() - shown.as_micros()));
            let latest = self.lines[line as usize].filter(is_later).unwrap_or(shown);
            self.lines[line as usize] = Some(latest);
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
        self.lead = None;
        self.awaited = [true; 3];
    }

    /// The same for a successor of which a group of pictures was kept, its video from `first` to `newest`: it is decoded
    /// in a moment, and what follows is on time.
    pub(super) fn splice_group(
        &mut self,
        first: Timestamp,
        newest: Timestamp,
        frames: usize,
        now: Instant,
    ) {
        let from_us = newest.as_micros().saturating_sub(first.as_micros()).max(0);
        let steps = i64::try_from(frames).unwrap_or(i64::MAX).saturating_sub(1);
        let to_us = from_us.min(steps.saturating_mul(CATCH_UP_US));
        let after = self.lines.iter().flatten().map(|newest| later(*newest, FRAME_US));
        // A stream of which nothing has passed begins at 0.
        let earliest = later(self.position(now), -to_us).max(Timestamp::ZERO);
        let begin = after.fold(earliest, Timestamp::max);
        let shift = begin.as_micros().saturating_add(to_us).saturating_sub(newest.as_micros());
        self.shift_us = Some(shift);
        self.lead = (from_us > to_us).then_some(Lead { newest, from_us, to_us });
        self.awaited = [true; 3];
    }

    /// When the newest frame came.
    pub(super) fn newest_at(&self) -> Option<Instant> {
        self.newest.map(|(_, at)| at)
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
        if line != Line::Video && self.lead.is_some_and(|lead| frame.timestamp < lead.newest) {
            return None;
        }
        let mut timestamp = self.moved(frame.timestamp, shift);
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
        let placed = match self.lead.filter(|lead| frame.timestamp <= lead.newest) {
            Some(_) if line == Line::Video => {
                self.place_kept(frame, timestamp, self.shift_us.unwrap_or(shift))
            }
            _ => Frame { timestamp, ..frame.clone() },
        };
        self.may_pass(&placed).then_some(placed)
    }

    /// A frame of a kept group: in milliseconds, as it leaves, no two are decoded or shown at one time.
    fn place_kept(&self, frame: &Frame, timestamp: Timestamp, shift: i64) -> Frame {
        let newest = self
            .newest
            .map(|(newest, _)| newest)
            .filter(|of| of.as_millis() >= timestamp.as_millis());
        let timestamp = newest.map_or(timestamp, |newest| later(newest, 1_000));
        let shown = later(frame.timestamp, i64::from(frame.composition_ms) * 1_000);
        // Nothing is shown before it is decoded.
        let shown = self.moved(shown, shift).max(timestamp);
        let composition_ms = shown.as_millis() - timestamp.as_millis();
        let composition_ms = i32::try_from(composition_ms).unwrap_or(frame.composition_ms);
        Frame { timestamp, composition_ms, ..frame.clone() }
    }

    fn moved(&self, timestamp: Timestamp, shift: i64) -> Timestamp {
        let delay = self.lead.map_or(0, |lead| lead.delay_us(timestamp));
        later(timestamp, shift.saturating_add(delay))
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
