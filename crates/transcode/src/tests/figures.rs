//! The cost of transcoding. Run with `--ignored --nocapture --test-threads=1`.

use std::fs;

use super::support::*;
use super::*;

/// Interleaved packet by packet, so that the caches are as cold as on a busy worker.
const STREAMS: usize = 100;
const SECONDS: usize = 5;

/// CPU time used by this thread, in nanoseconds.
fn cpu_nanos() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// Resident memory of the process in KiB.
fn resident_kib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[ignore = "prints figures"]
fn cpu_per_stream_second() {
    for (count, bitrate) in [(2, 96_000), (2, 128_000), (1, 96_000), (1, 128_000)] {
        let frames = encode(&speech(SECONDS as f64, count), count, 0);
        let transcoder = || Transcoder::new(stereo(bitrate), Encoders::default());
        let mut streams: Vec<_> = std::iter::repeat_with(transcoder).take(STREAMS).collect();
        let mut out = Vec::new();
        let before = cpu_nanos();
        for frame in &frames {
            for stream in &mut streams {
                stream.handle_frame(frame, arrival(frame), &mut out).unwrap();
                out.clear();
            }
        }
        let micros = (cpu_nanos() - before) / 1_000 / (SECONDS * STREAMS) as u64;
        println!("{count} channels, {bitrate} bit/s in stereo: {micros} µs per stream-second");
    }
}

#[test]
#[ignore = "prints figures"]
fn memory_per_stream() {
    for count in [2, 1] {
        let frames = encode(&speech(1.0, count), count, 0);
        let kind = EncoderKind::new(channels(count), stereo(96_000));
        let encoders = Encoders::default();
        // Tables of the process.
        drop(encoders.make(kind));
        let (start, before) = (cpu_nanos(), resident_kib());
        let made: Vec<_> = (0..STREAMS).map(|_| encoders.make(kind)).collect();
        let (took, idle) = (cpu_nanos() - start, resident_kib());
        let transcoder = || Transcoder::new(stereo(96_000), encoders.clone());
        let mut streams: Vec<_> = std::iter::repeat_with(transcoder).take(STREAMS).collect();
        for stream in &mut streams {
            let mut out = Vec::new();
            for frame in &frames {
                stream.handle_frame(frame, arrival(frame), &mut out).unwrap();
            }
        }
        println!(
            "{count} channels: {} µs to make, {} KiB, {} KiB at work with its decoder",
            took / 1_000 / made.len() as u64,
            (idle - before) / STREAMS as i64,
            (resident_kib() - idle) / STREAMS as i64
        );
    }
}
