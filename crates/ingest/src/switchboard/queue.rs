//! The queue of one subscriber: bounded; when full, video is dropped up to the next keyframe.

use std::collections::VecDeque;

use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};

use crate::session::shared_frame::SharedFrame;

/// Media time that may wait for one subscriber in addition to its joining burst, once it had a chance to take frames.
const QUEUE_TIME_LIMIT_US: i64 = 3_000_000;
/// Bytes of frames of any kind that may wait for one subscriber in addition to its joining burst.
const QUEUE_BYTES_LIMIT: usize = 4 << 20;
/// Frames of any kind that may wait in addition to the joining burst, needed for empty frames with a constant
/// timestamp. Three seconds with 120 video frames and 400 audio packets a second are 1,560.
const QUEUE_FRAMES_LIMIT: usize = 2_048;
/// Script frames that may wait: cue points of a few seconds. Only the newest `onMetaData` is kept.
const SCRIPTS_LIMIT: usize = 32;

/// Audio that an upstream gets without video after it joined between two keyframes begins after this much of it was
/// withheld: many upstreams take the tracks of the first seconds for all that there are.
const AUDIO_ALONE_US: i64 = 10_000_000;

/// How far a subscriber's stream has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Begun {
    /// It takes what is queued.
    #[default]
    Yes,
    /// Its peer has not accepted the stream yet, and nothing was dropped.
    NotAccepted,
    /// The same, but more than the limit would have waited: nothing is queued, and it joins afresh on acceptance.
    Overrun,
    /// It joined between two keyframes: audio is withheld since this timestamp.
    AwaitsVideo(Option<Timestamp>),
}

/// Frames waiting for one subscriber, oldest first.
///
/// When full, video is dropped up to the newest keyframe in the queue, or all of it until the next keyframe; after that
/// the oldest audio. Beyond their limit the oldest script frames are dropped. A configuration is dropped if a newer one
/// of its track replaces it before any frame of that track; of colour information only the newest is kept.
#[derive(Debug, Default)]
pub(super) struct SubscriberQueue {
    frames: VecDeque<SharedFrame>,
    bytes: usize,
    /// Frames of the joining burst that are still waiting; they do not count towards the limits.
    joined_with: usize,
    joined_bytes: usize,
    /// Frames at the back that arrived since the subscriber last had a chance to take some. They may span any time:
    /// after a network outage a publisher sends everything it buffered at once.
    fresh: usize,
    scripts: usize,
    /// Number of waiting video frames.
    video: usize,
    /// Number of waiting frames that are not audio.
    not_audio: usize,
    awaits_keyframe: bool,
    begun: Begun,
    has_video: bool,
    /// Decode timestamp of the first keyframe that it got.
    first_video: Option<Timestamp>,
    dropped: u64,
    /// Codecs that the subscriber does not support.
    left_out: Vec<Codec>,
    ended: bool,
}

impl SubscriberQueue {
    /// A queue that starts with `burst`: configurations and the cached GOP. If it contains no keyframe, video starts at
    /// the next one.
    pub(super) fn new(burst: impl IntoIterator<Item = Frame>) -> Self {
        let mut queue = Self { awaits_keyframe: true, ..Self::default() };
        for frame in burst {
            queue.admit(frame.into());
        }
        queue.note_joined();
        queue.dropped = 0;
        queue
    }

    /// Marks the queue of an upstream that has not accepted the stream yet.
    pub(super) const fn set_pending(&mut self) {
        self.begun = Begun::NotAccepted;
    }

    /// The upstream has accepted. False: frames were dropped meanwhile, and it has to join afresh.
    pub(super) fn accept(&mut self) -> bool {
        let is_complete = self.begun != Begun::Overrun;
        self.begun = Begun::Yes;
        is_complete
    }

    /// Withholds audio until a keyframe comes, if none waits.
    pub(super) fn await_video(&mut self) {
        if self.first_video.is_none() {
            self.begun = Begun::AwaitsVideo(None);
            self.retain(|_, frame| frame.kind != FrameKind::Audio);
            self.note_joined();
        }
    }

    /// Whether audio is withheld until a keyframe comes.
    #[must_use]
    pub(super) const fn awaits_video(&self) -> bool {
        matches!(self.begun, Begun::AwaitsVideo(_))
    }

