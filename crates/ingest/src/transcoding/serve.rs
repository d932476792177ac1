//! The work of an audio thread on one stream. Each turn is bounded, so that no stream delays the others of the thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use headgate_media::{Frame, FrameKind};
use headgate_transcode::TranscodeError;

use super::encoders::{Encoders, panic_words};
use super::ring::{Encoded, TranscoderRing, lock};
use super::turn::{Outcome, Phase, Turn};

/// Opus packets of one stream per turn, some 4 ms of work, so that a burst of cached packets does not occupy the
/// thread.
pub(super) const TURN_PACKETS_LIMIT: usize = 16;
/// AAC frames after which a turn ends in any case: a packet after a gap can produce up to a second of them.
const TURN_FRAMES_LIMIT: usize = 64;
/// Packets skipped after a failure before another encoder is requested: 5 s of 20 ms packets. Counted in packets,
/// because the publisher chooses the timestamps.
pub(super) const RETRY_PACKETS: u32 = 250;
/// Encoders that may fail in a row, without producing a frame, before the stream counts as failed.
const BROKEN_ENCODERS_LIMIT: u32 = 3;

impl TranscoderRing {
    /// Transcodes some of the waiting frames. A panic ends only this ring's transcoder.
    pub(super) fn take_turn(self: &Arc<Self>, encoders: &Encoders, now: Instant) -> Outcome {
        self.clear_scheduled();
        let mut turn = lock(&self.turn);
        let (was_failing, had_failed) = (turn.is_failing, turn.has_failed);
        let run = catch_unwind(AssertUnwindSafe(|| turn.run(self, encoders, now)));
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
    fn run(&mut self, ring: &Arc<TranscoderRing>, encoders: &Encoders, now: Instant) -> bool {
        let delivery = ring.take_delivery();
        if ring.is_closed() {
            // Returns its encoders to the pool.
            self.end();
            return false;
        }
        let Some(transcoder) = &mut self.transcoder else { return false };
        match delivery {
            Some(Ok(encoder)) => {
                transcoder.give_encoder(encoder);
                self.phase = Phase::Running;
            }
            Some(Err(reason)) => self.pause(ring, reason),
            None => {}
        }
        let (mut made, mut frames) = (Vec::new(), 0);
        for _ in 0..TURN_PACKETS_LIMIT {
            if self.phase == Phase::Parked || frames >= TURN_FRAMES_LIMIT {
                break;
            }
            let Some(packet) = self.next.take().or_else(|| ring.pop()) else { return false };
            if let Phase::Pausing(left) = self.phase {
                self.phase = left.checked_sub(1).map_or(Phase::Running, Phase::Pausing);
                continue;
            }
            self.transcode(packet, now, ring, encoders, &mut made);
            frames += made.len();
            self.put(&mut made, ring);
        }
        self.phase != Phase::Parked && ring.has_input()
    }

    fn transcode(
        &mut self,
        packet: Frame,
        now: Instant,
        ring: &Arc<TranscoderRing>,
        encoders: &Encoders,
        made: &mut Vec<Frame>,
    ) {
        let Some(transcoder) = &mut self.transcoder else { return };
        if let Some(kind) = transcoder.wanted_encoder(&packet) {
            let Some(encoder) = encoders.request(kind, ring) else {
                (self.phase, self.next) = (Phase::Parked, Some(packet));
                return;
            };
            transcoder.give_encoder(encoder);
        }
        match transcoder.handle_frame(&packet, now, made) {
            Ok(()) => {}
            Err(error @ TranscodeError::Encoder(_)) => {
                self.broken_encoders += 1;
                if self.broken_encoders >= BROKEN_ENCODERS_LIMIT {
                    self.broken_encoders = 0;
                    self.pause(ring, error.to_string());
                }
            }
            Err(error @ TranscodeError::Head(_)) => self.fail(ring, error.to_string()),
            Err(error @ (TranscodeError::Decoder | TranscodeError::NoEncoder)) => {
                self.pause(ring, error.to_string());
            }
            // Not a codec for the transcoder; the stream's other frames are not affected.
            Err(TranscodeError::Codec) => {}
        }
    }

    /// Passes on the transcoder's output.
    fn put(&mut self, made: &mut Vec<Frame>, ring: &TranscoderRing) {
        for frame in made.drain(..) {
            if frame.kind == FrameKind::Configuration {
                self.configuration = frame.data;
                continue;
            }
            self.broken_encoders = 0;
            if self.is_failing {
                self.is_failing = false;
                ring.set_failure(None);
            }
            ring.put(Encoded { frame, configuration: self.configuration.clone() });
        }
    }

    /// Fails, and retries with another encoder after [`RETRY_PACKETS`].
    fn pause(&mut self, ring: &TranscoderRing, reason: String) {
        (self.phase, self.next) = (Phase::Pausing(RETRY_PACKETS), None);
        self.fail(ring, reason);
    }

    fn fail(&mut self, ring: &TranscoderRing, reason: String) {
        (self.is_failing, self.has_failed) = (true, true);
        ring.set_failure(Some(reason));
    }

    fn end(&mut self) {
        let (transcoder, next) = (self.transcoder.take(), self.next.take());
        // What panicked once may panic again.
        let _ = catch_unwind(AssertUnwindSafe(|| drop((transcoder, next))));
    }
}
