//! libxaac with samples designed to break it, and when an encoder is reused.

use super::super::encoder::{AacBitrate, EncoderError, EncoderKind};
use super::super::xaac::Xaac;
use super::super::{FrameKind, Timestamp, aac_frame};
use super::support::{channels, decode_aac, stereo};
use headgate_media::aac::SILENCE_STEREO;

const SAMPLES: usize = 1024;

/// Frames of full-scale square waves, clicks, silence and ramps.
fn hostile(frame: usize, samples: usize) -> Vec<i16> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(frame as u64 + 1);
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 48) as i16
    };
    let sample = |index: usize| match frame / 3 % 6 {
        0 => random(),
        1 if (index / (1 + frame % 50)).is_multiple_of(2) => i16::MAX,
        1 => i16::MIN,
        2 if index == frame % samples => i16::MIN,
        2 | 3 => 0,
        4 => (index * 64 % 65_536) as u16 as i16,
        _ => random() >> (random() & 15),
    };
    (0..samples).map(sample).collect()
}

#[test]
fn mono_gets_half_the_bitrate_of_stereo_unless_a_bitrate_is_given() {
    let of = |count, bitrate| EncoderKind::new(channels(count), bitrate).bitrate;
    let usual = AacBitrate::PerChannel(64_000);
    assert_eq!([1, 2].map(|count| of(count, usual)), [64_000, 128_000]);
    assert_eq!([1, 2].map(|count| of(count, AacBitrate::Total(96_000))), [96_000, 96_000]);
    assert_eq!([1, 2].map(|count| of(count, AacBitrate::Total(320_000))), [192_000, 320_000]);
}

#[test]
fn any_samples_and_any_bitrate_make_frames() {
    for count in [1, 2] {
        for bitrate in [0, 64_000, 128_000, 320_000, u32::MAX] {
            let kind = EncoderKind::new(channels(count), stereo(bitrate));
            let mut encoder = Xaac::create(kind).unwrap();
            let frames: Vec<_> = (0..600)
                .map(|frame| {
                    let data = encoder.encode(&hostile(frame, SAMPLES * count)).unwrap().to_vec();
                    aac_frame(FrameKind::Audio, Timestamp::ZERO, data.into())
                })
                .collect();
            let bytes: usize = frames.iter().map(|frame| frame.data.len()).sum();
            let actual = bytes as f64 * 8.0 * 48_000.0 / (frames.len() * SAMPLES) as f64;
            assert!(actual < 1.03 * f64::from(kind.bitrate), "{actual} of {kind:?}");
            let heard = decode_aac(&frames, count).map(|pcm| pcm.len());
            assert!(heard.is_none_or(|samples| samples == frames.len() * SAMPLES * count));
        }
    }
}

#[test]
fn only_whole_frames_are_accepted() {
    let mut encoder = Xaac::create(EncoderKind::new(channels(2), stereo(128_000))).unwrap();
    assert_eq!(encoder.encode(&[0; SAMPLES]), Err(EncoderError::Length));
    assert!(encoder.encode(&[0; 2 * SAMPLES]).is_ok());
}

#[test]
fn a_reused_encoder_behaves_like_a_new_one() {
    let kind = EncoderKind::new(channels(1), stereo(96_000));
    let (mut used, mut new) = (Xaac::create(kind).unwrap(), Xaac::create(kind).unwrap());
    for frame in 0..100 {
        used.encode(&hostile(frame, SAMPLES)).unwrap();
    }
    used.reset().unwrap();
    new.reset().unwrap();
    for frame in 0..100 {
        let pcm = hostile(frame, SAMPLES);
        assert!(used.encode(&pcm).unwrap() == new.encode(&pcm).unwrap(), "frame {frame}");
    }
}

#[test]
fn the_silence_constant_is_the_frame_of_this_encoder_without_padding() {
    let mut encoder = Xaac::create(EncoderKind::new(channels(2), stereo(128_000))).unwrap();
    for _ in 0..8 {
        let made = encoder.encode(&[0; 2 * SAMPLES]).unwrap();
        // Equal up to the three bits that name the next element: fill (6) there, end (7) here.
        assert_eq!(made[..5], SILENCE_STEREO[..5]);
        assert_eq!((made[5] >> 2, SILENCE_STEREO[5] >> 2), (0b00_0110, 0b00_0111));
    }
    let frames = vec![aac_frame(FrameKind::Audio, Timestamp::ZERO, SILENCE_STEREO[..].into()); 10];
    let heard = decode_aac(&frames, 2);
    assert!(heard.is_none_or(|pcm| pcm.len() == 20 * SAMPLES && pcm.iter().all(|one| *one == 0)));
}
