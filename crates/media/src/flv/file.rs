//! The structure around tag bodies when FLV is a file or the body of an HTTP response (FLV 10.1 E.2 to E.4.1). RTMP
//! uses messages instead.

use super::header::tag_header;
use crate::{Frame, Track};

/// Length of the file header, including the first PreviousTagSize.
pub const FILE_HEADER_BYTES: usize = 13;
/// Length of the tag header, which PreviousTagSize includes.
const TAG_HEADER_BYTES: u32 = 11;
/// Largest body: its size field has 24 bits.
const BODY_LIMIT: u32 = 0xff_ffff;

/// The beginning of a file. Readers that rely on it wait for the tracks it announces.
#[must_use]
pub const fn file_header(has_video: bool, has_audio: bool) -> [u8; FILE_HEADER_BYTES] {
    let tracks = (has_audio as u8) << 2 | has_video as u8;
    [b'F', b'L', b'V', 1, tracks, 0, 0, 0, 9, 0, 0, 0, 0]
}

/// Appends a frame as a tag followed by its PreviousTagSize; nothing when its body exceeds the limit of a tag (16 MiB).
pub fn write_tag(frame: &Frame, timestamp_ms: u32, out: &mut Vec<u8>) {
    let header = tag_header(frame);
    let bytes = u32::try_from(header.as_slice().len() + frame.data.len());
    let Some(bytes) = bytes.ok().filter(|bytes| *bytes <= BODY_LIMIT) else { return };
    let kind = match frame.track() {
        Track::Audio => 8,
        Track::Video => 9,
        Track::Script => 18,
    };
    let [_, s0, s1, s2] = bytes.to_be_bytes();
    // The most significant byte comes last.
    let [t3, t0, t1, t2] = timestamp_ms.to_be_bytes();
    out.extend_from_slice(&[kind, s0, s1, s2, t0, t1, t2, t3, 0, 0, 0]);
    out.extend_from_slice(header.as_slice());
    out.extend_from_slice(&frame.data);
    out.extend_from_slice(&(bytes + TAG_HEADER_BYTES).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, FrameKind, Timestamp};
    use bytes::Bytes;

    fn tag(codec: Codec, kind: FrameKind, timestamp_ms: u32, data: &[u8]) -> Vec<u8> {
        let data = Bytes::copy_from_slice(data);
        let timestamp = Timestamp::ZERO;
        let mut out = Vec::new();
        let frame = Frame { codec, kind, timestamp, composition_ms: 0, data };
        write_tag(&frame, timestamp_ms, &mut out);
        out
    }

    #[test]
    fn a_file_starts_with_its_signature_and_its_tracks() {
        assert_eq!(file_header(true, true), *b"FLV\x01\x05\0\0\0\x09\0\0\0\0");
        assert_eq!(file_header(true, false)[4], 1);
        assert_eq!(file_header(false, true)[4], 4);
    }

    #[test]
    fn a_tag_has_its_size_before_and_after_and_the_highest_timestamp_byte_last() {
        let video = tag(Codec::H264, FrameKind::Keyframe, 0x0102_0304, b"slice");
        let want = b"\x09\0\0\x0a\x02\x03\x04\x01\0\0\0\x17\x01\0\0\0slice\0\0\0\x15";
        assert_eq!(video, want);
        let audio = tag(Codec::Opus, FrameKind::Audio, 20, b"toc");
        assert_eq!(audio, b"\x08\0\0\x08\0\0\x14\0\0\0\0\x91Opustoc\0\0\0\x13");
        let script = tag(Codec::Amf0, FrameKind::Script, 0, b"amf");
        assert_eq!(script, b"\x12\0\0\x03\0\0\0\0\0\0\0amf\0\0\0\x0e");
    }

    #[test]
    fn a_body_too_large_for_a_tag_is_left_out() {
        let header = 5;
        let room = BODY_LIMIT as usize - header;
        let length = |data: usize| tag(Codec::H264, FrameKind::Inter, 0, &vec![0; data]).len();
        assert_eq!(length(room), BODY_LIMIT as usize + 15);
        assert_eq!(length(room + 1), 0);
    }
}
