//! Why a frame cannot be transcoded.

use headgate_media::opus;

/// Why a frame could not be transcoded. The stream continues with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscodeError {
    /// Not an Opus frame.
    #[error("only Opus is transcoded")]
    Codec,
    /// Opus of more than two channels, or of a mapping family other than 0 (RFC 7845 5.1.1).
    #[error("Opus cannot be transcoded: {0}")]
    Head(#[from] opus::Error),
    /// libopus could not be initialised: out of memory.
    #[error("no Opus decoder could be made")]
    Decoder,
}

impl TranscodeError {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Codec => "transcode_codec",
            Self::Head(error) => error.code(),
            Self::Decoder => "opus_decoder_create",
        }
    }
}
