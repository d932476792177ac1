//! The broadcaster's side of one publish: what counts as media, and when silence ends it. Independent of the protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::flv::CONFIGURATION_LIMIT_BYTES;
use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};

use crate::publish::record::PublishRecord;

/// How long a broadcaster may take to send its first media (W19).
pub(crate) const FIRST_MEDIA_LIMIT: Duration = Duration::from_secs(20);
/// How long a live broadcaster may send nothing (W19).
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// Limit of new configurations per second, colour information included, on average over [`WINDOW`]: each
/// makes every decoder downstream restart. An encoder that adapts its resolution sends one every few seconds.
const CONFIGURATIONS_PER_SECOND_LIMIT: u32 = 4;
/// Limit of audio and video frames per second, on average over the same time: each costs every subscriber a place in its
/// queue and a copy. 120 pictures and 400 audio packets a second are 520; the rest is for what an encoder had to keep
/// during an outage.
const FRAMES_PER_SECOND_LIMIT: u32 = 5_000;
/// Window of both averages; it also determines the size of an allowed burst.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_S: u32 = 10;

/// A publish that was allowed and has not ended.
#[derive(Debug)]
pub(crate) struct PublishSession {
    record: Arc<PublishRecord>,
    last_input: Instant,
    has_media: bool,
    has_video: bool,
    /// The newest video and audio configuration and colour information; repetitions of these are not counted.
    newest: [Bytes; 3],
    configurations: u32,
    frames: u32,
    window_from: Instant,
    audio_codec: Option<Codec>,
    last_keyframe: Option<Timestamp>,
}

/// The broadcaster exceeded a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitExceeded;

impl PublishSession {
    /// A publish that was allowed at `now`.
    #[must_use]
    pub(crate) const fn new(record: Arc<PublishRecord>, now: Instant) -> Self {
        let newest = [Bytes::new(), Bytes::new(), Bytes::new()];
        let (has_media, configurations, frames) = (false, 0, 0);
        let (window_from, audio_codec, last_keyframe) = (now, None, None);
        Self {
            record,
            last_input: now,
            has_media,
            has_video: false,
            newest,
            configurations,
            frames,
            window_from,
            audio_codec,
            last_keyframe,
        }
    }

    /// The publish's record.
    pub(crate) const fn record(&self) -> &Arc<PublishRecord> {
        &self.record
    }

