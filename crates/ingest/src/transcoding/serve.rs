//! The work of an audio thread on one stream. Each turn is bounded, so that no stream delays the others of the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use headgate_media::{Frame, FrameKind};
use headgate_transcode::TranscodeError;

use super::ring::{Encoded, TranscoderRing, lock};
use super::turn::{Outcome, Turn};

/// Opus packets of one stream per turn, some 4 ms of work, so that a burst of cached packets does not occupy the
/// thread.
pub(super) const TURN_PACKETS_LIMIT: usize = 16;
/// AAC frames after which a turn ends in any case: a packet after a gap can produce up to a second of them.
const TURN_FRAMES_LIMIT: usize = 64;

impl TranscoderRing {
    /// Transcodes some of the waiting frames. A panic ends only this ring's transcoder.
    pub(super) fn take_turn(&self, now: Instant) -> Outcome {
        self.clear_scheduled();
        let mut turn = lock(&self.turn);
        let (was_failing, had_failed) = (turn.is_failing, turn.has_failed);
        let run = catch_unwind(AssertUnwindSafe(|| turn.run(self, now)));
        let has_more = run.unwrap_or_else(|panic| {
            turn.end();
            turn.fail(self, format!("the transcoder panicked: {}", panic_words(&*panic)));
            false
        });
        let must_notify = self.announce() || (turn.is_failing && !was_failing);
        Outcome { has_more, must_notify, is_first_failure: turn.has_failed && !had_failed }
    }
}

impl Turn {
    /// Returns true if packets are left for another turn.
    fn run(&mut self, ring: &TranscoderRing, now: Instant) -> bool {
        if ring.is_closed() {
            self.end();
            return false;
        }
        let (mut made, mut frames) = (Vec::new(), 0);
        for _ in 0..TURN_PACKETS_LIMIT {
            if frames >= TURN_FRAMES_LIMIT {
                break;
            }
            let Some(transcoder) = &mut self.transcoder else { return false };
            let Some(packet) = ring.pop() else { return false };
            match transcoder.handle_frame(&packet, now, &mut made) {
                // Not a codec for the transcoder; the stream's other frames are not affected.
                Ok(()) | Err(TranscodeError::Codec) => {}
                Err(error @ (TranscodeError::Head(_) | TranscodeError::Decoder)) => {
                    self.fail(ring, error.to_string());
                }
            }
            frames += made.len();
            self.put(&mut made, ring);
        }
        ring.has_input()
    }

    /// Passes on the transcoder's output.
    fn put(&mut self, made: &mut Vec<Frame>, ring: &TranscoderRing) {
        for frame in made.drain(..) {
            if frame.kind == FrameKind::Configuration {
                self.configuration = frame.data;
                continue;
            }
            if self.is_failing {
                self.is_failing = false;
                ring.set_failure(None);
            }
            ring.put(Encoded { frame, configuration: self.configuration.clone() });
        }
    }

    fn fail(&mut self, ring: &TranscoderRing, reason: String) {
        (self.is_failing, self.has_failed) = (true, true);
        ring.set_failure(Some(reason));
    }

    fn end(&mut self) {
        let transcoder = self.transcoder.take();
        // What panicked once may panic again.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(transcoder)));
    }
}

/// The message of a panic.
fn panic_words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panicked")
}
