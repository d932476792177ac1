//! What waits for one subscriber: a bounded queue that loses to the next IDR. Pure.

use std::collections::VecDeque;

use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};

/// Media time that may wait for one subscriber beyond what it joined with.
const QUEUE_TIME_LIMIT_US: i64 = 3_000_000;
/// Bytes that may wait for one subscriber beyond what it joined with.
const QUEUE_BYTES_LIMIT: usize = 4 << 20;

/// Frames waiting for one subscriber, oldest first.
///
/// When full, video is dropped up to the newest keyframe in the queue, or all of it until the next keyframe comes;
/// then the oldest audio. Configurations are never dropped.
#[derive(Debug, Default)]
pub(crate) struct SubscriberQueue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Frames of the burst a joiner starts with that are still waiting; they do not count against the limits.
    joined_with: usize,
    joined_bytes: usize,
    awaits_keyframe: bool,
    has_video: bool,
    /// Decode time of the first keyframe it got.
    first_picture: Option<Timestamp>,
    dropped: u64,
    /// Codecs that the subscriber does not take.
    left_out: Vec<Codec>,
    ended: bool,
}

impl SubscriberQueue {
    /// A queue that starts with `burst`: configurations and the cached GOP. Without a keyframe in it, video starts at
    /// the next one.
    pub(crate) fn new(burst: impl IntoIterator<Item = Frame>) -> Self {
        let mut queue = Self { awaits_keyframe: true, ..Self::default() };
        for frame in burst {
            queue.admit(frame);
        }
        queue.joined_with = queue.frames.len();
        queue.joined_bytes = queue.bytes;
        queue.dropped = 0;
        queue
    }

    /// Adds a frame, or drops it or older ones.
    pub(crate) fn push(&mut self, frame: &Frame) {
        if self.left_out.contains(&frame.codec) {
            return;
        }
        self.admit(frame.clone());
        if self.has_too_much(Track::Video) {
            self.drop_to_keyframe();
        }
        while self.has_too_much(Track::Audio)
            && self.drop_oldest(|frame| frame.kind == FrameKind::Audio)
        {}
    }

    /// Frames of these codecs are not for the subscriber, neither those that wait nor those that will come.
    pub(crate) fn leave_out(&mut self, codecs: Vec<Codec>) {
        self.forget(|frame| codecs.contains(&frame.codec));
        self.has_video = self.frames.iter().any(|frame| is_picture(frame.kind));
        self.first_picture = self.first_picture.filter(|_| self.has_video);
        self.left_out = codecs;
    }

    /// Whether frames of this codec are for the subscriber at all.
    #[must_use]
    pub(crate) fn leaves_out(&self, codec: Codec) -> bool {
        self.left_out.contains(&codec)
    }

    /// Takes out what the subscriber does not take; it was never meant for it, so it does not count as dropped.
    pub(crate) fn forget(&mut self, is_foreign: impl Fn(&Frame) -> bool) {
        let joined = self.joined_with;
        let mut position = 0;
        let (mut bytes, mut of_joined, mut joined_bytes) = (0, 0, 0);
        self.frames.retain(|frame| {
            position += 1;
            let foreign = is_foreign(frame);
            if foreign {
                bytes += frame.data.len();
                if position <= joined {
                    of_joined += 1;
                    joined_bytes += frame.data.len();
                }
            }
            !foreign
        });
        self.bytes -= bytes;
        self.joined_with -= of_joined;
        self.joined_bytes -= joined_bytes;
    }

