//! The reasons for refusing an offer.

/// Why an offer is refused. The messages are for people and never repeat the SDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    // Not an offer, or larger than any valid one.
    /// More bytes, lines, payload types or candidates than any real offer has.
    #[error("The offer is too long")]
    TooLong,
    /// Not valid SDP.
    #[error("The offer is not valid SDP")]
    Malformed,
    /// ICE credentials are missing or too short.
    #[error("The offer has no usable ICE credentials")]
    Credentials,
    /// No SHA-256 fingerprint.
    #[error("The offer has no SHA-256 certificate fingerprint")]
    Fingerprint,
    // It requests something we do not support.
    /// Unknown value of `a=setup`.
    #[error("The offer's DTLS setup is not supported")]
    Setup,
    /// No section, two of a kind, or one that is neither audio nor video.
    #[error("The offer must have one audio or one video section, or one of each, and nothing else")]
    Sections,
    /// A section does not send.
    #[error("Every section of the offer must send media (sendonly or sendrecv)")]
    Direction,
    /// Separate RTCP port, unbundled sections, or media without DTLS.
    #[error("The offer must use DTLS-SRTP, bundle its sections and multiplex RTCP")]
    Transport,
    /// No Opus.
    #[error("The audio section must offer Opus")]
    AudioCodec,
    /// Opus with more than two channels (`multiopus`, or a channel count that RFC 7587 does not define).
    #[error("Multichannel Opus is not supported: offer opus/48000/2")]
    AudioChannels,
    /// No H.264.
    #[error("The video section must offer H.264 (Baseline, Main or High, 8 bit 4:2:0)")]
    VideoCodec,
}

impl OfferError {
    /// Stable name.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TooLong => "offer_too_long",
            Self::Malformed => "offer_malformed",
            Self::Credentials => "offer_credentials",
            Self::Fingerprint => "offer_fingerprint",
            Self::Setup => "offer_setup",
            Self::Sections => "offer_sections",
            Self::Direction => "offer_direction",
            Self::Transport => "offer_transport",
            Self::AudioCodec => "offer_audio_codec",
            Self::AudioChannels => "offer_audio_channels",
            Self::VideoCodec => "offer_video_codec",
        }
    }

    /// HTTP status (RFC 9725 4.2, 4.4.2): 400 for a body that is not an offer, 422 for an offer we cannot serve.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::TooLong | Self::Malformed | Self::Credentials | Self::Fingerprint => 400,
            Self::Setup | Self::Sections | Self::Direction | Self::Transport => 422,
            Self::AudioCodec | Self::AudioChannels | Self::VideoCodec => 422,
        }
    }
}
