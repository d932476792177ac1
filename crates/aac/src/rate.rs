//! Rate control: how many bits a frame may have, given the reservoir (ISO/IEC 14496-3, 4.5.3.2), and the step sizes
//! that are expected to take them. Not the counting of bits (`sections`).

use crate::bands::LIMIT_BANDS;
use crate::log::log2;
use crate::quantiser::{LIMIT_FACTOR, UNITY};

/// Bits of a decoder's input buffer for each channel, and so most of an access unit.
pub(crate) const BUFFER_BITS: usize = 6_144;
/// Bits per line by the logarithm of the mean quantised magnitude to base 2, from `FIRST_LEVEL` in steps of a half.
const LINE_BITS: [f32; 24] = [
    0.02, 0.04, 0.08, 0.14, 0.25, 0.4, 0.62, 0.95, 1.3, 1.7, 2.1, 2.55, 3.0, 3.5, 4.0, 4.5, 5.0,
    5.55, 6.1, 6.7, 7.3, 7.9, 8.5, 9.1,
];
const FIRST_LEVEL: f32 = -5.0;
/// Finest shift of all scale factors: 27 dB below the thresholds, where nothing is gained any more.
const FINEST: f32 = -24.0;
/// Coarsest shift.
const COARSEST: f32 = 60.0;

/// How far a frame's bits follow its demand, how far the level of the reservoir, and how fast the usual shift follows.
const BY_DEMAND: f32 = 0.8;
const BY_LEVEL: f32 = 0.15;
const FOLLOWING: f32 = 0.06;

/// What the search for step sizes must know of the bands of a frame.
#[derive(Clone)]
pub(crate) struct Demand {
    // Width, logarithm of the mean magnitude to the power 3/4, scale factor by the threshold, and the least one.
    bands: [(f32, f32, f32, f32); 2 * LIMIT_BANDS],
    count: usize,
}

impl Demand {
    pub(crate) const fn new() -> Self {
        Self { bands: [(0.0, 0.0, 0.0, 0.0); 2 * LIMIT_BANDS], count: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds a band.
    pub(crate) fn add(&mut self, width: usize, sum_of_powers: f32, scale_factor: f32, least: f32) {
        let level = log2((sum_of_powers / width as f32).max(1e-9));
        self.bands[self.count] = (width as f32, level, scale_factor, least);
        self.count += 1;
    }

    /// The bits of all bands if all scale factors are shifted, and how many fewer they get for each step.
    fn bits(&self, shift: f32) -> (f32, f32) {
        let (mut bits, mut slope) = (0.0, 0.0);
        for (width, level, factor, least) in &self.bands[..self.count] {
            let shifted = factor + shift;
            let magnitude = level - 0.1875 * (shifted.max(*least) - f32::from(UNITY));
            let position = (magnitude - FIRST_LEVEL) * 2.0;
            if position <= 0.0 {
                continue;
            }
            let index = (position as usize).min(LINE_BITS.len() - 2);
            let (low, high) = (LINE_BITS[index], LINE_BITS[index + 1]);
            bits += width * (low + (high - low) * (position - index as f32));
            if shifted > *least {
                slope += width * (high - low) * 2.0 * 0.1875;
            }
        }
        (bits, slope)
    }

    /// The shift at which the bands have about that many bits.
    fn shift_for(&self, bits: f32, mut shift: f32) -> f32 {
        for _ in 0..5 {
            let (expected, slope) = self.bits(shift);
            let step = ((expected - bits) / slope.max(4.0)).clamp(-16.0, 16.0);
            shift = (shift + step).clamp(FINEST, COARSEST);
            if step.abs() < 0.1 {
                break;
            }
        }
        shift
    }
}

/// The scale factor at which a band has noise energy of that level (logarithm to base 2): the error of a magnitude is that of its power 3/4, uniform
/// over a step, times the slope of the power 4/3, which sums to `4/27 * step^1.5 * sum of square roots`.
pub(crate) fn scale_factor(level: f32, sum_of_roots: f32) -> f32 {
    let step = 2.0 / 3.0 * (2.754_888 + level - log2(sum_of_roots.max(1e-9)));
    f32::from(UNITY) + 4.0 * step
}

/// What a frame may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Shift of all scale factors.
    pub(crate) shift: f32,
    /// Bits wanted.
    pub(crate) bits: usize,
    /// Bits that may not be exceeded.
    pub(crate) most: usize,
}

/// The state of one encoder's rate.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    // Bits, in 375ths: 1024 samples at 48 kHz at `bitrate` are `bitrate * 8 / 375`.
    mean: i64,
    level: i64,
    capacity: i64,
    most: usize,
    // Usual shift, and how many bits frames take for each one expected.
    shift: f32,
    calibration: f32,
}

