//! A preview: a stream as FLV for the gateway's HTTP responses. Pure: frames and time in, batches of bytes out.

use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind, Track, flv};

use super::effect::Effect;
use crate::publish::end_reason::EndReason;
use crate::publish::preview_pipe::{PreviewEnd, PreviewWriter};

/// Size at which a batch is passed on, including the frame that reaches it.
const BATCH_BYTES: usize = 64 << 10;
/// How often to check whether the reader still reads.
const CHECK_PAUSE: Duration = Duration::from_secs(1);
/// A reader that takes none of the waiting batches for this long is closed.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// One preview of one stream.
///
/// The owner calls [`FlvPreview::begin`] once the stream has frames; then, while [`FlvPreview::takes_frames`], it
/// passes frames to [`FlvPreview::write_frame`] and calls [`FlvPreview::hand_over`] when it has no more for the moment.
/// At [`FlvPreview::deadline`] it calls [`FlvPreview::handle_timeout`]. The preview is over once it has pushed
/// [`Effect::Close`].
pub(crate) struct FlvPreview {
    writer: PreviewWriter,
    batch: Vec<u8>,
    has_begun: bool,
    has_video: bool,
    /// Offset subtracted from all timestamps: the first frame's, ms.
    start_ms: Option<i64>,
    /// Newest timestamp as written, ms.
    newest_ms: i64,
    checked_at: Instant,
    /// Number of batches taken at the reader's last progress, and the time of that progress: when it last took a batch
    /// or had none to take.
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

    /// Whether the file header is written.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Writes the file header with the tracks that the stream has at this point.
    pub(crate) fn begin(&mut self, has_video: bool, has_audio: bool) {
        self.has_begun = true;
        self.batch.extend_from_slice(&flv::file_header(has_video, has_audio));
    }

    /// Whether the reader keeps up, so that frames may be written.
    pub(crate) fn takes_frames(&self) -> bool {
        self.writer.has_room()
    }

    /// Writes the next frame of the stream.
    pub(crate) fn write_frame(&mut self, frame: &Frame) {
        let Some(millis) = self.time_of(frame) else { return };
        flv::write_tag(frame, wire_time(millis), &mut self.batch);
        if self.batch.len() >= BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Passes the current batch on to the reader.
    pub(crate) fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            // This succeeds: room was checked before the batch began, and there is no other writer.
            self.writer.put(std::mem::take(&mut self.batch));
        }
    }

    /// The stream has ended, and every frame is written.
    pub(crate) fn finish(&mut self, effects: &mut Vec<Effect>) {
        self.hand_over();
        self.close(PreviewEnd::PublishEnded, effects);
    }

    /// When [`FlvPreview::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Instant {
        self.checked_at + CHECK_PAUSE
    }

    /// Performs what is due at `now`.
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

    /// A frame's timestamp relative to the first frame, ms; `None` for frames that are left out.
    fn time_of(&mut self, frame: &Frame) -> Option<i64> {
        let is_header = matches!(
            frame.kind,
            FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script
        );
        let millis = frame.timestamp.as_millis();
        if is_header {
            // Headers apply from here on, whatever their timestamp.
            let since_start = self.start_ms.map_or(0, |start| millis - start);
            return Some(since_start.max(self.newest_ms));
        }
        let is_video = frame.track() == Track::Video;
        let start = *self.start_ms.get_or_insert(millis);
        let mut since_start = millis - start;
        if since_start < 0 {
            if self.has_video && !is_video {
                // Audio older than the first video frame.
                return None;
            }
            // The broadcaster has set its clock back: keep the preview's clock running.
            self.start_ms = Some(millis - self.newest_ms);
            since_start = self.newest_ms;
        }
        self.has_video |= is_video;
        self.newest_ms = since_start;
        Some(since_start)
    }
}

/// The wire format has 32 bits, which wrap after 49 days.
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
