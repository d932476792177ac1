//! The fuzz body: any samples, bitrate, channels and changes of level make access units within their limit. Not whether
//! decoders accept them (`tests/decoders.rs`).

use crate::{Config, Encoder, FRAME_SAMPLES};

/// Frames of one input, so that each takes a bounded time.
const LIMIT_FRAMES: usize = 24;

/// Encodes frames that the bytes describe: three for the encoder, then five for each frame.
///
/// # Panics
/// When an access unit is empty or larger than 768 bytes for each channel.
pub fn encode(bytes: &[u8]) {
    let Some(([rate, channels, largest], frames)) = bytes.split_first_chunk::<3>() else { return };
    let config = Config {
        channels: 1 + channels % 2,
        bitrate: 16_000 + u32::from(*rate) * 1_443,
        largest_access_unit: (*largest > 0).then(|| u16::from(*largest) * 8),
    };
    let Ok(mut encoder) = Encoder::new(config) else { return };
    let width = usize::from(config.channels);
    let mut state = 1_u32;
    let mut samples = vec![0.0; FRAME_SAMPLES * width];
    for [kind, level, pitch, at, seed] in frames.as_chunks::<5>().0.iter().take(LIMIT_FRAMES) {
        state ^= u32::from(*seed) << 8;
        let gain = (f32::from(*level) / 8.0 - 31.0).exp2();
        for (index, sample) in samples.iter_mut().enumerate() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 8) as f32 / 8_388_608.0 - 1.0;
            let time = (index / width) as f32;
            *sample = match kind % 8 {
                0 => noise * gain,
                1 => (time * f32::from(*pitch) * 0.0123).sin() * gain,
                2 => noise.signum() * gain,
                3 if index / 4 == usize::from(*at) => gain,
                4 => f32::from_bits(state),
                5 => [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX][usize::from(*at) % 4],
                6 if index > usize::from(*at) * 4 => noise * gain,
                7 if index % width == 0 => (time * f32::from(*pitch) * 0.0123).sin() * gain,
                _ => 0.0,
            };
        }
        let unit = encoder.encode_f32(&samples).expect("one frame of samples");
        assert!(!unit.is_empty() && unit.len() <= 768 * width, "{} bytes", unit.len());
    }
}
