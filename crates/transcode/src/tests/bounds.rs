//! A transcoder with hostile timestamps, observed by an encoder that counts and records its samples.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::support::*;
use super::*;

/// An encoder without delay that records its input.
struct Recorder {
    heard: Arc<Mutex<Vec<i16>>>,
}

impl AacEncoder for Recorder {
    fn encode(&mut self, pcm: &[f32]) -> &[u8] {
        let rounded = pcm.iter().map(|sample| (sample * 32_768.0).round() as i16);
        self.heard.lock().unwrap().extend(rounded);
        b"aac"
    }

    fn delay_frames(&self) -> usize {
        0
    }
}

/// The encoders' input, the frames sent, and the counters.
fn record(frames: &[Frame]) -> (Vec<i16>, Vec<Frame>, TranscodeCounters) {
    let heard = Arc::<Mutex<Vec<i16>>>::default();
    let recorder = heard.clone();
    let encoders = Encoders::new(move |_| Box::new(Recorder { heard: recorder.clone() }));
    let (mut transcoder, mut out) = (Transcoder::new(stereo(128_000), encoders), Vec::new());
    for frame in frames {
        transcoder.handle_frame(frame, arrival(frame), &mut out).unwrap();
    }
    let samples = std::mem::take(&mut *heard.lock().unwrap());
    (samples, out, transcoder.counters())
}

fn delayed(frames: &[Frame], micros: i64) -> Vec<Frame> {
    let later = |frame: &Frame| Timestamp::from_micros(frame.timestamp.as_micros() + micros);
    frames.iter().map(|frame| Frame { timestamp: later(frame), ..frame.clone() }).collect()
}

#[test]
fn concealment_ends_after_120_ms_and_the_rest_of_a_gap_is_silent() {
    let frames = encode(&speech(2.0, 1), 1, 0);
    let received = [&frames[..25], &frames[65..]].concat();
    let (heard, _, counters) = record(&received);
    assert_eq!(counters.concealed_samples, 40 * 960);
    let hole = 25 * PACKET;
    let concealed = LIMIT_CONCEALED - PACKET;
    assert!(heard[hole..hole + concealed].iter().any(|sample| *sample != 0));
    // The last packet's duration is recovered from the redundancy of the packet after it.
    let silent = &heard[hole + concealed..hole + 39 * PACKET];
    assert_eq!(silent.iter().position(|sample| *sample != 0), None);
}

#[test]
fn a_jump_by_an_hour_in_either_direction_is_not_filled() {
    const HOUR: i64 = 3_600_000_000;
    let frames = encode(&tones(3.0, 1), 1, 0);
    for jump in [HOUR, -HOUR] {
        let jumped = [&frames[..50], &delayed(&frames[50..100], jump), &frames[100..]].concat();
        let (_, out, counters) = record(&jumped);
        assert_eq!(counters.concealed_samples, 0);
        let times = micros(&out);
        assert!((140..=145).contains(&times.len()), "{} frames of 3 s", times.len());
        assert!(times.is_sorted_by(|a, b| a < b));
        assert_eq!(times.contains(&(1_000_000 + HOUR)), jump > 0, "it continues at its timestamp");
    }
}

#[test]
fn a_gap_of_one_second_is_filled_and_a_longer_one_is_not() {
    let frames = encode(&tones(1.0, 1), 1, 0);
    for (hole, filled) in [(1_000_000, 48_000), (1_000_001, 0)] {
        let (_, _, counters) = record(&[&frames[..25], &delayed(&frames[25..], hole)].concat());
        assert_eq!(counters.concealed_samples, filled);
        assert_eq!(counters.discontinuities, u64::from(filled == 0));
    }
}

#[test]
fn holes_are_filled_for_five_seconds_more_than_the_time_passed() {
    let frames = encode(&tones(1.0, 1), 1, 0);
    let encoders = Encoders::default();
    let (mut transcoder, mut out) = (Transcoder::new(stereo(128_000), encoders), Vec::new());
    let now = arrival(&frames[0]);
    for (n, frame) in frames.iter().enumerate() {
        let timestamp = Timestamp::from_micros(frame.timestamp.as_micros() + n as i64 * 900_000);
        transcoder.handle_frame(&Frame { timestamp, ..frame.clone() }, now, &mut out).unwrap();
    }
    assert_eq!(transcoder.counters().concealed_samples, 5 * 43_200);
    assert!(micros(&out).is_sorted());
}

#[test]
fn multichannel_opus_is_rejected_until_the_configuration_changes() {
    let mut transcoder = Transcoder::new(stereo(128_000), Encoders::default());
    let packet = opus_frame(0, &[0xfc, 0xff, 0xfe]);
    let mut head = opus::head(Channels::Stereo);
    for (channels, family, is_refused) in [(6, 1, true), (2, 0, false)] {
        (head[9], head[18]) = (channels, family);
        let configuration = Frame { kind: FrameKind::Configuration, ..opus_frame(0, &head) };
        let expected = if is_refused {
            Err(TranscodeError::Head(opus::Error::Multichannel { family, channels }))
        } else {
            Ok(())
        };
        let now = arrival(&configuration);
        assert_eq!(transcoder.handle_frame(&configuration, now, &mut Vec::new()), expected);
        assert_eq!(transcoder.handle_frame(&packet, now, &mut Vec::new()), expected);
    }
    assert_eq!(opus::Error::Multichannel { family: 1, channels: 6 }.code(), "opus_multichannel");
}

/// How a packet's timestamp follows the one before it, µs.
fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => Just(20_000),
        2 => 15_000..25_000_i64,
        1 => Just(0),
        1 => -1_200_000..0_i64,
        1 => 0..1_200_000_i64,
        1 => -7_200_000_000..7_200_000_000_i64,
        1 => any::<i64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn timestamps_always_rise_and_the_output_is_bounded(
        steps in prop::collection::vec((step(), prop::bool::weighted(0.02)), 1..200),
    ) {
        let mut time = 0_i64;
        let frames: Vec<_> = steps
            .iter()
            .map(|(step, is_stereo)| {
                time = time.wrapping_add(*step);
                opus_frame(time, &[if *is_stereo { 0xfc } else { 0xf8 }, 0xff, 0xfe])
            })
            .collect();
        let (_, out, counters) = record(&frames);
        let times = micros(&out);
        prop_assert!(times.is_sorted_by(|a, b| a < b));
        // A packet brings 960 samples, at most a second (rounded up to 2.5 ms) before it, and a flushed frame.
        let most = frames.len() * (PACKET + 48_000 + 120 + 2 * 1024) / 1024 + 1;
        prop_assert!(times.len() <= most);
        prop_assert!(counters.concealed_samples <= (frames.len() * 48_120) as u64);
        let configurations: Vec<_> =
            out.iter().filter(|frame| frame.kind == FrameKind::Configuration).collect();
        prop_assert!(configurations.len() <= 2, "mono, then stereo for good");
        if let [first, second] = configurations[..] {
            prop_assert_eq!(&first.data[..], &aac::lc_48k(Channels::Mono)[..]);
            prop_assert_eq!(&second.data[..], &aac::lc_48k(Channels::Stereo)[..]);
        }
    }
}
