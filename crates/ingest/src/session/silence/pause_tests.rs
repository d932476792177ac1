//! Audio that stops while video continues, and returns.

use headgate_media::aac::lc_48k;
use headgate_media::{Channels, SoundFlags, opus};

use super::*;

/// AAC-LC at 44.1 kHz in mono.
const MONO: &[u8] = &[0x12, 0x08];
/// AAC Main, for which there is no silence.
const MAIN: &[u8] = &[0x09, 0x90];
/// A frame of MP3 at 44.1 kHz and 128 kbit/s, 26 ms long.
const MP3: [u8; 417] = {
    let mut frame = [0x55; 417];
    (frame[0], frame[1], frame[2], frame[3]) = (0xff, 0xfb, 0x90, 0x00);
    frame
};

const MP3_CODEC: Codec = Codec::Mp3(SoundFlags::of(0x2f));

/// A stream with a picture every 40 ms and audio every `step_ms`.
struct Stream {
    silence: Silence,
    start: Instant,
    codec: Codec,
    step_ms: i64,
    /// How much later than its time audio arrives.
    late_ms: i64,
    now_ms: i64,
    wrote: Vec<Frame>,
}

impl Stream {
    fn new(codec: Codec, configuration: &[u8]) -> Self {
        let mut stream = Self {
            silence: Silence::default(),
            start: Instant::now(),
            codec,
            step_ms: 20,
            late_ms: 0,
            now_ms: 0,
            wrote: Vec::new(),
        };
        stream.configure(configuration);
        stream
    }

    fn pass(&mut self, codec: Codec, kind: FrameKind, millis: i64, data: &[u8]) {
        let (timestamp, data) = (Timestamp::from_millis(millis), Bytes::copy_from_slice(data));
        let frame = Frame { codec, kind, timestamp, composition_ms: 0, data };
        let now = self.start + Duration::from_millis(self.now_ms.unsigned_abs());
        let wrote = &mut self.wrote;
        if self.silence.passes(&frame, now) {
            wrote.push(frame);
        } else {
            self.silence.handle_frame(&frame, now, |frame| wrote.push(frame.clone()));
        }
    }

    fn configure(&mut self, configuration: &[u8]) {
        if !configuration.is_empty() {
            self.pass(self.codec, FrameKind::Configuration, self.now_ms, configuration);
        }
    }

    /// Continues up to `to_ms`; with audio or without.
    fn run(&mut self, to_ms: i64, has_audio: bool) {
        while self.now_ms < to_ms {
            if self.now_ms % 40 == 0 {
                self.pass(Codec::H264, FrameKind::Inter, self.now_ms, b"picture");
            }
            if has_audio && self.now_ms % self.step_ms == 0 {
                let data = if self.codec == MP3_CODEC { &MP3[..] } else { b"sound" };
                self.pass(self.codec, FrameKind::Audio, self.now_ms - self.late_ms, data);
            }
            self.now_ms += 20;
        }
    }

    fn audio(&self) -> Vec<&Frame> {
        self.wrote.iter().filter(|frame| frame.kind == FrameKind::Audio).collect()
    }

    fn silent(&self) -> Vec<&Frame> {
        let is_own = |frame: &Frame| frame.data == b"sound"[..] || frame.data == MP3[..];
        self.audio().into_iter().filter(|frame| !is_own(frame)).collect()
    }

    fn configurations(&self) -> Vec<&[u8]> {
        let of = self.wrote.iter().filter(|frame| frame.kind == FrameKind::Configuration);
        of.map(|frame| &frame.data[..]).collect()
    }

    /// Asserts that audio goes forward, without holes longer than `hole_ms`.
    #[track_caller]
    fn assert_continuous(&self, hole_ms: i64) {
        self.assert_steps(1, hole_ms);
    }

    #[track_caller]
    fn assert_steps(&self, least_us: i64, hole_ms: i64) {
        for pair in self.audio().windows(2) {
            let step = pair[1].timestamp.as_micros() - pair[0].timestamp.as_micros();
            assert!(step >= least_us && step <= hole_ms * 1_000, "{pair:?}");
        }
    }
}

