//! The continuous timestamps of a stream across several publishers.

use super::*;

fn frame(kind: FrameKind, codec: Codec, millis: i64) -> Frame {
    let (timestamp, data) = (Timestamp::from_millis(millis), Bytes::from_static(b"x"));
    Frame { codec, kind, timestamp, composition_ms: 0, data }
}

fn video(kind: FrameKind, millis: i64) -> Frame {
    frame(kind, Codec::H264, millis)
}

fn audio(millis: i64) -> Frame {
    frame(FrameKind::Audio, Codec::Aac, millis)
}

/// A stream with video and audio up to 10 s, and the arrival time of its last frame.
fn timeline() -> (Timeline, Instant) {
    let (mut timeline, now) = (Timeline::default(), Instant::now());
    timeline.note(&audio(9_980), now);
    timeline.note(&video(FrameKind::Inter, 10_000), now);
    (timeline, now)
}

fn silence_step() -> Silence {
    Silence { data: Bytes::from_static(b"s"), duration_us: 20_000 }
}

#[test]
fn a_first_publisher_keeps_its_own_timestamps() {
    let (mut timeline, _) = timeline();
    assert!(!timeline.is_spliced());
    let jump = video(FrameKind::Inter, 5);
    assert_eq!(timeline.place(&jump), Some(jump));
}

#[test]
fn a_successor_continues_after_the_elapsed_time_with_a_keyframe() {
    let (mut timeline, now) = timeline();
    let later = now + Duration::from_millis(1_500);
    timeline.splice(Timestamp::from_millis(70_000), later);
    assert_eq!(timeline.place(&video(FrameKind::Inter, 70_000)), None);
    let keyframe = timeline.place(&video(FrameKind::Keyframe, 70_040)).expect("it passes");
    assert_eq!(keyframe.timestamp.as_millis(), 11_540);
    timeline.note(&keyframe, later);
    let next = timeline.place(&video(FrameKind::Inter, 70_080)).expect("it passes");
    assert_eq!(next.timestamp.as_millis(), 11_580);
}

#[test]
fn audio_at_a_time_filled_with_silence_is_left_out_and_earlier_video_is_moved() {
    let (mut timeline, now) = timeline();
    let silence =
        timeline.silence(Timestamp::from_millis(10_500), Some(&silence_step()), Instant::now());
    assert_eq!(silence.len(), 26);
    timeline.splice(Timestamp::from_millis(500), now + Duration::from_millis(500));
    // Begins at 10,524 ms: one frame after the silence.
    assert_eq!(timeline.place(&audio(400)), None);
    assert_eq!(timeline.place(&audio(500)).map(|of| of.timestamp.as_millis()), Some(10_524));
    let early = timeline.place(&video(FrameKind::Keyframe, -100)).expect("it passes");
    assert_eq!(early.timestamp.as_millis(), 10_001);
    assert_eq!(timeline.place(&audio(520)).map(|of| of.timestamp.as_millis()), Some(10_621));
}

#[test]
fn headers_of_a_successor_get_the_newest_time_whatever_their_timestamp() {
    let (mut timeline, now) = timeline();
    timeline.splice(Timestamp::ZERO, now);
    for stamped in [0, -5_000] {
        let header = video(FrameKind::Configuration, stamped);
        assert_eq!(timeline.place(&header).map(|of| of.timestamp.as_millis()), Some(10_000));
    }
    assert_eq!(timeline.at_newest(&video(FrameKind::Script, 7)).timestamp.as_millis(), 10_000);
}

