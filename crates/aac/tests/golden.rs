//! Golden scores: how far the coding noise of computed clips lies below the masking threshold, and below the signal.
//! Neither may get worse. The measure shares nothing with the encoder's own model: bands of half a Bark, a spreading
//! of 27 dB a Bark downwards and 10 upwards, and noise allowed 10 dB below it.
#![allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]

mod round_trip;

use std::f32::consts::TAU;

use headgate_aac::{Config, DELAY_SAMPLES, FRAME_SAMPLES, SAMPLE_RATE};
use round_trip::{Noise, round_trip};
use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

/// What is recorded may be missed by this much, dB: processors differ in how they add.
const TOLERANCE: f32 = 0.15;
const FRAMES: usize = 120;
const WINDOW: usize = 2 * FRAME_SAMPLES;
/// Half a Bark each.
const BANDS: usize = 48;
/// Energy of a line in 16 bits' last place: below that nothing is heard.
const QUIET: f32 = 1e-7;

/// Of one clip at 128 kbit/s in stereo and at 64 kbit/s in mono, dB: the noise-to-mask ratio, less is better, and the
/// signal-to-noise ratio of a band, more is better.
#[rustfmt::skip]
const RECORDED: [(&str, [[f32; 2]; 2]); 9] = [
    ("applause", [[1.77, 7.83], [1.59, 7.27]]),
    ("castanets", [[-4.08, 10.07], [-5.21, 10.79]]),
    ("glockenspiel", [[-15.15, 17.87], [-12.60, 17.28]]),
    ("rising", [[-21.46, 22.34], [-19.85, 20.68]]),
    ("sweep", [[-13.26, 19.19], [-13.26, 19.18]]),
    ("voice 100 Hz", [[-2.22, 15.22], [-0.72, 13.78]]),
    ("voice 130 Hz", [[-1.62, 15.68], [-0.32, 14.36]]),
    ("voice 190 Hz", [[-1.96, 15.80], [-0.64, 14.24]]),
    ("voice 240 Hz", [[-1.96, 15.71], [-0.66, 13.88]]),
];

#[test]
fn no_clip_has_more_noise_than_recorded() {
    let mut worse = Vec::new();
    for (name, recorded) in RECORDED {
        let clip = clip(name);
        let found = [(2, 128_000), (1, 64_000)].map(|(channels, bitrate)| {
            let config = Config { channels, bitrate, largest_access_unit: None };
            let samples: Vec<f32> = match channels {
                1 => clip.iter().map(|[left, right]| (left + right) / 2.0).collect(),
                _ => clip.as_flattened().to_vec(),
            };
            let width = usize::from(channels);
            let (decoded, _) = round_trip(config, &samples);
            score(&samples, &decoded[DELAY_SAMPLES * width..], width)
        });
        println!("(\"{name}\", {found:.2?}),");
        let is_worse = |[mask, signal]: [f32; 2], [most, least]: [f32; 2]| {
            mask > most + TOLERANCE || signal < least - TOLERANCE
        };
        if found.into_iter().zip(recorded).any(|(found, recorded)| is_worse(found, recorded)) {
            worse.push((name, found, recorded));
        }
    }
    assert!(worse.is_empty(), "clip, found, recorded: {worse:.2?}");
}

