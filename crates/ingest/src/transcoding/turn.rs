//! State that an audio thread keeps of a stream between its turns.

use bytes::Bytes;
use headgate_media::Frame;
use headgate_transcode::{AacBitrate, Transcoder};

/// The audio thread's side of a ring.
pub(super) struct Turn {
    // `None` once the ring was closed, or after a panic.
    pub(super) transcoder: Option<Transcoder>,
    pub(super) phase: Phase,
    // A packet taken from the ring whose encoder has been requested.
    pub(super) next: Option<Frame>,
    // Configuration of the frames being produced.
    pub(super) configuration: Bytes,
    pub(super) broken_encoders: u32,
    // The worker has been given a reason, and no AAC has been produced since.
    pub(super) is_failing: bool,
    pub(super) has_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// An encoder has been requested; packets wait in the ring.
    Parked,
    /// This many packets are skipped before the next attempt.
    Pausing(u32),
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
    pub(super) fn new(bitrate: AacBitrate) -> Self {
        Self {
            transcoder: Some(Transcoder::new(bitrate)),
            phase: Phase::Running,
            next: None,
            configuration: Bytes::new(),
            broken_encoders: 0,
            is_failing: false,
            has_failed: false,
        }
    }
}
