//! Enhanced RTMP v2 as encoders put it together: extensions, tracks, and packets that are not media.

use super::*;

const AT: Timestamp = Timestamp::from_millis(40);
/// TimestampOffsetNano: four bytes of header, three of nanoseconds.
const NANOSECONDS: &[u8] = &[2, 0, 3, 0xe8];

fn video(parts: &[&[u8]]) -> Result<Option<Frame>, Error> {
    read_video(&parts.concat().into(), AT)
}

fn audio(parts: &[&[u8]]) -> Result<Option<Frame>, Error> {
    read_audio(&parts.concat().into(), AT)
}

fn video_frame(codec: Codec, kind: FrameKind, composition_ms: i32, data: &'static [u8]) -> Frame {
    Frame { codec, kind, timestamp: AT, composition_ms, data: Bytes::from_static(data) }
}

fn audio_frame(codec: Codec, data: &'static [u8]) -> Frame {
    video_frame(codec, FrameKind::Audio, 0, data)
}

/// An extension of type 0 that is followed by a packet of `packet_type`.
fn extension(data: &[u8], packet_type: u8) -> Vec<u8> {
    let length = u8::try_from(data.len() - 1).expect("short");
    [&[length][..], data, &[packet_type]].concat()
}

#[test]
fn composition_time_is_read_only_where_the_packet_type_has_it() {
    let want = |cts| Ok(Some(video_frame(Codec::Hevc, FrameKind::Keyframe, cts, b"data")));
    assert_eq!(video(&[b"\x91hvc1", &[0, 0, 80], b"data"]), want(80));
    assert_eq!(video(&[b"\x91hvc1", &[0xff, 0xff, 0xd8], b"data"]), want(-40));
    assert_eq!(video(&[b"\x93hvc1", b"data"]), want(0));
    let av1 = video_frame(Codec::Av1, FrameKind::Inter, 0, b"data");
    assert_eq!(video(&[b"\xa1av01", b"data"]), Ok(Some(av1)));
}

#[test]
fn known_and_unknown_extensions_are_skipped() {
    let want = Ok(Some(video_frame(Codec::Hevc, FrameKind::Keyframe, 80, b"data")));
    let media: &[u8] = b"hvc1\0\0\x50data";
    assert_eq!(video(&[&[0x97], NANOSECONDS, &[0x01], media]), want, "nanoseconds");
    assert_eq!(video(&[&[0x97], &extension(&[9; 5], 0xf1), media]), want, "unknown");
    let both = [extension(&[1, 2, 3], 0x07), extension(&[4], 0x21)].concat();
    assert_eq!(video(&[&[0x97], &both, media]), want, "several");
    let long = [&[255, 1, 0x2b][..], &[7; 300], &[0x01]].concat();
    assert_eq!(video(&[&[0x97], &long, media]), want, "300 bytes long");
    let packet = Ok(Some(audio_frame(Codec::Opus, b"packet")));
    assert_eq!(audio(&[&[0x97], NANOSECONDS, &[0x01], b"Opuspacket"]), packet);
}

#[test]
fn an_extension_may_precede_a_track() {
    let want = Ok(Some(video_frame(Codec::Hevc, FrameKind::Keyframe, 0, b"data")));
    assert_eq!(video(&[&[0x97], NANOSECONDS, &[0x06], &[0x03], b"hvc1", &[0], b"data"]), want);
}

#[test]
fn too_many_extensions_are_an_error() {
    let many = |count: usize| [extension(&[0], 7).repeat(count - 1), extension(&[0], 3)].concat();
    assert!(video(&[&[0x97], &many(16), b"hvc1data"]).is_ok_and(|frame| frame.is_some()));
    assert_eq!(video(&[&[0x97], &many(17), b"hvc1data"]), Err(Error::Extensions));
}

#[test]
fn a_single_track_is_used_only_if_it_is_the_first() {
    let key = video_frame(Codec::Hevc, FrameKind::Keyframe, 80, b"data");
    assert_eq!(video(&[&[0x96, 0x01], b"hvc1", &[0], &[0, 0, 80], b"data"]), Ok(Some(key)));
    assert_eq!(video(&[&[0x96, 0x01], b"hvc1", &[1], &[0, 0, 80], b"data"]), Ok(None));
    let header = video_frame(Codec::Av1, FrameKind::Configuration, 0, b"av1C");
    assert_eq!(video(&[&[0x96, 0x00], b"av01", &[0], b"av1C"]), Ok(Some(header)));
    assert_eq!(
        audio(&[&[0x95, 0x01], b"mp4a", &[0], b"aac"]),
        Ok(Some(audio_frame(Codec::Aac, b"aac")))
    );
    // As OBS sends its additional audio tracks.
    assert_eq!(audio(&[&[0x95, 0x01], b"mp4a", &[1], b"aac"]), Ok(None));
}