    /// Adds a frame, or drops it or older ones. False: it is not for the subscriber.
    pub(super) fn push(&mut self, frame: &SharedFrame) -> bool {
        if self.left_out.contains(&frame.codec) {
            return false;
        }
        if self.begun != Begun::Yes && self.holds_back(frame) {
            return false;
        }
        match frame.kind {
            FrameKind::Configuration => self.drop_replaced_configuration(frame.track()),
            FrameKind::ColorInfo => self.retain(|_, frame| frame.kind != FrameKind::ColorInfo),
            FrameKind::Script => self.make_room_for_script(frame),
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {}
        }
        self.admit(frame.clone());
        // A keyframe larger than the limit is still delivered, to a subscriber for which no other video waits.
        let is_alone = self.video == 1 && frame.kind == FrameKind::Keyframe;
        if self.begun == Begun::NotAccepted
            && (self.has_too_much(Track::Audio) || !is_alone && self.has_too_much(Track::Video))
        {
            self.retain(|_, _| false);
            self.begun = Begun::Overrun;
            return false;
        }
        if self.video > 0 && !is_alone && self.has_too_much(Track::Video) {
            self.drop_to_keyframe();
        }
        while self.has_too_much(Track::Audio)
            && self.drop_oldest(|frame| frame.kind == FrameKind::Audio)
        {}
        true
    }

    /// The subscriber takes at this point what its socket has room for.
    pub(super) const fn note_turn(&mut self) {
        self.fresh = 0;
    }

    /// Treats everything that waits as the joining burst.
    pub(super) fn note_joined(&mut self) {
        self.joined_with = self.frames.len();
        self.joined_bytes = self.bytes;
    }

    /// Leaves out frames of these codecs, both waiting and future ones.
    pub(super) fn leave_out(&mut self, codecs: Vec<Codec>) {
        self.forget(|frame| codecs.contains(&frame.codec));
        self.has_video = self.frames.iter().any(|frame| is_video(frame.kind));
        self.first_video = self.first_video.filter(|_| self.has_video);
        self.left_out = codecs;
    }

    /// Whether frames of this codec are left out for the subscriber.
    #[must_use]
    pub(super) fn leaves_out(&self, codec: Codec) -> bool {
        self.left_out.contains(&codec)
    }

    /// Removes frames that are not for the subscriber; they do not count as dropped.
    pub(super) fn forget(&mut self, is_unwanted: impl Fn(&Frame) -> bool) {
        self.retain(|_, frame| !is_unwanted(frame));
    }

    /// The next frame to send.
    pub(super) fn pop(&mut self) -> Option<SharedFrame> {
        let frame = self.frames.pop_front()?;
        self.count_out(&frame, self.joined_with > 0);
        Some(frame)
    }

    /// No more frames will be pushed.
    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the queue has ended and is drained.
    #[must_use]
    pub(super) fn is_finished(&self) -> bool {
        self.ended && self.is_empty()
    }

