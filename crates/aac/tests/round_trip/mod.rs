//! What the tests of this crate share: pseudo-random samples, and what a decoder makes of them.

use headgate_aac::{Config, Encoder, FRAME_SAMPLES, SAMPLE_RATE};
use symphonia_codec_aac::AacDecoder;
use symphonia_core::codecs::audio::well_known::CODEC_ID_AAC;
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia_core::packet::Packet;
use symphonia_core::units::{Duration, Timestamp};

/// Pseudo-random numbers from -1 to 1.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Encodes, decodes each unit, and returns the decoded samples (interleaved) and the bytes.
pub(crate) fn round_trip(config: Config, samples: &[f32]) -> (Vec<f32>, usize) {
    let mut encoder = Encoder::new(config).unwrap();
    let mut parameters = AudioCodecParameters::new();
    parameters
        .for_codec(CODEC_ID_AAC)
        .with_sample_rate(SAMPLE_RATE)
        .with_extra_data(Box::new(encoder.audio_specific_config()));
    let mut decoder = AacDecoder::try_new(&parameters, &AudioDecoderOptions::default()).unwrap();
    let (mut out, mut bytes, mut frame) = (Vec::new(), 0, Vec::new());
    let size = FRAME_SAMPLES * usize::from(config.channels);
    for samples in samples.chunks_exact(size) {
        let unit = encoder.encode_f32(samples).unwrap();
        assert!(unit.len() <= 768 * usize::from(config.channels));
        bytes += unit.len();
        let packet = Packet::new(0, Timestamp::new(0), Duration::new(1_024), unit.to_vec());
        let decoded = decoder.decode(&packet).unwrap();
        frame.clear();
        decoded.copy_to_vec_interleaved::<f32>(&mut frame);
        out.extend_from_slice(&frame);
    }
    (out, bytes)
}
