//! The clips: computed ones, and those that the script made of voices and music. 48 kHz, stereo, interleaved.

use std::f32::consts::TAU;
use std::io;
use std::path::Path;

pub(crate) const RATE: usize = 48_000;
/// Length of a computed clip in seconds.
const SECONDS: usize = 6;

pub(crate) struct Clip {
    pub(crate) name: String,
    pub(crate) samples: Vec<i16>,
}

impl Clip {
    /// Its samples, in one channel or two.
    pub(crate) fn mixed(&self, channels: usize) -> Vec<i16> {
        if channels == 2 {
            return self.samples.clone();
        }
        let mixed = |pair: &[i16]| ((i32::from(pair[0]) + i32::from(pair[1])) / 2) as i16;
        self.samples.chunks_exact(2).map(mixed).collect()
    }
}

/// All clips: the computed ones and each raw file of the folder.
pub(crate) fn all(folder: &Path) -> io::Result<Vec<Clip>> {
    let mut clips = vec![
        computed("clicks", clicks),
        computed("glockenspiel", glockenspiel),
        computed("applause", applause),
        computed("sweep", sweep),
        computed("rising", rising),
    ];
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files.iter().map(std::fs::DirEntry::path) {
        if file.extension().is_some_and(|extension| extension == "s16") {
            let bytes = std::fs::read(&file)?;
            let samples =
                bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            clips.push(Clip { name, samples });
        }
    }
    Ok(clips)
}

fn computed(name: &str, make: fn(&mut Noise, &mut [[f32; 2]])) -> Clip {
    let mut samples = vec![[0.0; 2]; SECONDS * RATE];
    make(&mut Noise(1), &mut samples);
    let to_integer = |sample: f32| (sample * 32_767.0).clamp(-32_768.0, 32_767.0) as i16;
    Clip { name: name.into(), samples: samples.into_iter().flatten().map(to_integer).collect() }
}

struct Noise(u64);

impl Noise {
    /// Between -1 and 1.
    fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Castanets: bursts of resonant noise of 5 ms, at irregular times, at changing places between left and right.
fn clicks(noise: &mut Noise, out: &mut [[f32; 2]]) {
    let mut at = RATE / 10;
    while at + RATE / 5 < out.len() {
        let (place, pitch) = (0.5 + 0.4 * noise.next(), 1_800.0 + 900.0 * noise.next());
        for index in 0..RATE / 10 {
            let time = index as f32 / RATE as f32;
            let value = (-time * 350.0).exp() * noise.next() * 0.4
                + (-time * 160.0).exp() * (TAU * pitch * time).sin() * 0.3
                + (-time * 220.0).exp() * (TAU * pitch * 2.71 * time).sin() * 0.2;
            out[at + index][0] += value * (1.0 - place);
            out[at + index][1] += value * place;
        }
        at += RATE / 12 + (noise.next().abs() * 0.25 * RATE as f32) as usize;
    }
}

/// Struck bars: inharmonic partials that start at once and decay slowly.
fn glockenspiel(noise: &mut Noise, out: &mut [[f32; 2]]) {
    let notes = [1_568.0, 1_760.0, 1_976.0, 2_093.0, 2_349.0, 2_637.0, 3_136.0];
    let mut at = RATE / 8;
    while at < out.len() {
        let note = notes[((noise.next() + 1.0) * 3.49) as usize];
        let place = 0.5 + 0.3 * noise.next();
        for (index, out) in out[at..].iter_mut().take(2 * RATE).enumerate() {
            let time = index as f32 / RATE as f32;
            let partials: [(f32, f32, f32); 4] =
                [(1.0, 0.25, 2.5), (2.756, 0.12, 5.0), (5.404, 0.06, 9.0), (0.5, 0.02, 3.0)];
            let value: f32 = partials
                .iter()
                .map(|(ratio, level, decay)| {
                    level * (-decay * time).exp() * (TAU * note * ratio * time).sin()
                })
                .sum();
            out[0] += 0.7 * value * (1.0 - place);
            out[1] += 0.7 * value * place;
        }
        at += RATE / 4 + RATE / 8 * usize::from(noise.next() > 0.0);
    }
}

/// Applause: thousands of short claps, more and fewer, independent on both sides.
fn applause(noise: &mut Noise, out: &mut [[f32; 2]]) {
    let length = out.len();
    for clap in 0..2_400 {
        let at = ((noise.next() + 1.0) / 2.0 * (length - RATE / 10) as f32) as usize;
        let (place, level) = (0.5 + 0.5 * noise.next(), 0.12 + 0.1 * noise.next());
        let (pitch, mut low) = (900.0 + 400.0 * noise.next(), 0.0);
        for index in 0..RATE / 50 {
            let time = index as f32 / RATE as f32;
            low += 0.35 * (noise.next() - low);
            let value = level * (-time * 260.0).exp() * (low + 0.3 * (TAU * pitch * time).sin());
            out[at + index][0] += value * (1.0 - place);
            out[at + index][1] += value * place;
        }
        let _ = clap;
    }
}

/// A sine from 40 Hz to 18 kHz.
fn sweep(_: &mut Noise, out: &mut [[f32; 2]]) {
    let (length, mut phase) = (out.len() as f32, 0.0_f32);
    for (index, out) in out.iter_mut().enumerate() {
        let hertz = 40.0 * 450.0_f32.powf(index as f32 / length);
        phase = (phase + hertz / RATE as f32).fract();
        *out = [0.5 * (TAU * phase).sin(), 0.4 * (TAU * phase).sin()];
    }
}

/// A chord over pink noise, from silence to full scale.
fn rising(noise: &mut Noise, out: &mut [[f32; 2]]) {
    let length = out.len() as f32;
    let mut low = [0.0_f32; 2];
    for (index, out) in out.iter_mut().enumerate() {
        let (time, gain) =
            (index as f32 / RATE as f32, 10.0_f32.powf(index as f32 / length * 5.0 - 5.0));
        let chord: f32 = [220.0, 277.2, 329.6, 880.0, 2_217.0]
            .iter()
            .map(|hertz| (TAU * hertz * time).sin() * 0.16)
            .sum();
        for (out, low) in out.iter_mut().zip(&mut low) {
            *low += 0.15 * (noise.next() - *low);
            *out = gain * 1.3 * (chord + 0.8 * *low);
        }
    }
}
