use super::*;
use headgate_media::Channels;
use headgate_media::aac::{SILENCE_STEREO, lc_48k};

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
    fn pass(&mut self, codec: Codec, kind: FrameKind, millis: i64, at_ms: i64) {
        let (timestamp, data) = (Timestamp::from_millis(millis), Bytes::from_static(b"real"));
        let frame = Frame { codec, kind, timestamp, composition_ms: 0, data };
        self.pass_frame(&frame, at_ms);
    }

    fn pass_frame(&mut self, frame: &Frame, at_ms: i64) {
        let now = self.start + Duration::from_millis(at_ms.unsigned_abs());
        let wrote = &mut self.wrote;
        if self.silence.passes(frame, now) {
            wrote.push(frame.clone());
        } else {
            self.silence.handle_frame(frame, now, |frame| wrote.push(frame.clone()));
        }
        self.is_needed = !matches!(self.silence.phase, Phase::Passing);
    }

    fn configuration(&mut self, at_ms: i64) {
        self.pass(Codec::Aac, FrameKind::Configuration, at_ms, at_ms);
    }

    fn audio(&mut self, millis: i64, at_ms: i64) {
        self.pass(Codec::Aac, FrameKind::Audio, millis, at_ms);
    }

    fn video(&mut self, from_ms: i64, to_ms: i64) {
        for millis in (from_ms..=to_ms).step_by(40) {
            self.pass(Codec::H264, FrameKind::Keyframe, millis, millis);
        }
    }

    /// Video, with audio that is `late_ms` behind it.
    fn video_and_audio(&mut self, from_ms: i64, to_ms: i64, late_ms: i64) {
        for millis in (from_ms..=to_ms).step_by(20) {
            if millis % 40 == 0 {
                self.pass(Codec::H264, FrameKind::Keyframe, millis, millis);
            }
            self.audio(millis - late_ms, millis);
        }
    }

    fn audio_ms(&self, is_silent: bool) -> Vec<i64> {
        let audio = self.wrote.iter().filter(|frame| {
            frame.kind == FrameKind::Audio && (frame.data == SILENCE_STEREO[..]) == is_silent
        });
        audio.map(|frame| frame.timestamp.as_millis()).collect()
    }

    fn configurations(&self) -> Vec<&[u8]> {
        let is_configuration = |frame: &&Frame| frame.kind == FrameKind::Configuration;
        self.wrote.iter().filter(is_configuration).map(|frame| &frame.data[..]).collect()
    }

    #[track_caller]
    fn assert_never_goes_back(&self) {
        let audio = self.wrote.iter().filter(|frame| frame.kind == FrameKind::Audio);
        let times: Vec<_> = audio.map(|frame| frame.timestamp.as_micros()).collect();
        let step = times.windows(2).find(|pair| pair[1] < pair[0]);
        assert_eq!(step, None, "audio goes back");
    }
}

#[test]
fn silence_begins_a_second_after_the_first_video_frame_and_keeps_the_sample_clock() {
    let mut push = Push::new();
    push.video(0, 960);
    assert_eq!(push.wrote.len(), 25);
    push.video(1000, 3000);
    let times = push.audio_ms(true);
    assert_eq!(times[..4], [1000, 1021, 1042, 1064]);
    // 48,000 / 1024 frames a second.
    assert_eq!(times.len(), 94);
    let header = push.wrote.iter().position(|frame| frame.data == lc_48k(Channels::Stereo)[..]);
    assert_eq!(header, Some(25));
    assert!(push.is_needed);
}

#[test]
fn audio_that_comes_in_time_passes_unchanged() {
    let mut push = Push::new();
    push.configuration(0);
    push.video(0, 400);
    push.audio(390, 400);
    assert!(!push.is_needed && push.audio_ms(true).is_empty());
    assert_eq!(push.wrote.len(), 13);
}

#[test]
fn late_audio_never_goes_back_before_the_end_of_the_silence() {
    let mut push = Push::new();
    push.video(0, 3_720);
    let silent = push.audio_ms(true);
    push.configuration(3_740);
    // It began beside the video and is 2.7 s late, as after waiting for an encoder.
    push.video_and_audio(3_740, 10_000, 2_700);
    push.assert_never_goes_back();
    assert_eq!(push.audio_ms(true), silent, "no silence after real audio has come");
    let real = push.audio_ms(false);
    let end = silent[silent.len() - 1] + 21;
    assert!((end..end + 40).contains(&real[0]), "{} after {end}", real[0]);
    assert_eq!(real.len() as i64, (7_300 - real[0]) / 20 + 1, "nothing is missing after that");
    assert_eq!(push.configurations(), [&lc_48k(Channels::Stereo)[..], b"real"]);
    assert!(!push.is_needed);
}

#[test]
fn no_silence_is_made_for_a_stream_whose_audio_is_being_transcoded() {
    let mut push = Push::new();
    push.silence.set_audio_expected(true);
    push.video(0, 3_720);
    push.configuration(3_740);
    push.video_and_audio(3_740, 6_000, 2_700);
    assert!(push.audio_ms(true).is_empty());
    assert_eq!(push.audio_ms(false)[0], 1_040, "all of it, from its first frame on");
    assert_eq!(push.configurations(), [b"real"]);
    push.assert_never_goes_back();
}

