//! The continuous timestamps of a stream across its successive publishers: a successor's frames follow those of the
//! lost publisher, delayed by the time it took to arrive, and its video begins with a keyframe. Pure arithmetic.
//!
//! The first publisher's timestamps are passed on unchanged.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::aac::Silence;
use headgate_media::{Codec, FillerBudget, Frame, FrameKind, Timestamp, opus};

/// A gap in the audio up to this length is filled with silence from its start; a longer one is skipped, because players
/// would wait that long for what follows.
const FILL_LIMIT: Duration = Duration::from_secs(1);
/// Minimum distance of a successor's first frame from the newest frame of each track: the duration of most audio
/// frames.
const FRAME_US: i64 = 24_000;

/// Limit of the time by which frame reordering can delay the display of an earlier frame.
const REORDER_US: i64 = 1_000_000;
/// Audio that is further than this behind the video has paused.
const PAUSE_US: i64 = 1_000_000;
/// Distance between the frames of a cached GOP when they are passed on at once.
const CATCH_UP_US: i64 = 2_000;

/// A sequence of frames with its own newest timestamp. AAC transcoded from Opus lags behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Video,
    /// AAC or MP3.
    Audio,
    Opus,
}

/// How a publisher's frame is passed on.
pub(super) enum Placed {
    /// With its own timestamp.
    AsItIs,
    /// As this frame.
    Moved(Frame),
    /// Not at all.
    LeftOut,
}

/// The clock of one stream.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The newest frame of any publisher, and when it arrived.
    newest: Option<(Timestamp, Instant)>,
    /// Newest timestamp of each line; for video, when its last frame is displayed.
    lines: [Option<Timestamp>; 3],
    /// Offset added to a successor's timestamps, µs.
    shift_us: Option<i64>,
    /// Set for a successor with a cached GOP, which is passed on at once.
    lead: Option<Lead>,
    /// Lines on which no frame of the successor has passed yet.
    awaited: [bool; 3],
    /// Of the silence on each line, and how often it was used up.
    budgets: [FillerBudget; 3],
    limited: u64,
}

/// Compresses the timestamps of a cached GOP so that its newest frame is on time. It preserves the order of decode and
/// display times.
#[derive(Clone, Copy, Debug)]
struct Lead {
    /// The publisher's own timestamp of the GOP's newest frame: from here on time passes unchanged.
    newest: Timestamp,
    /// Duration of the GOP, and its compressed duration.
    from_us: i64,
    to_us: i64,
}

impl Lead {
    /// How much a timestamp of the GOP is delayed.
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

    /// Notes a publisher's frame that is passed on, unchanged or placed.
    pub(super) fn note(&mut self, frame: &Frame, now: Instant) {
        if let Some(line) = line_of(frame) {
            self.newest = Some((frame.timestamp, now));
            let shown = shown_at(frame);
            // With B-frames an earlier frame may be displayed later; a clock that was set back is a different case.
            let is_later =
                |of: &Timestamp| (0..REORDER_US).contains(&(of.as_micros() - shown.as_micros()));
            let latest = self.lines[line as usize].filter(is_later).unwrap_or(shown);
            self.lines[line as usize] = Some(latest);
        }
    }

    /// The stream's time at `now`, if it has advanced with the clock since its newest frame.
    pub(super) fn position(&self, now: Instant) -> Timestamp {
        let Some((timestamp, since)) = self.newest else { return Timestamp::ZERO };
        later(timestamp, micros(now.saturating_duration_since(since)))
    }

    /// A successor's first frame has arrived: its time continues at [`Timeline::position`], or after what has passed.
    pub(super) fn splice(&mut self, first: Timestamp, now: Instant) {
        let after = self.lines.iter().flatten().map(|newest| later(*newest, FRAME_US));
        let begin = after.fold(self.position(now), Timestamp::max);
        self.shift_us = Some(begin.as_micros().saturating_sub(first.as_micros()));
        self.lead = None;
        self.awaited = [true; 3];
    }

