//! What a subscriber's queue keeps and drops.

use super::*;
use bytes::Bytes;

fn frame(kind: FrameKind, millis: i64) -> Frame {
    let codec = if kind == FrameKind::Audio { Codec::Aac } else { Codec::H264 };
    let timestamp = Timestamp::from_millis(millis);
    Frame { codec, kind, timestamp, composition_ms: 0, data: Bytes::from_static(&[0; 100]) }
}

/// Pushes a frame and gives the subscriber a turn, in which its socket takes nothing.
fn push(queue: &mut SubscriberQueue, frame: Frame) {
    queue.push(&frame.into());
    queue.note_turn();
}

fn drain(queue: &mut SubscriberQueue) -> Vec<(FrameKind, i64)> {
    std::iter::from_fn(|| queue.pop()).map(|f| (f.kind, f.timestamp.as_millis())).collect()
}

#[test]
fn video_starts_at_a_keyframe() {
    let mut queue = SubscriberQueue::new([]);
    for (kind, at) in [
        (FrameKind::Inter, 0),
        (FrameKind::Audio, 10),
        (FrameKind::Keyframe, 40),
        (FrameKind::Inter, 80),
    ] {
        queue.push(&frame(kind, at).into());
    }
    assert_eq!(
        drain(&mut queue),
        [(FrameKind::Audio, 10), (FrameKind::Keyframe, 40), (FrameKind::Inter, 80)]
    );
    assert_eq!(queue.poll_dropped(), 0, "it was not slow");
}

#[test]
fn a_full_queue_resumes_at_the_newest_keyframe_and_keeps_headers_and_audio() {
    let mut queue = SubscriberQueue::new([frame(FrameKind::Configuration, 0)]);
    for n in 0..76 {
        let kind = if n % 25 == 0 { FrameKind::Keyframe } else { FrameKind::Inter };
        push(&mut queue, frame(kind, n * 40));
    }
    push(&mut queue, frame(FrameKind::Audio, 3020));
    push(&mut queue, frame(FrameKind::Inter, 3040));
    let left = drain(&mut queue);
    assert_eq!(
        left,
        [
            (FrameKind::Configuration, 0),
            (FrameKind::Keyframe, 3000),
            (FrameKind::Audio, 3020),
            (FrameKind::Inter, 3040)
        ]
    );
    assert_eq!(queue.poll_dropped(), 75);
}

#[test]
fn at_most_four_megabytes_wait() {
    let large = |millis, length| Frame {
        data: Bytes::from(vec![0; length]),
        ..frame(if millis == 0 { FrameKind::Keyframe } else { FrameKind::Inter }, millis)
    };
    for (length, left, dropped) in [(2 << 20, 2, 0), ((2 << 20) + 1, 0, 2)] {
        let mut queue = SubscriberQueue::new([]);
        queue.push(&large(0, 2 << 20).into());
        queue.push(&large(40, length).into());
        assert_eq!((drain(&mut queue).len(), queue.poll_dropped()), (left, dropped));
    }
}

#[test]
fn a_keyframe_larger_than_the_queue_is_delivered_if_no_other_video_waits() {
    let large = |millis| Frame {
        data: Bytes::from(vec![0; 5 << 20]),
        ..frame(FrameKind::Keyframe, millis)
    };
    let mut queue = SubscriberQueue::new([]);
    push(&mut queue, frame(FrameKind::Audio, 0));
    push(&mut queue, large(0));
    assert_eq!(drain(&mut queue).last(), Some(&(FrameKind::Keyframe, 0)));
    push(&mut queue, large(1_000));
    push(&mut queue, large(2_000));
    assert_eq!(drain(&mut queue), [(FrameKind::Keyframe, 2_000)]);
}

#[test]
fn a_gop_longer_than_the_queue_is_dropped_until_the_next_keyframe() {
    let mut queue = SubscriberQueue::new([]);
    push(&mut queue, frame(FrameKind::Keyframe, 0));
    for n in 1..100 {
        push(&mut queue, frame(FrameKind::Inter, n * 40));
    }
    assert!(queue.is_empty());
    push(&mut queue, frame(FrameKind::Keyframe, 4000));
    assert_eq!(drain(&mut queue), [(FrameKind::Keyframe, 4000)]);
}

#[test]
fn a_burst_after_a_network_outage_drops_no_frames_for_a_fast_subscriber() {
    let mut queue = SubscriberQueue::new([frame(FrameKind::Keyframe, 0)]);
    assert_eq!(drain(&mut queue).len(), 1);
    queue.note_turn();
    for n in 1..=125 {
        queue.push(&frame(FrameKind::Inter, n * 40).into());
    }
    assert_eq!((drain(&mut queue).len(), queue.poll_dropped()), (125, 0));
    // A subscriber that cannot take them loses frames as usual.
    for n in 126..=250 {
        queue.push(&frame(FrameKind::Inter, n * 40).into());
    }
    queue.note_turn();
    queue.push(&frame(FrameKind::Inter, 10_040).into());
    assert_eq!((drain(&mut queue).len(), queue.poll_dropped()), (0, 126));
}

