//! The interface of an AAC encoder and its errors. Not the encoder itself (`xaac`).

use headgate_media::Channels;

/// Lowest bitrate per channel at which AAC-LC is still intelligible, in bit/s.
const LEAST_CHANNEL_BITRATE: u32 = 16_000;
/// Highest bitrate per channel: AAC-LC gains nothing beyond it.
const LIMIT_CHANNEL_BITRATE: u32 = 192_000;

/// An error of an encoder, with the library's own status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncoderError {
    /// No encoder could be created: out of memory, or a configuration the library rejects.
    #[error("no AAC encoder could be made (status {0:#x})")]
    Create(i32),
    /// A frame was rejected.
    #[error("AAC encoder refused a frame (status {0:#x})")]
    Encode(i32),
    /// Not exactly one frame of samples: a bug in the caller.
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

/// The bitrate of AAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AacBitrate {
    /// This many bits per second for each channel.
    PerChannel(u32),
    /// This many bits per second in total, mono or stereo.
    Total(u32),
}

/// The properties that make two encoders interchangeable. Always AAC-LC at 48 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Encodes one frame of interleaved samples as one raw data block, which is valid until the next call.
    ///
    /// # Errors
    /// The wrong number of samples, or a frame that the encoder rejects; the encoder is not used after that.
    fn encode(&mut self, pcm: &[i16]) -> Result<&[u8], EncoderError>;

    /// Forgets the audio encoded so far, so that another stream can use the encoder.
    ///
    /// # Errors
    /// When the encoder failed and must be freed.
    fn reset(&mut self) -> Result<(), EncoderError>;

    /// Samples by which the decoded output lags behind the input.
    fn delay_samples(&self) -> u32;
}