const DENOMINATOR: i64 = 375;

impl Rate {
    pub(crate) fn new(bitrate: u32, channels: usize, most: usize) -> Self {
        let mean = i64::from(bitrate) * 8;
        let buffer = (BUFFER_BITS * channels) as i64 * DENOMINATOR;
        // What the buffer holds besides a mean frame, and no more than 0.8 % of the bits of ten seconds.
        let capacity = (buffer - mean).clamp(0, i64::from(bitrate) * 8 / 100 * DENOMINATOR);
        let most = most.min(BUFFER_BITS * channels);
        Self { mean, level: capacity / 2, capacity, most, shift: -8.0, calibration: 1.0 }
    }

    /// The usual shift.
    pub(crate) const fn shift(&self) -> f32 {
        self.shift
    }

    /// The budget of the next frame, of which `side` bits are no lines.
    pub(crate) fn budget(&self, demand: &Demand, side: usize) -> Budget {
        let (mean, level) = (self.bits(self.mean), self.bits(self.level));
        let capacity = self.bits(self.capacity);
        let side = side as f32;
        let wanted = demand.bits(self.shift).0 * self.calibration + side;
        let most = (mean + level).min(self.most as f32);
        let bits = mean + BY_DEMAND * (wanted - mean) + BY_LEVEL * (level - 0.5 * capacity);
        // What a full reservoir cannot keep is lost, so it is spent.
        let least = (mean - (capacity - level)).max(mean * 0.25);
        let bits = bits.max(least).min(mean + 0.7 * level).min(most).max(side + 8.0);
        let shift = demand.shift_for((bits - side) / self.calibration, self.shift);
        // An access unit is whole bytes.
        Budget { shift, bits: bits as usize, most: most as usize / 8 * 8 }
    }

    /// A shift that corrects a first attempt.
    pub(crate) fn correct(&self, demand: &Demand, budget: Budget, used: usize) -> f32 {
        let slope = demand.bits(budget.shift).1.max(8.0) * self.calibration;
        budget.shift + (used as f32 - budget.bits as f32) / slope + 0.5
    }

    /// Counts a frame.
    pub(crate) fn handle_frame(&mut self, bits: usize, lines: Option<(&Demand, f32, usize)>) {
        self.level = (self.level + self.mean - bits as i64 * DENOMINATOR).min(self.capacity);
        let Some((demand, shift, side)) = lines else { return };
        self.shift += FOLLOWING * (shift - self.shift);
        let (expected, _) = demand.bits(shift);
        if expected > 100.0 {
            let ratio = (bits as f32 - side as f32).max(0.0) / expected;
            self.calibration += 0.1 * (ratio.clamp(0.5, 2.0) - self.calibration);
        }
    }

    fn bits(&self, part: i64) -> f32 {
        part as f32 / DENOMINATOR as f32
    }
}

/// A scale factor that the syntax can express.
pub(crate) fn legal(scale_factor: f32) -> i16 {
    (scale_factor.round() as i16).clamp(0, LIMIT_FACTOR)
}
