//! Fuzz body: any bytes as frames of a publish. Run by the shells in `crates/fuzz` and by tests.

use bytes::Bytes;

use super::Repair;
use crate::h264::Framing;
use crate::{Codec, Frame, FrameKind, Timestamp};

/// Frames, each after two bytes of form and two of length.
///
/// # Panics
/// When an H.264 frame leaves without configuration or in an unreadable framing, or more leaves than can have arrived.
pub fn frames(mut bytes: &[u8]) {
    let mut repair = Repair::default();
    let (mut arrived, mut left, mut has_configuration, mut millis) = (0, 0, false, 0);
    while let Some((&[form, step, high, low], rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (data, rest) = rest.split_at(length);
        bytes = rest;
        millis += i64::from(step) * 8;
        let codec = if form & 1 == 0 { Codec::H264 } else { Codec::Aac };
        let kind = match (form >> 1 & 3, codec) {
            (0, _) => FrameKind::Configuration,
            (_, Codec::Aac) => FrameKind::Audio,
            (1, _) => FrameKind::Keyframe,
            (2, _) => FrameKind::Inter,
            _ => FrameKind::Disposable,
        };
        let (timestamp, data) = (Timestamp::from_millis(millis), Bytes::copy_from_slice(data));
        // Three-byte start codes become lengths of four; one-byte lengths too.
        arrived += 4 * data.len() + 4;
        let mut next =
            repair.handle_frame(Frame { codec, kind, timestamp, composition_ms: 0, data });
        while let Some(frame) = next {
            if frame.codec == Codec::H264 && frame.kind == FrameKind::Configuration {
                has_configuration = true;
            } else if frame.codec == Codec::H264 {
                assert!(has_configuration, "a frame without a configuration");
                let sizes = [4, 2, 1].map(|size| Framing::Lengths(size).kinds(&frame.data));
                assert!(sizes.iter().any(Option::is_some), "a frame in no framing");
                left += frame.data.len();
            }
            next = repair.poll_frame();
        }
        assert!(left <= arrived, "more than arrived");
        let _ = (repair.poll_irregularities(), repair.poll_withheld());
    }
}