    /// Whether no frames wait, and none will be found at the join point on acceptance.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.begun != Begun::Overrun
    }

    /// Whether video is left out until the next keyframe.
    #[must_use]
    pub(super) const fn awaits_keyframe(&self) -> bool {
        self.awaits_keyframe
    }

    /// Whether only audio waits that could be written with the next video frame.
    #[must_use]
    pub(super) fn holds_only_audio(&self) -> bool {
        self.has_video && self.not_audio == 0 && !self.frames.is_empty()
    }

    /// Whether the subscriber's video has begun and `timestamp` lies before that.
    #[must_use]
    pub(super) fn is_before_first_video(&self, timestamp: Timestamp) -> bool {
        self.first_video.is_some_and(|first| timestamp < first)
    }

    /// Frames dropped since the previous call.
    pub(super) fn poll_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Whether a frame is not for a subscriber whose stream has not begun.
    fn holds_back(&mut self, frame: &Frame) -> bool {
        match (&mut self.begun, frame.kind) {
            (Begun::Overrun, _) => true,
            (Begun::AwaitsVideo(since), FrameKind::Audio) => {
                let since = since.get_or_insert(frame.timestamp).as_micros();
                let waited = frame.timestamp.as_micros().saturating_sub(since);
                let is_held = (0..AUDIO_ALONE_US).contains(&waited);
                if !is_held {
                    self.begun = Begun::Yes;
                }
                is_held
            }
            (Begun::AwaitsVideo(_), FrameKind::Keyframe) => {
                self.begun = Begun::Yes;
                false
            }
            (Begun::Yes | Begun::NotAccepted | Begun::AwaitsVideo(_), _) => false,
        }
    }

    fn admit(&mut self, frame: SharedFrame) {
        match frame.kind {
            FrameKind::Keyframe => {
                self.awaits_keyframe = false;
                self.has_video = true;
                self.first_video.get_or_insert(frame.timestamp);
            }
            FrameKind::Inter | FrameKind::Disposable if self.awaits_keyframe => {
                // Video before the first keyframe was never for this subscriber, however fast it is.
                self.dropped += u64::from(self.first_video.is_some());
                return;
            }
            FrameKind::Configuration
            | FrameKind::ColorInfo
            | FrameKind::Inter
            | FrameKind::Disposable
            | FrameKind::Audio
            | FrameKind::Script => {}
        }
        self.fresh += 1;
        self.bytes += frame.data.len();
        self.scripts += usize::from(frame.kind == FrameKind::Script);
        self.video += usize::from(is_video(frame.kind));
        self.not_audio += usize::from(frame.track() != Track::Audio);
        self.frames.push_back(frame);
    }

    /// Whether too many bytes or frames wait in total, or too much media time of this track. Tracks are measured
    /// separately: transcoded audio arrives later than its video, and possibly in bursts.
    fn has_too_much(&self, track: Track) -> bool {
        self.bytes - self.joined_bytes > QUEUE_BYTES_LIMIT
            || self.frames.len() - self.joined_with > QUEUE_FRAMES_LIMIT
            || self.waiting_us(track) > QUEUE_TIME_LIMIT_US
    }

    /// Media time between the first frame of a track that the subscriber had a chance to take, after the joining burst,
    /// and the last one.
    fn waiting_us(&self, track: Track) -> i64 {
        let of_track = |frame: &&SharedFrame| frame.track() == track && !is_header(frame.kind);
        let micros = |frame: &SharedFrame| Timestamp::as_micros(frame.timestamp);
        let fresh_from = self.frames.len().saturating_sub(self.fresh).max(self.joined_with);
        let could_go = self.joined_with..fresh_from;
        let first = self.frames.range(could_go).find(of_track).map(micros);
        let last = self.frames.range(self.joined_with..).rev().find(of_track).map(micros);
        first.zip(last).map_or(0, |(first, last)| last - first)
    }

    fn drop_to_keyframe(&mut self) {
        let newest = self.frames.iter().rposition(|frame| frame.kind == FrameKind::Keyframe);
        // If the newest keyframe is already the first video frame, nothing would be dropped: drop that GOP as well.
        let keep_from =
            newest.filter(|at| self.frames.iter().take(*at).any(|frame| is_video(frame.kind)));
        self.awaits_keyframe = keep_from.is_none();
        let keep_from = keep_from.unwrap_or(self.frames.len());
        let before = self.frames.len();
        self.retain(|position, frame| position >= keep_from || !is_video(frame.kind));
        self.dropped += (before - self.frames.len()) as u64;
        // Little is left: it counts towards the limits like any other frames.
        self.joined_with = 0;
        self.joined_bytes = 0;
        self.drop_replaced_configurations();
    }

    /// A configuration of this track is about to be pushed: one that waits after the track's last frame will never be
    /// used.
    fn drop_replaced_configuration(&mut self, track: Track) {
        let newest = self
            .frames
            .iter()
            .rposition(|frame| frame.track() == track && frame.kind != FrameKind::ColorInfo);
        if let Some(at) = newest
            && self.frames.get(at).is_some_and(|frame| frame.kind == FrameKind::Configuration)
        {
            self.remove(at);
        }
    }

    /// Does the same for all waiting configurations, after the frames between them were dropped.
    fn drop_replaced_configurations(&mut self) {
        for track in [Track::Video, Track::Audio] {
            let mut is_replaced = false;
            for at in (0..self.frames.len()).rev() {
                let frame = self.frames.get(at).filter(|frame| frame.track() == track);
                let Some(frame) = frame.filter(|frame| frame.kind != FrameKind::ColorInfo) else {
                    continue;
                };
                let is_configuration = frame.kind == FrameKind::Configuration;
                if is_configuration && is_replaced {
                    self.remove(at);
                }
                is_replaced = is_configuration;
            }
        }
    }

    fn make_room_for_script(&mut self, frame: &Frame) {
        if frame.is_metadata() {
            self.drop_oldest(Frame::is_metadata);
        }
        if self.scripts >= SCRIPTS_LIMIT {
            self.drop_oldest(|frame| frame.kind == FrameKind::Script);
        }
    }

    fn drop_oldest(&mut self, which: impl Fn(&Frame) -> bool) -> bool {
        let Some(at) = self.frames.iter().position(|frame| which(frame)) else { return false };
        self.remove(at);
        self.dropped += 1;
        true
    }

    fn remove(&mut self, at: usize) -> Option<SharedFrame> {
        let frame = self.frames.remove(at)?;
        self.count_out(&frame, at < self.joined_with);
        Some(frame)
    }

    fn retain(&mut self, keeps: impl Fn(usize, &Frame) -> bool) {
        let joined_with = self.joined_with;
        let frames = std::mem::take(&mut self.frames);
        for (at, frame) in frames.into_iter().enumerate() {
            if keeps(at, &frame) {
                self.frames.push_back(frame);
            } else {
                self.count_out(&frame, at < joined_with);
            }
        }
    }

    fn count_out(&mut self, frame: &Frame, is_joined: bool) {
        self.bytes -= frame.data.len();
        self.scripts -= usize::from(frame.kind == FrameKind::Script);
        self.video -= usize::from(is_video(frame.kind));
        self.not_audio -= usize::from(frame.track() != Track::Audio);
        if is_joined {
            self.joined_with -= 1;
            self.joined_bytes -= frame.data.len();
        }
    }
}

pub(super) const fn is_video(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable)
}

/// A header, whose timestamp does not relate to that of media frames.
const fn is_header(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Configuration | FrameKind::ColorInfo)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
