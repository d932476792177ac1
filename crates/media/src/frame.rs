//! One frame and its time. Not how it is packed (`flv`) or where it goes (`ingest`).

use bytes::Bytes;

/// Decode time on the publish session's own clock, in microseconds, extended to 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The start of the session's clock.
    pub const ZERO: Self = Self(0);

    /// Converts from whole milliseconds, the unit of RTMP and FLV.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Converts from microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Converts to whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Converts to microseconds.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

/// Which of a session's tracks a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// Video.
    Video,
    /// Audio.
    Audio,
    /// Script data such as `onMetaData` and cue points. Forwarded, but not counted as payload.
    Script,
}

/// How a frame's data is encoded.
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
    Mp3(SoundFlags),
    /// Opus packets (RFC 6716); configuration is an OpusHead (RFC 7845 5.1).
    Opus,
    /// AMF0 values as in an RTMP data message, beginning with its name (without `@setDataFrame`).
    Amf0,
}

/// What the sender of audio without a configuration says about its rate, sample size and channels: the lower four bits
/// of its FLV tag header (FLV 10.1 E.4.2.1). Passed on as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoundFlags(u8);

impl SoundFlags {
    /// 44 kHz, 16 bit, stereo.
    pub const STEREO: Self = Self(0x0f);

    /// The flags in the first byte of a tag body.
    #[must_use]
    pub const fn of(first: u8) -> Self {
        Self(first & 0x0f)
    }

    /// The four bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl Codec {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "h264",
            Self::Hevc => "hevc",
            Self::Av1 => "av1",
            Self::Vp9 => "vp9",
            Self::Aac => "aac",
            Self::Mp3(_) => "mp3",
            Self::Opus => "opus",
            Self::Amf0 => "amf0",
        }
    }

    /// The track that frames with this codec belong to.
    #[must_use]
    pub const fn track(self) -> Track {
        match self {
            Self::H264 | Self::Hevc | Self::Av1 | Self::Vp9 => Track::Video,
            Self::Aac | Self::Mp3(_) | Self::Opus => Track::Audio,
            Self::Amf0 => Track::Script,
        }
    }
}

/// What a frame means to a new subscriber, and to one that has to drop frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Decoder configuration; precedes the first frame of its track and is replayed to new subscribers.
    Configuration,
    /// How the video's colours are to be displayed (E-RTMP, "Metadata Frame"): AMF0, beginning with `colorInfo`.
    /// Replayed to new subscribers like a configuration; only the newest counts.
    ColorInfo,
    /// A video frame at which decoding can start (IDR).
    Keyframe,
    /// A video frame that needs earlier ones.
    Inter,
    /// A video frame that no other needs.
    Disposable,
    /// An audio packet; each can be decoded independently.
    Audio,
    /// Script data.
    Script,
}

/// One access unit, one audio packet, one decoder configuration, or one script data message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How `data` is encoded.
    pub codec: Codec,
    /// What the frame means to a subscriber.
    pub kind: FrameKind,
    /// Decode time.
    pub timestamp: Timestamp,
    /// Composition time in milliseconds: presentation time minus decode time, signed; 0 except for video with B-frames.
    pub composition_ms: i32,
    /// The payload, without FLV, RTMP or RTP headers; shared, and not copied after reassembly.
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
        /// As an AMF0 string: marker 2, length, name.
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
    fn only_the_script_message_of_that_name_is_metadata() {
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