    /// Audio and video payload received so far.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.record.bytes().0
    }

    /// Notes bytes of any kind from the broadcaster.
    pub(crate) fn handle_input(&mut self, bytes: usize, now: Instant) {
        self.last_input = now;
        self.record.note_input(bytes, now);
    }

    /// Handles a frame from the broadcaster.
    pub(crate) fn handle_frame(
        &mut self,
        frame: &Frame,
        now: Instant,
    ) -> Result<(), LimitExceeded> {
        if now >= self.window_from + WINDOW {
            (self.configurations, self.frames, self.window_from) = (0, 0, now);
        }
        match frame.kind {
            FrameKind::Configuration => {
                let slot = usize::from(frame.track() == Track::Audio);
                if self.is_new(slot, frame) {
                    self.count_configuration(frame)?;
                    self.record.note_configuration(frame);
                }
            }
            FrameKind::ColorInfo => {
                if self.is_new(2, frame) {
                    self.count_configuration(frame)?;
                }
            }
            FrameKind::Script => {}
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                self.has_media = true;
                self.count_frame(frame)?;
                self.record.add_in(frame.payload_bytes(), frame.timestamp.as_millis());
                if frame.kind != FrameKind::Audio {
                    self.count_video(frame, now);
                }
            }
        }
        Ok(())
    }

    /// When the session ends as [`crate::EndReason::Silent`] if nothing arrives.
    #[must_use]
    pub(crate) fn silence_deadline(&self) -> Instant {
        self.last_input + if self.has_media { SILENCE_LIMIT } else { FIRST_MEDIA_LIMIT }
    }

    fn count_video(&mut self, frame: &Frame, now: Instant) {
        self.record.add_video_frame();
        if frame.kind != FrameKind::Keyframe {
            if !std::mem::replace(&mut self.has_video, true) {
                self.record.note_keyframe(now);
            }
            return;
        }
        self.has_video = true;
        self.record.note_keyframe(now);
        if let Some(last) = self.last_keyframe.replace(frame.timestamp) {
            let millis = frame.timestamp.as_millis() - last.as_millis();
            // Ignore the interval if the broadcaster's clock was set back.
            if let Ok(millis) = u64::try_from(millis) {
                self.record.note_gop(millis);
            }
        }
    }

    fn is_new(&mut self, slot: usize, frame: &Frame) -> bool {
        let is_new = self.newest[slot] != frame.data;
        if is_new {
            self.newest[slot] = frame.data.clone();
        }
        is_new
    }

    fn count_frame(&mut self, frame: &Frame) -> Result<(), LimitExceeded> {
        self.frames += 1;
        if self.frames > FRAMES_PER_SECOND_LIMIT * WINDOW_S {
            return Err(LimitExceeded);
        }
        if frame.kind == FrameKind::Audio && self.audio_codec != Some(frame.codec) {
            // Another codec costs what another configuration does, even without one.
            if self.audio_codec.replace(frame.codec).is_some() {
                return self.count_configuration(frame);
            }
        }
        Ok(())
    }

    fn count_configuration(&mut self, frame: &Frame) -> Result<(), LimitExceeded> {
        self.configurations += 1;
        let is_within = self.configurations <= CONFIGURATIONS_PER_SECOND_LIMIT * WINDOW_S;
        (is_within && frame.data.len() <= CONFIGURATION_LIMIT_BYTES)
            .then_some(())
            .ok_or(LimitExceeded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::record::StreamId;
    use std::time::SystemTime;

    fn frame(kind: FrameKind, millis: i64) -> Frame {
        let (codec, timestamp) = (Codec::H264, Timestamp::from_millis(millis));
        Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(b"12345") }
    }

    fn session(now: Instant) -> PublishSession {
        PublishSession::new(Arc::new(PublishRecord::new(1, StreamId(0), 0, None, now)), now)
    }

    #[test]
    fn video_and_audio_count_as_media_and_configurations_do_not() {
        let now = Instant::now();
        let mut session = session(now);
        for (kind, millis) in
            [(FrameKind::Configuration, 0), (FrameKind::Keyframe, 40), (FrameKind::Inter, 20)]
        {
            session.handle_frame(&frame(kind, millis), now).expect("within the limits");
        }
        let snapshot = session.record.snapshot(now, SystemTime::now());
        assert_eq!((snapshot.bytes_in, snapshot.timestamp_ms), (10, 40));
    }

    #[test]
    fn video_frames_are_counted_and_the_keyframe_interval_is_known_from_the_second_one() {
        use FrameKind::{Audio, Configuration, Disposable, Inter, Keyframe};
        let now = Instant::now();
        let mut session = session(now);
        let mut numbers = |kind, millis| {
            session.handle_frame(&frame(kind, millis), now).expect("within the limits");
            let snapshot = session.record.snapshot(now, SystemTime::now());
            (snapshot.video_frames, snapshot.gop_ms)
        };
        assert_eq!(numbers(Configuration, 0), (0, None));
        assert_eq!(numbers(Keyframe, 0), (1, None));
        assert_eq!(numbers(Inter, 40), (2, None));
        assert_eq!(numbers(Audio, 60), (2, None));
        assert_eq!(numbers(Disposable, 80), (3, None));
        assert_eq!(numbers(Keyframe, 2_000), (4, Some(2_000)));
        assert_eq!(numbers(Keyframe, 1_000), (5, Some(2_000)), "a clock that was set back");
        assert_eq!(numbers(Keyframe, 1_500), (6, Some(500)));
    }

    #[test]
    fn frames_beyond_fifty_thousand_in_ten_seconds_or_forty_changes_of_the_audio_codec_are_rejected()
     {
        let now = Instant::now();
        let mut session = session(now);
        for at in [now, now + WINDOW] {
            for n in 0..50_000 {
                let inter = frame(FrameKind::Inter, n);
                assert_eq!(session.handle_frame(&inter, at), Ok(()), "{n}");
            }
        }
        let last = frame(FrameKind::Inter, 50_000);
        assert_eq!(session.handle_frame(&last, now + WINDOW), Err(LimitExceeded));
        let mut session = super::tests::session(now);
        let mut audio = |n: usize| {
            let codec = [Codec::Opus, Codec::Aac][n % 2];
            session.handle_frame(&Frame { codec, ..frame(FrameKind::Audio, 0) }, now)
        };
        assert!((0..=40).all(|n| audio(n).is_ok()));
        assert_eq!(audio(41), Err(LimitExceeded));
    }

    #[test]
    fn silence_is_longer_before_the_first_media() {
        let now = Instant::now();
        let mut session = session(now);
        assert_eq!(session.silence_deadline(), now + FIRST_MEDIA_LIMIT);
        session.handle_frame(&frame(FrameKind::Keyframe, 0), now).expect("within the limits");
        session.handle_input(7, now + Duration::from_secs(3));
        assert_eq!(session.silence_deadline(), now + Duration::from_secs(3) + SILENCE_LIMIT);
        let later = now + Duration::from_secs(5);
        let snapshot = session.record.snapshot(later, SystemTime::now());
        assert_eq!((snapshot.silent, snapshot.received_bytes), (Duration::from_secs(2), 7));
    }

    #[test]
    fn configurations_beyond_forty_in_ten_seconds_or_64_kib_are_rejected() {
        let now = Instant::now();
        let mut session = session(now);
        let configuration = |n: u64| Frame {
            data: Bytes::copy_from_slice(&n.to_be_bytes()),
            ..frame(FrameKind::Configuration, 0)
        };
        for n in 0..80 {
            let at = now + Duration::from_secs(n / 40 * 10);
            for _ in 0..100 {
                assert_eq!(session.handle_frame(&configuration(n), at), Ok(()), "{n}");
            }
        }
        let last = now + Duration::from_secs(19);
        assert_eq!(session.handle_frame(&configuration(80), last), Err(LimitExceeded));
        for (length, want) in [
            (CONFIGURATION_LIMIT_BYTES, Ok(())),
            (CONFIGURATION_LIMIT_BYTES + 1, Err(LimitExceeded)),
        ] {
            let data = Bytes::from(vec![0; length]);
            let large = Frame { data, ..configuration(0) };
            assert_eq!(super::tests::session(now).handle_frame(&large, now), want);
        }
    }
}
