//! One stream's frames on their way to another worker: a bounded ring, never a lock. Pure but for its atomics.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use headgate_media::{Codec, Frame, FrameKind, Timestamp};

/// Frames that may wait between two workers: about ten seconds of video and audio.
const RING_LIMIT: usize = 1024;
/// Bytes that may wait there, frames of any kind: as many as for one subscriber. One frame may go past it.
const RING_BYTES_LIMIT: usize = 4 << 20;

/// The ring between a stream's own worker and one other worker that has players of it.
///
/// When full, video is dropped up to the next keyframe and counted; the reader loses video time, the writer never
/// waits. Headers that were dropped are repeated as soon as there is room.
#[derive(Debug)]
pub(crate) struct Relay {
    ring: ArrayQueue<Frame>,
    bytes: AtomicUsize,
    awaits_keyframe: AtomicBool,
    owes_headers: AtomicBool,
    dropped: AtomicU64,
    ended: AtomicBool,
    needs_aac: AtomicBool,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            ring: ArrayQueue::new(RING_LIMIT),
            bytes: AtomicUsize::new(0),
            awaits_keyframe: AtomicBool::new(false),
            owes_headers: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            needs_aac: AtomicBool::new(false),
        }
    }
}

impl Relay {
    /// Writer: passes a frame on, or drops it; `headers` are the stream's, for a reader that missed some.
    pub(crate) fn push(&self, frame: &Frame, headers: impl Iterator<Item = Frame>) {
        let needs_earlier = matches!(frame.kind, FrameKind::Inter | FrameKind::Disposable);
        if self.owes_headers.load(Ordering::Relaxed) && !needs_earlier {
            self.owes_headers.store(false, Ordering::Relaxed);
            for header in headers {
                self.put(&Frame { timestamp: frame.timestamp, ..header });
            }
        }
        if needs_earlier && self.awaits_keyframe.load(Ordering::Relaxed) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.put(frame);
    }

    fn put(&self, frame: &Frame) {
        // Counted before the reader can take it out again.
        let before = self.bytes.fetch_add(frame.data.len(), Ordering::Relaxed);
        if before <= RING_BYTES_LIMIT && self.ring.push(frame.clone()).is_ok() {
            if frame.kind == FrameKind::Keyframe {
                self.awaits_keyframe.store(false, Ordering::Relaxed);
            }
            return;
        }
        self.bytes.fetch_sub(frame.data.len(), Ordering::Relaxed);
        self.dropped.fetch_add(1, Ordering::Relaxed);
        match frame.kind {
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable => {
                self.awaits_keyframe.store(true, Ordering::Relaxed);
            }
            FrameKind::Configuration => {
                // What follows must not be decoded by the old one.
                self.awaits_keyframe.store(true, Ordering::Relaxed);
                self.owes_headers.store(true, Ordering::Relaxed);
            }
            FrameKind::ColorInfo | FrameKind::Script => {
                self.owes_headers.store(true, Ordering::Relaxed);
            }
            FrameKind::Audio => {}
        }
    }

    /// Writer: the stream's audio is no Opus any more. An Opus configuration without data says so, which no stream has.
    pub(crate) fn end_opus(&self) {
        let (codec, kind, timestamp) = (Codec::Opus, FrameKind::Configuration, Timestamp::ZERO);
        self.put(&Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::new() });
    }

    /// Reader: whether the stream's Opus ends with this frame, which is for nobody.
    pub(crate) fn ends_opus(frame: &Frame) -> bool {
        frame.codec == Codec::Opus && frame.data.is_empty()
    }

    /// Writer: nothing more will come.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Reader: the next frame.
    pub(crate) fn pop(&self) -> Option<Frame> {
        let frame = self.ring.pop()?;
        self.bytes.fetch_sub(frame.data.len(), Ordering::Relaxed);
        Some(frame)
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

    fn frame(kind: FrameKind) -> Frame {
        Frame {
            codec: Codec::H264,
            kind,
            timestamp: Timestamp::ZERO,
            composition_ms: 0,
            data: Bytes::from_static(b"x"),
        }
    }

    fn push(relay: &Relay, frame: &Frame) {
        relay.push(frame, std::iter::empty());
    }

    #[test]
    fn a_full_ring_drops_to_the_next_keyframe_and_counts() {
        let relay = Relay::default();
        for _ in 0..=RING_LIMIT {
            push(&relay, &frame(FrameKind::Inter));
        }
        assert!(relay.pop().is_some());
        push(&relay, &frame(FrameKind::Inter));
        push(&relay, &frame(FrameKind::Keyframe));
        assert_eq!(relay.poll_dropped(), 2);
        let kinds: Vec<_> = std::iter::from_fn(|| relay.pop()).map(|frame| frame.kind).collect();
        assert_eq!(kinds.last(), Some(&FrameKind::Keyframe));
    }

    #[test]
    fn four_megabytes_may_wait_and_one_frame_more() {
        let relay = Relay::default();
        let large = Frame { data: Bytes::from(vec![0; 1 << 20]), ..frame(FrameKind::Keyframe) };
        for _ in 0..100 {
            push(&relay, &large);
        }
        assert_eq!((relay.ring.len(), relay.poll_dropped()), (5, 95));
        while relay.pop().is_some() {}
        assert_eq!(relay.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_configuration_that_had_no_room_is_made_up_for_before_the_next_keyframe() {
        let relay = Relay::default();
        for _ in 0..RING_LIMIT {
            push(&relay, &frame(FrameKind::Audio));
        }
        push(&relay, &frame(FrameKind::Configuration));
        while relay.pop().is_some() {}
        let headers = || [frame(FrameKind::Configuration)].into_iter();
        for kind in [FrameKind::Inter, FrameKind::Keyframe, FrameKind::Inter] {
            relay.push(&frame(kind), headers());
        }
        let kinds: Vec<_> = std::iter::from_fn(|| relay.pop()).map(|frame| frame.kind).collect();
        let want = [FrameKind::Configuration, FrameKind::Keyframe, FrameKind::Inter];
        assert_eq!(kinds, want);
    }
}
