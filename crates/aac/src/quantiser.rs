//! The power-law quantiser (ISO/IEC 14496-3, 4.6.1 and 4.6.2): magnitudes to the power 3/4, steps of a quarter of a
//! power of two.

use std::sync::OnceLock;

/// The scale factor of a step of 1.
pub(crate) const UNITY: i16 = 100;
/// Largest scale factor.
pub(crate) const LIMIT_FACTOR: i16 = 255;
/// Largest quantised magnitude.
pub(crate) const LIMIT_MAGNITUDE: f32 = 8191.0;
/// Where magnitudes are rounded up: less than half, since small values are more frequent than large ones.
const ROUNDING: f32 = 0.4054;

/// The power 3/4 of each magnitude, and their sum and the sum of the square roots.
pub(crate) fn powers(lines: &[f32], powers: &mut [f32]) -> (f32, f32) {
    let (mut sums, mut roots) = ([0.0_f32; 4], [0.0_f32; 4]);
    for (lines, powers) in lines.chunks_exact(4).zip(powers.chunks_exact_mut(4)) {
        for lane in 0..4 {
            let root = lines[lane].abs().sqrt();
            powers[lane] = root * root.sqrt();
            roots[lane] += root;
            sums[lane] += powers[lane];
        }
    }
    (sums.iter().sum(), roots.iter().sum())
}

/// The factor for powers of magnitudes at a scale factor.
pub(crate) fn gain(scale_factor: i16) -> f32 {
    static GAINS: OnceLock<[f32; 256]> = OnceLock::new();
    let gains = GAINS.get_or_init(|| {
        std::array::from_fn(|index| (-0.1875 * (index as f32 - f32::from(UNITY))).exp2())
    });
    gains[usize::from(scale_factor.clamp(0, LIMIT_FACTOR) as u16)]
}

/// Quantises lines, given the powers of their magnitudes; returns the largest magnitude.
pub(crate) fn quantise(lines: &[f32], powers: &[f32], gain: f32, out: &mut [i16]) -> u16 {
    // At this size a number has no fraction, and the lowest bits of its representation count units.
    const WHOLE: f32 = 8_388_608.0;
    let rounding = ROUNDING - 0.5;
    let mut largest = [0_i32; 4];
    for ((lines, powers), out) in
        lines.chunks_exact(4).zip(powers.chunks_exact(4)).zip(out.chunks_exact_mut(4))
    {
        for lane in 0..4 {
            let value = (powers[lane] * gain + rounding).min(LIMIT_MAGNITUDE) + WHOLE;
            let magnitude = (value.to_bits() & 0x7f_ffff) as i32;
            largest[lane] = largest[lane].max(magnitude);
            let sign = (lines[lane].to_bits() as i32) >> 31;
            out[lane] = ((magnitude ^ sign) - sign) as i16;
        }
    }
    largest.iter().fold(0, |largest, value| largest.max(*value)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{legal, scale_factor};

    #[test]
    fn the_noise_of_a_band_is_what_its_step_was_chosen_for() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        for level in [30.0, 1_000.0, 100_000.0] {
            for decibels in [20.0, 30.0, 40.0, 50.0] {
                let lines: Vec<f32> =
                    (0..4_096).map(|_| level * (random() + random() + random())).collect();
                let mut roots_of = vec![0.0; lines.len()];
                let (_, roots) = powers(&lines, &mut roots_of);
                let energy: f32 = lines.iter().map(|line| line * line).sum();
                let wanted = energy * 10.0_f32.powf(-decibels / 10.0);
                let exact = scale_factor(wanted.log2(), roots);
                let factor = legal(exact);
                if factor == 0 {
                    continue;
                }
                let mut out = vec![0; lines.len()];
                quantise(&lines, &roots_of, gain(factor), &mut out);
                let step = (0.25 * (f32::from(factor) - f32::from(UNITY))).exp2();
                let noise: f32 = lines
                    .iter()
                    .zip(&out)
                    .map(|(line, value)| {
                        let magnitude = f32::from(value.abs()).powf(4.0 / 3.0) * step;
                        (line - magnitude.copysign(f32::from(*value))).powi(2)
                    })
                    .sum();
                // Each scale factor is 1.13 dB of noise; rounding below half adds 0.45 dB.
                let expected = wanted * (0.375 * (f32::from(factor) - exact)).exp2();
                let excess = 10.0 * (noise / expected).log10();
                assert!((-0.2..1.0).contains(&excess), "{level} at {decibels} dB: {excess} dB");
            }
        }
    }
}
