//! A preview: the stream as FLV for the gateway's HTTP responses. Pure: frames and time in, batches of bytes out.

use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind, Track, flv};

use super::effect::Effect;
use crate::publish::end_reason::EndReason;
use crate::publish::preview_pipe::{PreviewEnd, PreviewWriter};

/// Bytes of one batch; the frame that reaches it goes along.
const BATCH_BYTES: usize = 64 << 10;
/// How often it is checked whether anybody still reads.
const CHECK_PAUSE: Duration = Duration::from_secs(1);
/// A reader that takes nothing of what waits for so long has its place taken away.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// One preview of one stream.
///
/// The owner calls [`FlvPreview::begin`] once the stream has something to show; then, while
/// [`FlvPreview::takes_frames`], hands frames to [`FlvPreview::write_frame`], and calls [`FlvPreview::hand_over`] when
/// it has no more of them for now. At [`FlvPreview::deadline`]: [`FlvPreview::handle_timeout`]. It is over once it
/// pushed [`Effect::Close`].
pub(crate) struct FlvPreview {
    writer: PreviewWriter,
    batch: Vec<u8>,
    has_begun: bool,
    has_video: bool,
    /// Of the first frame's time this much is taken off, ms.
    start_ms: Option<i64>,
    /// As it was written.
    newest_ms: i64,
    checked_at: Instant,
    /// Batches taken by the reader when it was last seen to take one, or had none to take, and when that was.
    taken: u64,
    progress_at: Instant,
}

impl FlvPreview {
    /// A preview that begins at `now`.
    pub(crate) const fn new(writer: PreviewWriter, now: Instant) -> Self {
        Self {
            writer,
            batch: Vec::new(),
            has_begun: false,
            has_video: false,
            start_ms: None,
            newest_ms: 0,
            checked_at: now,
            taken: 0,
            progress_at: now,
        }
    }

    /// Whether the header is written.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Writes the header: the tracks that the stream has by now.
    pub(crate) fn begin(&mut self, has_video: bool, has_audio: bool) {
        self.has_begun = true;
        self.batch.extend_from_slice(&flv::file_header(has_video, has_audio));
    }

    /// Whether the reader keeps up: frames may be written.
    pub(crate) fn takes_frames(&self) -> bool {
        self.writer.has_room()
    }

    /// The next frame of the stream.
    pub(crate) fn write_frame(&mut self, frame: &Frame) {
        let Some(millis) = self.time_of(frame) else { return };
        flv::write_tag(frame, wire_time(millis), &mut self.batch);
        if self.batch.len() >= BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Passes on what was written.
    pub(crate) fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            // There is room: it was asked for before the batch began, and nobody else writes.
            self.writer.put(std::mem::take(&mut self.batch));
        }
    }

    /// The stream has ended and every frame is written.
    pub(crate) fn finish(&mut self, effects: &mut Vec<Effect>) {
        self.hand_over();
        self.close(PreviewEnd::PublishEnded, effects);
    }

    /// When [`FlvPreview::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Instant {
        self.checked_at + CHECK_PAUSE
    }

    /// Time has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.checked_at = now;
        let taken = self.writer.taken();
        if taken != self.taken || self.writer.is_drained() {
            (self.taken, self.progress_at) = (taken, now);
        }
        if self.writer.is_left() {
            self.close(PreviewEnd::Closed, effects);
        } else if now >= self.progress_at + STALL_LIMIT {
            self.close(PreviewEnd::Stalled, effects);
        }
    }

    fn close(&mut self, end: PreviewEnd, effects: &mut Vec<Effect>) {
        self.writer.set_end(end);
        effects.push(Effect::Close(EndReason::Unpublished));
    }

    /// A frame's time on a clock that begins at 0 with the first frame, ms; `None` for what is left out.
    fn time_of(&mut self, frame: &Frame) -> Option<i64> {
        let is_header = matches!(
            frame.kind,
            FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script
        );
        let millis = frame.timestamp.as_millis();
        if is_header {
            // They hold from here on, whatever time they were given.
            let since_start = self.start_ms.map_or(0, |start| millis - start);
            return Some(since_start.max(self.newest_ms));
        }
        let is_video = frame.track() == Track::Video;
        let start = *self.start_ms.get_or_insert(millis);
        let mut since_start = millis - start;
        if since_start < 0 {
            if self.has_video && !is_video {
                // Audio from before the first video frame.
                return None;
            }
            // The broadcaster has set its clock back: ours goes on.
            self.start_ms = Some(millis - self.newest_ms);
            since_start = self.newest_ms;
        }
        self.has_video |= is_video;
        self.newest_ms = since_start;
        Some(since_start)
    }
}

/// The wire has 32 bits, which wrap after 49 days.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the low 32 bits are what is meant"
)]
const fn wire_time(millis: i64) -> u32 {
    millis as u32
}

#[cfg(test)]
#[path = "flv_preview_tests.rs"]
mod tests;
