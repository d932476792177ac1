//! One frame and its time. Not how it is packed (`flv`), not where it goes (`ingest`).

use bytes::Bytes;

/// Decode time on the publish session's own clock, in microseconds, extended to 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// From whole milliseconds, the unit of RTMP and FLV.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// From microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Microseconds.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

/// Which of a session's tracks a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// The picture.
    Video,
    /// The sound.
    Audio,
    /// Script data: `onMetaData`, cue points. Carried along, never counted as payload.
    Script,
}

/// How a frame's data is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// H.264: NAL units with four-byte lengths; configuration is an AVCDecoderConfigurationRecord (ISO 14496-15 5.3.3).
    H264,
    /// H.265 in the same packing; configuration is an HEVCDecoderConfigurationRecord.
    Hevc,
    /// AV1 in OBUs; configuration is an AV1CodecConfigurationRecord.
    Av1,
    /// VP9 frames; configuration is a VPCodecConfigurationRecord.
    Vp9,
    /// AAC raw data blocks; configuration is an AudioSpecificConfig (ISO 14496-3 1.6.2.1).
    Aac,
    /// MP3 frames; no configuration.
    Mp3,
    /// Opus packets (RFC 6716); configuration is an OpusHead (RFC 7845 5.1).
    Opus,
    /// AMF0 values as in an RTMP data message, the name first (without `@setDataFrame`).
    Amf0,
}

impl Codec {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "h264",
            Self::Hevc => "hevc",
            Self::Av1 => "av1",
            Self::Vp9 => "vp9",
            Self::Aac => "aac",
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Amf0 => "amf0",
        }
    }

    /// The track such frames belong to.
    #[must_use]
    pub const fn track(self) -> Track {
        match self {
            Self::H264 | Self::Hevc | Self::Av1 | Self::Vp9 => Track::Video,
            Self::Aac | Self::Mp3 | Self::Opus => Track::Audio,
            Self::Amf0 => Track::Script,
        }
    }
}

/// What a frame means to someone who joins or has to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Decoder configuration; must precede the first frame of its track and is replayed to late joiners.
    Configuration,
    /// What a display must know of the pictures (E-RTMP, "Metadata Frame"): AMF0, `colorInfo` first. Replayed to late
    /// joiners as configurations are; of several only the newest counts.
    ColorInfo,
    /// A picture that starts decoding (IDR).
    Keyframe,
    /// A picture that needs earlier ones.
    Inter,
    /// A picture that no other needs.
    Disposable,
    /// An audio packet; each stands alone.
    Audio,
    /// Script data.
    Script,
}

/// One access unit, one audio packet, one decoder configuration, or one script data message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How `data` is coded.
    pub codec: Codec,
    /// What it means to a joiner.
    pub kind: FrameKind,
    /// Decode time.
    pub timestamp: Timestamp,
    /// Composition time in milliseconds: presentation minus decode time, signed; 0 but for video with B-frames.
    pub composition_ms: i32,
    /// The payload, without any FLV, RTMP or RTP bytes; shared, never copied after reassembly.
    pub data: Bytes,
}

impl Frame {
    /// The track this frame belongs to.
    #[must_use]
    pub const fn track(&self) -> Track {
        self.codec.track()
    }

    /// Whether this is the `onMetaData` message, of which only the newest counts.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        /// An AMF0 string: marker 2, length, name.
        const ON_METADATA: &[u8] = b"\x02\x00\x0aonMetaData";
        self.codec == Codec::Amf0 && self.data.starts_with(ON_METADATA)
    }

    /// Bytes that count as payload (W8 of the decisions): audio and video frames,
    /// not configurations and colour information (they are container headers in FLV) and not script data.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        match self.kind {
            FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script => 0,
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                self.data.len() as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_the_script_message_of_that_name_alone() {
        let frame = |codec, data| Frame {
            codec,
            kind: FrameKind::Script,
            timestamp: Timestamp::ZERO,
            composition_ms: 0,
            data: Bytes::from_static(data),
        };
        assert!(frame(Codec::Amf0, b"\x02\x00\x0aonMetaData\x05").is_metadata());
        assert!(!frame(Codec::Amf0, b"\x02\x00\x0aonCuePoint\x05").is_metadata());
        assert!(!frame(Codec::H264, b"\x02\x00\x0aonMetaData\x05").is_metadata());
    }
}
