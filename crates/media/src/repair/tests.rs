use bytes::Bytes;

use super::Repair;
use crate::h264::Framing;
use crate::{Codec, Frame, FrameKind, Irregularity, Timestamp, Track};

const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
/// The same with another level.
const OTHER_SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x28, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
const IDR: &[u8] = &[0x65, 0x88, 0x84, 0x21, 0xa0];
const P: &[u8] = &[0x41, 0x9a, 0x21, 0x6c];
/// A slice of an intra picture that is no IDR picture.
const I: &[u8] = &[0x41, 0x88, 0x80, 0x6c];
const AUD: &[u8] = &[9, 0xf0];
const SEI: &[u8] = &[6, 5, 3, 1, 2, 3, 0x80];
const RECOVERY: &[u8] = &[6, 6, 2, 0x0c, 0x24, 0x80];

use FrameKind::{Configuration, Disposable, Inter, Keyframe};

fn lengths(size: usize, units: &[&[u8]]) -> Vec<u8> {
    let prefixed = |unit: &&[u8]| [&(unit.len() as u32).to_be_bytes()[4 - size..], unit].concat();
    units.iter().flat_map(prefixed).collect()
}

fn codes(code: &[u8], units: &[&[u8]]) -> Vec<u8> {
    units.iter().flat_map(|unit| [code, unit].concat()).collect()
}

fn record(sps: &[u8], size: u8) -> Vec<u8> {
    let header = [1, sps[1], sps[2], sps[3], 0xfc | (size - 1), 0xe1, 0, sps.len() as u8];
    [&header[..], sps, &[1, 0, PPS.len() as u8], PPS].concat()
}

fn video(kind: FrameKind, millis: i64, data: impl Into<Vec<u8>>) -> Frame {
    let timestamp = Timestamp::from_millis(millis);
    Frame { codec: Codec::H264, kind, timestamp, composition_ms: 0, data: Bytes::from(data.into()) }
}

fn aac(kind: FrameKind, millis: i64, data: &[u8]) -> Frame {
    Frame { codec: Codec::Aac, ..video(kind, millis, data) }
}

/// What is passed on, and what was counted.
fn run(frames: impl IntoIterator<Item = Frame>) -> (Vec<Frame>, Vec<(Irregularity, u64)>) {
    let mut repair = Repair::default();
    let mut passed = Vec::new();
    for frame in frames {
        passed.extend(repair.handle_frame(frame));
        passed.extend(std::iter::from_fn(|| repair.poll_frame()));
    }
    let counts = repair.poll_irregularities().unwrap_or_default();
    (passed, counts.iter().collect())
}

fn kinds(frames: &[Frame]) -> Vec<FrameKind> {
    frames.iter().map(|frame| frame.kind).collect()
}

#[test]
fn sound_streams_pass_unchanged_and_nothing_is_counted() {
    for size in [1, 2, 4] {
        let framed = |units: &[&[u8]]| lengths(usize::from(size), units);
        let frames = [
            video(Configuration, 0, record(SPS, size)),
            aac(Configuration, 0, &[0x12, 0x10]),
            video(Keyframe, 0, framed(&[SEI, IDR])),
            aac(FrameKind::Audio, 5, &[0x21, 1, 2]),
            video(Inter, 40, framed(&[P])),
            video(Disposable, 80, framed(&[AUD, P, P])),
            // Parameter sets that are repeated, and a configuration that is.
            video(Configuration, 120, record(SPS, size)),
            video(Keyframe, 120, framed(&[AUD, SPS, PPS, SEI, IDR, IDR])),
            // An open GOP: its keyframes are marked, and are no IDR pictures.
            video(Keyframe, 160, framed(&[RECOVERY, I])),
            video(Inter, 20_000, framed(&[P])),
            video(Configuration, 20_040, record(OTHER_SPS, size)),
            video(Keyframe, 20_040, framed(&[IDR])),
        ];
        assert_eq!(run(frames.clone()), (frames.to_vec(), vec![]), "{size}");
    }
}