#[test]
fn the_burst_a_player_joins_with_does_not_count_against_it() {
    let burst = (0..200)
        .map(|n| frame(if n == 0 { FrameKind::Keyframe } else { FrameKind::Inter }, n * 40));
    let mut queue = SubscriberQueue::new(burst);
    push(&mut queue, frame(FrameKind::Inter, 8000));
    assert_eq!(queue.poll_dropped(), 0);
    assert_eq!(drain(&mut queue).len(), 201);
}

#[test]
fn late_audio_does_not_fill_the_queue() {
    let mut queue = SubscriberQueue::new([]);
    for (kind, at) in [(FrameKind::Keyframe, 3400), (FrameKind::Audio, 0), (FrameKind::Inter, 3440)]
    {
        push(&mut queue, frame(kind, at));
    }
    assert_eq!(queue.poll_dropped(), 0);
    assert_eq!(drain(&mut queue).len(), 3);
}

#[test]
fn a_burst_of_audio_drops_audio_and_no_video() {
    let mut queue = SubscriberQueue::new([]);
    push(&mut queue, frame(FrameKind::Keyframe, 4000));
    for n in 0..200 {
        push(&mut queue, frame(FrameKind::Audio, n * 21));
    }
    let left = drain(&mut queue);
    assert_eq!(left.first(), Some(&(FrameKind::Keyframe, 4000)));
    assert!((100..=145).contains(&left.len()), "{}", left.len());
}

#[test]
fn audio_alone_is_bounded_too() {
    let mut queue = SubscriberQueue::new([]);
    for n in 0..1000 {
        push(&mut queue, frame(FrameKind::Audio, n * 21));
    }
    assert!(drain(&mut queue).len() <= 145);
}

#[test]
fn configurations_without_frames_between_them_do_not_pile_up() {
    let mut queue = SubscriberQueue::new([]);
    for n in 0..10_000 {
        push(&mut queue, frame(FrameKind::Configuration, n));
    }
    assert_eq!(drain(&mut queue), [(FrameKind::Configuration, 9_999)]);
}

#[test]
fn only_the_newest_colour_information_waits() {
    let mut queue = SubscriberQueue::new([]);
    for n in 0..1_000 {
        push(&mut queue, frame(FrameKind::Configuration, n));
        push(&mut queue, frame(FrameKind::ColorInfo, n));
    }
    let newest = [(FrameKind::Configuration, 999), (FrameKind::ColorInfo, 999)];
    assert_eq!(drain(&mut queue), newest);
    assert_eq!((queue.bytes, queue.poll_dropped()), (0, 0));
}

#[test]
fn configurations_with_a_frame_between_each_count_like_frames_and_are_dropped_with_them() {
    let mut queue = SubscriberQueue::new([]);
    let large =
        |n| Frame { data: Bytes::from(vec![0; 64 << 10]), ..frame(FrameKind::Configuration, n) };
    for n in 0..1_000 {
        queue.push(&large(n).into());
        push(&mut queue, frame(FrameKind::Keyframe, n));
        assert!(queue.bytes <= QUEUE_BYTES_LIMIT + (64 << 10), "{} bytes wait", queue.bytes);
    }
    let left = drain(&mut queue);
    let newest = left.iter().rposition(|(kind, _)| *kind == FrameKind::Configuration);
    assert_eq!(newest.and_then(|at| left.get(at)), Some(&(FrameKind::Configuration, 999)));
}

#[test]
fn only_the_newest_metadata_and_the_newest_32_other_script_frames_wait() {
    let script = |data: &'static [u8], millis| Frame {
        codec: Codec::Amf0,
        data: Bytes::from_static(data),
        ..frame(FrameKind::Script, millis)
    };
    let mut queue = SubscriberQueue::new([]);
    for n in 0..1_000 {
        queue.push(&script(b"\x02\x00\x0aonMetaData", n).into());
        queue.push(&script(b"\x02\x00\x0aonCuePoint", n).into());
    }
    let left = drain(&mut queue);
    assert_eq!(left.len(), SCRIPTS_LIMIT);
    assert_eq!(left.last(), Some(&(FrameKind::Script, 999)));
    assert_eq!((queue.bytes, queue.scripts, queue.video, queue.not_audio), (0, 0, 0, 0));
}

#[test]
fn empty_frames_with_a_stopped_clock_are_bounded_in_number() {
    for kind in [FrameKind::Audio, FrameKind::Keyframe] {
        let mut queue = SubscriberQueue::new([]);
        for _ in 0..100_000 {
            queue.push(&Frame { data: Bytes::new(), ..frame(kind, 0) }.into());
        }
        let left = drain(&mut queue).len();
        assert!((1..=QUEUE_FRAMES_LIMIT).contains(&left), "{left} of {kind:?} wait");
    }
}