#[test]
fn the_first_of_many_tracks_is_used_wherever_it_is() {
    let track = |id, data: &[u8]| [&[id, 0, 0, data.len() as u8][..], data].concat();
    let key = Ok(Some(video_frame(Codec::Hevc, FrameKind::Keyframe, 0, b"zero")));
    let (zero, one, two) = (track(0, b"zero"), track(1, b"one"), track(2, b""));
    assert_eq!(video(&[&[0x96, 0x13], b"hvc1", &zero, &one, &two]), key);
    assert_eq!(video(&[&[0x96, 0x13], b"hvc1", &one, &two, &zero]), key);
    assert_eq!(video(&[&[0x96, 0x13], b"hvc1", &one, &two]), Ok(None));
    let want = Ok(Some(audio_frame(Codec::Opus, b"zero")));
    assert_eq!(audio(&[&[0x95, 0x11], b"Opus", &one, &zero]), want);
}

#[test]
fn of_many_tracks_with_many_codecs_only_the_codec_of_the_first_matters() {
    let track = |codec: &[u8], id, data: &[u8]| {
        [codec, &[id, 0, 0, u8::try_from(data.len()).expect("short")], data].concat()
    };
    let (ours, theirs) = (track(b"av01", 0, b"zero"), track(b"vvc9", 1, b"one"));
    let key = Ok(Some(video_frame(Codec::Av1, FrameKind::Keyframe, 0, b"zero")));
    assert_eq!(video(&[&[0x96, 0x21], &ours, &theirs]), key);
    assert_eq!(video(&[&[0x96, 0x21], &theirs, &ours]), key);
    assert_eq!(video(&[&[0x96, 0x21], &theirs]), Ok(None));
    let (theirs, ours) = (track(b"ac-3", 0, b"zero"), track(b"Opus", 1, b"one"));
    assert_eq!(audio(&[&[0x95, 0x21], &ours, &theirs]), Err(Error::FourCc(*b"ac-3")));
}

#[test]
fn nested_tracks_and_unknown_multitrack_types_are_ignored() {
    for kinds in [0x06, 0x16, 0x26, 0x07, 0x31, 0xf1] {
        assert_eq!(video(&[&[0x96, kinds], b"hvc1\0data"]), Ok(None), "{kinds:x}");
    }
    for kinds in [0x05, 0x15, 0x25, 0x07, 0x31, 0xf1] {
        assert_eq!(audio(&[&[0x95, kinds], b"Opus\0data"]), Ok(None), "{kinds:x}");
    }
}

#[test]
fn packets_that_are_not_media_are_ignored_whatever_follows() {
    let ends: [&[u8]; 4] = [b"", b"hvc1", b"hvc1 and more", b"vvc9"];
    let layouts = [&ends[1..], &[b"Opus", b"Opus\x01"]].concat();
    for end in ends {
        for packet_type in [2, 5].into_iter().chain(8..16) {
            assert_eq!(video(&[&[0x90 | packet_type], end]), Ok(None), "{packet_type} {end:x?}");
        }
        for packet_type in [2, 3, 6].into_iter().chain(8..16) {
            assert_eq!(audio(&[&[0x90 | packet_type], end]), Ok(None), "{packet_type} {end:x?}");
        }
        assert_eq!(video(&[&[0xd1], end]), Ok(None), "a seek command");
        if end != b"hvc1 and more" {
            assert_eq!(video(&[&[0x94], end]), Ok(None), "no colour: {end:x?}");
        }
    }
    for layout in layouts {
        assert_eq!(audio(&[&[0x94], layout]), Ok(None), "{layout:x?}");
    }
}

#[test]
fn colour_information_is_passed_on_for_codecs_sent_as_enhanced_rtmp() {
    let info = |codec| Ok(Some(video_frame(codec, FrameKind::ColorInfo, 0, b"colorInfo")));
    // OBS sends it without a frame type, FFmpeg with that of a command.
    assert_eq!(video(&[b"\x84hvc1", b"colorInfo"]), info(Codec::Hevc));
    assert_eq!(video(&[b"\xd4av01", b"colorInfo"]), info(Codec::Av1));
    assert_eq!(video(&[b"\x94avc1", b"colorInfo"]), Ok(None));
    assert_eq!(video(&[b"\x96\x04hvc1\0", b"colorInfo"]), info(Codec::Hevc), "as the first track");
    let long = vec![0; CONFIGURATION_LIMIT_BYTES + 1];
    assert_eq!(video(&[b"\x94hvc1", &long]), Err(Error::ConfigurationLimit));
    let frame = video_frame(Codec::Hevc, FrameKind::ColorInfo, 0, b"colorInfo");
    assert_eq!(tag_header(&frame).as_slice(), b"\xd4hvc1");
}