    /// The same for a successor with a cached GOP, its video from `first` to `newest`: that is decoded within a moment,
    /// and what follows is on time.
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
        // A stream on which nothing has passed begins at 0.
        let earliest = later(self.position(now), -to_us).max(Timestamp::ZERO);
        let begin = after.fold(earliest, Timestamp::max);
        let shift = begin.as_micros().saturating_add(to_us).saturating_sub(newest.as_micros());
        self.shift_us = Some(shift);
        self.lead = (from_us > to_us).then_some(Lead { newest, from_us, to_us });
        self.awaited = [true; 3];
    }

    /// Whether the stream has had audio, but none for some time while its video continued.
    pub(super) fn has_paused_audio(&self) -> bool {
        let [video, audio, opus] = self.lines;
        let behind = |audio: Timestamp| video.map(|video| video.as_micros() - audio.as_micros());
        audio.max(opus).and_then(behind).is_some_and(|behind| behind > PAUSE_US)
    }

    /// When the newest frame arrived.
    pub(super) fn newest_at(&self) -> Option<Instant> {
        self.newest.map(|(_, at)| at)
    }

    /// Converts a publisher's frame to the stream's time; `None` if it cannot be passed on: video before a successor's
    /// first keyframe, and audio for a time that has already passed.
    pub(super) fn place(&mut self, frame: &Frame) -> Option<Frame> {
        let Some(shift) = self.shift_us else { return Some(frame.clone()) };
        let Some(line) = line_of(frame) else {
            // Headers have timestamp 0 even in mid-stream, and encoders stamp cue points as they like.
            let newest = self.at_newest(frame);
            let timestamp = later(frame.timestamp, shift).max(newest.timestamp);
            let is_stamped = frame.timestamp != Timestamp::ZERO;
            return Some(if is_stamped { Frame { timestamp, ..newest } } else { newest });
        };
        if line == Line::Video {
            // The cached GOP has passed. Should the publisher's clock go back later, that is no part of it.
            self.lead = self.lead.filter(|lead| frame.timestamp <= lead.newest);
        } else if self.lead.is_some_and(|lead| frame.timestamp < lead.newest) {
            return None;
        }
        let mut timestamp = self.moved(frame.timestamp, shift);
        if line == Line::Video && self.awaited[line as usize] {
            if frame.kind != FrameKind::Keyframe {
                return None;
            }
            let floor = self.lines[line as usize].map_or(timestamp, |newest| later(newest, 1_000));
            if timestamp < floor {
                // The video began before the audio did. Everything that follows is delayed by the same amount.
                self.shift_us = Some(shift + floor.as_micros() - timestamp.as_micros());
                timestamp = floor;
            }
        }
        let placed = match self.lead {
            Some(_) if line == Line::Video => {
                self.place_kept(frame, timestamp, self.shift_us.unwrap_or(shift))
            }
            _ => Frame { timestamp, ..frame.clone() },
        };
        self.may_pass(&placed).then_some(placed)
    }

    /// Places a frame of a cached GOP so that, in the milliseconds of the wire format, no two frames share a decode or
    /// display time.
    fn place_kept(&self, frame: &Frame, timestamp: Timestamp, shift: i64) -> Frame {
        let newest = self
            .newest
            .map(|(newest, _)| newest)
            .filter(|of| of.as_millis() >= timestamp.as_millis());
        let timestamp = newest.map_or(timestamp, |newest| later(newest, 1_000));
        let shown = later(frame.timestamp, i64::from(frame.composition_ms) * 1_000);
        // Nothing is displayed before it is decoded.
        let shown = self.moved(shown, shift).max(timestamp);
        let composition_ms = shown.as_millis() - timestamp.as_millis();
        let composition_ms = i32::try_from(composition_ms).unwrap_or(frame.composition_ms);
        Frame { timestamp, composition_ms, ..frame.clone() }
    }

    fn moved(&self, timestamp: Timestamp, shift: i64) -> Timestamp {
        let delay = self.lead.map_or(0, |lead| lead.delay_us(timestamp));
        later(timestamp, shift.saturating_add(delay))
    }

    /// A header with the stream's newest timestamp.
    pub(super) fn at_newest(&self, header: &Frame) -> Frame {
        let timestamp = self.lines.iter().flatten().max().copied().unwrap_or_default();
        Frame { timestamp, ..header.clone() }
    }

    /// Whether a placed frame, or one transcoded from such a frame, comes after what has passed on its line.
    fn may_pass(&mut self, frame: &Frame) -> bool {
        let Some(line) = line_of(frame) else { return true };
        let awaited = &mut self.awaited[line as usize];
        let is_late =
            *awaited && self.lines[line as usize].is_some_and(|newest| frame.timestamp <= newest);
        *awaited &= is_late;
        !is_late
    }

    /// Whether AAC transcoded from the publisher's audio may be passed on; if so, notes that.
    pub(super) fn pass_made(&mut self, frame: &Frame) -> bool {
        let may_pass = self.may_pass(frame);
        if may_pass && let Some(line) = line_of(frame) {
            self.lines[line as usize] = Some(frame.timestamp);
        }
        may_pass
    }

    /// How often silence was left out since the last call, because its budget was used up.
    pub(super) fn take_limited(&mut self) -> u64 {
        std::mem::take(&mut self.limited)
    }

    /// The publisher's audio is no longer Opus.
    pub(super) fn forget_opus(&mut self) {
        self.lines[Line::Opus as usize] = None;
    }

    /// Whether timestamps are rewritten.
    pub(super) const fn is_spliced(&self) -> bool {
        self.shift_us.is_some()
    }

    /// Silent frames up to `to`, on the lines that have had frames; AAC only if `aac` provides a silent frame.
    pub(super) fn silence(
        &mut self,
        to: Timestamp,
        aac: Option<&Silence>,
        now: Instant,
    ) -> Vec<Frame> {
        let mut frames = Vec::new();
        if let Some(Silence { data, duration_us }) = aac {
            let silence = (Line::Audio, Codec::Aac, data.clone(), *duration_us);
            self.fill(to, silence, now, &mut frames);
        }
        let data = Bytes::from_static(&opus::SILENCE);
        self.fill(to, (Line::Opus, Codec::Opus, data, opus::SILENCE_US), now, &mut frames);
        frames
    }

    fn fill(
        &mut self,
        to: Timestamp,
        (line, codec, data, duration_us): (Line, Codec, Bytes, i64),
        now: Instant,
        frames: &mut Vec<Frame>,
    ) {
        let Some(newest) = &mut self.lines[line as usize] else { return };
        let mut next = later(*newest, duration_us);
        if to.as_micros().saturating_sub(next.as_micros()) > micros(FILL_LIMIT) {
            next = to;
        }
        while next <= to {
            if !self.budgets[line as usize].take(duration_us, now) {
                self.limited += 1;
                return;
            }
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

/// Display time, or decode time if that is later.
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
