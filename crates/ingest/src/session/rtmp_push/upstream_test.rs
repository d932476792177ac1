//! What a push sends that tests its upstream, and how far it has come.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::flv::FILE_HEADER_BYTES;
use headgate_media::{Frame, Timestamp, flv};

use crate::publish::upstream_cause::PushStep;

/// What is sent, FLV: colour bars, H.264 at 640x360 and 25 frames per second, and silence, AAC at 48 kHz stereo. Made by
/// ffmpeg from `smptehdbars` and `anullsrc`.
const TEST_PICTURE: &[u8] = include_bytes!("../test_picture.flv");
/// A running test.
pub(super) struct UpstreamTest {
    /// The steps that were begun, in order.
    pub(super) steps: Vec<(PushStep, Instant)>,
    /// The frames that are still to be sent, oldest first.
    pub(super) frames: std::vec::IntoIter<Frame>,
    /// When the upstream must have accepted the publish.
    pub(super) until: Instant,
}

/// When a frame of the test picture is due after the first one.
pub(super) fn time_of(frame: &Frame) -> Duration {
    Duration::from_millis(u64::try_from(frame.timestamp.as_millis()).unwrap_or(0))
}

/// The frames of the test picture, with decoder configurations.
pub(super) fn test_picture() -> Vec<Frame> {
    frames_of(TEST_PICTURE)
}

/// The frames of an FLV file of ours, whose metadata is left out.
fn frames_of(file: &'static [u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut rest = file.get(FILE_HEADER_BYTES..).unwrap_or_default();
    while let [kind, s0, s1, s2, t0, t1, t2, t3, _, _, _, tag @ ..] = rest {
        let size = u32::from_be_bytes([0, *s0, *s1, *s2]) as usize;
        let Some((body, after)) = tag.split_at_checked(size) else { break };
        let timestamp = Timestamp::from_millis(u32::from_be_bytes([*t3, *t0, *t1, *t2]).into());
        let body = Bytes::from_static(body);
        let frame = match kind {
            8 => flv::read_audio(&body, timestamp),
            9 => flv::read_video(&body, timestamp),
            _ => Ok(None),
        };
        frames.extend(frame.ok().flatten());
        // PreviousTagSize.
        rest = after.get(4..).unwrap_or_default();
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use headgate_media::{FrameKind, Track};

    #[test]
    fn the_test_picture_is_two_seconds_of_video_and_audio_with_their_configurations() {
        let frames = frames_of(TEST_PICTURE);
        let count = |track: Track, kind: FrameKind| {
            frames.iter().filter(|frame| frame.track() == track && frame.kind == kind).count()
        };
        assert_eq!(count(Track::Video, FrameKind::Configuration), 1);
        assert_eq!(count(Track::Audio, FrameKind::Configuration), 1);
        assert_eq!(count(Track::Video, FrameKind::Keyframe), 2);
        assert_eq!(
            count(Track::Video, FrameKind::Keyframe) + count(Track::Video, FrameKind::Inter),
            50
        );
        assert!(count(Track::Audio, FrameKind::Audio) > 90);
        assert!(frames.is_sorted_by_key(|frame| frame.timestamp));
    }
}
