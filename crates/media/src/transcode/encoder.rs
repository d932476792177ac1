//! What an AAC encoder must do and what it may fail at. Not the encoder (`xaac`).

use crate::Channels;

/// Fewest bits per second and channel that still sound like something.
const LEAST_CHANNEL_BITRATE: u32 = 16_000;
/// Most: beyond it AAC-LC gains nothing.
const LIMIT_CHANNEL_BITRATE: u32 = 192_000;

/// What went wrong in an encoder, with the library's own status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncoderError {
    /// None could be made: no memory, or a configuration the library refuses.
    #[error("no AAC encoder could be made (status {0:#x})")]
    Create(i32),
    /// A frame was refused.
    #[error("AAC encoder refused a frame (status {0:#x})")]
    Encode(i32),
    /// Not one frame of samples: our own mistake.
    #[error("AAC encoder was given the wrong number of samples")]
    Length,
}

impl EncoderError {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Create(_) => "aac_encoder_create",
            Self::Encode(_) | Self::Length => "aac_encoder_frame",
        }
    }
}

/// What makes two encoders interchangeable. AAC-LC at 48 kHz always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncoderKind {
    pub(super) channels: Channels,
    pub(super) bitrate: u32,
}

impl EncoderKind {
    /// The encoder of a stream whose stereo sound is to have `stereo_bitrate` bits per second: mono takes half of
    /// it. Bounded to 16,000–192,000 per channel.
    #[must_use]
    pub fn new(channels: Channels, stereo_bitrate: u32) -> Self {
        let per_channel = (stereo_bitrate / 2).clamp(LEAST_CHANNEL_BITRATE, LIMIT_CHANNEL_BITRATE);
        Self { channels, bitrate: per_channel * u32::from(channels.count()) }
    }
}

/// An encoder of 1024 samples per channel at a time.
pub(super) trait AacEncoder: Send {
    /// One frame of interleaved samples in, one raw data block out, valid until the next call.
    fn encode(&mut self, pcm: &[i16]) -> Result<&[u8], EncoderError>;

    /// Forgets the sound encoded so far, so that another stream can have the encoder.
    fn reset(&mut self) -> Result<(), EncoderError>;

    /// Samples by which the decoded output lags behind the input.
    fn delay_samples(&self) -> u32;
}
