//! How many frames and configurations of one publish a second are passed on. The excess is dropped; it ends nothing.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::flv::CONFIGURATION_LIMIT_BYTES;
use headgate_media::{Codec, Frame, FrameKind, Track};

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

/// What becomes of a frame of the broadcaster.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is passed on.
    Pass,
    /// It is passed on after the newest configuration of its track, which had to wait.
    PassAfter(Frame),
    /// It is dropped: it exceeds a limit, or needs what was dropped.
    Drop,
}

/// The configurations and frames of one publish.
#[derive(Debug)]
pub(super) struct FrameRates {
    /// The newest video and audio configuration and colour information; repetitions of these are not counted.
    newest: [Bytes; 3],
    configurations: u32,
    frames: u32,
    window_end: Instant,
    audio_codec: Option<Codec>,
    /// The newest video and audio configuration beyond the rate: it is passed on as soon as the rate allows, and until
    /// then the frames that need it are dropped.
    waiting: [Option<Frame>; 2],
    /// Video was dropped: it continues with a keyframe.
    needs_keyframe: bool,
}

impl FrameRates {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            newest: [Bytes::new(), Bytes::new(), Bytes::new()],
            configurations: 0,
            frames: 0,
            window_end: now + WINDOW,
            audio_codec: None,
            waiting: [None, None],
            needs_keyframe: false,
        }
    }

    /// Whether a frame is passed on.
    pub(super) fn check(&mut self, frame: &Frame, now: Instant) -> Verdict {
        if now >= self.window_end {
            (self.configurations, self.frames, self.window_end) = (0, 0, now + WINDOW);
        }
        match frame.kind {
            FrameKind::Configuration => self.check_configuration(frame),
            FrameKind::ColorInfo => {
                let is_passed = self.newest[2] == frame.data || self.count_configuration();
                if !is_passed {
                    return Verdict::Drop;
                }
                self.newest[2] = frame.data.clone();
                Verdict::Pass
            }
            FrameKind::Script => Verdict::Pass,
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                self.frames = self.frames.saturating_add(1);
                let verdict = self.check_media(frame);
                if verdict == Verdict::Drop {
                    self.needs_keyframe |= frame.kind != FrameKind::Audio;
                }
                verdict
            }
        }
    }

    fn check_configuration(&mut self, frame: &Frame) -> Verdict {
        let slot = slot(frame);
        if frame.data.len() > CONFIGURATION_LIMIT_BYTES {
            return Verdict::Drop;
        }
        if self.newest[slot] != frame.data {
            if !self.count_configuration() {
                self.waiting[slot] = Some(frame.clone());
                return Verdict::Drop;
            }
            self.newest[slot] = frame.data.clone();
        }
        self.waiting[slot] = None;
        Verdict::Pass
    }

    fn check_media(&mut self, frame: &Frame) -> Verdict {
        let is_audio = frame.kind == FrameKind::Audio;
        let needs_keyframe = !is_audio && self.needs_keyframe;
        if self.frames > FRAMES_PER_SECOND_LIMIT * WINDOW_S
            || needs_keyframe && frame.kind != FrameKind::Keyframe
        {
            return Verdict::Drop;
        }
        if is_audio && self.audio_codec != Some(frame.codec) {
            // Another codec costs what another configuration does, even without one.
            if self.audio_codec.is_some() && !self.count_configuration() {
                return Verdict::Drop;
            }
            self.audio_codec = Some(frame.codec);
        }
        let slot = slot(frame);
        if self.waiting[slot].is_some() {
            let begins = is_audio || frame.kind == FrameKind::Keyframe;
            if !begins || !self.count_configuration() {
                return Verdict::Drop;
            }
        }
        self.needs_keyframe &= is_audio;
        let Some(configuration) = self.waiting[slot].take() else { return Verdict::Pass };
        self.newest[slot] = configuration.data.clone();
        Verdict::PassAfter(configuration)
    }

    /// Counts a new configuration; false beyond the limit.
    const fn count_configuration(&mut self) -> bool {
        self.configurations = self.configurations.saturating_add(1);
        self.configurations <= CONFIGURATIONS_PER_SECOND_LIMIT * WINDOW_S
    }
}

