//! Silence for an upstream whose stream has no sound (R5). Pure: it is told the time.
//!
//! Pictures drive it: no timer, and no sound ever runs ahead of its picture.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::aac::{SAMPLES_PER_FRAME, SILENCE_STEREO, lc_48k};
use headgate_media::{Channels, Codec, Frame, FrameKind, Timestamp, Track};

/// A stream gets so long from its first picture to come up with sound of its own.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_US: i64 = 1_000_000;
/// Samples per second of the silence.
const SAMPLE_RATE: i64 = 48_000;
/// When the pictures' clock is further away than this, silence starts anew there instead of filling the hole.
const STEP_LIMIT_US: i64 = 2_000_000;
/// Frames of real sound that may be left out because silence has passed their time; then they go as they come.
const LATE_LIMIT: u32 = 64;

/// What one push adds to a stream, until that has sound of its own.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// When the first picture passed, and its decode time.
    began: Option<(Instant, Timestamp)>,
    running: Option<Running>,
    expects_audio: bool,
    /// The stream's own, to be told when its sound begins.
    configuration: Option<Frame>,
}

#[derive(Debug)]
struct Running {
    since: Timestamp,
    frames: i64,
    late: u32,
}

impl Running {
    /// Decode time of the next frame: from the sample counter, so that it never drifts.
    fn next_us(&self) -> i64 {
        let samples = self.frames * i64::from(SAMPLES_PER_FRAME);
        self.since.as_micros() + samples * 1_000_000 / SAMPLE_RATE
    }
}

impl Silence {
    /// The stream has audio that is still to be transcoded.
    pub(crate) fn expect_audio(&mut self) {
        self.expects_audio = true;
    }

    /// Passes a frame on with what silence it needs. False: the stream has sound, nothing is left to do here.
    pub(crate) fn handle_frame(
        &mut self,
        frame: &Frame,
        now: Instant,
        mut write: impl FnMut(&Frame),
    ) -> bool {
        match (frame.track(), frame.kind) {
            (Track::Audio, FrameKind::Configuration) => {
                self.configuration = Some(frame.clone());
                // While silence runs it has its own header; the stream's comes with its sound.
                if self.running.is_none() {
                    write(frame);
                }
                true
            }
            (Track::Audio, _) => self.handle_sound(frame, write),
            (Track::Video, FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable) => {
                self.fill(frame.timestamp, now, &mut write);
                write(frame);
                true
            }
            (Track::Video | Track::Script, _) => {
                write(frame);
                true
            }
        }
    }

    fn handle_sound(&mut self, frame: &Frame, mut write: impl FnMut(&Frame)) -> bool {
        if let Some(running) = &mut self.running {
            if frame.timestamp.as_micros() < running.next_us() && running.late < LATE_LIMIT {
                running.late += 1;
                return true;
            }
            if let Some(configuration) = &self.configuration {
                write(&Frame { timestamp: frame.timestamp, ..configuration.clone() });
            }
        }
        write(frame);
        false
    }

    /// Silence up to a picture's time.
    fn fill(&mut self, to: Timestamp, now: Instant, write: &mut impl FnMut(&Frame)) {
        let (since, first) = *self.began.get_or_insert((now, to));
        if self.running.is_none() {
            if self.expects_audio {
                return;
            }
            // Both clocks: what a late joiner gets at once is old already, and its sound may be on its way.
            if now < since + PATIENCE || to.as_micros() < first.as_micros() + PATIENCE_US {
                return;
            }
            let data = Bytes::copy_from_slice(&lc_48k(Channels::Stereo));
            write(&aac(FrameKind::Configuration, to, data));
        }
        let running = self.running.get_or_insert(Running { since: to, frames: 0, late: 0 });
        if (to.as_micros() - running.next_us()).abs() > STEP_LIMIT_US {
            (running.since, running.frames) = (to, 0);
        }
        while running.next_us() <= to.as_micros() {
            let timestamp = Timestamp::from_micros(running.next_us());
            write(&aac(FrameKind::Audio, timestamp, Bytes::from_static(&SILENCE_STEREO)));
            running.frames += 1;
        }
    }
}