#[test]
fn audio_that_stops_is_replaced_after_a_second_in_its_own_form_until_it_is_back() {
    for (codec, configuration, step_ms) in [
        (Codec::Aac, MONO, 23.22),
        (Codec::Aac, &lc_48k(Channels::Stereo)[..], 21.33),
        (Codec::Opus, &opus::head(Channels::Stereo), 20.0),
        (Codec::Opus, &opus::head(Channels::Mono), 20.0),
        (MP3_CODEC, &[], 26.12),
    ] {
        let mut stream = Stream::new(codec, configuration);
        stream.run(5_000, true);
        stream.run(5_960, false);
        assert!(stream.silent().is_empty(), "{codec:?}");
        stream.run(6_080, false);
        assert!(stream.silent().len() > 35, "{codec:?}: up to the video at once");
        stream.run(65_000, false);
        stream.run(70_000, true);
        stream.assert_continuous(60);
        let silent = stream.silent();
        assert!(silent.iter().all(|frame| frame.codec == codec && frame.data == silent[0].data));
        let want = 60_000.0 / step_ms;
        assert!((silent.len() as f64 - want).abs() < 3.0, "{codec:?}: {} {want}", silent.len());
        let own = stream.audio().len() - silent.len();
        assert!((498..=500).contains(&own), "{codec:?}: {own}");
        let last = stream.audio().last().expect("audio").timestamp;
        assert_eq!(last.as_millis(), 69_980, "in sync");
        assert_eq!(stream.configurations().len(), usize::from(codec != MP3_CODEC), "{codec:?}");
    }
}

#[test]
fn without_silence_in_its_form_the_configuration_changes_and_returns() {
    let mut stream = Stream::new(Codec::Aac, MAIN);
    for n in 0..3 {
        stream.run(n * 10_000 + 5_000, true);
        stream.run(n * 10_000 + 10_000, false);
    }
    stream.run(32_000, true);
    stream.assert_continuous(60);
    let silence = lc_48k(Channels::Stereo);
    let want = [MAIN, &silence[..], MAIN, &silence[..], MAIN, &silence[..], MAIN];
    assert_eq!(stream.configurations(), want);
}

#[test]
fn it_may_stop_at_the_very_start_and_many_times() {
    let mut stream = Stream::new(Codec::Aac, MONO);
    stream.run(20, true);
    for n in 1..20 {
        stream.run(n * 3_000, false);
        stream.run(n * 3_000 + 200, true);
    }
    stream.assert_continuous(60);
    assert_eq!(stream.configurations(), [MONO]);
}

#[test]
fn silence_keeps_the_sample_clock_for_hours() {
    let mut stream = Stream::new(Codec::Aac, MONO);
    stream.run(1_000, true);
    const HOURS_MS: i64 = 3 * 3_600_000;
    stream.run(HOURS_MS, false);
    stream.run(HOURS_MS + 1_000, true);
    stream.assert_continuous(60);
    let want = (HOURS_MS - 1_000) * 44_100 / 1_024 / 1_000;
    let count = i64::try_from(stream.silent().len()).expect("few");
    assert!((count - want).abs() <= 2, "{count} of {want}");
}

#[test]
fn another_codec_or_configuration_at_its_return_is_written_before_it() {
    for (codec, configuration) in [
        (Codec::Aac, &lc_48k(Channels::Stereo)[..]),
        (Codec::Aac, MONO),
        (Codec::Opus, &opus::head(Channels::Stereo)),
        (MP3_CODEC, &[]),
    ] {
        let mut stream = Stream::new(Codec::Aac, MONO);
        stream.run(2_000, true);
        stream.run(8_000, false);
        stream.codec = codec;
        stream.configure(configuration);
        assert_eq!(stream.configurations(), [MONO], "with the first frame of audio, not before");
        stream.run(10_000, true);
        stream.assert_continuous(60);
        let written = stream.configurations();
        let want = if configuration.is_empty() || configuration == MONO { 1 } else { 2 };
        assert_eq!((written.len(), written.last()), (want, written.last()), "{codec:?}");
        // The next pause is filled in the new form.
        stream.run(13_000, false);
        assert_eq!(stream.silent().last().map(|frame| frame.codec), Some(codec));
        assert_eq!(stream.configurations().len(), want);
    }
}

#[test]
fn audio_that_arrives_late_stays_where_it_was_relative_to_the_video() {
    for late_ms in [300, 900, 2_700] {
        let mut stream = Stream::new(Codec::Aac, MONO);
        stream.late_ms = late_ms;
        stream.run(6_000, true);
        stream.run(12_000, false);
        stream.run(16_000, true);
        stream.assert_continuous(60);
        let own = stream.audio().len() - stream.silent().len();
        assert!((496..=500).contains(&own), "{late_ms}: {own}");
        let last = stream.audio().last().expect("audio").timestamp;
        assert_eq!(last.as_millis(), 15_980 - late_ms);
    }
}

#[test]
fn audio_that_begins_before_the_video_and_stops_is_continued() {
    let mut stream = Stream::new(Codec::Aac, MONO);
    for millis in (0..3_000).step_by(20) {
        stream.now_ms = millis;
        stream.pass(Codec::Aac, FrameKind::Audio, millis, b"sound");
    }
    stream.now_ms = 3_000;
    stream.run(8_000, false);
    stream.run(10_000, true);
    stream.assert_continuous(60);
}

