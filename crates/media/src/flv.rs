//! Frame ⇄ FLV and Enhanced RTMP tag body. Not the message around it (`rtmp`).
//!
//! Sources: Adobe FLV 10.1 E.4.2 and E.4.3; Enhanced RTMP v2.

use bytes::Bytes;

use crate::{Codec, Frame, FrameKind, Timestamp};

/// What is wrong with a tag body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Shorter than its own header.
    #[error("tag body ends inside its header")]
    Truncated,
    /// A video codec we do not carry (FLV codec id).
    #[error("video codec {0} is not supported")]
    VideoCodec(u8),
    /// An audio codec we do not carry (FLV sound format).
    #[error("audio codec {0} is not supported")]
    AudioCodec(u8),
    /// An Enhanced RTMP codec we do not carry.
    #[error("codec {:?} is not supported", String::from_utf8_lossy(.0))]
    FourCc([u8; 4]),
}

impl Error {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Truncated => "tag_truncated",
            Self::VideoCodec(_) | Self::AudioCodec(_) | Self::FourCc(_) => "codec_unsupported",
        }
    }
}

/// The bytes of a tag body before the frame's data: at most eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagHeader {
    bytes: [u8; 8],
    length: u8,
}

impl TagHeader {
    fn new(parts: &[&[u8]]) -> Self {
        let mut header = Self { bytes: [0; 8], length: 0 };
        for byte in parts.iter().flat_map(|part| part.iter()) {
            header.bytes[usize::from(header.length)] = *byte;
            header.length += 1;
        }
        header
    }

