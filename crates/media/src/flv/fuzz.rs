//! Fuzz body: any bytes as tag bodies; what is read is written and read again. Shells in `crates/fuzz` and tests run it.

use bytes::Bytes;

use super::{read_audio, read_video, tag_header};
use crate::{Codec, Frame, FrameKind, Timestamp};

/// The bytes as a video and as an audio tag body.
///
/// # Panics
/// A frame that changes when it is written and read again is a finding.
pub fn tag_body(bytes: &[u8]) {
    let tag = Bytes::copy_from_slice(bytes);
    for read in [read_video, read_audio] {
        let Ok(Some(frame)) = read(&tag, Timestamp::ZERO) else { continue };
        assert!(frame.data.len() < tag.len(), "a frame is made of more than there was");
        let again: Bytes = [tag_header(&frame).as_slice(), &frame.data].concat().into();
        assert_eq!(read(&again, Timestamp::ZERO), Ok(Some(as_written(frame))));
    }
}

/// What becomes of a frame on the wire: FLV has no frame type for disposable frames of H.264.
fn as_written(mut frame: Frame) -> Frame {
    if frame.codec == Codec::H264 && frame.kind == FrameKind::Disposable {
        frame.kind = FrameKind::Inter;
    }
    frame
}
