//! The queues between a stream's media worker and its audio thread. The transcoding itself is in `serve`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use headgate_media::{Frame, FrameKind};
use headgate_transcode::{AacBitrate, Encoders};

use super::turn::Turn;
use crate::publish::record::StreamId;

/// Opus frames that may wait for a transcoder: more than a whole cached GOP (10 s of 20 ms frames). If full, the oldest
/// is dropped and the transcoder conceals it.
pub(super) const INPUT_LIMIT: usize = 512;
/// AAC frames that may wait for the stream's worker, about 20 s. If full, the oldest is dropped.
pub(super) const OUTPUT_LIMIT: usize = 1024;

/// One stream's queues to its transcoder and back.
pub(crate) struct TranscoderRing {
    stream: StreamId,
    worker: usize,
    thread: usize,
    input: ArrayQueue<Frame>,
    output: ArrayQueue<Encoded>,
    // Whether it is queued in its audio thread's inbox.
    is_scheduled: AtomicBool,
    // Whether the worker has been notified and has not drained the ring since.
    is_announced: AtomicBool,
    is_closed: AtomicBool,
    failure: Mutex<Option<String>>,
    // Only the audio thread takes this lock, so it never waits.
    pub(super) turn: Mutex<Turn>,
    // The decoder configuration of the last drained frame. Only the worker takes this lock.
    drained_configuration: Mutex<Bytes>,
}

/// An AAC frame with its decoder configuration, since the frame that first carried the configuration may have been
/// dropped.
pub(super) struct Encoded {
    pub(super) frame: Frame,
    pub(super) configuration: Bytes,
}

impl TranscoderRing {
    pub(super) fn new(
        stream: StreamId,
        worker: usize,
        thread: usize,
        bitrate: AacBitrate,
        encoders: Encoders,
    ) -> Self {
        Self {
            stream,
            worker,
            thread,
            input: ArrayQueue::new(INPUT_LIMIT),
            output: ArrayQueue::new(OUTPUT_LIMIT),
            is_scheduled: AtomicBool::new(false),
            is_announced: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            failure: Mutex::default(),
            turn: Mutex::new(Turn::new(bitrate, encoders)),
            drained_configuration: Mutex::default(),
        }
    }

    /// The AAC frames made since the previous call, at most [`OUTPUT_LIMIT`], plus a `Configuration` before the first
    /// one and wherever it changes.
    pub(crate) fn drain(&self) -> Vec<Frame> {
        // Read-modify-write, here and in `announce`: whichever comes second sees the effect of the first.
        self.is_announced.swap(false, Ordering::AcqRel);
        let mut last = lock(&self.drained_configuration);
        let mut frames = Vec::new();
        // The limit of the loop matters: the audio thread may add frames meanwhile.
        for Encoded { frame, configuration } in
            std::iter::from_fn(|| self.output.pop()).take(OUTPUT_LIMIT)
        {
            if configuration != *last {
                *last = configuration.clone();
                let (kind, data) = (FrameKind::Configuration, configuration);
                frames.push(Frame { kind, data, ..frame.clone() });
            }
            frames.push(frame);
        }
        frames
    }

    /// Why no AAC is produced; `None` while it is. A transcoder that panicked stays failed until the stream opens
    /// another.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    pub(super) const fn stream(&self) -> StreamId {
        self.stream
    }

    pub(super) const fn worker(&self) -> usize {
        self.worker
    }

    pub(super) const fn thread(&self) -> usize {
        self.thread
    }

    pub(super) fn push(&self, packet: Frame) {
        self.input.force_push(packet);
    }

    pub(super) fn pop(&self) -> Option<Frame> {
        self.input.pop()
    }

    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    pub(super) fn put(&self, encoded: Encoded) {
        self.output.force_push(encoded);
    }

    /// Whether the worker must be notified of the ring's content.
    pub(super) fn announce(&self) -> bool {
        !self.output.is_empty() && !self.is_announced.swap(true, Ordering::AcqRel)
    }

    /// Returns true unless it is already scheduled.
    pub(super) fn set_scheduled(&self) -> bool {
        !self.is_scheduled.swap(true, Ordering::AcqRel)
    }

    pub(super) fn clear_scheduled(&self) {
        self.is_scheduled.swap(false, Ordering::AcqRel);
    }

    /// Returns true the first time.
    pub(super) fn close(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn set_failure(&self, failure: Option<String>) {
        *lock(&self.failure) = failure;
    }
}

/// What these locks guard is replaced as a whole, so a panic elsewhere cannot have broken it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