#[test]
fn empty_media_packets_are_ignored() {
    assert_eq!(video(&[b"\x90hvc1"]), Ok(None));
    assert_eq!(video(&[b"\x91hvc1", &[0, 0, 0]]), Ok(None));
    assert_eq!(audio(&[b"\x91Opus"]), Ok(None));
}

#[test]
fn an_opus_sequence_is_configured_only_by_its_head() {
    assert_eq!(audio(&[b"\x90Opus"]), Ok(None));
    assert_eq!(audio(&[b"\x90Opus", b"OpusTags\0\0\0\0\0\0\0\0"]), Ok(None));
    let head = crate::opus::head(crate::Channels::Mono);
    let read = audio(&[b"\x90Opus", &head]).expect("Opus").expect("a head");
    assert_eq!((read.kind, &read.data[..]), (FrameKind::Configuration, &head[..]));
}

#[test]
fn opus_of_more_than_two_channels_or_with_a_channel_mapping_is_rejected() {
    let head = |channels: u8, family: u8| {
        let mut head = crate::opus::head(crate::Channels::Stereo);
        (head[9], head[18]) = (channels, family);
        head
    };
    for (channels, family) in [(3, 0), (2, 1), (6, 1), (8, 255)] {
        let error = audio(&[b"\x90Opus", &head(channels, family)]).expect_err("not carried");
        assert_eq!(error, Error::OpusChannels { channels, family });
        assert_eq!(error.code(), "codec_unsupported");
        let words = format!("{channels} channels and channel mapping family {family} is not");
        assert!(error.to_string().contains(&words), "{error}");
    }
    let cut = head(2, 0);
    assert_eq!(audio(&[b"\x90Opus", &cut[..18]]), Err(Error::Truncated));
    assert!(audio(&[b"\x90Opus", &head(1, 0)]).is_ok_and(|frame| frame.is_some()));
}

#[test]
fn a_channel_layout_is_ignored_unless_it_makes_opus_multichannel() {
    // As FFmpeg 8 sends it after the head: native order, two channels, left and right.
    assert_eq!(audio(&[b"\x94Opus", &[1, 2, 0, 0, 0, 3]]), Ok(None));
    let six = [1, 6, 0, 0, 0, 0x3f];
    let refused = |family| Err(Error::OpusChannels { channels: 6, family });
    assert_eq!(audio(&[b"\x94Opus", &six]), refused(1));
    assert_eq!(audio(&[b"\x94Opus", &[0, 6]]), refused(255));
    assert_eq!(audio(&[b"\x95\x04Opus\0", &six]), refused(1), "as the first track");
    assert_eq!(audio(&[b"\x95\x04Opus\x01", &six]), Ok(None), "as the second track");
    assert_eq!(audio(&[b"\x94mp4a", &six]), Ok(None));
}

#[test]
fn unsupported_codecs_are_named() {
    for four_cc in [b"vp08", b"vvc1", b"xxxx"] {
        let error = video(&[&[0x90], four_cc, b"data"]).expect_err("not carried");
        assert_eq!((error, error.code()), (Error::FourCc(*four_cc), "codec_unsupported"));
    }
    for four_cc in [b"ac-3", b"ec-3", b"fLaC", b"\xff\0\n\""] {
        assert_eq!(audio(&[&[0x91], four_cc, b"data"]), Err(Error::FourCc(*four_cc)));
    }
    assert_eq!(Error::FourCc(*b"fLaC").to_string(), "codec fLaC is not supported");
    assert_eq!(Error::FourCc(*b"\xff\0\n\"").to_string(), r#"codec \xff\x00\n\" is not supported"#);
}

#[test]
fn headers_cut_anywhere_are_truncated() {
    let key = &b"\x97\x02\0\x03\xe8\x06\x21hvc1\0\0\0\x07\0\0\x50data"[..];
    for end in 1..key.len() {
        let read = video(&[&key[..end]]);
        // The multitrack type may be followed by no track at all.
        assert_eq!(read, if end == 7 { Ok(None) } else { Err(Error::Truncated) }, "{end}");
    }
    assert!(video(&[key]).is_ok_and(|frame| frame.is_some()));
    assert_eq!(audio(&[b"\x91Opu"]), Err(Error::Truncated));
}