fn aac(kind: FrameKind, timestamp: Timestamp, data: Bytes) -> Frame {
    Frame { codec: Codec::Aac, kind, timestamp, composition_ms: 0, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Push {
        silence: Silence,
        start: Instant,
        wrote: Vec<Frame>,
        is_needed: bool,
    }

    impl Push {
        fn new() -> Self {
            let start = Instant::now();
            Self { silence: Silence::default(), start, wrote: Vec::new(), is_needed: true }
        }

        /// A frame that passes at `at_ms` of the wall clock.
        fn pass(&mut self, codec: Codec, kind: FrameKind, millis: i64, at_ms: u64) {
            let (timestamp, data) = (Timestamp::from_millis(millis), Bytes::from_static(b"real"));
            let frame = Frame { codec, kind, timestamp, composition_ms: 0, data };
            let now = self.start + Duration::from_millis(at_ms);
            let wrote = &mut self.wrote;
            self.is_needed =
                self.silence.handle_frame(&frame, now, |frame| wrote.push(frame.clone()));
        }

        fn pictures(&mut self, from_ms: i64, to_ms: i64) {
            for millis in (from_ms..=to_ms).step_by(40) {
                self.pass(Codec::H264, FrameKind::Keyframe, millis, millis.unsigned_abs());
            }
        }

        fn silent_ms(&self) -> Vec<i64> {
            let silent = |frame: &&Frame| frame.data == SILENCE_STEREO[..];
            self.wrote.iter().filter(silent).map(|frame| frame.timestamp.as_millis()).collect()
        }
    }

    #[test]
    fn silence_begins_a_second_after_the_first_picture_and_keeps_the_sample_clock() {
        let mut push = Push::new();
        push.pictures(0, 960);
        assert_eq!(push.wrote.len(), 25);
        push.pictures(1000, 3000);
        let times = push.silent_ms();
        assert_eq!(times[..4], [1000, 1021, 1042, 1064]);
        // 48,000 / 1024 frames a second.
        assert_eq!(times.len(), 94);
        let header = push.wrote.iter().position(|frame| frame.data == lc_48k(Channels::Stereo)[..]);
        assert_eq!(header, Some(25));
        assert!(push.is_needed);
    }

    #[test]
    fn sound_that_comes_in_time_is_left_alone() {
        let mut push = Push::new();
        push.pass(Codec::Aac, FrameKind::Configuration, 0, 0);
        push.pictures(0, 400);
        push.pass(Codec::Aac, FrameKind::Audio, 390, 400);
        assert!(!push.is_needed && push.silent_ms().is_empty());
        assert_eq!(push.wrote.len(), 13);
    }

    #[test]
    fn real_sound_takes_over_with_its_own_header_and_never_goes_back_in_time() {
        let mut push = Push::new();
        push.pass(Codec::Aac, FrameKind::Configuration, 0, 0);
        push.pictures(0, 2000);
        let last = push.silent_ms().last().copied().expect("silence");
        push.wrote.clear();
        push.pass(Codec::Aac, FrameKind::Audio, last, 2010);
        assert!(push.is_needed && push.wrote.is_empty());
        push.pass(Codec::Aac, FrameKind::Audio, last + 30, 2030);
        let kinds: Vec<_> = push.wrote.iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [FrameKind::Configuration, FrameKind::Audio]);
        assert!(!push.is_needed);
    }

    #[test]
    fn a_burst_of_old_pictures_does_not_use_up_the_patience() {
        let mut push = Push::new();
        for millis in (0..4000).step_by(40) {
            push.pass(Codec::H264, FrameKind::Keyframe, millis, 5);
        }
        assert!(push.silent_ms().is_empty());
    }

    #[test]
    fn a_step_of_the_clock_is_followed_and_not_filled() {
        let mut push = Push::new();
        push.pictures(0, 1200);
        let before = push.silent_ms().len();
        push.pass(Codec::H264, FrameKind::Keyframe, 3_600_000, 1240);
        assert_eq!(push.silent_ms()[before..], [3_600_000]);
        push.pass(Codec::H264, FrameKind::Keyframe, 0, 1280);
        assert_eq!(push.silent_ms().last(), Some(&0));
    }
}
