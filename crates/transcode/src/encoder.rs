//! The AAC encoders of transcoders: their bitrates and who makes them. Not the encoding itself (`headgate-aac`).

use std::sync::Arc;

use headgate_aac::{Config, DELAY_SAMPLES, Encoder, FRAME_SAMPLES};
use headgate_media::Channels;

/// Lowest bitrate per channel at which AAC-LC is still intelligible, in bit/s.
const LEAST_CHANNEL_BITRATE: u32 = 16_000;
/// Highest bitrate per channel: AAC-LC gains nothing beyond it.
const LIMIT_CHANNEL_BITRATE: u32 = 192_000;

/// The bitrate of AAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AacBitrate {
    /// This many bits per second for each channel.
    PerChannel(u32),
    /// This many bits per second in total, mono or stereo.
    Total(u32),
}

/// What an encoder makes. Always AAC-LC at 48 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderKind {
    /// Channels of input and output.
    pub channels: Channels,
    /// Bits per second over all channels.
    pub bitrate: u32,
}

impl EncoderKind {
    /// The kind of encoder for a stream with that bitrate, limited to 16,000–192,000 per channel.
    #[must_use]
    pub fn new(channels: Channels, bitrate: AacBitrate) -> Self {
        let count = u32::from(channels.count());
        let per_channel = match bitrate {
            AacBitrate::PerChannel(bitrate) => bitrate,
            AacBitrate::Total(bitrate) => bitrate / count,
        };
        let per_channel = per_channel.clamp(LEAST_CHANNEL_BITRATE, LIMIT_CHANNEL_BITRATE);
        Self { channels, bitrate: per_channel * count }
    }
}

/// An encoder that takes 1024 samples per channel at a time.
pub trait AacEncoder: Send {
    /// Encodes one frame of interleaved samples between -1 and 1, of exactly the kind's channels, as one raw data block, which is valid
    /// until the next call.
    fn encode(&mut self, pcm: &[f32]) -> &[u8];

    /// Frames by which the decoded output lags behind the input, [`AacEncoder::lead_samples`] included.
    fn delay_frames(&self) -> usize;

    /// Samples of silence to be encoded before the input, with which the delay is whole frames.
    fn lead_samples(&self) -> usize {
        0
    }
}

impl AacEncoder for Encoder {
    fn encode(&mut self, pcm: &[f32]) -> &[u8] {
        self.encode_f32(pcm).expect("one frame of samples")
    }

    fn delay_frames(&self) -> usize {
        DELAY_SAMPLES.div_ceil(FRAME_SAMPLES)
    }

    fn lead_samples(&self) -> usize {
        DELAY_SAMPLES.next_multiple_of(FRAME_SAMPLES) - DELAY_SAMPLES
    }
}

/// Makes the encoders of any number of transcoders; cheap to clone. By default they are those of `headgate-aac`, which
/// take microseconds to make.
#[derive(Clone)]
pub struct Encoders(Arc<dyn Fn(EncoderKind) -> Box<dyn AacEncoder> + Send + Sync>);

impl Encoders {
    /// Encoders that `make` makes.
    pub fn new(make: impl Fn(EncoderKind) -> Box<dyn AacEncoder> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// An encoder at the beginning of a stream.
    pub(super) fn make(&self, kind: EncoderKind) -> Box<dyn AacEncoder> {
        (self.0)(kind)
    }
}

impl Default for Encoders {
    fn default() -> Self {
        Self::new(|EncoderKind { channels, bitrate }| {
            let channels = channels.count();
            let encoder = Encoder::new(Config { channels, bitrate, largest_access_unit: None });
            Box::new(encoder.expect("one or two channels and a bitrate within the limits"))
        })
    }
}

impl std::fmt::Debug for Encoders {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Encoders").finish_non_exhaustive()
    }
}
