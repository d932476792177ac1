//! The workload that `scripts/instructions.mjs` counts under valgrind: packets of Opus that become AAC. The encoding of
//! the Opus is in runs of every length, so that the difference between two runs is the transcoder's.

use super::support::*;
use super::*;

/// Packets of the clip, a second, which repeats with later timestamps.
const CLIP_PACKETS: i64 = 50;

/// How many packets this run has.
fn runs() -> i64 {
    std::env::var("PICTURES").ok().and_then(|of| of.parse().ok()).unwrap_or(100)
}

fn transcode_packets(count: usize) {
    let clip = encode(&tones(1.0, count), count, 0);
    let mut transcoder = Transcoder::new(stereo(128_000), Encoders::default());
    let (mut out, mut frames) = (Vec::new(), 0);
    for (number, frame) in (0..runs()).zip(clip.iter().cycle()) {
        assert_eq!(frame.timestamp.as_micros(), number % CLIP_PACKETS * 20_000);
        let frame = opus_frame(number * 20_000, &frame.data);
        transcoder.handle_frame(&frame, arrival(&frame), &mut out).unwrap();
        frames += audio(&out).count() as i64;
        out.clear();
    }
    assert!(frames > runs() * 960 / 1_024 - 4, "{frames} frames");
    assert_eq!(transcoder.counters(), TranscodeCounters::default());
}

#[test]
fn aac_of_a_stereo_packet() {
    transcode_packets(2);
}

#[test]
fn aac_of_a_mono_packet() {
    transcode_packets(1);
}
