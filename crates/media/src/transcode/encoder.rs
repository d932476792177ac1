//! What an AAC encoder must do and what it may fail at. Not the encoder itself (`xaac`).

use crate::Channels;

/// Fewest bits per second and channel at which AAC-LC is still intelligible.
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

/// How many bits per second AAC gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AacBitrate {
    /// So many for each channel.
    PerChannel(u32),
    /// So many in all, mono or stereo.
    Total(u32),
}

/// What makes two encoders interchangeable. AAC-LC at 48 kHz always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EncoderKind {
    /// Channels in and out.
    pub channels: Channels,
    /// Bits per second of all channels.
    pub bitrate: u32,
}

impl EncoderKind {
    /// The encoder of a stream with that bitrate, bounded to 16,000–192,000 per channel.
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

/// An encoder of 1024 samples per channel at a time.
pub trait AacEncoder: Send {
    /// One frame of interleaved samples in, one raw data block out, valid until the next call.
    ///
    /// # Errors
    /// The wrong number of samples, or a frame that the encoder refuses; it is not used again after that.
    fn encode(&mut self, pcm: &[i16]) -> Result<&[u8], EncoderError>;

    /// Forgets the audio encoded so far, so that another stream can use the encoder.
    ///
    /// # Errors
    /// The encoder failed and must be freed.
    fn reset(&mut self) -> Result<(), EncoderError>;

    /// Samples by which the decoded output lags behind the input.
    fn delay_samples(&self) -> u32;
}
