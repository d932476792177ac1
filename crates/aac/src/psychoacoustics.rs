//! How much noise each band may have: energies spread over neighbouring bands, less an offset, not below the threshold
//! in quiet, and not far above what the frame before allowed (pre-echoes). Tonality plays no part: a larger offset for
//! tones takes bits from all other bands, and scores lower at every bitrate.

use std::sync::OnceLock;

use crate::bands::{LIMIT_BANDS, LONG, LONG_BANDS, Layout, SHORT, SHORT_BANDS};
use crate::log::{exp2, log2};

/// Level of a full-scale sine at the listener, in decibels of sound pressure.
const FULL_SCALE: f32 = 115.0;
/// How fast masking decays towards higher and lower bands, in decibels for each Bark: slower than in hearing, since what
/// the bitrate leaves is noise above the thresholds, which then falls where the louder bands below are.
const UPWARDS: f32 = 1.0;
const DOWNWARDS: f32 = 10.0;
/// How far noise must be below what masks it, in doublings of energy, in long and in short windows.
const LONG_OFFSET: f32 = 2.5;
const SHORT_OFFSET: f32 = 3.0;
/// How much more noise a band may have than the frame before allowed.
const PRE_ECHO: f32 = 3.0;
/// Energy of the lines of a long window for a signal of power 1.
const LONG_ENERGY: f32 = (1 << 21) as f32;
/// The same for one short window.
const SHORT_ENERGY: f32 = (1 << 15) as f32;

/// Sums of each band of one channel.
#[derive(Clone)]
pub(crate) struct Energies {
    /// Sum of the squares.
    pub(crate) energy: [f32; LIMIT_BANDS],
    /// Sum of the magnitudes.
    pub(crate) magnitude: [f32; LIMIT_BANDS],
}

impl Energies {
    pub(crate) const fn new() -> Self {
        Self { energy: [0.0; LIMIT_BANDS], magnitude: [0.0; LIMIT_BANDS] }
    }

    /// Sums the lines, in coding order.
    pub(crate) fn measure(&mut self, layout: &Layout, lines: &[f32]) {
        for band in 0..layout.bands() {
            let (mut squares, mut magnitudes) = ([0.0_f32; 4], [0.0_f32; 4]);
            for four in lines[layout.lines(band)].chunks_exact(4) {
                for lane in 0..4 {
                    squares[lane] += four[lane] * four[lane];
                    magnitudes[lane] += four[lane].abs();
                }
            }
            self.energy[band] = squares.iter().sum::<f32>() + f32::MIN_POSITIVE;
            self.magnitude[band] = magnitudes.iter().sum();
        }
    }
}

/// What a kind of window fixes.
struct Scale {
    /// Of the energy that spreads to the band above and below.
    upwards: Vec<f32>,
    downwards: Vec<f32>,
    /// Threshold in quiet of the whole band.
    quiet: Vec<f32>,
    // Its logarithm.
    quiet_levels: Vec<f32>,
}

impl Scale {
    /// Those of long and of short windows.
    fn shared() -> &'static [Self; 2] {
        static SHARED: OnceLock<[Scale; 2]> = OnceLock::new();
        SHARED.get_or_init(|| {
            [Self::new(&LONG, 1024.0, LONG_ENERGY), Self::new(&SHORT, 128.0, SHORT_ENERGY)]
        })
    }

    fn new(offsets: &[u16], lines: f32, energy: f32) -> Self {
        let hertz = |line: f32| line * 24_000.0 / lines;
        let centre = |band: usize| {
            bark(hertz((f32::from(offsets[band]) + f32::from(offsets[band + 1])) / 2.0))
        };
        let bands = offsets.len() - 1;
        let slope = |band: usize, decibels: f32| {
            let distance = if band + 1 < bands { centre(band + 1) - centre(band) } else { 1.0 };
            10.0_f32.powf(-decibels * distance / 10.0)
        };
        let quiet = |band: usize| {
            let (first, end) = (f32::from(offsets[band]), f32::from(offsets[band + 1]));
            let steps = (0..8).map(|step| first + (end - first) * (step as f32 + 0.5) / 8.0);
            let least = steps.map(|line| quiet(hertz(line))).fold(f32::INFINITY, f32::min);
            // The power of a full-scale sine is half the square of 32,768.
            energy * (1 << 29) as f32 * 10.0_f32.powf((least - FULL_SCALE) / 10.0)
        };
        Self {
            upwards: (0..bands).map(|band| slope(band, UPWARDS)).collect(),
            downwards: (0..bands).map(|band| slope(band, DOWNWARDS)).collect(),
            quiet: (0..bands).map(quiet).collect(),
            quiet_levels: (0..bands).map(|band| log2(quiet(band))).collect(),
        }
    }
}

