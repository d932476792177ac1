//! Fuzz body: reads any bytes as tag bodies; what was read is written and read again. Run by the shells in
//! `crates/fuzz` and by tests.

use bytes::Bytes;

use super::{read_audio, read_video, tag_header};
use crate::{Codec, Frame, FrameKind, Timestamp};

/// Reads the bytes as a video and as an audio tag body.
///
/// # Panics
/// When a frame changes by being written and read again.
pub fn tag_body(bytes: &[u8]) {
    let tag = Bytes::copy_from_slice(bytes);
    for read in [read_video, read_audio] {
        let Ok(Some(frame)) = read(&tag, Timestamp::ZERO) else { continue };
        assert!(frame.data.len() < tag.len(), "a frame is larger than its input");
        let again: Bytes = [tag_header(&frame).as_slice(), &frame.data].concat().into();
        assert_eq!(read(&again, Timestamp::ZERO), Ok(Some(as_written(frame))));
    }
}

/// The frame as it appears on the wire: for H.264, FLV has no frame type for disposable frames.
fn as_written(mut frame: Frame) -> Frame {
    if frame.codec == Codec::H264 && frame.kind == FrameKind::Disposable {
        frame.kind = FrameKind::Inter;
    }
    frame
}
