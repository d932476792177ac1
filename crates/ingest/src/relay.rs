//! One stream's frames on their way to another worker: a bounded ring, never a lock. Pure but for its atomics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use headgate_media::{Frame, FrameKind};

/// Frames that may wait between two workers: about ten seconds of video and audio.
const RING_LIMIT: usize = 1024;

/// The ring between a stream's own worker and one other worker that has players of it.
///
/// When full, pictures are dropped up to the next keyframe and counted; the reader loses picture time, the writer
/// never waits.
#[derive(Debug)]
pub(crate) struct Relay {
    ring: ArrayQueue<Frame>,
    awaits_keyframe: AtomicBool,
    dropped: AtomicU64,
    ended: AtomicBool,
    needs_aac: AtomicBool,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            ring: ArrayQueue::new(RING_LIMIT),
            awaits_keyframe: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            needs_aac: AtomicBool::new(false),
        }
    }
}

impl Relay {
    /// Writer: passes a frame on, or drops it.
    pub(crate) fn push(&self, frame: &Frame) {
        let awaits = self.awaits_keyframe.load(Ordering::Relaxed);
        let keyframe = frame.kind == FrameKind::Keyframe;
        let needs_earlier = matches!(frame.kind, FrameKind::Inter | FrameKind::Disposable);
        if awaits && needs_earlier {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.ring.push(frame.clone()) {
            Ok(()) if keyframe => self.awaits_keyframe.store(false, Ordering::Relaxed),
            Ok(()) => {}
            Err(_) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.awaits_keyframe.store(awaits || keyframe || needs_earlier, Ordering::Relaxed);
            }
        }
    }

    /// Writer: nothing more will come.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Reader: the next frame.
    pub(crate) fn pop(&self) -> Option<Frame> {
        self.ring.pop()
    }

    /// Reader: ask *before* draining; true then means that what is drained is all there will ever be.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Reader: whether anybody over there needs AAC.
    pub(crate) fn set_needs_aac(&self, needs: bool) {
        self.needs_aac.store(needs, Ordering::Relaxed);
    }

    /// Writer: see [`Relay::set_needs_aac`].
    pub(crate) fn needs_aac(&self) -> bool {
        self.needs_aac.load(Ordering::Relaxed)
    }

    /// Frames dropped since the last call.
    pub(crate) fn poll_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use headgate_media::{Codec, Timestamp};

    fn frame(kind: FrameKind) -> Frame {
        Frame {
            codec: Codec::H264,
            kind,
            timestamp: Timestamp::ZERO,
            composition_ms: 0,
            data: Bytes::from_static(b"x"),
        }
    }

    #[test]
    fn a_full_ring_drops_to_the_next_keyframe_and_counts() {
        let relay = Relay::default();
        for _ in 0..=RING_LIMIT {
            relay.push(&frame(FrameKind::Inter));
        }
        assert!(relay.pop().is_some());
        relay.push(&frame(FrameKind::Inter));
        relay.push(&frame(FrameKind::Keyframe));
        assert_eq!(relay.poll_dropped(), 2);
        let kinds: Vec<_> = std::iter::from_fn(|| relay.pop()).map(|frame| frame.kind).collect();
        assert_eq!(kinds.last(), Some(&FrameKind::Keyframe));
    }
}