/// The model of one channel.
#[derive(Clone)]
pub(crate) struct Model {
    // What the last long window allowed before pre-echo control.
    before: [f32; LONG_BANDS],
}

impl Model {
    pub(crate) const fn new() -> Self {
        Self { before: [f32::INFINITY; LONG_BANDS] }
    }

    /// Begins anew after silence.
    pub(crate) fn forget(&mut self) {
        self.before.fill(f32::INFINITY);
    }

    /// The noise energy that each band may have.
    pub(crate) fn thresholds(
        &mut self,
        layout: &Layout,
        energies: &Energies,
        thresholds: &mut [f32; LIMIT_BANDS],
    ) {
        let [long, short] = Scale::shared();
        if layout.is_short() {
            Self::short(short, layout, energies, thresholds);
            self.before.fill(f32::INFINITY);
        } else {
            self.long(long, energies, thresholds);
        }
    }

    fn long(&mut self, scale: &Scale, energies: &Energies, thresholds: &mut [f32; LIMIT_BANDS]) {
        let factor = exp2(-LONG_OFFSET);
        for (threshold, energy) in thresholds.iter_mut().zip(&energies.energy[..LONG_BANDS]) {
            *threshold = energy * factor;
        }
        spread(scale, &mut thresholds[..LONG_BANDS]);
        let bands = thresholds[..LONG_BANDS].iter_mut().zip(&scale.quiet).zip(&mut self.before);
        for ((threshold, quiet), before) in bands {
            let allowed = threshold.max(*quiet);
            *threshold = allowed.min(*before * PRE_ECHO).max(*quiet);
            *before = allowed;
        }
    }

    fn short(
        scale: &Scale,
        layout: &Layout,
        energies: &Energies,
        thresholds: &mut [f32; LIMIT_BANDS],
    ) {
        let factor = exp2(-SHORT_OFFSET);
        let mut before = [f32::INFINITY; SHORT_BANDS];
        for (group, length) in layout.groups().iter().enumerate() {
            let first = group * SHORT_BANDS;
            let windows = f32::from(*length);
            let thresholds = &mut thresholds[first..first + SHORT_BANDS];
            for (threshold, energy) in thresholds.iter_mut().zip(&energies.energy[first..]) {
                *threshold = energy * factor;
            }
            spread(scale, thresholds);
            for (band, threshold) in thresholds.iter_mut().enumerate() {
                let allowed = (*threshold / windows).max(scale.quiet[band]);
                *threshold = allowed.min(before[band] * 4.0).max(scale.quiet[band]) * windows;
                before[band] = allowed;
            }
        }
    }
}

fn spread(scale: &Scale, thresholds: &mut [f32]) {
    for band in 1..thresholds.len() {
        let masked = thresholds[band - 1] * scale.upwards[band - 1];
        thresholds[band] = thresholds[band].max(masked);
    }
    for band in (1..thresholds.len()).rev() {
        let masked = thresholds[band] * scale.downwards[band - 1];
        thresholds[band - 1] = thresholds[band - 1].max(masked);
    }
}

/// The threshold in quiet of a band of all windows of its group, as a logarithm to base 2.
pub(crate) fn quiet_level(layout: &Layout, band: usize) -> f32 {
    let [long, short] = Scale::shared();
    let (group, band) = (band / layout.bands_per_group(), band % layout.bands_per_group());
    if layout.is_short() {
        short.quiet_levels[band] + log2(f32::from(layout.groups()[group]))
    } else {
        long.quiet_levels[band]
    }
}

/// The critical-band rate (Zwicker).
fn bark(hertz: f32) -> f32 {
    13.0 * (0.000_76 * hertz).atan() + 3.5 * (hertz / 7_500.0).powi(2).atan()
}

/// The threshold in quiet in decibels of sound pressure (Terhardt).
fn quiet(hertz: f32) -> f32 {
    let kilohertz = (hertz / 1_000.0).max(0.02);
    let level = 3.64 * kilohertz.powf(-0.8) - 6.5 * (-0.6 * (kilohertz - 3.3).powi(2)).exp()
        + 0.001 * kilohertz.powi(4);
    level.min(70.0)
}
