//! What an audio thread keeps of one stream between its turns.

use bytes::Bytes;
use headgate_media::Frame;
use headgate_media::transcode::{AacBitrate, Transcoder};

/// The audio thread's side of a ring.
pub(super) struct Turn {
    // `None` once the ring was closed, or after a panic.
    pub(super) transcoder: Option<Transcoder>,
    pub(super) phase: Phase,
    // Taken out of the ring; the encoder for it is on the way.
    pub(super) next: Option<Frame>,
    // Of the frames made now.
    pub(super) configuration: Bytes,
    pub(super) broken_encoders: u32,
    // The worker has been given a reason, and no AAC has been made since.
    pub(super) is_failing: bool,
    pub(super) has_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// An encoder has been asked for; packets wait in the ring.
    Parked,
    /// So many packets are passed over before the next try.
    Pausing(u32),
}

/// What the audio thread has to do after a turn.
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
