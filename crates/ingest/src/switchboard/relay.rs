//! All that two workers tell each other about a stream that lives on one and has players on the other: a bounded
//! lock-free ring of frames, and what changes rarely. Whoever has said something wakes the other worker. Pure but for
//! its atomics. Players stay where they are, because one stream may have more of them than a core serves.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use headgate_media::{Codec, Frame, FrameKind, Timestamp};

use crate::publish::record::PublishRecord;

/// Frames that may wait between two workers: about ten seconds of video and audio.
const RING_LIMIT: usize = 1024;
/// Bytes of frames of any kind that may wait there, as many as for one subscriber; exceeded by at most one frame.
const RING_BYTES_LIMIT: usize = 4 << 20;

/// The ring between the worker where a stream lives and another worker that has players of it.
///
/// When full, video is dropped up to the next keyframe and counted; the reader loses video, the writer never waits.
/// Dropped headers are repeated as soon as there is room.
#[derive(Debug)]
pub(crate) struct Relay {
    ring: ArrayQueue<Frame>,
    bytes: AtomicUsize,
    awaits_keyframe: AtomicBool,
    owes_headers: AtomicBool,
    dropped: AtomicU64,
    ended: AtomicBool,
    needs_aac: AtomicBool,
    wants_keyframe: AtomicBool,
    has_left: AtomicBool,
    has_news: AtomicBool,
    news: Mutex<News>,
}

/// What the reader is told besides frames.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The publish that the stream belongs to.
    pub(crate) record: Option<Arc<PublishRecord>>,
    /// The frames before those in the ring.
    pub(crate) burst: Option<Vec<Frame>>,
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
            wants_keyframe: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            has_news: AtomicBool::new(false),
            news: Mutex::default(),
        }
    }
}

impl Relay {
    /// Writer: passes a frame on or drops it; `headers` are the stream's, to repeat those that were dropped.
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
        // Count the bytes before the reader can take them out again.
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
                // Frames that follow must not be decoded with the previous one.
                self.awaits_keyframe.store(true, Ordering::Relaxed);
                self.owes_headers.store(true, Ordering::Relaxed);
            }
            FrameKind::ColorInfo | FrameKind::Script => {
                self.owes_headers.store(true, Ordering::Relaxed);
            }
            FrameKind::Audio => {}
        }
    }

    /// Writer: the stream's audio is no longer Opus. The marker is an Opus configuration without data, which no stream has.
    pub(crate) fn end_opus(&self) {
        let (codec, kind, timestamp) = (Codec::Opus, FrameKind::Configuration, Timestamp::ZERO);
        self.put(&Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::new() });
    }

    /// Reader: whether this frame is the marker that the stream's Opus has ended. It goes to no subscriber.
    pub(crate) fn ends_opus(frame: &Frame) -> bool {
        frame.codec == Codec::Opus
            && frame.kind == FrameKind::Configuration
            && frame.data.is_empty()
    }

    /// Writer: this publish has the stream from now on. `burst`: the frames before the first one in the ring.
    pub(crate) fn tell(&self, record: Arc<PublishRecord>, burst: Option<Vec<Frame>>) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.record = Some(record);
        news.burst = burst.or_else(|| news.burst.take());
        self.has_news.store(true, Ordering::Release);
    }

    /// Reader: what it was told since the previous call.
    pub(crate) fn take_news(&self) -> News {
        if !self.has_news.load(Ordering::Acquire) {
            return News::default();
        }
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_news.store(false, Ordering::Relaxed);
        std::mem::take(&mut news)
    }

    /// Reader: a subscriber joins.
    pub(crate) fn want_keyframe(&self) {
        self.wants_keyframe.store(true, Ordering::Relaxed);
    }

    /// Writer: whether one has joined since the previous call.
    pub(crate) fn take_keyframe_wanted(&self) -> bool {
        self.wants_keyframe.load(Ordering::Relaxed)
            && self.wants_keyframe.swap(false, Ordering::Relaxed)
    }

    /// Reader: its worker has no subscriber any more.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Writer: see [`Relay::leave`].
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Writer: no more frames will come.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Reader: the next frame.
    pub(crate) fn pop(&self) -> Option<Frame> {
        let frame = self.ring.pop()?;
        self.bytes.fetch_sub(frame.data.len(), Ordering::Relaxed);
        Some(frame)
    }

    /// Reader: call this *before* draining; if true, the frames found afterwards are the last ones.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Reader: sets whether a subscriber on its worker needs AAC.
    pub(crate) fn set_needs_aac(&self, needs: bool) {
        self.needs_aac.store(needs, Ordering::Relaxed);
    }

    /// Writer: see [`Relay::set_needs_aac`].
    pub(crate) fn needs_aac(&self) -> bool {
        self.needs_aac.load(Ordering::Relaxed)
    }

    /// Frames dropped since the previous call.
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
    fn at_most_four_megabytes_and_one_frame_wait() {
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
    fn a_configuration_dropped_for_lack_of_room_is_sent_before_the_next_keyframe() {
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
