//! The broadcaster's side of one publish: what counts as media, and when silence ends it. Independent of the protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind, Irregularity, Timestamp, flv};
use headgate_rtmp::{Dropped, MediaKind};

use super::audio_pause::AudioPause;
use super::frame_rates::{FrameRates, Verdict};
use crate::publish::record::PublishRecord;

/// How long a broadcaster may take to send its first media (W19).
pub(crate) const FIRST_MEDIA_LIMIT: Duration = Duration::from_secs(20);
/// How long a live broadcaster may send nothing (W19), unless its organisation has set another limit.
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// A publish that was allowed and has not ended.
#[derive(Debug)]
pub(crate) struct PublishSession {
    record: Arc<PublishRecord>,
    opened: Instant,
    last_input: Instant,
    has_media: bool,
    has_video: bool,
    rates: FrameRates,
    pause: AudioPause,
    /// Whether the audio flows: only then its pause is to be reported.
    has_audio: bool,
    last_keyframe: Option<Timestamp>,
}

impl PublishSession {
    /// A publish that was allowed at `now`.
    #[must_use]
    pub(crate) fn new(record: Arc<PublishRecord>, now: Instant) -> Self {
        Self {
            record,
            opened: now,
            last_input: now,
            has_media: false,
            has_video: false,
            rates: FrameRates::new(now),
            pause: AudioPause::default(),
            has_audio: false,
            last_keyframe: None,
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

    /// Handles a frame from the broadcaster. Only those that are passed on count as media.
    pub(crate) fn handle_frame(&mut self, frame: &Frame, now: Instant) -> Verdict {
        let verdict = self.rates.check(frame, now);
        match &verdict {
            Verdict::Pass => {}
            Verdict::PassAfter(configuration) => self.record.note_configuration(configuration),
            Verdict::Drop => {
                self.record.note_irregularity(Irregularity::ExcessData, 1);
                return verdict;
            }
        }
        match frame.kind {
            FrameKind::Configuration => self.record.note_configuration(frame),
            FrameKind::ColorInfo | FrameKind::Script => {}
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                self.has_media = true;
                self.record.add_in(frame.payload_bytes(), frame.timestamp.as_millis());
                if frame.kind == FrameKind::Audio {
                    self.has_audio = true;
                    self.pause.note_audio();
                } else {
                    self.count_video(frame, now);
                    self.note_video_alone(frame.timestamp, now);
                }
            }
        }
        verdict
    }

    /// Handles a tag body that is not read, which costs only itself. True when nothing that can be carried has come
    /// within the time for the first media: the publish ends, and the broadcaster gets the reason.
    pub(crate) fn handle_unread(&self, kind: MediaKind, error: flv::Error, now: Instant) -> bool {
        let (irregularity, is_unsupported) = match (error, kind) {
            (flv::Error::Truncated | flv::Error::Extensions, _) => {
                (Irregularity::TruncatedTag, false)
            }
            (flv::Error::ConfigurationLimit, _) => (Irregularity::ConfigurationInvalid, false),
            (
                flv::Error::VideoCodec(_)
                | flv::Error::AudioCodec(_)
                | flv::Error::FourCc(_)
                | flv::Error::OpusChannels { .. },
                kind,
            ) => match kind {
                MediaKind::Audio => (Irregularity::UnsupportedAudio, true),
                MediaKind::Video | MediaKind::Script => (Irregularity::UnsupportedVideo, true),
            },
        };
        self.record.note_irregularity(irregularity, 1);
        is_unsupported && !self.has_media && now >= self.opened + FIRST_MEDIA_LIMIT
    }

    /// Notes what the protocol left out.
    pub(crate) fn note_dropped(&self, dropped: Dropped) {
        let irregularity = match dropped {
            Dropped::Unreadable => Irregularity::UnreadableMessage,
            Dropped::Truncated => Irregularity::TruncatedTag,
            Dropped::TooLong => Irregularity::OversizedMessage,
            Dropped::Excess => Irregularity::ExcessData,
        };
        self.record.note_irregularity(irregularity, 1);
    }

    /// When the session ends as [`crate::EndReason::Silent`] if nothing arrives.
    #[must_use]
    pub(crate) fn silence_deadline(&self) -> Instant {
        let limit = self.record.silence_limit().unwrap_or(SILENCE_LIMIT);
        self.last_input + if self.has_media { limit } else { limit.max(FIRST_MEDIA_LIMIT) }
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

    /// Counts each pause of the audio once; upstreams get silence meanwhile (R5).
    fn note_video_alone(&mut self, video: Timestamp, now: Instant) {
        if self.has_audio && self.pause.note_video(video, now) {
            self.has_audio = false;
            self.record.note_irregularity(Irregularity::AudioGap, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::record::StreamId;
    use bytes::Bytes;
    use headgate_media::Codec;
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
            assert_eq!(session.handle_frame(&frame(kind, millis), now), Verdict::Pass);
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
            assert_eq!(session.handle_frame(&frame(kind, millis), now), Verdict::Pass);
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
    fn silence_is_longer_before_the_first_media() {
        let now = Instant::now();
        let mut session = session(now);
        assert_eq!(session.silence_deadline(), now + FIRST_MEDIA_LIMIT);
        assert_eq!(session.handle_frame(&frame(FrameKind::Keyframe, 0), now), Verdict::Pass);
        session.handle_input(7, now + Duration::from_secs(3));
        assert_eq!(session.silence_deadline(), now + Duration::from_secs(3) + SILENCE_LIMIT);
        let later = now + Duration::from_secs(5);
        let snapshot = session.record.snapshot(later, SystemTime::now());
        assert_eq!((snapshot.silent, snapshot.received_bytes), (Duration::from_secs(2), 7));
    }

    #[test]
    fn an_organisation_may_set_how_long_nothing_may_come() {
        let now = Instant::now();
        for (seconds, first) in [(5, 20), (60, 60), (3_600, 3_600)] {
            let (mut session, limit) = (session(now), Duration::from_secs(seconds));
            session.record.set_silence_limit(Some(limit));
            assert_eq!(session.silence_deadline(), now + Duration::from_secs(first));
            session.handle_frame(&frame(FrameKind::Keyframe, 0), now);
            assert_eq!(session.silence_deadline(), now + limit);
        }
    }

    #[test]
    fn each_pause_of_the_audio_is_counted_once_and_an_outage_is_none() {
        let start = Instant::now();
        let mut session = session(start);
        let count = |session: &PublishSession| {
            let snapshot = session.record.snapshot(start, SystemTime::now());
            snapshot.irregularities.iter().map(|(_, times)| times).sum::<u64>()
        };
        let mut run = |from_ms: i64, to_ms: i64, has_audio: bool| {
            for millis in (from_ms..to_ms).step_by(40) {
                let now = start + Duration::from_millis(millis.unsigned_abs());
                let kinds = [FrameKind::Inter, FrameKind::Audio];
                for kind in kinds.into_iter().take(if has_audio { 2 } else { 1 }) {
                    session.handle_frame(&frame(kind, millis), now);
                }
            }
            count(&session)
        };
        assert_eq!(run(0, 20_000, false), 0, "it never had audio");
        assert_eq!(run(20_000, 25_000, true), 0);
        assert_eq!(run(25_000, 26_000, false), 0);
        assert_eq!(run(26_000, 60_000, false), 1);
        assert_eq!(run(60_000, 62_000, true), 1);
        assert_eq!(run(72_000, 80_000, true), 1, "nothing came for ten seconds");
        assert_eq!(run(80_000, 90_000, false), 2);
    }
}