#[test]
fn start_codes_under_a_configuration_become_its_lengths() {
    for code in [&[0, 0, 0, 1][..], &[0, 0, 1], &[0, 0, 0, 0, 1]] {
        let (passed, counts) = run([
            video(Configuration, 0, record(SPS, 4)),
            video(Keyframe, 0, codes(code, &[AUD, SPS, PPS, IDR])),
            video(Inter, 40, codes(code, &[P])),
        ]);
        let want = [
            video(Configuration, 0, record(SPS, 4)),
            video(Keyframe, 0, lengths(4, &[AUD, SPS, PPS, IDR])),
            video(Inter, 40, lengths(4, &[P])),
        ];
        assert_eq!(passed, want);
        assert_eq!(counts, [(Irregularity::FramingConverted, 2)]);
    }
}

#[test]
fn frames_with_other_lengths_than_declared_are_converted() {
    for (declared, sent) in [(4, 2), (4, 3), (4, 1), (2, 4), (1, 4), (2, 1), (1, 2), (3, 3), (3, 4)]
    {
        let (passed, _) = run([
            video(Configuration, 0, record(SPS, declared)),
            video(Keyframe, 0, lengths(sent, &[SEI, IDR])),
            video(Inter, 40, lengths(sent, &[P])),
        ]);
        let configuration = passed.iter().rev().find(|frame| frame.kind == Configuration);
        let size = configuration.map(|frame| (frame.data[4] & 3) + 1);
        assert_eq!(size, Some(4), "{declared} {sent}");
        let last: Vec<_> = passed.iter().rev().take(2).map(|frame| frame.data.to_vec()).collect();
        assert_eq!(last, [lengths(4, &[P]), lengths(4, &[SEI, IDR])], "{declared} {sent}");
    }
}

#[test]
fn a_configuration_is_built_from_parameter_sets_in_the_media() {
    let start = codes(&[0, 0, 0, 1], &[SPS, PPS, IDR]);
    for first in [
        start,
        codes(&[0, 0, 1], &[AUD, SPS, PPS, SEI, IDR]),
        lengths(4, &[SPS, PPS, IDR]),
        lengths(2, &[SPS, PPS, IDR]),
        lengths(3, &[SPS, PPS, IDR]),
    ] {
        for headers in [vec![], vec![0; 30], vec![1], record(SPS, 4)[..20].to_vec()] {
            let header = Some(video(Configuration, 0, headers)).filter(|of| !of.data.is_empty());
            let frames = [video(Inter, 0, first.clone()), video(Inter, 40, lengths(4, &[P]))];
            let (passed, counts) = run(header.into_iter().chain(frames));
            assert_eq!(kinds(&passed), [Configuration, Keyframe, Inter]);
            assert_eq!(passed[0].data, record(SPS, 4));
            assert!(Framing::Lengths(4).kinds(&passed[1].data).is_some());
            assert!(counts.contains(&(Irregularity::ConfigurationRebuilt, 1)), "{counts:?}");
        }
    }
}

#[test]
fn a_damaged_configuration_is_rebuilt_from_what_it_contains() {
    let whole = record(SPS, 4);
    let with = |at: usize, value: u8| {
        let mut damaged = whole.clone();
        damaged[at] = value;
        damaged
    };
    for damaged in [
        with(0, 0),
        with(0, 7),
        with(4, 0xfe),
        with(5, 0xe0),
        with(5, 0xe2),
        with(19, 0),
        with(19, 2),
        codes(&[0, 0, 0, 1], &[SPS, PPS]),
    ] {
        let frame = video(Keyframe, 0, lengths(4, &[IDR]));
        let (passed, counts) = run([video(Configuration, 0, damaged.clone()), frame.clone()]);
        assert_eq!(passed, [video(Configuration, 0, whole.clone()), frame], "{damaged:x?}");
        assert_eq!(counts, [(Irregularity::ConfigurationRebuilt, 1)]);
    }
}