/// The samples of a clip, left and right.
fn clip(name: &str) -> Vec<[f32; 2]> {
    let rate = SAMPLE_RATE as f32;
    let mut noise = Noise(1);
    let mut resonators = [[0.0_f32; 2]; 4];
    let mut phase = 0.0_f32;
    (0..FRAMES * FRAME_SAMPLES)
        .map(|index| {
            let time = index as f32 / rate;
            match name {
                // Claps: forty a second with their own level on each side.
                "applause" => {
                    let clap = (-(time * 40.0).fract() * 6.0).exp();
                    let level = 0.3 + 0.2 * ((time * 40.0).floor() * 2.4).sin();
                    [noise.next() * clap * level, noise.next() * clap * (0.6 - level)]
                }
                // A click every 170 ms, which rings for some ms.
                "castanets" => {
                    let since = time % 0.17;
                    let click = (-since * 700.0).exp() * (TAU * 2_600.0 * since).sin();
                    [0.7 * click, 0.5 * click + 0.001 * noise.next()]
                }
                // Strokes with partials that are not harmonic.
                "glockenspiel" => {
                    let (stroke, since) = ((time / 0.3).floor(), time % 0.3);
                    let pitch = 1_050.0 * (1.0 + 0.12 * (stroke % 5.0));
                    let tone: f32 = [(1.0, 0.4), (2.756, 0.2), (5.404, 0.1)]
                        .into_iter()
                        .map(|(ratio, level)| {
                            level
                                * (TAU * pitch * ratio * since).sin()
                                * (-since * 4.0 * ratio).exp()
                        })
                        .sum();
                    [tone, 0.8 * tone]
                }
                // Three tones from silence to full scale.
                "rising" => {
                    let level = 10_f32.powf(time * 1.5 - 4.0).min(0.33);
                    let tones = [330.0, 1_100.0, 4_700.0].map(|pitch| (TAU * pitch * time).sin());
                    let sum: f32 = tones.iter().sum();
                    [level * sum, level * (sum - 2.0 * tones[1])]
                }
                "sweep" => {
                    phase += TAU * 60.0 * 250_f32.powf(time / 2.56) / rate;
                    [0.5 * phase.sin(), 0.5 * phase.sin()]
                }
                // Pulses of the voice and breath through four formants that move, with pauses between syllables.
                _ => {
                    let pitch: f32 = name[6..9].parse().unwrap();
                    phase += pitch * (1.0 + 0.1 * (time * 5.0).sin()) / rate;
                    let pulse = if phase >= 1.0 { 1.0 } else { 0.0 };
                    phase = phase.fract();
                    let syllable = (TAU * time * 1.7).sin().max(0.0);
                    let source = syllable * (pulse + 0.02 * noise.next());
                    let vowel = (time * 2.3).sin();
                    let formants =
                        [500.0 + 250.0 * vowel, 1_500.0 - 500.0 * vowel, 2_500.0, 3_600.0];
                    let voice: f32 = resonators
                        .iter_mut()
                        .zip(formants)
                        .map(|(state, formant)| {
                            let (radius, angle) =
                                (0.99_f32, TAU * formant * (1.0 + pitch / 2_000.0) / rate);
                            let value = source + 2.0 * radius * angle.cos() * state[0]
                                - radius * radius * state[1];
                            *state = [value, state[0]];
                            value * angle.sin()
                        })
                        .sum();
                    [0.25 * voice, 0.2 * voice]
                }
            }
        })
        .collect()
}

/// The ratios of `RECORDED`, over all windows and channels.
fn score(samples: &[f32], decoded: &[f32], channels: usize) -> [f32; 2] {
    let fft = FftPlanner::new().plan_fft_forward(WINDOW);
    let (mut to_mask, mut masked, mut to_signal, mut sounding) = (0.0, 0, 0.0, 0);
    for channel in 0..channels {
        let signal: Vec<f32> = samples.iter().skip(channel).step_by(channels).copied().collect();
        let noise: Vec<f32> = decoded
            .iter()
            .skip(channel)
            .step_by(channels)
            .zip(&signal)
            .map(|(decoded, sample)| decoded - sample)
            .collect();
        for start in (0..noise.len() - WINDOW).step_by(FRAME_SAMPLES) {
            let signal = bands(&*fft, &signal[start..start + WINDOW]);
            let noise = bands(&*fft, &noise[start..start + WINDOW]);
            for (band, (signal_here, noise)) in signal.iter().zip(noise).enumerate() {
                let spread: f32 = signal
                    .iter()
                    .enumerate()
                    .map(|(from, energy)| energy * reach(from, band))
                    .sum();
                if spread < QUIET {
                    continue;
                }
                to_mask += noise / (spread * 0.1).max(QUIET);
                masked += 1;
                if *signal_here >= QUIET {
                    to_signal += 10.0 * (signal_here / noise.max(QUIET)).log10();
                    sounding += 1;
                }
            }
        }
    }
    [10.0 * (to_mask / masked as f32).log10(), to_signal / sounding as f32]
}

/// How much of a band's energy masks another band.
fn reach(from: usize, to: usize) -> f32 {
    let barks = to as f32 / 2.0 - from as f32 / 2.0;
    let decibels = if barks < 0.0 { 27.0 * barks } else { -10.0 * barks };
    10_f32.powf(decibels / 10.0)
}

/// Energy of each band of a window.
fn bands(fft: &dyn Fft<f32>, samples: &[f32]) -> [f32; BANDS] {
    let mut spectrum: Vec<Complex32> = samples
        .iter()
        .enumerate()
        .map(|(index, sample)| {
            let hann = 0.5 - 0.5 * (TAU * index as f32 / WINDOW as f32).cos();
            Complex32::new(sample * hann / WINDOW as f32, 0.0)
        })
        .collect();
    fft.process(&mut spectrum);
    let mut energies = [0.0; BANDS];
    for (line, value) in spectrum[..WINDOW / 2].iter().enumerate() {
        let hertz = line as f32 * SAMPLE_RATE as f32 / WINDOW as f32;
        // Traunmueller's formula.
        let bark = 26.81 * hertz / (1_960.0 + hertz) - 0.53;
        energies[((bark.max(0.0) * 2.0) as usize).min(BANDS - 1)] += value.norm_sqr();
    }
    energies
}