    /// The header's bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

const FRAME_TYPE_KEY: u8 = 1;
const FRAME_TYPE_DISPOSABLE: u8 = 3;
const FRAME_TYPE_COMMAND: u8 = 5;
const VIDEO_AVC: u8 = 7;
const VIDEO_HEVC_LEGACY: u8 = 12;
const SOUND_MP3: u8 = 2;
const SOUND_EX: u8 = 9;
const SOUND_AAC: u8 = 10;
/// 44 kHz, 16 bit, stereo: what FLV demands of AAC whatever its real rate.
const SOUND_FLAGS: u8 = 0x0f;
const EX_VIDEO: u8 = 0x80;

// Packet types shared by Enhanced RTMP audio and video.
const EX_SEQUENCE_START: u8 = 0;
const EX_CODED_FRAMES: u8 = 1;
const EX_CODED_FRAMES_X: u8 = 3;

/// Reads a video tag body. `None` for what carries no picture: end of sequence, empty messages, seek commands,
/// colour metadata.
///
/// # Errors
/// A truncated header or a codec we do not carry.
pub fn read_video(tag: &Bytes, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let Some(&first) = tag.first() else { return Ok(None) };
    if first & EX_VIDEO != 0 {
        return read_ex_video(tag, first, timestamp);
    }
    let (frame_type, codec_id) = (first >> 4, first & 0x0f);
    if frame_type == FRAME_TYPE_COMMAND {
        return Ok(None);
    }
    let codec = match codec_id {
        VIDEO_AVC => Codec::H264,
        VIDEO_HEVC_LEGACY => Codec::Hevc,
        other => return Err(Error::VideoCodec(other)),
    };
    let &[_, packet_type, c0, c1, c2, ..] = &tag[..] else { return Err(Error::Truncated) };
    let data = tag.slice(5..);
    let (kind, composition_ms) = match packet_type {
        0 => (FrameKind::Configuration, 0),
        1 => (picture_kind(frame_type), signed_24([c0, c1, c2])),
        _ => return Ok(None),
    };
    Ok(frame(codec, kind, timestamp, composition_ms, data))
}

fn read_ex_video(tag: &Bytes, first: u8, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let (frame_type, packet_type) = ((first >> 4) & 7, first & 0x0f);
    if frame_type == FRAME_TYPE_COMMAND {
        return Ok(None);
    }
    let has_offset = packet_type == EX_CODED_FRAMES;
    if !matches!(packet_type, EX_SEQUENCE_START | EX_CODED_FRAMES | EX_CODED_FRAMES_X) {
        return Ok(None);
    }
    let codec = match four_cc(tag)? {
        b"avc1" => Codec::H264,
        b"hvc1" => Codec::Hevc,
        b"av01" => Codec::Av1,
        b"vp09" => Codec::Vp9,
        other => return Err(Error::FourCc(*other)),
    };
    if packet_type == EX_SEQUENCE_START {
        return Ok(frame(codec, FrameKind::Configuration, timestamp, 0, tag.slice(5..)));
    }
    let (composition_ms, data) = if has_offset && matches!(codec, Codec::H264 | Codec::Hevc) {
        let &[c0, c1, c2, ..] = &tag[5..] else { return Err(Error::Truncated) };
        (signed_24([c0, c1, c2]), tag.slice(8..))
    } else {
        (0, tag.slice(5..))
    };
    Ok(frame(codec, picture_kind(frame_type), timestamp, composition_ms, data))
}

/// Reads an audio tag body. `None` for what carries no sound: empty messages and channel layouts.
///
/// # Errors
/// A truncated header or a codec we do not carry.
pub fn read_audio(tag: &Bytes, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let Some(&first) = tag.first() else { return Ok(None) };
    let (codec, configuration, data) = match first >> 4 {
        SOUND_AAC => {
            let Some(&packet_type) = tag.get(1) else { return Err(Error::Truncated) };
            (Codec::Aac, packet_type == 0, tag.slice(2..))
        }
        SOUND_MP3 => (Codec::Mp3, false, tag.slice(1..)),
        SOUND_EX => {
            let packet_type = first & 0x0f;
            if !matches!(packet_type, EX_SEQUENCE_START | EX_CODED_FRAMES) {
                return Ok(None);
            }
            let codec = match four_cc(tag)? {
                b"Opus" => Codec::Opus,
                b"mp4a" => Codec::Aac,
                b".mp3" => Codec::Mp3,
                other => return Err(Error::FourCc(*other)),
            };
            (codec, packet_type == EX_SEQUENCE_START, tag.slice(5..))
        }
        other => return Err(Error::AudioCodec(other)),
    };
    let kind = if configuration { FrameKind::Configuration } else { FrameKind::Audio };
    Ok(frame(codec, kind, timestamp, 0, data))
}

/// The header that makes `frame.data` a tag body: legacy FLV for H.264, AAC and MP3, Enhanced RTMP for the rest.
/// Empty for script data.
#[must_use]
pub fn tag_header(frame: &Frame) -> TagHeader {
    let configuration = frame.kind == FrameKind::Configuration;
    let frame_type = match frame.kind {
        FrameKind::Configuration | FrameKind::Keyframe => FRAME_TYPE_KEY,
        FrameKind::Disposable => FRAME_TYPE_DISPOSABLE,
        FrameKind::Inter | FrameKind::Audio | FrameKind::Script => 2,
    };
    let [_, c0, c1, c2] = frame.composition_ms.to_be_bytes();
    let ex_type = if configuration { EX_SEQUENCE_START } else { EX_CODED_FRAMES };
    let ex_video = EX_VIDEO | frame_type << 4 | ex_type;
    match frame.codec {
        // Frame type 3 is for H.263 alone; a disposable H.264 picture is an inter frame on the wire.
        Codec::H264 => {
            let frame_type = if frame_type == FRAME_TYPE_DISPOSABLE { 2 } else { frame_type };
            TagHeader::new(&[&[frame_type << 4 | VIDEO_AVC, u8::from(!configuration), c0, c1, c2]])
        }
        Codec::Hevc if configuration => TagHeader::new(&[&[ex_video], b"hvc1"]),
        Codec::Hevc => TagHeader::new(&[&[ex_video], b"hvc1", &[c0, c1, c2]]),
        Codec::Av1 => TagHeader::new(&[&[ex_video], b"av01"]),
        Codec::Vp9 => TagHeader::new(&[&[ex_video], b"vp09"]),
        Codec::Aac => TagHeader::new(&[&[SOUND_AAC << 4 | SOUND_FLAGS, u8::from(!configuration)]]),
        Codec::Mp3 => TagHeader::new(&[&[SOUND_MP3 << 4 | SOUND_FLAGS]]),
        Codec::Opus => TagHeader::new(&[&[SOUND_EX << 4 | ex_type], b"Opus"]),
        Codec::Amf0 => TagHeader::new(&[]),
    }
}

fn frame(
    codec: Codec,
    kind: FrameKind,
    timestamp: Timestamp,
    composition_ms: i32,
    data: Bytes,
) -> Option<Frame> {
    (!data.is_empty()).then_some(Frame { codec, kind, timestamp, composition_ms, data })
}

const fn picture_kind(frame_type: u8) -> FrameKind {
    match frame_type {
        FRAME_TYPE_KEY => FrameKind::Keyframe,
        FRAME_TYPE_DISPOSABLE => FrameKind::Disposable,
        _ => FrameKind::Inter,
    }
}

fn four_cc(tag: &Bytes) -> Result<&[u8; 4], Error> {
    tag.get(1..5).and_then(|four| four.try_into().ok()).ok_or(Error::Truncated)
}

const fn signed_24([a, b, c]: [u8; 3]) -> i32 {
    i32::from_be_bytes([a, b, c, 0]) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(40);

    fn body(frame: &Frame) -> Bytes {
        [tag_header(frame).as_slice(), &frame.data].concat().into()
    }

    fn sample(codec: Codec, kind: FrameKind, composition_ms: i32) -> Frame {
        let data = Bytes::from_static(&[0, 0, 0, 1, 0x65]);
        Frame { codec, kind, timestamp: AT, composition_ms, data }
    }

    #[test]
    fn every_frame_reads_back_as_it_was_written() {
        use FrameKind::{Audio, Configuration, Inter, Keyframe};
        for codec in [Codec::H264, Codec::Hevc] {
            for (kind, cts) in [(Configuration, 0), (Keyframe, 80), (Inter, -40), (Inter, 0)] {
                let frame = sample(codec, kind, cts);
                assert_eq!(read_video(&body(&frame), AT), Ok(Some(frame)));
            }
        }
        for codec in [Codec::Av1, Codec::Vp9] {
            for kind in [Configuration, Keyframe, Inter] {
                let frame = sample(codec, kind, 0);
                assert_eq!(read_video(&body(&frame), AT), Ok(Some(frame)));
            }
        }
        for codec in [Codec::Aac, Codec::Opus] {
            for kind in [Configuration, Audio] {
                let frame = sample(codec, kind, 0);
                assert_eq!(read_audio(&body(&frame), AT), Ok(Some(frame)));
            }
        }
        let mp3 = sample(Codec::Mp3, Audio, 0);
        assert_eq!(read_audio(&body(&mp3), AT), Ok(Some(mp3)));
    }

    #[test]
    fn legacy_headers_are_those_of_every_encoder() {
        let key = sample(Codec::H264, FrameKind::Keyframe, 0);
        assert_eq!(tag_header(&key).as_slice(), [0x17, 1, 0, 0, 0]);
        let aac = sample(Codec::Aac, FrameKind::Configuration, 0);
        assert_eq!(tag_header(&aac).as_slice(), [0xaf, 0]);
    }

    #[test]
    fn what_carries_no_media_is_passed_over() {
        for body in [
            &[][..],
            &[0x17, 2, 0, 0, 0],
            &[0x57, 0],
            &[0x94, b'h', b'v', b'c', b'1'],
            &[0x17, 1, 0, 0, 0],
        ] {
            assert_eq!(read_video(&Bytes::copy_from_slice(body), AT), Ok(None));
        }
        for body in [&[][..], &[0x94, b'O', b'p', b'u', b's', 1, 2], &[0xaf, 1]] {
            assert_eq!(read_audio(&Bytes::copy_from_slice(body), AT), Ok(None));
        }
    }

    #[test]
    fn truncated_and_foreign_bodies_are_errors() {
        assert_eq!(read_video(&Bytes::from_static(&[0x17, 1, 0]), AT), Err(Error::Truncated));
        assert_eq!(read_video(&Bytes::from_static(&[0x12, 1]), AT), Err(Error::VideoCodec(2)));
        assert_eq!(read_video(&Bytes::from_static(b"\x91avc1\0\0"), AT), Err(Error::Truncated));
        assert_eq!(read_video(&Bytes::from_static(b"\x90vvc9"), AT), Err(Error::FourCc(*b"vvc9")));
        assert_eq!(read_audio(&Bytes::from_static(&[0xaf]), AT), Err(Error::Truncated));
        assert_eq!(read_audio(&Bytes::from_static(&[0xb0, 0]), AT), Err(Error::AudioCodec(11)));
    }
}
