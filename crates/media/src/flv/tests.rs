//! Frames are read back as they were written; tag bodies without media and unsupported ones are handled.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::SoundFlags;
use crate::{Channels, opus};

const AT: Timestamp = Timestamp::from_millis(40);

fn body(frame: &Frame) -> Bytes {
    [tag_header(frame).as_slice(), &frame.data].concat().into()
}

fn sample(codec: Codec, kind: FrameKind) -> Frame {
    let data = Bytes::from_static(&[0, 0, 0, 1, 0x65]);
    Frame { codec, kind, timestamp: AT, composition_ms: 0, data }
}

/// Every codec with each of its kinds of frame, and with composition times where they apply.
fn any_frame() -> impl Strategy<Value = Frame> {
    use FrameKind::{Audio, Configuration, Disposable, Inter, Keyframe};
    let video = (
        proptest::sample::select(&[Codec::H264, Codec::Hevc, Codec::Av1, Codec::Vp9][..]),
        proptest::sample::select(&[Configuration, Keyframe, Inter, Disposable][..]),
        -(1_i32 << 23)..1 << 23,
    );
    let audio = (
        proptest::sample::select(vec![Codec::Aac, Codec::Opus, Codec::Mp3(SoundFlags::of(0x22))]),
        proptest::sample::select(&[Configuration, Audio][..]),
        Just(0),
    );
    (prop_oneof![video, audio], any::<i32>(), vec(any::<u8>(), 1..40)).prop_map(
        |((codec, kind, composition_ms), millis, data)| {
            let has_offset = matches!(codec, Codec::H264 | Codec::Hevc) && kind != Configuration;
            let (kind, data) = match (codec, kind) {
                (Codec::H264, Disposable) => (Inter, data),
                (Codec::Mp3(_), _) => (Audio, data),
                (Codec::Opus, Configuration) => (kind, opus::head(Channels::Stereo).to_vec()),
                _ => (kind, data),
            };
            Frame {
                codec,
                kind,
                timestamp: Timestamp::from_millis(millis.into()),
                composition_ms: if has_offset { composition_ms } else { 0 },
                data: data.into(),
            }
        },
    )
}

proptest! {
    #[test]
    fn every_frame_reads_back_as_it_was_written(frame in any_frame()) {
        let read = match frame.track() {
            crate::Track::Video => read_video(&body(&frame), frame.timestamp),
            crate::Track::Audio | crate::Track::Script => read_audio(&body(&frame), frame.timestamp),
        };
        prop_assert_eq!(read, Ok(Some(frame)));
    }
}

#[test]
fn legacy_headers_are_those_of_every_encoder() {
    let key = sample(Codec::H264, FrameKind::Keyframe);
    assert_eq!(tag_header(&key).as_slice(), [0x17, 1, 0, 0, 0]);
    let aac = sample(Codec::Aac, FrameKind::Configuration);
    assert_eq!(tag_header(&aac).as_slice(), [0xaf, 0]);
}

#[test]
fn extended_headers_are_those_of_ffmpeg() {
    let header = |codec, kind| tag_header(&sample(codec, kind)).as_slice().to_vec();
    assert_eq!(header(Codec::Opus, FrameKind::Configuration), b"\x90Opus");
    assert_eq!(header(Codec::Opus, FrameKind::Audio), b"\x91Opus");
    assert_eq!(header(Codec::Hevc, FrameKind::Configuration), b"\x90hvc1");
    assert_eq!(header(Codec::Hevc, FrameKind::Keyframe), b"\x91hvc1\0\0\0");
    assert_eq!(header(Codec::Av1, FrameKind::Inter), b"\xa1av01");
    assert_eq!(header(Codec::Vp9, FrameKind::Keyframe), b"\x91vp09");
}

#[test]
fn hevc_in_its_form_before_enhanced_rtmp_is_recognised() {
    let key = Bytes::from_static(&[0x1c, 1, 0, 0, 80, 0, 0, 0, 1, 0x26]);
    let frame = read_video(&key, AT).expect("HEVC").expect("a frame");
    let what = (frame.codec, frame.kind, frame.composition_ms);
    assert_eq!(what, (Codec::Hevc, FrameKind::Keyframe, 80));
}

#[test]
fn bodies_without_media_are_ignored() {
    let bodies: [&[u8]; 9] = [
        &[],
        &[0x17, 2, 0, 0, 0],
        &[0x17, 2],
        &[0x27, 2, 0, 0],
        &[0x1c, 2],
        &[0x17, 9],
        &[0x57, 0],
        &[0x17, 5, 0, 0, 0],
        &[0x17, 1, 0, 0, 0],
    ];
    for body in bodies {
        assert_eq!(read_video(&Bytes::from_static(body), AT), Ok(None), "{body:x?}");
    }
    for body in [&[][..], &[0xaf, 0], &[0xaf, 1], &[0xaf, 2], &[0xaf, 2, 0x21, 0x10], &[0x2f]] {
        assert_eq!(read_audio(&Bytes::copy_from_slice(body), AT), Ok(None), "{body:x?}");
    }
}

#[test]
fn truncated_bodies_and_other_codecs_are_errors() {
    assert_eq!(read_video(&Bytes::from_static(&[0x17, 1, 0]), AT), Err(Error::Truncated));
    assert_eq!(read_video(&Bytes::from_static(&[0x17]), AT), Err(Error::Truncated));
    assert_eq!(read_video(&Bytes::from_static(&[0x17, 0]), AT), Err(Error::Truncated));
    assert_eq!(read_video(&Bytes::from_static(&[0x12, 1]), AT), Err(Error::VideoCodec(2)));
    assert_eq!(read_audio(&Bytes::from_static(&[0xaf]), AT), Err(Error::Truncated));
    assert_eq!(read_audio(&Bytes::from_static(&[0xb0, 0]), AT), Err(Error::AudioCodec(11)));
}

#[test]
fn a_decoder_configuration_is_at_most_64_kib() {
    let with = |header: &[u8], length| Bytes::from([header, &vec![1; length]].concat());
    type Read = fn(&Bytes, Timestamp) -> Result<Option<Frame>, Error>;
    let headers: [(Read, &[u8]); 4] = [
        (read_video, &[0x17, 0, 0, 0, 0]),
        (read_video, b"\x90hvc1"),
        (read_audio, &[0xaf, 0]),
        (read_audio, b"\x90mp4a"),
    ];
    for (read, header) in headers {
        let longest = read(&with(header, 65_536), AT).expect("within the limit").expect("a frame");
        assert_eq!((longest.kind, longest.data.len()), (FrameKind::Configuration, 65_536));
        let error = read(&with(header, 65_537), AT).expect_err("one byte too many");
        assert_eq!((error, error.code()), (Error::ConfigurationLimit, "configuration_limit"));
    }
    let key = with(&[0x17, 1, 0, 0, 0], 65_537);
    assert!(read_video(&key, AT).is_ok_and(|frame| frame.is_some()), "video may be longer");
}