#[test]
fn frames_without_any_configuration_are_withheld_and_named() {
    let frames = (0..100).map(|n| {
        video(
            [Inter, Keyframe][usize::from(n % 25 == 0)],
            n * 40,
            lengths(4, &[if n % 25 == 0 { IDR } else { P }]),
        )
    });
    let mut repair = Repair::default();
    let passed = frames.filter_map(|frame| repair.handle_frame(frame)).count();
    assert_eq!(passed, 0);
    let counts = repair.poll_irregularities().unwrap_or_default();
    assert_eq!(counts.iter().collect::<Vec<_>>(), [(Irregularity::VideoConfigurationMissing, 75)]);
    assert_eq!((repair.poll_withheld(), repair.poll_withheld()), (Some(Track::Video), None));
}

#[test]
fn a_configuration_up_to_a_second_late_loses_no_frame() {
    for late in [1, 10, 25] {
        let frame = |n: i64| match n {
            0 => video(Keyframe, 0, lengths(4, &[IDR])),
            _ => video(Inter, n * 40, lengths(4, &[P])),
        };
        let header = video(Configuration, 0, record(SPS, 4));
        let frames = (0..late).map(frame).chain([header.clone()]).chain((late..50).map(frame));
        let (passed, counts) = run(frames);
        let want: Vec<_> = std::iter::once(header).chain((0..50).map(frame)).collect();
        assert_eq!((passed, counts), (want, vec![]));
    }
    // Parameter sets in a message of their own, after the keyframe.
    let (passed, _) = run([
        video(Keyframe, 0, codes(&[0, 0, 0, 1], &[IDR])),
        video(Inter, 40, codes(&[0, 0, 0, 1], &[SPS, PPS])),
        video(Inter, 80, codes(&[0, 0, 0, 1], &[P])),
    ]);
    assert_eq!(kinds(&passed), [Configuration, Keyframe, Inter, Inter]);
}

#[test]
fn parameter_sets_in_the_media_replace_those_of_the_configuration_once() {
    let header = video(Configuration, 0, record(SPS, 4));
    let key = |millis| video(Keyframe, millis, lengths(4, &[OTHER_SPS, PPS, IDR]));
    let (passed, counts) =
        run([header.clone(), key(0), header.clone(), key(2000), header, key(4000)]);
    assert_eq!(kinds(&passed), [Configuration, Configuration, Keyframe, Keyframe, Keyframe]);
    assert_eq!(passed[1].data, record(OTHER_SPS, 4));
    assert_eq!(counts, [(Irregularity::ConfigurationRebuilt, 1)]);
}

#[test]
fn frames_in_no_framing_are_dropped() {
    for data in [&b"slice"[..], &[0; 9], &lengths(4, &[P])[..6], &[0xff; 40]] {
        let (passed, counts) =
            run([video(Configuration, 0, record(SPS, 4)), video(Inter, 0, data)]);
        assert_eq!(passed.len(), 1);
        assert_eq!(counts, [(Irregularity::FramingInvalid, 1)]);
    }
    // Padding and empty NAL units are left out.
    for data in
        [[lengths(4, &[P]), vec![0; 7]].concat(), lengths(4, &[&[], P]), lengths(4, &[P, &[]])]
    {
        let (passed, counts) =
            run([video(Configuration, 0, record(SPS, 4)), video(Inter, 0, data)]);
        assert_eq!(passed[1].data, lengths(4, &[P]));
        assert_eq!(counts, [(Irregularity::FramingConverted, 1)]);
    }
}

#[test]
fn keyframes_are_recognised_by_their_content() {
    for (kind, units, want) in [
        (Inter, &[IDR][..], Keyframe),
        (Disposable, &[AUD, SEI, SPS, PPS, IDR], Keyframe),
        (Inter, &[AUD, IDR, IDR], Keyframe),
        (Keyframe, &[P], Inter),
        (Keyframe, &[AUD, SEI, P, P], Inter),
    ] {
        let (passed, counts) =
            run([video(Configuration, 0, record(SPS, 4)), video(kind, 0, lengths(4, units))]);
        assert_eq!(kinds(&passed), [Configuration, want]);
        assert_eq!(counts, [(Irregularity::KeyframeMismarked, 1)]);
    }
}

