//! Video tag bodies (FLV 10.1 E.4.3; E-RTMP, "Enhanced Video").

use bytes::Bytes;

use super::extended::{Packet, PacketTypes, read_packet, skip_extensions, take};
use super::{
    CODED_FRAMES, EX_VIDEO, Error, FRAME_TYPE_COMMAND, FRAME_TYPE_DISPOSABLE, FRAME_TYPE_KEY,
    METADATA, SEQUENCE_START, VIDEO_AVC, VIDEO_HEVC_LEGACY, frame,
};
use crate::{Codec, Frame, FrameKind, Timestamp};

/// Coded frames with an implicit composition time of 0.
const CODED_FRAMES_X: u8 = 3;
/// Frame type and codec, packet type, composition time.
const LEGACY_HEADER: usize = 5;
/// End of sequence (2) and MPEG-2 TS descriptors (5) are ignored.
const TYPES: PacketTypes = PacketTypes {
    multitrack: 6,
    extension: 7,
    media: &[SEQUENCE_START, CODED_FRAMES, CODED_FRAMES_X, METADATA],
};

/// Reads a video tag body. `None` if it carries no video: end of sequence, empty messages, seek commands, tracks other
/// than the first, undefined packet types, and colour information of H.264, which the tag bodies we write cannot carry.
///
/// # Errors
/// A truncated header or an unsupported codec.
pub fn read_video(tag: &Bytes, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let Some(&first) = tag.first() else { return Ok(None) };
    if first & EX_VIDEO != 0 {
        return read_extended(tag.slice(1..), first, timestamp);
    }
    let (frame_type, codec_id) = (first >> 4, first & 0x0f);
    // A command has one byte; anything longer is video that is marked wrongly.
    if frame_type == FRAME_TYPE_COMMAND && tag.len() <= LEGACY_HEADER {
        return Ok(None);
    }
    let codec = match codec_id {
        VIDEO_AVC => Codec::H264,
        VIDEO_HEVC_LEGACY => Codec::Hevc,
        other => return Err(Error::VideoCodec(other)),
    };
    let &packet_type = tag.get(1).ok_or(Error::Truncated)?;
    if !matches!(packet_type, SEQUENCE_START | CODED_FRAMES) {
        // End of sequence, which some encoders send without a composition time, and undefined types.
        return Ok(None);
    }
    let &[_, _, c0, c1, c2, ..] = &tag[..] else { return Err(Error::Truncated) };
    let data = tag.slice(5..);
    let (kind, composition_ms) = match packet_type {
        SEQUENCE_START => (FrameKind::Configuration, 0),
        _ => (frame_kind(frame_type), signed_24([c0, c1, c2])),
    };
    frame(codec, kind, timestamp, composition_ms, data)
}

fn read_extended(mut tag: Bytes, first: u8, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let frame_type = (first >> 4) & 7;
    let packet_type = skip_extensions(&mut tag, first & 0x0f, TYPES)?;
    // The frame type of colour information has no meaning; FFmpeg sends that of a command. Of other commands only H.264
    // is read: whether it is video shows in its framing.
    let is_command = frame_type == FRAME_TYPE_COMMAND && packet_type != METADATA;
    let packet = match read_packet(tag, packet_type, TYPES) {
        // Unreadable colour information is dropped; the publish continues.
        Err(_) if packet_type == METADATA || is_command => None,
        read => read?,
    };
    let Some(packet) = packet else { return Ok(None) };
    let Packet { packet_type, four_cc, mut body } = packet;
    let codec = match &four_cc {
        b"avc1" => Codec::H264,
        _ if is_command => return Ok(None),
        b"hvc1" => Codec::Hevc,
        b"av01" => Codec::Av1,
        b"vp09" => Codec::Vp9,
        _ if packet_type == METADATA => return Ok(None),
        _ => return Err(Error::FourCc(four_cc)),
    };
    if packet_type == SEQUENCE_START {
        return frame(codec, FrameKind::Configuration, timestamp, 0, body);
    }
    if packet_type == METADATA {
        let info = frame(codec, FrameKind::ColorInfo, timestamp, 0, body)?;
        return Ok(info.filter(|_| codec != Codec::H264));
    }
    let has_offset = packet_type == CODED_FRAMES && matches!(codec, Codec::H264 | Codec::Hevc);
    let composition_ms = match has_offset {
        true => match take(&mut body) {
            Err(_) if is_command => return Ok(None),
            offset => signed_24(offset?),
        },
        false => 0,
    };
    frame(codec, frame_kind(frame_type), timestamp, composition_ms, body)
}

const fn frame_kind(frame_type: u8) -> FrameKind {
    match frame_type {
        FRAME_TYPE_KEY => FrameKind::Keyframe,
        FRAME_TYPE_DISPOSABLE => FrameKind::Disposable,
        _ => FrameKind::Inter,
    }
}

const fn signed_24([a, b, c]: [u8; 3]) -> i32 {
    i32::from_be_bytes([a, b, c, 0]) >> 8
}
