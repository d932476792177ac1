//! Test signals, an Opus encoder, and ffmpeg as an independent AAC decoder.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use std::f64::consts::TAU;
use std::io::Write;
use std::process::{Command, Stdio};

use ::opus::{Application, Bitrate, Encoder};

use super::super::*;

pub(super) const PACKET: usize = 960;

/// A bitrate given for stereo; mono gets half of it.
pub(super) const fn stereo(bitrate: u32) -> AacBitrate {
    AacBitrate::PerChannel(bitrate / 2)
}

/// The layout by number of channels: 1 or 2.
pub(super) const fn channels(count: usize) -> Channels {
    if count == 1 { Channels::Mono } else { Channels::Stereo }
}

/// `seconds` of 440 Hz, in stereo with 1 kHz on the right.
pub(super) fn tones(seconds: f64, count: usize) -> Vec<i16> {
    let samples = (seconds * 48_000.0) as usize;
    let tone = |sample: usize, hertz: f64| (TAU * hertz * sample as f64 / 48_000.0).sin() * 8_000.0;
    let pair = |sample| [tone(sample, 440.0) as i16, tone(sample, 1_000.0) as i16];
    (0..samples).flat_map(|sample| pair(sample).into_iter().take(count)).collect()
}

/// Noise in syllables, no two sections of which are alike.
pub(super) fn speech(seconds: f64, count: usize) -> Vec<i16> {
    let mut random = Random(7);
    let (mut low, samples) = (0.0, (seconds * 48_000.0) as usize);
    (0..samples)
        .flat_map(|sample| {
            let syllable = (TAU * 3.0 * sample as f64 / 48_000.0).sin().max(0.0);
            low += ((random.next() % 20_000) as f64 - 10_000.0 - low) * 0.2;
            std::iter::repeat_n((low * syllable) as i16, count)
        })
        .collect()
}

/// A small random number generator (xorshift), with the same sequence in every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Encodes packets of 20 ms as the frames of a stream that begins at `start` microseconds.
pub(super) fn encode(pcm: &[i16], count: usize, start: i64) -> Vec<Frame> {
    let layout = [::opus::Channels::Mono, ::opus::Channels::Stereo][count - 1];
    let mut encoder = Encoder::new(48_000, layout, Application::Voip).unwrap();
    encoder.set_bitrate(Bitrate::Bits(64_000)).unwrap();
    encoder.set_force_channels(Some(layout)).unwrap();
    encoder.set_inband_fec(true).unwrap();
    encoder.set_packet_loss_perc(20).unwrap();
    pcm.chunks_exact(PACKET * count)
        .zip(0..)
        .map(|(pcm, index)| {
            opus_frame(start + index * 20_000, &encoder.encode_vec(pcm, 1_500).unwrap())
        })
        .collect()
}

pub(super) fn opus_frame(micros: i64, packet: &[u8]) -> Frame {
    Frame {
        codec: Codec::Opus,
        kind: FrameKind::Audio,
        timestamp: Timestamp::from_micros(micros),
        composition_ms: 0,
        data: Bytes::copy_from_slice(packet),
    }
}

/// In real time, by its timestamp.
pub(super) fn arrival(frame: &Frame) -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    let micros = frame.timestamp.as_micros().clamp(0, 1 << 40).unsigned_abs();
    *START.get_or_init(Instant::now) + Duration::from_micros(micros)
}

/// The output of a new transcoder for the frames, its end included, and its counters.
pub(super) fn transcode(frames: &[Frame]) -> (Vec<Frame>, TranscodeCounters) {
    let mut transcoder = Transcoder::new(stereo(128_000), Encoders::default());
    let mut out = Vec::new();
    for frame in frames {
        transcoder.handle_frame(frame, arrival(frame), &mut out).unwrap();
    }
    let counters = transcoder.counters();
    transcoder.finish(&mut out).unwrap();
    (out, counters)
}

/// The packets decoded by libopus, none missing.
pub(super) fn decode_opus(frames: &[Frame], count: usize) -> Vec<i16> {
    let mut decoder = decoder::OpusDecoder::new(channels(count)).unwrap();
    let decode = |frame: &Frame| {
        let mut pcm = vec![0.0; PACKET * count];
        assert!(decoder.decode(&frame.data, &mut pcm));
        pcm.into_iter().map(|sample| (sample * 32_768.0).round() as i16)
    };
    frames.iter().flat_map(decode).collect()
}

pub(super) fn audio(frames: &[Frame]) -> impl Iterator<Item = &Frame> {
    frames.iter().filter(|frame| frame.kind == FrameKind::Audio)
}

pub(super) fn micros(frames: &[Frame]) -> Vec<i64> {
    audio(frames).map(|frame| frame.timestamp.as_micros()).collect()
}

/// The audio frames decoded by ffmpeg; `None` without ffmpeg.
pub(super) fn decode_aac(frames: &[Frame], count: usize) -> Option<Vec<i16>> {
    let stream: Vec<u8> = audio(frames).flat_map(|frame| adts(&frame.data, count)).collect();
    let mut ffmpeg = Command::new("ffmpeg")
        .args(["-v", "warning", "-f", "aac", "-i", "-", "-f", "s16le", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = ffmpeg.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&stream));
    let output = ffmpeg.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "ffmpeg complains");
    let samples = output.stdout.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
    Some(samples.collect())
}

/// ADTS header (ISO 13818-7 6.2): AAC-LC, 48 kHz, no checksum.
fn adts(data: &[u8], count: usize) -> Vec<u8> {
    let (length, count) = (data.len() + 7, count as u8);
    let mut frame = vec![0xff, 0xf1, 1 << 6 | 3 << 2 | count >> 2, (count & 3) << 6];
    frame[3] |= (length >> 11) as u8;
    frame.extend([(length >> 3) as u8, (length << 5) as u8 | 0x1f, 0xfc]);
    frame.extend(data);
    frame
}

pub(super) fn side(pcm: &[i16], index: usize, count: usize) -> Vec<f64> {
    pcm.iter().skip(index).step_by(count).map(|sample| f64::from(*sample)).collect()
}

/// The share of the signal's power at a frequency, 0 to 1.
pub(super) fn share(signal: &[f64], hertz: f64) -> f64 {
    let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
    for (index, sample) in signal.iter().enumerate() {
        let (sin, cos) = (TAU * hertz * index as f64 / 48_000.0).sin_cos();
        (re, im, power) = (re + sample * cos, im + sample * sin, power + sample * sample);
    }
    2.0 * (re * re + im * im) / (signal.len() as f64 * power)
}

/// By how many samples `late` lags behind `early` (best match within ±3000), and how similar they are then.
pub(super) fn lag(early: &[f64], late: &[f64]) -> (i64, f64) {
    let (start, length) = (4_000, early.len().min(late.len()) - 8_000);
    let reference = &early[start..start + length];
    let energy = |signal: &[f64]| signal.iter().map(|sample| sample * sample).sum::<f64>();
    let likeness = |lag: i64| {
        let moved = &late[(start as i64 + lag) as usize..][..length];
        let product: f64 = reference.iter().zip(moved).map(|(a, b)| a * b).sum();
        product / (energy(reference) * energy(moved)).sqrt()
    };
    (-3_000..=3_000).map(|lag| (lag, likeness(lag))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
}
