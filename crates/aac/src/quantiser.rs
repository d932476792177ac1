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
