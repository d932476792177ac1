//! The workload that `scripts/instructions.mjs` counts under valgrind: frames through an encoder, and encoders made. What
//! precedes the first one is in runs of every length, so that the difference between two runs is the encoder's.

use std::f32::consts::TAU;

use crate::{Config, Encoder, FRAME_SAMPLES};

/// Frames of the clip, two seconds, which repeats.
const CLIP_FRAMES: usize = 94;

/// How many frames or encoders this run makes.
fn runs() -> usize {
    std::env::var("PICTURES").ok().and_then(|of| of.parse().ok()).unwrap_or(50)
}

/// A chord that moves between the channels, noise that swells, and four strokes a second.
fn clip(channels: usize) -> Vec<f32> {
    let mut state = 1_u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    let mut sample = |index: usize| {
        let time = index as f32 / 48_000.0;
        let chord: f32 = [220.0, 277.2, 329.6, 1_760.0]
            .iter()
            .zip(1..)
            .map(|(hertz, part)| (TAU * hertz * time).sin() * 0.2 / part as f32)
            .sum();
        let swell = (TAU * 0.5 * time).sin().abs() * 0.1;
        let stroke = (-60.0 * (time * 4.0).fract()).exp() * 0.3;
        let left = chord * (0.6 + 0.4 * (TAU * 0.25 * time).sin());
        let right = chord * (0.6 - 0.4 * (TAU * 0.25 * time).sin());
        [left + noise() * (swell + stroke), right + noise() * (swell + stroke)]
    };
    let frames = (0..CLIP_FRAMES * FRAME_SAMPLES).map(&mut sample);
    frames.flat_map(|pair| pair.into_iter().take(channels)).collect()
}

fn encoder(channels: u8, bitrate: u32) -> Encoder {
    let config = Config { channels, bitrate, largest_access_unit: None };
    Encoder::new(config).expect("within the limits")
}

fn encode(channels: u8, bitrate: u32) {
    encode_clip(&clip(channels.into()), channels, bitrate);
}

fn encode_clip(clip: &[f32], channels: u8, bitrate: u32) {
    let mut encoder = encoder(channels, bitrate);
    let frames = clip.chunks_exact(FRAME_SAMPLES * usize::from(channels)).cycle().take(runs());
    let bytes: usize =
        frames.map(|frame| encoder.encode_f32(frame).expect("one frame").len()).sum();
    let mean = bitrate as usize / 8 * FRAME_SAMPLES / 48_000;
    assert!(bytes <= (runs() + 20) * mean, "{bytes} bytes");
}

#[test]
fn aac_frame_of_stereo() {
    encode(2, 128_000);
}

#[test]
fn aac_frame_of_mono() {
    encode(1, 64_000);
}

#[test]
fn aac_frame_of_equal_channels() {
    let clip: Vec<f32> = clip(1).into_iter().flat_map(|sample| [sample; 2]).collect();
    encode_clip(&clip, 2, 64_000);
}

#[test]
fn aac_frame_of_silence() {
    // What a decoder makes of silence in floating point is seldom zero.
    encode_clip(&vec![1e-9; 2 * CLIP_FRAMES * FRAME_SAMPLES], 2, 128_000);
}

#[test]
fn aac_encoder() {
    (0..runs()).for_each(|_| drop(encoder(2, 128_000)));
}