    /// The next frame to send.
    pub(crate) fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.data.len();
        if self.joined_with > 0 {
            self.joined_with -= 1;
            self.joined_bytes -= frame.data.len();
        }
        Some(frame)
    }

    /// Nothing more will be pushed.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Ended and drained.
    #[must_use]
    pub(crate) fn is_finished(&self) -> bool {
        self.ended && self.frames.is_empty()
    }

    /// Nothing waits but audio that the next picture could take along.
    #[must_use]
    pub(crate) fn holds_only_audio(&self) -> bool {
        self.has_video
            && !self.frames.is_empty()
            && self.frames.iter().all(|frame| frame.track() == Track::Audio)
    }

    /// The subscriber's picture has begun, and `timestamp` lies before that.
    #[must_use]
    pub(crate) fn is_before_first_picture(&self, timestamp: Timestamp) -> bool {
        self.first_picture.is_some_and(|first| timestamp < first)
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Frames dropped since the last call.
    pub(crate) fn poll_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn admit(&mut self, frame: Frame) {
        match frame.kind {
            FrameKind::Keyframe => {
                self.awaits_keyframe = false;
                self.has_video = true;
                self.first_picture.get_or_insert(frame.timestamp);
            }
            FrameKind::Inter | FrameKind::Disposable if self.awaits_keyframe => {
                self.dropped += 1;
                return;
            }
            FrameKind::Configuration
            | FrameKind::Inter
            | FrameKind::Disposable
            | FrameKind::Audio
            | FrameKind::Script => {}
        }
        self.bytes += frame.data.len();
        self.frames.push_back(frame);
    }

    /// Too many bytes in all, or too much media time of this track. Each track by itself: transcoded sound comes later
    /// than its picture, and perhaps much of it at once.
    fn has_too_much(&self, track: Track) -> bool {
        self.bytes - self.joined_bytes > QUEUE_BYTES_LIMIT
            || self.waiting_us(track) > QUEUE_TIME_LIMIT_US
    }

    /// Media time between the first and the last frame of a track behind the joining burst.
    fn waiting_us(&self, track: Track) -> i64 {
        let of_track =
            |frame: &&Frame| frame.track() == track && frame.kind != FrameKind::Configuration;
        let micros = |frame: &Frame| Timestamp::as_micros(frame.timestamp);
        let first = self.frames.range(self.joined_with..).find(of_track).map(micros);
        let last = self.frames.range(self.joined_with..).rev().find(of_track).map(micros);
        first.zip(last).map_or(0, |(first, last)| last - first)
    }

    fn drop_to_keyframe(&mut self) {
        let newest = self.frames.iter().rposition(|frame| frame.kind == FrameKind::Keyframe);
        // A keyframe that is already the first picture would drop nothing: give that GOP up as well.
        let keep_from =
            newest.filter(|at| self.frames.iter().take(*at).any(|frame| is_picture(frame.kind)));
        self.awaits_keyframe = keep_from.is_none();
        let keep_from = keep_from.unwrap_or(self.frames.len());
        let mut position = 0;
        let (mut dropped, mut bytes) = (0, 0);
        self.frames.retain(|frame| {
            let keep = position >= keep_from || !is_picture(frame.kind);
            position += 1;
            if !keep {
                dropped += 1;
                bytes += frame.data.len();
            }
            keep
        });
        self.bytes -= bytes;
        self.dropped += dropped;
        // What is left is short: it counts like any other from here on.
        self.joined_with = 0;
        self.joined_bytes = 0;
    }

    fn drop_oldest(&mut self, which: impl Fn(&Frame) -> bool) -> bool {
        let Some(at) = self.frames.iter().position(which) else { return false };
        if let Some(frame) = self.frames.remove(at) {
            self.bytes -= frame.data.len();
            self.dropped += 1;
        }
        true
    }
}