#[test]
fn a_configuration_without_audio_is_waited_for_ten_seconds() {
    let mut push = Push::new();
    push.configuration(0);
    push.video(0, 9_960);
    assert!(push.audio_ms(true).is_empty());
    push.video(10_000, 11_000);
    assert_eq!(push.audio_ms(true)[0], 10_000);
}

#[test]
fn a_header_whose_audio_cannot_be_transcoded_is_not_waited_for() {
    let mut push = Push::new();
    push.silence.set_audio_expected(true);
    push.configuration(0);
    push.silence.set_audio_expected(false);
    push.video(0, 1_000);
    assert_eq!(push.audio_ms(true), [1_000]);
}

#[test]
fn the_next_connection_gets_its_silence_before_its_first_frame() {
    let mut push = Push::new();
    push.video(0, 2_000);
    for _ in 0..2 {
        push.silence = push.silence.renewed();
        push.wrote.clear();
    }
    push.pass(Codec::H264, FrameKind::Keyframe, 5_000, 5_000);
    let wrote: Vec<_> =
        push.wrote.iter().map(|frame| (frame.codec, frame.timestamp.as_millis())).collect();
    assert_eq!(wrote, [(Codec::Aac, 0), (Codec::Aac, 5_000), (Codec::H264, 5_000)]);
    push.silence = push.silence.renewed();
    push.wrote.clear();
    push.configuration(6_000);
    push.video(6_000, 8_000);
    assert_eq!(push.audio_ms(true), [0_i64; 0], "the stream has audio now");
}

#[test]
fn audio_that_cannot_be_transcoded_is_not_waited_for() {
    let mut push = Push::new();
    push.silence.set_audio_expected(true);
    push.video(0, 2_000);
    push.silence.set_audio_expected(false);
    push.video(2_040, 3_000);
    assert_eq!(push.audio_ms(true)[0], 2_040);
}

#[test]
fn the_silence_configuration_is_not_repeated_for_equal_audio() {
    let mut push = Push::new();
    push.video(0, 2_000);
    let data = Bytes::copy_from_slice(&lc_48k(Channels::Stereo));
    let (codec, kind, timestamp) =
        (Codec::Aac, FrameKind::Configuration, Timestamp::from_millis(2_000));
    push.pass_frame(&Frame { codec, kind, timestamp, composition_ms: 0, data }, 2_000);
    push.audio(2_030, 2_030);
    assert_eq!(push.audio_ms(false), [2_030]);
    assert_eq!(push.configurations().len(), 1);
}

#[test]
fn audio_of_a_clock_far_behind_is_shifted_to_where_silence_ended() {
    let mut push = Push::new();
    push.video(60_000, 62_000);
    push.video_and_audio(62_040, 70_000, 60_000);
    push.assert_never_goes_back();
    let end = push.audio_ms(true).last().expect("silence") + 21;
    let real = push.audio_ms(false);
    assert!((end..=end + 1).contains(&real[0]), "{}", real[0]);
    assert_eq!(real[100] - real[0], 2_000, "at its own pace");
    assert!(push.is_needed);
    // Behind by less than the limit it is left out, by more it continues.
    push.wrote.clear();
    push.audio(5_000, 70_020);
    assert!(push.audio_ms(false).is_empty());
    push.audio(-60_000, 70_040);
    assert_eq!(push.audio_ms(false), [real[real.len() - 1]]);
    // A clock that comes beside the video's has caught up.
    push.audio(70_060, 70_060);
    assert!(!push.is_needed);
    assert_eq!(push.audio_ms(false).last(), Some(&70_060));
}

#[test]
fn audio_with_a_stopped_clock_is_left_out_for_at_most_ten_seconds_of_video() {
    let mut push = Push::new();
    push.video(0, 5_000);
    for millis in (5_000..15_200).step_by(40) {
        push.pass(Codec::H264, FrameKind::Keyframe, millis, millis);
        push.audio(4_000, millis);
    }
    push.assert_never_goes_back();
    assert_eq!(push.audio_ms(false).len(), 4, "from 15,040 on");
}

#[test]
fn extreme_timestamps_do_no_harm() {
    for extremes in [[i64::MAX, i64::MIN], [i64::MIN, i64::MAX]] {
        let mut push = Push::new();
        push.video(0, 2_000);
        for micros in extremes {
            for (codec, kind) in [(Codec::H264, FrameKind::Inter), (Codec::Aac, FrameKind::Audio)] {
                let timestamp = Timestamp::from_micros(micros);
                let data = Bytes::from_static(b"real");
                let frame = Frame { codec, kind, timestamp, composition_ms: 0, data };
                push.silence.handle_frame(&frame, push.start, |_| {});
            }
        }
    }
}

#[test]
fn a_burst_of_old_video_does_not_start_silence() {
    let mut push = Push::new();
    for millis in (0..4000).step_by(40) {
        push.pass(Codec::H264, FrameKind::Keyframe, millis, 5);
    }
    assert!(push.audio_ms(true).is_empty());
}

#[test]
fn a_step_of_the_video_clock_is_followed_and_not_filled() {
    let mut push = Push::new();
    push.video(0, 1200);
    let before = push.audio_ms(true).len();
    push.pass(Codec::H264, FrameKind::Keyframe, 3_600_000, 1240);
    assert_eq!(push.audio_ms(true)[before..], [3_600_000]);
    push.pass(Codec::H264, FrameKind::Keyframe, 0, 1280);
    assert_eq!(push.audio_ms(true).last(), Some(&0));
}
