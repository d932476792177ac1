//! Removes video and audio from tag bodies: zeros of the same length, with the parts that a parser needs left as they
//! were.

use bytes::Bytes;

use super::{read_audio, read_video};
use crate::{Codec, Frame, FrameKind, Timestamp, h264};

/// Bytes kept of a tag body that cannot be parsed: its headers.
const UNREAD_BYTES: usize = 8;
/// Bytes of a coded frame of other codecs that determine its duration.
const FRAME_HEADER: usize = 2;

/// Overwrites the image data in a video tag body; configurations are kept.
pub fn blank_video(body: &mut [u8]) {
    let copy = Bytes::copy_from_slice(body);
    let frame = read_video(&copy, Timestamp::ZERO).ok().flatten();
    blank(body, &copy, frame.as_ref());
}

/// Overwrites the audio data in an audio tag body; configurations are kept.
pub fn blank_audio(body: &mut [u8]) {
    let copy = Bytes::copy_from_slice(body);
    let frame = read_audio(&copy, Timestamp::ZERO).ok().flatten();
    blank(body, &copy, frame.as_ref());
}

fn blank(body: &mut [u8], copy: &Bytes, frame: Option<&Frame>) {
    let Some(frame) = frame else {
        body.iter_mut().skip(UNREAD_BYTES).for_each(|byte| *byte = 0);
        return;
    };
    if matches!(frame.kind, FrameKind::Configuration | FrameKind::ColorInfo) {
        return;
    }
    // The frame's data is a slice of the copy.
    let at = (frame.data.as_ptr() as usize).saturating_sub(copy.as_ptr() as usize);
    let Some(data) = body.get_mut(at..) else { return };
    match frame.codec {
        Codec::H264 => blank_units(data),
        _ => data.iter_mut().skip(FRAME_HEADER).for_each(|byte| *byte = 0),
    }
}

/// Overwrites NAL units, each after its length.
fn blank_units(mut data: &mut [u8]) {
    while let Some((length, rest)) = std::mem::take(&mut data).split_first_chunk_mut::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let (unit, rest) = rest.split_at_mut(length.min(rest.len()));
        h264::blank_unit(unit);
        data = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_their_header_and_lose_their_content() {
        let mut body = vec![0x17, 1, 0, 0, 0, 0, 0, 0, 12, 0x65];
        body.extend_from_slice(&[9; 11]);
        blank_video(&mut body);
        assert_eq!(body[..10], [0x17, 1, 0, 0, 0, 0, 0, 0, 12, 0x65]);
        assert_eq!(body[10..], [9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn configurations_are_kept_and_audio_is_blanked() {
        let header = vec![0x17, 0, 0, 0, 0, 1, 0x42, 0, 0x1f, 0xff, 0xe1, 0, 0];
        let mut body = header.clone();
        blank_video(&mut body);
        assert_eq!(body, header);
        let mut sound = vec![0xaf, 1, 5, 6, 7, 8];
        blank_audio(&mut sound);
        assert_eq!(sound, [0xaf, 1, 5, 6, 0, 0]);
    }
}
