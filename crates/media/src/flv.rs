//! Frame ⇄ FLV and Enhanced RTMP tag body. Not the message around it (`rtmp`).
//!
//! Sources: Adobe FLV 10.1 E.4.2 and E.4.3; Enhanced RTMP v2 (cited as E-RTMP).

mod audio;
mod blank;
mod extended;
mod file;
#[doc(hidden)]
pub mod fuzz;
mod header;
mod video;
mod wire_time;

use bytes::Bytes;

use crate::{Codec, Frame, FrameKind, Timestamp};

pub use audio::read_audio;
pub use blank::{blank_audio, blank_video};
pub use file::{FILE_HEADER_BYTES, file_header, write_tag};
pub use header::{TagHeader, tag_header};
pub use video::read_video;
pub use wire_time::WireTime;

/// Why a tag body is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Shorter than its own header.
    #[error("tag body ends inside its header")]
    Truncated,
    /// More extensions (ModEx) before the media than any sender needs.
    #[error("tag body has too many extensions")]
    Extensions,
    /// An unsupported video codec (FLV codec id).
    #[error("video codec {0} is not supported")]
    VideoCodec(u8),
    /// An unsupported audio codec (FLV sound format).
    #[error("audio codec {0} is not supported")]
    AudioCodec(u8),
    /// An unsupported Enhanced RTMP codec.
    #[error("codec {} is not supported", .0.escape_ascii())]
    FourCc([u8; 4]),
    /// Opus with more than two channels or its own channel mapping (RFC 7845 5.1.1), which a decoder for mapping family
    /// 0 cannot decode.
    #[error("Opus with {channels} channels and channel mapping family {family} is not supported")]
    OpusChannels {
        /// Output channel count.
        channels: u8,
        /// Channel mapping family.
        family: u8,
    },
    /// A decoder configuration or colour information longer than the limit.
    #[error("decoder configuration or colour information is longer than 64 KiB")]
    ConfigurationLimit,
}

impl Error {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Truncated => "tag_truncated",
            Self::Extensions => "tag_extensions_limit",
            Self::VideoCodec(_)
            | Self::AudioCodec(_)
            | Self::FourCc(_)
            | Self::OpusChannels { .. } => "codec_unsupported",
            Self::ConfigurationLimit => "configuration_limit",
        }
    }
}

/// Longest decoder configuration or colour information: parameter sets take a few hundred bytes, and both are kept for
/// the life of the stream and sent to every new subscriber.
pub const CONFIGURATION_LIMIT_BYTES: usize = 64 << 10;

const FRAME_TYPE_KEY: u8 = 1;
const FRAME_TYPE_DISPOSABLE: u8 = 3;
const FRAME_TYPE_COMMAND: u8 = 5;
const VIDEO_AVC: u8 = 7;
const VIDEO_HEVC_LEGACY: u8 = 12;
const SOUND_MP3: u8 = 2;
const SOUND_EX: u8 = 9;
const SOUND_AAC: u8 = 10;
/// Marks a video tag body as Enhanced RTMP.
const EX_VIDEO: u8 = 0x80;

// Packet types with the same value for Enhanced RTMP's audio and video.
const SEQUENCE_START: u8 = 0;
const CODED_FRAMES: u8 = 1;
/// Video only: colour information.
const METADATA: u8 = 4;

/// Builds a frame; `None` when there is no data for one. An oversized configuration is an error.
fn frame(
    codec: Codec,
    kind: FrameKind,
    timestamp: Timestamp,
    composition_ms: i32,
    data: Bytes,
) -> Result<Option<Frame>, Error> {
    let is_kept = matches!(kind, FrameKind::Configuration | FrameKind::ColorInfo);
    if is_kept && data.len() > CONFIGURATION_LIMIT_BYTES {
        return Err(Error::ConfigurationLimit);
    }
    Ok((!data.is_empty()).then_some(Frame { codec, kind, timestamp, composition_ms, data }))
}

#[cfg(test)]
mod extended_tests;
#[cfg(test)]
mod tests;