#[test]
fn a_clock_that_stood_still_over_the_pause_is_brought_back_beside_the_video() {
    let mut stream = Stream::new(Codec::Aac, MONO);
    for pause in 1..4 {
        let begin = (pause - 1) * 15_000;
        stream.run(begin + 5_000, true);
        stream.run(begin + 10_000, false);
        // The audio continues where it stopped, 5 s behind for each pause.
        stream.late_ms = pause * 5_000;
        stream.run(begin + 15_000, true);
        let last = stream.audio().last().expect("audio").timestamp.as_millis();
        let beside = begin + 15_000 - last;
        assert!((0..=45).contains(&beside), "{beside} ms after pause {pause}");
    }
    stream.assert_continuous(60);
}

#[test]
fn a_clock_that_is_corrected_after_the_pause_is_not_corrected_twice() {
    for corrected_after_ms in [100, 900, 1_100, 2_500, 4_000] {
        for error_ms in [-60, -20, -1, 0, 1, 20, 60, 400] {
            let mut stream = Stream::new(Codec::Opus, &opus::head(Channels::Mono));
            for pause in 0..4 {
                let (begin, what) = (pause * 15_000, format!("{corrected_after_ms} {error_ms}"));
                stream.run(begin + 5_000, true);
                stream.run(begin + 8_000, false);
                // The audio continues where it stopped, until its clock is known to have stood still.
                stream.late_ms += 3_000;
                stream.run(begin + 8_000 + corrected_after_ms, true);
                stream.late_ms += error_ms - 3_000;
                stream.run(begin + 15_000, true);
                let last = stream.audio().last().expect("audio").timestamp.as_millis();
                let ahead = last + stream.late_ms - begin - 14_980;
                assert!(ahead.abs() <= 60, "{what}: {ahead} ms ahead after pause {pause}");
            }
            // A corrected clock may name the time of the last frame again.
            stream.assert_steps(0, 60 + error_ms.abs());
        }
    }
}

#[test]
fn no_silence_for_what_arrives_at_once_or_in_steps_below_a_second() {
    // Opus without sound: one packet in 400 ms.
    let mut stream = Stream::new(Codec::Opus, &opus::head(Channels::Mono));
    stream.step_ms = 400;
    stream.run(20_000, true);
    // Nothing for 5 s; then everything that was buffered.
    let held_ms = stream.now_ms;
    stream.now_ms += 5_000;
    for millis in (held_ms..held_ms + 5_000).step_by(40) {
        stream.pass(Codec::H264, FrameKind::Inter, millis, b"picture");
        if millis % 400 == 0 {
            stream.pass(Codec::Opus, FrameKind::Audio, millis, b"sound");
        }
    }
    // A publisher of which nothing arrived for 5 s and was lost.
    stream.now_ms += 5_000;
    stream.run(40_000, true);
    assert_eq!(stream.silent().len(), 0);
    assert!(
        !stream
            .wrote
            .iter()
            .any(|frame| frame.kind == FrameKind::Configuration && frame.codec == Codec::Aac)
    );
}

#[test]
fn pictures_far_apart_and_a_clock_that_is_set_back_do_no_harm() {
    let mut stream = Stream::new(Codec::Aac, MONO);
    stream.run(2_000, true);
    for n in 1..20 {
        stream.now_ms = 2_000 + n * 20_000;
        stream.pass(Codec::H264, FrameKind::Keyframe, stream.now_ms, b"picture");
    }
    let count = stream.silent().len();
    assert!((1..300).contains(&count), "{count}");
    for millis in [i64::MAX / 1_000, i64::MIN / 1_000, 0, 100] {
        stream.now_ms += 2_000;
        stream.pass(Codec::H264, FrameKind::Keyframe, millis, b"picture");
        stream.pass(Codec::Aac, FrameKind::Audio, -millis, b"sound");
    }
    assert!(stream.silent().len() < 600);
}

#[test]
fn the_next_connection_during_a_pause_begins_with_silence_and_one_configuration() {
    let mut stream = Stream::new(Codec::Aac, MONO);
    stream.run(2_000, true);
    stream.run(8_000, false);
    for is_new in [false, true] {
        // Either this connection knew, or a push that was added in mid-stream is told.
        stream.silence = if is_new { Silence::default() } else { stream.silence.renewed() };
        if is_new {
            stream.silence.set_audio_stopped();
        }
        stream.wrote.clear();
        stream.configure(MONO);
        stream.run(stream.now_ms + 40, false);
        let kinds: Vec<_> = stream.wrote.iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [FrameKind::Configuration, FrameKind::Audio, FrameKind::Inter]);
        assert_eq!(stream.wrote[0].data, MONO);
        stream.run(stream.now_ms + 2_000, false);
        stream.run(stream.now_ms + 2_000, true);
        stream.assert_continuous(60);
        assert_eq!(stream.configurations(), [MONO]);
        stream.run(stream.now_ms + 2_000, false);
    }
}
