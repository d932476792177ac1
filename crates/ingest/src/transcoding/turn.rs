//! State that an audio thread keeps of a stream between its turns.

use bytes::Bytes;
use headgate_transcode::{AacBitrate, Encoders, Transcoder};

/// The audio thread's side of a ring.
pub(super) struct Turn {
    // `None` once the ring was closed, or after a panic.
    pub(super) transcoder: Option<Transcoder>,
    // Configuration of the frames being produced.
    pub(super) configuration: Bytes,
    // The worker has been given a reason, and no AAC has been produced since.
    pub(super) is_failing: bool,
    pub(super) has_failed: bool,
}

/// Result of a turn, for the audio thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Packets are left: the ring needs another turn.
    pub(super) has_more: bool,
    /// The worker must be notified.
    pub(super) must_notify: bool,
    /// The ring failed for the first time.
    pub(super) is_first_failure: bool,
}

impl Turn {
    pub(super) fn new(bitrate: AacBitrate, encoders: Encoders) -> Self {
        Self {
            transcoder: Some(Transcoder::new(bitrate, encoders)),
            configuration: Bytes::new(),
            is_failing: false,
            has_failed: false,
        }
    }
}
