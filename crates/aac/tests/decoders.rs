//! Every stream is legal: a decoder that knows nothing of this encoder accepts each access unit.
#![allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]

mod round_trip;

use std::io::Write;
use std::process::{Command, Stdio};

use headgate_aac::{Config, DELAY_SAMPLES, Encoder, FRAME_SAMPLES};
use round_trip::{Noise, round_trip};

fn config(channels: u8, bitrate: u32) -> Config {
    Config { channels, bitrate, largest_access_unit: None }
}

/// Whatever is hard: noise, silence, no numbers, full scale, clicks and tones, three frames each.
fn extreme(channels: u8, bitrate: u32) -> Vec<f32> {
    let mut noise = Noise(u64::from(bitrate));
    let mut samples = Vec::new();
    for frame in 0..60 {
        for index in 0..FRAME_SAMPLES * usize::from(channels) {
            let time = index as f32 / f32::from(channels);
            samples.push(match frame / 3 % 10 {
                0 => noise.next(),
                1 => 0.0,
                2 => f32::NAN,
                3 => f32::INFINITY,
                4 => noise.next().signum(),
                5 => (time * 0.1).sin() * 1e9,
                6 => {
                    if index == 700 {
                        1.0
                    } else {
                        0.0
                    }
                }
                7 => noise.next() * 1e-4,
                8 => {
                    if index / 64 % 2 == 0 {
                        1.0
                    } else {
                        -1.0
                    }
                }
                _ => (time * 0.02).sin() * 0.5,
            });
        }
    }
    samples
}

#[test]
fn extreme_input_makes_legal_streams_at_every_bitrate() {
    for channels in [1, 2] {
        for bitrate in [16_000, 32_000, 48_000, 64_000, 96_000, 128_000, 192_000, 320_000] {
            let samples = extreme(channels, bitrate);
            round_trip(config(channels, bitrate), &samples);
        }
    }
}

#[test]
fn a_tone_comes_back_after_the_delay() {
    for (channels, bitrate) in [(1_u8, 64_000), (2, 128_000)] {
        let width = usize::from(channels);
        let samples: Vec<f32> = (0..50 * FRAME_SAMPLES)
            .flat_map(|time| {
                let value = (time as f32 * 0.061).sin() * 0.4 + (time as f32 * 0.173).sin() * 0.2;
                [value, -0.5 * value].into_iter().take(width)
            })
            .collect();
        let (decoded, _) = round_trip(config(channels, bitrate), &samples);
        let from = 20 * FRAME_SAMPLES * width;
        let (mut signal, mut error) = (0.0, 0.0);
        for (sample, decoded) in
            samples[from..].iter().zip(&decoded[from + DELAY_SAMPLES * width..])
        {
            signal += sample * sample;
            error += (sample - decoded) * (sample - decoded);
        }
        let decibels = 10.0 * (signal / error).log10();
        assert!(decibels > 30.0, "{channels} channels: {decibels} dB");
    }
}

#[test]
fn noise_takes_the_bitrate_within_one_percent_and_silence_next_to_nothing() {
    for (channels, bitrate) in [(1, 32_000), (1, 64_000), (2, 96_000), (2, 128_000), (2, 192_000)] {
        let mut noise = Noise(7);
        let (frames, mut low) = (469, 0.0);
        let samples: Vec<f32> = (0..frames * FRAME_SAMPLES * usize::from(channels))
            .map(|_| {
                low += 0.2 * (noise.next() - low);
                low
            })
            .collect();
        let (_, bytes) = round_trip(config(channels, bitrate), &samples);
        let rate = bytes as f64 * 8.0 * 48_000.0 / (frames * FRAME_SAMPLES) as f64;
        assert!((rate / f64::from(bitrate) - 1.0).abs() < 0.01, "{rate} for {bitrate}");
        // Also what is silent in 16 bits only.
        for level in [0.0, 1e-9, 1e-5] {
            let silence = vec![level; samples.len()];
            let (_, bytes) = round_trip(config(channels, bitrate), &silence);
            assert!(bytes <= frames * 12, "{bytes}");
        }
    }
}

