//! The filter bank: windows and the modified discrete cosine transform (ISO/IEC 14496-3, 4.6.11), by a complex
//! transform of a quarter of the window's length. Not when a frame is cut into short windows (`blocks`).

use std::f64::consts::PI;
use std::sync::{Arc, OnceLock};

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

use crate::bands::{LINES, SHORT_LINES, SHORT_WINDOWS};

/// Lines before the first and after the last short window that no short window covers.
const FLAT: usize = (LINES - SHORT_LINES) / 2;

/// The sequence of windows of a frame, by its code (table 4.44).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// A long window between long ones.
    Long = 0,
    /// A long window before short ones.
    Start = 1,
    /// Eight short windows.
    Short = 2,
    /// A long window after short ones.
    Stop = 3,
}

/// The shape of a half of a window, by its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Half a sine: good near selectivity.
    Sine = 0,
    /// Kaiser-Bessel derived: good far rejection.
    #[cfg_attr(not(test), expect(dead_code, reason = "no clip scored better with it"))]
    Kbd = 1,
}

/// Transforms and windows, one set for the whole process.
pub(crate) struct FilterBank {
    long: Mdct,
    short: Mdct,
    // By `Shape`: the rising halves.
    long_windows: [Vec<f32>; 2],
    short_windows: [Vec<f32>; 2],
}

/// Space for a transform; one for each encoder.
pub(crate) struct Scratch {
    windowed: Box<[f32; 2 * LINES]>,
    complex: Box<[Complex32; LINES / 2]>,
    fft: Vec<Complex32>,
}

impl FilterBank {
    /// The one of the process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<FilterBank> = OnceLock::new();
        SHARED.get_or_init(|| Self {
            long: Mdct::new(LINES),
            short: Mdct::new(SHORT_LINES),
            long_windows: [sine(LINES), kaiser_bessel(LINES, 4.0)],
            short_windows: [sine(SHORT_LINES), kaiser_bessel(SHORT_LINES, 6.0)],
        })
    }

    /// Space for one encoder.
    pub(crate) fn scratch(&self) -> Scratch {
        let length =
            self.long.fft.get_inplace_scratch_len().max(self.short.fft.get_inplace_scratch_len());
        Scratch {
            windowed: Box::new([0.0; 2 * LINES]),
            complex: Box::new([Complex32::default(); LINES / 2]),
            fft: vec![Complex32::default(); length],
        }
    }

    /// Transforms two adjoining frames of samples to lines; those of short windows one window after the other.
    /// `shapes` are those of the left and the right half.
    pub(crate) fn transform(
        &self,
        sequence: Sequence,
        shapes: [Shape; 2],
        frames: [&[f32; LINES]; 2],
        scratch: &mut Scratch,
        lines: &mut [f32; LINES],
    ) {
        let [left, right] = shapes.map(|shape| shape as usize);
        let windowed = &mut scratch.windowed;
        if sequence == Sequence::Short {
            let sample = |index: usize| frames[index / LINES][index % LINES];
            for window in 0..SHORT_WINDOWS {
                let start = FLAT + window * SHORT_LINES;
                let rising = &self.short_windows[if window == 0 { left } else { right }];
                let falling = &self.short_windows[right];
                for index in 0..SHORT_LINES {
                    windowed[index] = sample(start + index) * rising[index];
                    windowed[SHORT_LINES + index] =
                        sample(start + SHORT_LINES + index) * falling[SHORT_LINES - 1 - index];
                }
                self.short.transform(
                    &windowed[..2 * SHORT_LINES],
                    &mut scratch.complex[..],
                    &mut scratch.fft,
                    &mut lines[window * SHORT_LINES..][..SHORT_LINES],
                );
            }
            return;
        }
        let (first, second) = windowed.split_at_mut(LINES);
        if sequence == Sequence::Stop {
            let end = FLAT + SHORT_LINES;
            first[..FLAT].fill(0.0);
            multiply(&mut first[FLAT..end], &frames[0][FLAT..end], self.short_windows[left].iter());
            first[end..].copy_from_slice(&frames[0][end..]);
        } else {
            multiply(first, frames[0], self.long_windows[left].iter());
        }
        if sequence == Sequence::Start {
            let end = FLAT + SHORT_LINES;
            second[..FLAT].copy_from_slice(&frames[1][..FLAT]);
            let window = self.short_windows[right].iter().rev();
            multiply(&mut second[FLAT..end], &frames[1][FLAT..end], window);
            second[end..].fill(0.0);
        } else {
            multiply(second, frames[1], self.long_windows[right].iter().rev());
        }
        self.long.transform(&windowed[..], &mut scratch.complex[..], &mut scratch.fft, lines);
    }
}

fn multiply<'a>(out: &mut [f32], samples: &[f32], window: impl Iterator<Item = &'a f32>) {
    for ((out, sample), factor) in out.iter_mut().zip(samples).zip(window) {
        *out = sample * factor;
    }
}

/// A transform of `2 * size` samples to `size` lines, scaled as the standard's: twice the sum of the products.
struct Mdct {
    size: usize,
    twiddles: Vec<Complex32>,
    fft: Arc<dyn Fft<f32>>,
}

impl Mdct {
    fn new(size: usize) -> Self {
        // The square root of the scale, on both sides of the transform.
        let scale = 2.0_f64.sqrt();
        let twiddle = |index: usize| {
            let angle = -PI * (8 * index + 1) as f64 / (8 * size) as f64;
            Complex32::new((scale * angle.cos()) as f32, (scale * angle.sin()) as f32)
        };
        let fft = FftPlanner::new().plan_fft_forward(size / 2);
        Self { size, twiddles: (0..size / 2).map(twiddle).collect(), fft }
    }