#[test]
fn recovery_points_are_keyframes_where_there_are_no_idr_pictures() {
    let frame = |n: i64, kind| {
        let units: &[&[u8]] = if n == 0 {
            &[IDR]
        } else if n % 50 == 0 {
            &[RECOVERY, P]
        } else {
            &[P]
        };
        video(kind, n * 40, lengths(4, units))
    };
    let header = video(Configuration, 0, record(SPS, 4));
    // As ffmpeg marks them, and not marked at all.
    for (marked, want) in [(true, vec![0, 50, 100, 150, 200]), (false, vec![0, 100, 150, 200])] {
        let kind = |n: i64| if marked && n % 50 == 0 || n == 0 { Keyframe } else { Inter };
        let (passed, counts) =
            run([header.clone()].into_iter().chain((0..220).map(|n| frame(n, kind(n)))));
        let keys: Vec<_> = passed
            .iter()
            .filter(|frame| frame.kind == Keyframe)
            .map(|frame| frame.timestamp.as_millis() / 40)
            .collect();
        assert_eq!(keys, want);
        assert_eq!(counts, [(Irregularity::RecoveryPoint, want.len() as u64 - 1)]);
    }
    // With IDR pictures they are none.
    let mixed = (0..300).map(|n| {
        let units: &[&[u8]] = if n % 100 == 0 {
            &[IDR]
        } else if n % 50 == 0 {
            &[RECOVERY, P]
        } else {
            &[P]
        };
        video(if n % 100 == 0 { Keyframe } else { Inter }, n * 40, lengths(4, units))
    });
    let (passed, counts) = run([header].into_iter().chain(mixed));
    assert_eq!((passed.iter().filter(|frame| frame.kind == Keyframe).count(), counts), (3, vec![]));
}

#[test]
fn the_publishers_marks_count_where_nothing_else_says_where_to_start() {
    let header = video(Configuration, 0, record(SPS, 4));
    let frames = (0..500)
        .map(|n| video(if n % 50 == 0 { Keyframe } else { Inter }, n * 40, lengths(4, &[P])));
    let (passed, _) = run([header].into_iter().chain(frames));
    let first =
        passed.iter().find(|frame| frame.kind == Keyframe).map(|frame| frame.timestamp.as_millis());
    assert_eq!(first, Some(4_000));
}

#[test]
fn video_in_a_command_tag_is_read_and_commands_are_not() {
    let read = |tag: Vec<u8>| crate::flv::read_video(&Bytes::from(tag), Timestamp::ZERO);
    let is_video = |tag: Vec<u8>| read(tag).is_ok_and(|frame| frame.is_some());
    assert!(is_video([&[0x57, 1, 0, 0, 0][..], &lengths(4, &[IDR])].concat()));
    assert!(is_video([&[0xd1][..], b"avc1", &[0, 0, 0], &lengths(4, &[IDR])].concat()));
    for command in [vec![0x57, 0], vec![0x57, 1], vec![0x57], vec![0xd1, 0], vec![0xd1, 1]] {
        assert_eq!(read(command), Ok(None));
    }
}

fn adts(crc: bool, raw: &[u8]) -> Vec<u8> {
    let header = if crc { 9 } else { 7 };
    let length = header + raw.len();
    let mut frame = vec![0xff, 0xf0 | u8::from(!crc), 0x4c, 0x80 | (length >> 11) as u8];
    frame.extend([(length >> 3) as u8, (length << 5) as u8 | 0x1f, 0xfc]);
    frame.resize(header, 0xcc);
    [&frame[..], raw].concat()
}