#[test]
fn no_access_unit_is_larger_than_asked_for() {
    let config = Config { channels: 2, bitrate: 128_000, largest_access_unit: Some(400) };
    let mut encoder = Encoder::new(config).unwrap();
    let mut noise = Noise(3);
    for frame in 0..200 {
        let gain = if frame % 20 == 0 { 1.0 } else { 0.001 };
        let samples: Vec<f32> = (0..2 * FRAME_SAMPLES).map(|_| gain * noise.next()).collect();
        assert!(encoder.encode_f32(&samples).unwrap().len() <= 400);
    }
}

#[test]
fn equal_channels_are_decoded_as_equal_channels() {
    let mut noise = Noise(5);
    let samples: Vec<f32> = (0..40 * FRAME_SAMPLES)
        .flat_map(|time| {
            let value = 0.2 * noise.next() + 0.3 * (time as f32 * 0.05).sin();
            [value, value]
        })
        .collect();
    let (decoded, _) = round_trip(config(2, 128_000), &samples);
    // Tones and everything coded are equal; noise that replaces lines is the same in a decoder that supports it.
    assert!(decoded.chunks_exact(2).all(|pair| (pair[0] - pair[1]).abs() < 0.2));
}

#[test]
fn ffmpeg_and_gstreamer_decode_every_stream_without_a_warning() {
    let ffmpeg = ["ffmpeg", "-v", "warning", "-f", "aac", "-i", "pipe:0", "-f", "s16le", "pipe:1"];
    // By libfaad, which keeps the first frame and makes mono stereo.
    let gstreamer =
        "gst-launch-1.0 -q fdsrc ! aacparse ! faad ! audio/x-raw,format=S16LE,channels=2 ! fdsink";
    let gstreamer: Vec<&str> = gstreamer.split(' ').collect();
    for channels in [1, 2] {
        for bitrate in [16_000, 32_000, 64_000, 96_000, 128_000, 192_000, 320_000] {
            let samples = extreme(channels, bitrate);
            let mut encoder = Encoder::new(config(channels, bitrate)).unwrap();
            let mut stream = Vec::new();
            for samples in samples.chunks_exact(FRAME_SAMPLES * usize::from(channels)) {
                let unit = encoder.encode_f32(samples).unwrap();
                let length = unit.len() + 7;
                // An ADTS header: AAC-LC, 48 kHz, no checksum.
                let last = [(length << 5) as u8 | 0x1f, 0xfc];
                let sizes = [channels << 6 | (length >> 11) as u8, (length >> 3) as u8];
                stream.extend([&[0xff, 0xf1, 0x4c], &sizes[..], &last, unit].concat());
            }
            let wanted = samples.len() / FRAME_SAMPLES / usize::from(channels);
            for (decoder, width, kept) in [(&ffmpeg[..], channels, 0), (&gstreamer, 2, 1)] {
                let (frames, complaints) = decode(decoder, stream.clone(), width);
                let case = format!("{}: {channels} channels at {bitrate} bit/s", decoder[0]);
                assert_eq!((frames + kept, &*complaints), (wanted, ""), "{case}");
            }
        }
    }
}

/// Decodes a stream by a program; returns how many frames it made, and what it complained about.
fn decode(command: &[&str], stream: Vec<u8>, channels: u8) -> (usize, String) {
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .env("GST_DEBUG", "faad:2,aacparse:2")
        .env("GST_DEBUG_NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ffmpeg and GStreamer are installed");
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&stream));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let frames = output.stdout.len() / 2 / FRAME_SAMPLES / usize::from(channels);
    (frames, String::from_utf8_lossy(&output.stderr).into_owned())
}