const fn is_picture(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn frame(kind: FrameKind, millis: i64) -> Frame {
        let codec = if kind == FrameKind::Audio { Codec::Aac } else { Codec::H264 };
        let timestamp = Timestamp::from_millis(millis);
        Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(&[0; 100]) }
    }

    fn drain(queue: &mut SubscriberQueue) -> Vec<(FrameKind, i64)> {
        std::iter::from_fn(|| queue.pop()).map(|f| (f.kind, f.timestamp.as_millis())).collect()
    }

    #[test]
    fn video_starts_at_a_keyframe() {
        let mut queue = SubscriberQueue::new([]);
        for (kind, at) in [
            (FrameKind::Inter, 0),
            (FrameKind::Audio, 10),
            (FrameKind::Keyframe, 40),
            (FrameKind::Inter, 80),
        ] {
            queue.push(&frame(kind, at));
        }
        assert_eq!(
            drain(&mut queue),
            [(FrameKind::Audio, 10), (FrameKind::Keyframe, 40), (FrameKind::Inter, 80)]
        );
    }

    #[test]
    fn a_full_queue_resumes_at_the_newest_keyframe_and_keeps_headers_and_audio() {
        let mut queue = SubscriberQueue::new([frame(FrameKind::Configuration, 0)]);
        for n in 0..76 {
            let kind = if n % 25 == 0 { FrameKind::Keyframe } else { FrameKind::Inter };
            queue.push(&frame(kind, n * 40));
        }
        queue.push(&frame(FrameKind::Audio, 3020));
        queue.push(&frame(FrameKind::Inter, 3040));
        let left = drain(&mut queue);
        assert_eq!(
            left,
            [
                (FrameKind::Configuration, 0),
                (FrameKind::Keyframe, 3000),
                (FrameKind::Audio, 3020),
                (FrameKind::Inter, 3040)
            ]
        );
        assert_eq!(queue.poll_dropped(), 75);
    }

    #[test]
    fn four_megabytes_may_wait_and_not_a_byte_more() {
        let large = |millis, length| Frame {
            data: Bytes::from(vec![0; length]),
            ..frame(if millis == 0 { FrameKind::Keyframe } else { FrameKind::Inter }, millis)
        };
        for (length, left, dropped) in [(2 << 20, 2, 0), ((2 << 20) + 1, 0, 2)] {
            let mut queue = SubscriberQueue::new([]);
            queue.push(&large(0, 2 << 20));
            queue.push(&large(40, length));
            assert_eq!((drain(&mut queue).len(), queue.poll_dropped()), (left, dropped));
        }
    }

    #[test]
    fn a_gop_longer_than_the_queue_is_given_up_until_the_next_keyframe() {
        let mut queue = SubscriberQueue::new([]);
        queue.push(&frame(FrameKind::Keyframe, 0));
        for n in 1..100 {
            queue.push(&frame(FrameKind::Inter, n * 40));
        }
        assert!(queue.is_empty());
        queue.push(&frame(FrameKind::Keyframe, 4000));
        assert_eq!(drain(&mut queue), [(FrameKind::Keyframe, 4000)]);
    }

    #[test]
    fn the_burst_a_player_joins_with_does_not_count_against_it() {
        let burst = (0..200)
            .map(|n| frame(if n == 0 { FrameKind::Keyframe } else { FrameKind::Inter }, n * 40));
        let mut queue = SubscriberQueue::new(burst);
        queue.push(&frame(FrameKind::Inter, 8000));
        assert_eq!(queue.poll_dropped(), 0);
        assert_eq!(drain(&mut queue).len(), 201);
    }

    #[test]
    fn sound_that_comes_late_does_not_make_the_queue_full() {
        let mut queue = SubscriberQueue::new([]);
        for (kind, at) in
            [(FrameKind::Keyframe, 3400), (FrameKind::Audio, 0), (FrameKind::Inter, 3440)]
        {
            queue.push(&frame(kind, at));
        }
        assert_eq!(queue.poll_dropped(), 0);
        assert_eq!(drain(&mut queue).len(), 3);
    }

    #[test]
    fn sound_that_comes_in_a_heap_costs_sound_and_no_picture() {
        let mut queue = SubscriberQueue::new([]);
        queue.push(&frame(FrameKind::Keyframe, 4000));
        for n in 0..200 {
            queue.push(&frame(FrameKind::Audio, n * 21));
        }
        let left = drain(&mut queue);
        assert_eq!(left.first(), Some(&(FrameKind::Keyframe, 4000)));
        assert!((100..=145).contains(&left.len()), "{}", left.len());
    }

    #[test]
    fn sound_alone_is_bounded_too() {
        let mut queue = SubscriberQueue::new([]);
        for n in 0..1000 {
            queue.push(&frame(FrameKind::Audio, n * 21));
        }
        assert!(drain(&mut queue).len() <= 145);
    }
}