#[test]
fn adts_headers_are_removed_and_describe_the_audio() {
    let (one, two) = (&[0x21, 1, 2][..], &[0x21, 3][..]);
    let tag = [adts(false, one), adts(true, two)].concat();
    let want = [
        aac(FrameKind::Audio, 0, one),
        Frame { timestamp: Timestamp::from_micros(21_333), ..aac(FrameKind::Audio, 0, two) },
    ];
    let ours = aac(Configuration, 0, &[0x11, 0x90]);
    for header in [
        vec![],
        adts(false, one),
        adts(false, one)[..7].to_vec(),
        vec![0x11, 0x90],
        vec![0x12, 0x10],
        vec![0, 0],
        vec![0x11],
    ] {
        let header = Some(aac(Configuration, 0, &header)).filter(|frame| !frame.data.is_empty());
        let (passed, counts) = run(header.into_iter().chain([aac(FrameKind::Audio, 0, &tag)]));
        assert_eq!(passed[passed.len() - 3..], [&[ours.clone()][..], &want].concat(), "{counts:?}");
        assert!(counts.contains(&(Irregularity::FramingConverted, 1)));
    }
    // The configuration of HE-AAC says more than a header can.
    let he = aac(Configuration, 0, &[0x2b, 0x92, 0x08, 0]);
    let mut low = adts(false, one);
    low[2] = 0x5c;
    let (passed, _) = run([he.clone(), aac(FrameKind::Audio, 0, &low)]);
    assert_eq!(passed.len(), 2, "{passed:?}");
}

#[test]
fn adts_of_tags_that_follow_too_soon_never_goes_back() {
    let tag = [0x21, 0x22, 0x23].map(|first| adts(false, &[first, 1])).concat();
    let tags = [0, 0, 40, 128].map(|millis| aac(FrameKind::Audio, millis, &tag));
    let (passed, _) = run(tags);
    let times: Vec<_> = passed.iter().skip(1).map(|frame| frame.timestamp.as_millis()).collect();
    assert_eq!(times, [0, 21, 42, 42, 42, 42, 42, 61, 82, 128, 149, 170]);
    // A tag without headers, and another rate in the middle of a tag.
    let mut other = adts(false, &[0x24, 1]);
    other[2] = 0x50;
    let tags = [(0, &tag[..]), (20, &[0x21, 1]), (40, &[&tag[..], &other].concat()), (80, &other)];
    let (passed, _) = run(tags.map(|(millis, tag)| aac(FrameKind::Audio, millis, tag)));
    let times: Vec<_> = passed.iter().map(|frame| frame.timestamp.as_millis()).collect();
    assert_eq!(times, [0, 0, 21, 42, 42, 42, 61, 82, 109, 109, 109]);
}

#[test]
fn aac_without_a_usable_configuration_is_withheld_and_named() {
    for header in [&[][..], &[0x11], &[0, 0], &[0x16, 0x90], &[0x17, 0x80, 0x4e]] {
        let header = Some(aac(Configuration, 0, header)).filter(|frame| !frame.data.is_empty());
        let mut repair = Repair::default();
        let frames = header.into_iter().chain([aac(FrameKind::Audio, 0, &[0x21, 1])]);
        assert_eq!(frames.filter_map(|frame| repair.handle_frame(frame)).count(), 0);
        let counts = repair.poll_irregularities().unwrap_or_default();
        assert!(counts.iter().any(|each| each == (Irregularity::AudioConfigurationMissing, 1)));
        assert_eq!((repair.poll_withheld(), repair.poll_withheld()), (Some(Track::Audio), None));
    }
}

#[test]
fn a_publish_observed_from_its_middle_passes_until_its_next_configuration() {
    let mut repair = Repair::resumed();
    let frame = video(Keyframe, 0, &b"slice"[..]);
    assert_eq!(repair.handle_frame(frame.clone()), Some(frame));
    repair.handle_frame(video(Configuration, 0, record(SPS, 4)));
    assert_eq!(repair.handle_frame(video(Inter, 0, &b"slice"[..])), None);
}
