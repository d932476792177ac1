//! One channel of an encoder: from thresholds to quantised lines. Not what two channels share (`stereo`) nor how many
//! bits there are (`rate`).

use crate::bands::{LIMIT_BANDS, LINES, Layout};
use crate::blocks::{Detector, LOOK_AHEAD};
use crate::log::log2;
use crate::psychoacoustics::{Energies, Model, quiet_level};
use crate::quantiser;
use crate::rate::{self, Demand};
use crate::sections::{NOISE, Spectrum, ZERO, coded};
use crate::tns::Filter;

/// Line from which a band may be replaced by noise: 6 kHz.
const FIRST_NOISE: usize = 6_000 * LINES / 24_000;
/// Ratio of a band's energy to its noise, in doublings, below which it keeps hardly any line.
const LEAST_RATIO: f32 = 1.5;
/// Squared mean magnitude to mean energy, 0.64 of noise, below which lines stand out.
const LEAST_FLATNESS: f32 = 0.45;
/// How much of the noise is shared out by energy rather than by the thresholds.
const BY_ENERGY: f32 = 0.1;
/// How far below the threshold in quiet noise is not reduced further, in doublings of energy.
const BELOW_QUIET: f32 = 2.0;

/// Samples that a channel keeps: those of a window, and the look-ahead.
pub(crate) const SAMPLES: usize = 2 * LINES + LOOK_AHEAD;

/// One channel's part of the state.
pub(crate) struct Channel {
    /// The last samples, the newest at the end.
    pub(crate) samples: Box<[f32; SAMPLES]>,
    /// Finds transients in the newest frame.
    pub(crate) detector: Detector,
    /// Its psychoacoustic model.
    pub(crate) model: Model,
    /// Of the frame that is being coded.
    pub(crate) lines: Box<[f32; LINES]>,
    /// Magnitudes to the power 3/4.
    pub(crate) powers: Box<[f32; LINES]>,
    /// Sums of each band.
    pub(crate) energies: Energies,
    /// Noise that each band may have.
    pub(crate) thresholds: [f32; LIMIT_BANDS],
    /// Scale factors by the thresholds.
    pub(crate) factors: [f32; LIMIT_BANDS],
    /// The least scale factors: what is finer cannot be heard.
    pub(crate) least: [f32; LIMIT_BANDS],
    /// Bands that are replaced by noise.
    pub(crate) noise: [bool; LIMIT_BANDS],
    /// The quantised lines.
    pub(crate) spectrum: Spectrum,
    /// Temporal noise shaping of each window.
    pub(crate) filters: [Filter; 8],
}

impl Channel {
    pub(crate) fn new() -> Self {
        Self {
            samples: Box::new([0.0; SAMPLES]),
            detector: Detector::default(),
            model: Model::new(),
            lines: Box::new([0.0; LINES]),
            powers: Box::new([0.0; LINES]),
            energies: Energies::new(),
            thresholds: [0.0; LIMIT_BANDS],
            factors: [0.0; LIMIT_BANDS],
            least: [0.0; LIMIT_BANDS],
            noise: [false; LIMIT_BANDS],
            spectrum: Spectrum::new(),
            filters: [Filter::default(); 8],
        }
    }

    /// The newest frame of input.
    pub(crate) fn newest(&self) -> &[f32] {
        &self.samples[SAMPLES - LINES..]
    }

    /// Replaces bands by noise that would keep hardly any line.
    pub(crate) fn choose_noise(&mut self, layout: &Layout, bands: usize, shift: f32) {
        let first = layout.bands_below(FIRST_NOISE);
        self.noise.fill(false);
        for band in coded(layout, bands) {
            if band % layout.bands_per_group() < first {
                continue;
            }
            let energy = self.energies.energy[band];
            let width = layout.lines(band).len() as f32;
            let magnitude = self.energies.magnitude[band];
            let flatness = magnitude * magnitude / (energy * width);
            let ratio = log2(energy / self.thresholds[band]) - 0.375 * shift;
            self.noise[band] =
                ratio < LEAST_RATIO && flatness > LEAST_FLATNESS && energy > 4.0 * width;
        }
    }

    /// Adds the bands to the demand, and returns how many of them are noise.
    pub(crate) fn demand(&mut self, layout: &Layout, bands: usize, demand: &mut Demand) -> usize {
        let mut noises = 0;
        for band in coded(layout, bands) {
            let lines = layout.lines(band);
            let width = lines.len();
            if self.noise[band] {
                let group = band / layout.bands_per_group();
                let windows = f32::from(layout.groups()[group]);
                self.factors[band] = 2.0 * log2(self.energies.energy[band] / windows);
                noises += 1;
                continue;
            }
            let (sum, roots) =
                quantiser::powers(&self.lines[lines.clone()], &mut self.powers[lines]);
            let energy = self.energies.energy[band];
            let level = shared_out(self.thresholds[band], energy);
            let factor = rate::scale_factor(level, roots);
            let least = quiet_level(layout, band) - BELOW_QUIET;
            self.factors[band] = factor;
            self.least[band] = factor + 8.0 / 3.0 * (least - level);
            demand.add(width, sum, factor, self.least[band]);
        }
        noises
    }

    /// Quantises all bands and returns the bits of sections, scale factors and lines.
    pub(crate) fn quantise(&mut self, layout: &Layout, bands: usize, shift: f32) -> usize {
        let spectrum = &mut self.spectrum;
        let (mut last, mut last_noise): (Option<i16>, Option<i16>) = (None, None);
        for band in coded(layout, bands) {
            let lines = layout.lines(band);
            if self.noise[band] {
                let noise = (self.factors[band].round() as i16).clamp(-100, 155);
                let last = last_noise.unwrap_or(noise);
                spectrum.scale_factors[band] = noise.clamp(last - 60, last + 60);
                last_noise = Some(spectrum.scale_factors[band]);
                spectrum.books[band] = NOISE;
                spectrum.largest[band] = 0;
                continue;
            }
            spectrum.books[band] = ZERO;
            let mut factor = rate::legal((self.factors[band] + shift).max(self.least[band]));
            if let Some(last) = last {
                // A difference of 1 costs more bits than 1.5 dB of noise are worth.
                factor = match factor - last {
                    -1..=1 => last,
                    difference => last + difference.clamp(-60, 60),
                };
            }
            spectrum.scale_factors[band] = factor;
            spectrum.largest[band] = quantiser::quantise(
                &self.lines[lines.clone()],
                &self.powers[lines.clone()],
                quantiser::gain(factor),
                &mut spectrum.lines[lines],
            );
            if spectrum.largest[band] > 0 {
                last = Some(factor);
            }
        }
        spectrum.choose_books(layout, bands)
    }
}

impl Channel {
    /// Has no lines but the noise of the other channel, and returns the bits of its sections and scale factors.
    pub(crate) fn empty(&mut self, layout: &Layout, bands: usize, other: &Self) -> usize {
        let spectrum = &mut self.spectrum;
        for band in coded(layout, bands) {
            let is_noise = other.spectrum.books[band] == NOISE;
            spectrum.books[band] = if is_noise { NOISE } else { ZERO };
            spectrum.scale_factors[band] = other.spectrum.scale_factors[band];
            spectrum.largest[band] = 0;
        }
        spectrum.lines.fill(0);
        spectrum.choose_books(layout, bands)
    }
}

/// The level (logarithm to base 2) of the noise of a band when not all of it is shared out by the thresholds.
fn shared_out(threshold: f32, energy: f32) -> f32 {
    let threshold = log2(threshold);
    threshold + BY_ENERGY * (log2(energy) - 3.0 - threshold)
}
