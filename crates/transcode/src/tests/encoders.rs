//! The transcoder's own encoders: their bitrates, what they make of any samples, and their silence.

use headgate_media::aac::{SAMPLES_PER_FRAME, SILENCE_STEREO, lc_48k};

use super::super::encoder::{AacBitrate, EncoderKind, Encoders};
use super::super::{FrameKind, Timestamp, aac_frame};
use super::support::{channels, decode_aac, stereo};

const SAMPLES: usize = SAMPLES_PER_FRAME as usize;

/// Frames of full-scale square waves, clicks, silence and ramps.
fn hostile(frame: usize, samples: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(frame as u64 + 1);
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 48) as i16
    };
    let mut sample = |index: usize| match frame / 3 % 6 {
        0 => random(),
        1 if (index / (1 + frame % 50)).is_multiple_of(2) => i16::MAX,
        1 => i16::MIN,
        2 if index == frame % samples => i16::MIN,
        2 | 3 => 0,
        4 => (index * 64 % 65_536) as u16 as i16,
        _ => random() >> (random() & 15),
    };
    (0..samples).map(|index| f32::from(sample(index)) / 32_768.0).collect()
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
fn any_samples_and_any_bitrate_make_frames_within_the_bitrate_that_ffmpeg_decodes() {
    let bitrates =
        [0, 32_000, 48_000, 64_000, 96_000, 128_000, 192_000, 256_000, 320_000, u32::MAX];
    for count in [1, 2] {
        for bitrate in bitrates {
            let kind = EncoderKind::new(channels(count), AacBitrate::Total(bitrate));
            let mut encoder = Encoders::default().make(kind);
            let frames: Vec<_> = (0..600)
                .map(|frame| {
                    let data = encoder.encode(&hostile(frame, SAMPLES * count)).to_vec();
                    assert!(data.len() <= 768 * count, "{} bytes at {kind:?}", data.len());
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
fn encoders_make_what_the_configuration_says() {
    for count in [1, 2] {
        let (channels, bitrate) = (count as u8, 64_000);
        let config = headgate_aac::Config { channels, bitrate, largest_access_unit: None };
        let encoder = headgate_aac::Encoder::new(config).unwrap();
        assert_eq!(encoder.audio_specific_config(), lc_48k(super::support::channels(count)));
    }
}

#[test]
fn the_silence_constant_is_the_frame_of_this_encoder() {
    let mut encoder = Encoders::default().make(EncoderKind::new(channels(2), stereo(128_000)));
    for _ in 0..8 {
        assert_eq!(encoder.encode(&[0.0; 2 * SAMPLES]), SILENCE_STEREO);
    }
    let frames = vec![aac_frame(FrameKind::Audio, Timestamp::ZERO, SILENCE_STEREO[..].into()); 10];
    let heard = decode_aac(&frames, 2);
    assert!(heard.is_none_or(|pcm| pcm.len() == 20 * SAMPLES && pcm.iter().all(|one| *one == 0)));
}
