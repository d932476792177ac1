//! The cost of transcoding. Run with `--ignored --nocapture --test-threads=1`.

use std::fs;
use std::time::Instant;

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
        let pool = EncoderPool::new(STREAMS);
        let kind = EncoderKind::new(channels(count), stereo(bitrate));
        pool.warm(kind, STREAMS).unwrap();
        let mut streams: Vec<_> = (0..STREAMS).map(|_| Transcoder::new(stereo(bitrate))).collect();
        let mut out = Vec::new();
        let before = cpu_nanos();
        for frame in &frames {
            for stream in &mut streams {
                handle(stream, &pool, frame, &mut out).unwrap();
                out.clear();
            }
        }
        let micros = (cpu_nanos() - before) / 1_000 / (SECONDS * STREAMS) as u64;
        println!("{count} channels, {} bit/s: {micros} µs per stream-second", kind.bitrate);
    }
}

#[test]
#[ignore = "prints figures"]
fn memory_per_stream() {
    for count in [2, 1] {
        let frames = encode(&speech(1.0, count), count, 0);
        let pool = EncoderPool::new(100);
        let kind = EncoderKind::new(channels(count), stereo(96_000));
        pool.warm(kind, 1).unwrap();
        let (start, before) = (Instant::now(), resident_kib());
        pool.warm(kind, 21).unwrap();
        let (made, after) = (start.elapsed().as_millis() / 20, resident_kib());
        let mut streams: Vec<_> = (0..20).map(|_| Transcoder::new(stereo(96_000))).collect();
        for stream in &mut streams {
            let mut out = Vec::new();
            for frame in &frames {
                handle(stream, &pool, frame, &mut out).unwrap();
            }
        }
        let used = resident_kib();
        println!(
            "{count} channels: {made} ms to make, {} KiB idle, {} KiB at work with its decoder",
            (after - before) / 20,
            (used - before) / 20
        );
    }
}
