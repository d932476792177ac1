use super::*;
use crate::publish::preview_pipe::{PreviewRead, PreviewReader, preview_pipe};
use bytes::Bytes;
use headgate_media::{Codec, Timestamp};

use FrameKind::{Audio, Configuration, Inter, Keyframe, Script};

fn preview(now: Instant) -> (FlvPreview, PreviewReader) {
    let (writer, reader) = preview_pipe(Box::new(|| {}));
    (FlvPreview::new(writer, now), reader)
}

fn frame(kind: FrameKind, millis: i64) -> Frame {
    let codec = match kind {
        Audio => Codec::Aac,
        Script => Codec::Amf0,
        _ => Codec::H264,
    };
    let (timestamp, data) = (Timestamp::from_millis(millis), Bytes::from_static(b"x"));
    Frame { codec, kind, timestamp, composition_ms: 0, data }
}

/// The timestamps of the tags written for these frames, ms.
fn times(frames: &[(FrameKind, i64)]) -> Vec<u32> {
    let (mut preview, reader) = preview(Instant::now());
    for (kind, millis) in frames {
        preview.write_frame(&frame(*kind, *millis));
    }
    preview.hand_over();
    let PreviewRead::Batch(bytes) = reader.read() else { panic!("a batch") };
    let (mut rest, mut times) = (&bytes[..], Vec::new());
    while let &[_, s0, s1, s2, t0, t1, t2, t3, ..] = rest {
        times.push(u32::from_be_bytes([t3, t0, t1, t2]));
        rest = &rest[u32::from_be_bytes([0, s0, s1, s2]) as usize + 15..];
    }
    times
}

#[test]
fn the_clock_starts_at_0_with_the_first_frame_and_headers_do_not_move_it() {
    let given =
        [(Script, 0), (Configuration, 0), (Keyframe, 5_000), (Audio, 5_010), (Inter, 5_040)];
    assert_eq!(times(&given), [0, 0, 0, 10, 40]);
    // A header with timestamp 0 in mid-stream.
    assert_eq!(times(&[(Keyframe, 5_000), (Inter, 5_040), (Configuration, 0)]), [0, 40, 40]);
}

#[test]
fn audio_from_before_the_first_video_frame_is_left_out_and_the_clock_does_not_go_back() {
    assert_eq!(times(&[(Keyframe, 5_000), (Audio, 4_990), (Audio, 5_010)]), [0, 10]);
}

#[test]
fn a_broadcaster_that_sets_its_clock_back_does_not_stop_the_preview() {
    let given = [(Keyframe, 5_000), (Inter, 5_040), (Keyframe, 0), (Audio, 10), (Inter, 40)];
    assert_eq!(times(&given), [0, 40, 40, 50, 80]);
    assert_eq!(times(&[(Audio, 5_000), (Audio, 5_020), (Audio, 0), (Audio, 20)]), [0, 20, 20, 40]);
}

#[test]
fn large_frames_do_not_wait_for_a_full_batch() {
    let (mut preview, reader) = preview(Instant::now());
    preview.begin(true, false);
    preview.write_frame(&Frame { data: Bytes::from(vec![0; BATCH_BYTES]), ..frame(Keyframe, 0) });
    let PreviewRead::Batch(batch) = reader.read() else { panic!("a batch") };
    assert!(batch.starts_with(b"FLV") && batch.len() > BATCH_BYTES);
    preview.write_frame(&frame(Inter, 40));
    assert_eq!(reader.read(), PreviewRead::Waiting, "it waits for others");
    preview.hand_over();
    assert!(matches!(reader.read(), PreviewRead::Batch(_)));
}

#[test]
fn a_reader_that_left_or_reads_nothing_for_30_seconds_ends_the_preview() {
    let start = Instant::now();
    let seconds = |n: u64| start + Duration::from_secs(n);
    let closes = |preview: &mut FlvPreview, now| {
        let mut effects = Vec::new();
        preview.handle_timeout(now, &mut effects);
        matches!(effects[..], [Effect::Close(_)])
    };
    let (mut slow, reader) = preview(start);
    assert!(!closes(&mut slow, seconds(100)), "nothing waits for it");
    slow.write_frame(&frame(Keyframe, 0));
    slow.hand_over();
    assert!(!closes(&mut slow, seconds(129)));
    assert!(closes(&mut slow, seconds(130)));
    drop(slow);
    assert!(matches!(reader.read(), PreviewRead::Batch(_)));
    assert_eq!(reader.read(), PreviewRead::Ended(PreviewEnd::Stalled));
    let (mut left, reader) = preview(start);
    drop(reader);
    assert!(closes(&mut left, seconds(1)));
}