/// The place of a frame's track.
fn slot(frame: &Frame) -> usize {
    usize::from(frame.track() == Track::Audio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headgate_media::Timestamp;

    fn frame(codec: Codec, kind: FrameKind, n: u64) -> Frame {
        let data = Bytes::copy_from_slice(&n.to_be_bytes());
        Frame { codec, kind, timestamp: Timestamp::ZERO, composition_ms: 0, data }
    }

    /// Checks frames of one codec.
    fn check(
        rates: &mut FrameRates,
        codec: Codec,
        kind: FrameKind,
        n: u64,
        at: Instant,
    ) -> Verdict {
        rates.check(&frame(codec, kind, n), at)
    }

    #[test]
    fn frames_beyond_fifty_thousand_in_ten_seconds_are_dropped_and_video_continues_with_a_keyframe()
    {
        let now = Instant::now();
        let mut rates = FrameRates::new(now);
        let video = |rates: &mut FrameRates, kind, at| check(rates, Codec::H264, kind, 0, at);
        for at in [now, now + WINDOW] {
            for n in 0..50_000 {
                assert_eq!(video(&mut rates, FrameKind::Inter, at), Verdict::Pass, "{n}");
            }
        }
        assert_eq!(video(&mut rates, FrameKind::Inter, now + WINDOW), Verdict::Drop);
        let later = now + 2 * WINDOW;
        assert_eq!(
            video(&mut rates, FrameKind::Inter, later),
            Verdict::Drop,
            "it needs the others"
        );
        assert_eq!(check(&mut rates, Codec::Aac, FrameKind::Audio, 0, later), Verdict::Pass);
        assert_eq!(video(&mut rates, FrameKind::Keyframe, later), Verdict::Pass);
        assert_eq!(video(&mut rates, FrameKind::Inter, later), Verdict::Pass);
    }

    #[test]
    fn of_more_than_forty_configurations_in_ten_seconds_the_newest_is_passed_on_later() {
        let now = Instant::now();
        let mut rates = FrameRates::new(now);
        let mut video = |kind, n, at| check(&mut rates, Codec::H264, kind, n, at);
        for n in 0..40 {
            for _ in 0..100 {
                assert_eq!(video(FrameKind::Configuration, n, now), Verdict::Pass);
            }
        }
        assert_eq!(video(FrameKind::Keyframe, 0, now), Verdict::Pass);
        for n in 40..60 {
            assert_eq!(video(FrameKind::Configuration, n, now), Verdict::Drop);
            assert_eq!(video(FrameKind::Keyframe, 0, now), Verdict::Drop);
        }
        let later = now + WINDOW;
        assert_eq!(video(FrameKind::Inter, 0, later), Verdict::Drop);
        let waited = frame(Codec::H264, FrameKind::Configuration, 59);
        assert_eq!(video(FrameKind::Keyframe, 0, later), Verdict::PassAfter(waited));
        assert_eq!(video(FrameKind::Inter, 0, later), Verdict::Pass);
        assert_eq!(video(FrameKind::Configuration, 59, later), Verdict::Pass);
    }

    #[test]
    fn an_encoder_that_returns_to_the_configuration_in_use_continues_at_once() {
        let now = Instant::now();
        let mut rates = FrameRates::new(now);
        let mut audio = |kind, n| check(&mut rates, Codec::Aac, kind, n, now);
        for n in 0..41 {
            audio(FrameKind::Configuration, n);
        }
        assert_eq!(audio(FrameKind::Audio, 0), Verdict::Drop);
        assert_eq!(audio(FrameKind::Configuration, 39), Verdict::Pass);
        assert_eq!(audio(FrameKind::Audio, 0), Verdict::Pass);
    }

    #[test]
    fn audio_of_another_codec_beyond_forty_changes_and_oversized_configurations_are_dropped() {
        let now = Instant::now();
        let mut rates = FrameRates::new(now);
        let mut audio = |n: usize, at| {
            check(&mut rates, [Codec::Opus, Codec::Aac][n % 2], FrameKind::Audio, 0, at)
        };
        assert!((0..=40).all(|n| audio(n, now) == Verdict::Pass));
        assert_eq!((audio(41, now), audio(40, now)), (Verdict::Drop, Verdict::Pass));
        assert_eq!(audio(41, now + WINDOW), Verdict::Pass);
        for (length, want) in [
            (CONFIGURATION_LIMIT_BYTES, Verdict::Pass),
            (CONFIGURATION_LIMIT_BYTES + 1, Verdict::Drop),
        ] {
            let large = Frame {
                data: Bytes::from(vec![0; length]),
                ..frame(Codec::H264, FrameKind::Configuration, 0)
            };
            assert_eq!(FrameRates::new(now).check(&large, now), want);
        }
    }
}