    /// Folds the quarters `a b c d` to `-c' - d, a - b'` (an apostrophe reverses), which is a transform of type IV, and
    /// computes that as a complex one of half the length between two rotations.
    fn transform(
        &self,
        windowed: &[f32],
        complex: &mut [Complex32],
        fft_scratch: &mut [Complex32],
        lines: &mut [f32],
    ) {
        let half = self.size / 2;
        let quarter = half / 2;
        let complex = &mut complex[..half];
        let (a, rest) = windowed.split_at(half);
        let (b, rest) = rest.split_at(half);
        let (c, d) = rest.split_at(half);
        let d = &d[..half];
        // Element `2 n` of the folded sequence with element `size - 1 - 2 n`: for the lower half of `n` the first is of
        // `-c' - d` and the second of `a - b'`, for the upper half the other way round.
        let (lower, upper) = complex.split_at_mut(quarter);
        let (early, late) = self.twiddles.split_at(quarter);
        for (n, (out, twiddle)) in lower.iter_mut().zip(early).enumerate() {
            let even = -c[half - 1 - 2 * n] - d[2 * n];
            let odd = a[half - 1 - 2 * n] - b[2 * n];
            *out = Complex32::new(even, odd) * twiddle;
        }
        for (n, (out, twiddle)) in upper.iter_mut().zip(late).enumerate() {
            let even = a[2 * n] - b[half - 1 - 2 * n];
            let odd = -c[2 * n] - d[half - 1 - 2 * n];
            *out = Complex32::new(even, odd) * twiddle;
        }
        self.fft.process_with_scratch(complex, fft_scratch);
        for (out, twiddle) in complex.iter_mut().zip(&self.twiddles) {
            *out *= twiddle;
        }
        let lines = &mut lines[..self.size];
        for (pair, (first, last)) in
            lines.chunks_exact_mut(2).zip(complex.iter().zip(complex.iter().rev()))
        {
            pair[0] = first.re;
            pair[1] = -last.im;
        }
    }
}

fn sine(length: usize) -> Vec<f32> {
    let angle = |index: usize| PI * (2 * index + 1) as f64 / (4 * length) as f64;
    (0..length).map(|index| angle(index).sin() as f32).collect()
}

fn kaiser_bessel(length: usize, alpha: f64) -> Vec<f32> {
    let kernel: Vec<f64> = (0..=length)
        .map(|index| {
            let position = 2.0 * index as f64 / length as f64 - 1.0;
            bessel(PI * alpha * (1.0 - position * position).max(0.0).sqrt())
        })
        .collect();
    let sum: f64 = kernel.iter().sum();
    let sums = kernel.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    sums.take(length).map(|part| (part / sum).sqrt() as f32).collect()
}

/// The modified Bessel function of the first kind and order zero.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut index) = (1.0, 1.0, 1.0);
    while term > sum * 1e-12 {
        term *= (x / (2.0 * index)).powi(2);
        sum += term;
        index += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use Sequence::{Long, Short, Start, Stop};

    /// The inverse transform and window of the standard, from its formula.
    fn inverse(lines: &[f32]) -> Vec<f64> {
        let size = lines.len();
        let first = (size + 1) as f64 / 2.0;
        let value = |n: usize| {
            let terms = lines.iter().enumerate().map(|(k, line)| {
                f64::from(*line) * (PI / size as f64 * (n as f64 + first) * (k as f64 + 0.5)).cos()
            });
            terms.sum::<f64>() / size as f64
        };
        (0..2 * size).map(value).collect()
    }

    #[test]
    fn overlapping_frames_of_every_sequence_and_shape_add_up_to_the_samples() {
        let bank = FilterBank::shared();
        let mut scratch = bank.scratch();
        let sequences = [Long, Start, Short, Short, Stop, Long];
        let shapes = [Shape::Sine, Shape::Kbd, Shape::Sine, Shape::Kbd, Shape::Kbd, Shape::Sine];
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as f32 - 32_768.0
        };
        let frames: Vec<[f32; LINES]> =
            (0..=sequences.len()).map(|_| std::array::from_fn(|_| noise())).collect();
        let mut output = vec![0.0; frames.len() * LINES];
        for (index, sequence) in sequences.into_iter().enumerate() {
            let both = [if index == 0 { Shape::Sine } else { shapes[index - 1] }, shapes[index]];
            let mut lines = [0.0; LINES];
            let pair = [&frames[index], &frames[index + 1]];
            bank.transform(sequence, both, pair, &mut scratch, &mut lines);
            let out = &mut output[index * LINES..][..2 * LINES];
            let [left, right] = both.map(|shape| shape as usize);
            if sequence == Short {
                for window in 0..SHORT_WINDOWS {
                    let inverse = inverse(&lines[window * SHORT_LINES..][..SHORT_LINES]);
                    let rising = &bank.short_windows[if window == 0 { left } else { right }];
                    for (n, value) in inverse.iter().enumerate() {
                        let factor = rising
                            .get(n)
                            .unwrap_or_else(|| &bank.short_windows[right][2 * SHORT_LINES - 1 - n]);
                        out[FLAT + window * SHORT_LINES + n] += value * f64::from(*factor);
                    }
                }
                continue;
            }
            // The window, seen through the one of the encoder: transform of ones.
            let ones = [1.0; LINES];
            bank.transform(sequence, both, [&ones, &ones], &mut scratch, &mut [0.0; LINES]);
            for (n, value) in inverse(&lines).iter().enumerate() {
                out[n] += value * f64::from(scratch.windowed[n]);
            }
        }
        for (n, value) in output.iter().enumerate().take(sequences.len() * LINES).skip(LINES) {
            let sample = f64::from(frames[n / LINES][n % LINES]);
            assert!((value - sample).abs() < 0.1, "{n}: {value} for {sample}");
        }
    }
}
