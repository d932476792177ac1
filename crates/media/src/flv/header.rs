//! The bytes before a frame's data in a tag body that we write.

use super::{
    CODED_FRAMES, EX_VIDEO, FRAME_TYPE_COMMAND, FRAME_TYPE_DISPOSABLE, FRAME_TYPE_KEY, METADATA,
    SEQUENCE_START, SOUND_AAC, SOUND_EX, SOUND_MP3, VIDEO_AVC,
};
use crate::{Codec, Frame, FrameKind, SoundFlags};

/// The values FLV requires for AAC whatever its real rate.
const AAC_FLAGS: u8 = SoundFlags::STEREO.bits();

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

/// The header that makes `frame.data` a tag body: legacy FLV for H.264, AAC and MP3, Enhanced RTMP for the rest.
/// Empty for script data, and for colour information of H.264, which is never read.
#[must_use]
pub fn tag_header(frame: &Frame) -> TagHeader {
    let configuration = frame.kind == FrameKind::Configuration;
    let frame_type = match frame.kind {
        FrameKind::Configuration | FrameKind::Keyframe => FRAME_TYPE_KEY,
        FrameKind::Disposable => FRAME_TYPE_DISPOSABLE,
        // It has no meaning here, and a peer that does not know the packet type ignores a command.
        FrameKind::ColorInfo => FRAME_TYPE_COMMAND,
        FrameKind::Inter | FrameKind::Audio | FrameKind::Script => 2,
    };
    let [_, c0, c1, c2] = frame.composition_ms.to_be_bytes();
    let color_info = frame.kind == FrameKind::ColorInfo;
    let ex_type = match frame.kind {
        FrameKind::Configuration => SEQUENCE_START,
        FrameKind::ColorInfo => METADATA,
        _ => CODED_FRAMES,
    };
    let ex_video = EX_VIDEO | frame_type << 4 | ex_type;
    match frame.codec {
        // Frame type 3 is reserved for H.263; a disposable H.264 frame is an inter frame on the wire.
        Codec::H264 if color_info => TagHeader::new(&[]),
        Codec::H264 => {
            let frame_type = if frame_type == FRAME_TYPE_DISPOSABLE { 2 } else { frame_type };
            TagHeader::new(&[&[frame_type << 4 | VIDEO_AVC, u8::from(!configuration), c0, c1, c2]])
        }
        Codec::Hevc if configuration || color_info => TagHeader::new(&[&[ex_video], b"hvc1"]),
        Codec::Hevc => TagHeader::new(&[&[ex_video], b"hvc1", &[c0, c1, c2]]),
        Codec::Av1 => TagHeader::new(&[&[ex_video], b"av01"]),
        Codec::Vp9 => TagHeader::new(&[&[ex_video], b"vp09"]),
        Codec::Aac => TagHeader::new(&[&[SOUND_AAC << 4 | AAC_FLAGS, u8::from(!configuration)]]),
        Codec::Mp3(flags) => TagHeader::new(&[&[SOUND_MP3 << 4 | flags.bits()]]),
        Codec::Opus => TagHeader::new(&[&[SOUND_EX << 4 | ex_type], b"Opus"]),
        Codec::Amf0 => TagHeader::new(&[]),
    }
}