#[test]
fn silence_has_no_gaps_but_does_not_fill_a_long_one() {
    let (mut timeline, _) = timeline();
    let millis = |frames: Vec<Frame>| -> Vec<_> {
        frames.iter().map(|frame| frame.timestamp.as_millis()).collect()
    };
    let step = silence_step();
    let first = timeline.silence(Timestamp::from_millis(10_040), Some(&step), Instant::now());
    assert_eq!(millis(first), [10_000, 10_020, 10_040]);
    assert_eq!(
        millis(timeline.silence(Timestamp::from_millis(10_059), Some(&step), Instant::now())),
        [0; 0]
    );
    let after_a_hole =
        timeline.silence(Timestamp::from_millis(25_000), Some(&step), Instant::now());
    assert_eq!(millis(after_a_hole), [25_000]);
    assert!(
        timeline.silence(Timestamp::from_millis(26_000), None, Instant::now()).is_empty(),
        "no AAC"
    );
}

#[test]
fn opus_gets_opus_silence_until_the_publisher_sends_something_else() {
    let (mut timeline, now) = (Timeline::default(), Instant::now());
    timeline.note(&frame(FrameKind::Audio, Codec::Opus, 100), now);
    let silence = timeline.silence(Timestamp::from_millis(140), None, Instant::now());
    assert_eq!(silence.len(), 2);
    assert!(silence.iter().all(|of| of.codec == Codec::Opus && of.data[..] == opus::SILENCE));
    timeline.forget_opus();
    assert!(timeline.silence(Timestamp::from_millis(900), None, Instant::now()).is_empty());
}

#[test]
fn a_kept_group_ends_on_time_in_order_of_decoding_and_of_showing() {
    let (mut timeline, now) = timeline();
    // Fifty frames with B-frames, unevenly spaced, up to 71,960 ms; the previous publisher's last frame came 400 ms
    // ago.
    let shown = |n: i64| if n % 3 == 0 { 120 } else { 40 };
    let group: Vec<_> = (0..50)
        .map(|n| {
            let kind = if n == 0 { FrameKind::Keyframe } else { FrameKind::Inter };
            let millis = 70_000 + n * 40 + if n % 7 == 3 { -39 } else { 0 };
            Frame { composition_ms: shown(n), ..video(kind, millis) }
        })
        .collect();
    let later = now + Duration::from_millis(400);
    timeline.splice_group(group[0].timestamp, group[49].timestamp, group.len(), later);
    let mut times = Vec::new();
    for frame in &group {
        let placed = timeline.place(frame).expect("it passes");
        timeline.note(&placed, later);
        times.push((placed.timestamp.as_millis(), placed.composition_ms));
    }
    assert_eq!(times[49].0, 10_400, "on time");
    assert!(times[0].0 >= 10_024 && times.is_sorted_by(|one, next| one.0 < next.0), "{times:?}");
    assert!(times.iter().all(|(_, composition)| *composition >= 0), "{times:?}");
    assert_eq!(timeline.place(&audio(71_900)), None, "audio of that time is left out");
    let next = timeline.place(&video(FrameKind::Inter, 72_000)).expect("it passes");
    assert_eq!((next.timestamp.as_millis(), next.composition_ms), (10_440, 0));
    assert_eq!(timeline.place(&audio(71_990)).map(|of| of.timestamp.as_millis()), Some(10_430));
    // Its clock is set back: passed on as that of any other publisher.
    let back = Frame { composition_ms: 40, ..video(FrameKind::Inter, 60_000) };
    let back = timeline.place(&back).expect("it passes");
    assert_eq!((back.timestamp.as_millis(), back.composition_ms), (-1_560, 40));
    assert_eq!(timeline.place(&audio(60_020)).map(|of| of.timestamp.as_millis()), Some(-1_540));
}

#[test]
fn what_is_shown_after_a_frame_that_was_decoded_later_counts() {
    let (mut timeline, now) = timeline();
    timeline.note(&Frame { composition_ms: 200, ..video(FrameKind::Inter, 10_040) }, now);
    timeline.note(&Frame { composition_ms: 40, ..video(FrameKind::Inter, 10_080) }, now);
    timeline.splice(Timestamp::ZERO, now);
    let keyframe = timeline.place(&video(FrameKind::Keyframe, 0)).expect("it passes");
    assert_eq!(keyframe.timestamp.as_millis(), 10_264);
}
