//! The encoder: what happens to a frame, in order.

use crate::bands::{LIMIT_BANDS, LINES, Layout};
use crate::bits::BitWriter;
use crate::blocks::{self, Detector, Sequencer};
use crate::channel::{Channel, SAMPLES};
use crate::filterbank::{FilterBank, Scratch, Sequence, Shape};
use crate::rate::{BUFFER_BITS, Demand, Rate};
use crate::stereo;
use crate::syntax::{self, Frame, MidSide};
use crate::tns::Filter;

/// Lowest and highest bitrate, in bit/s.
const BITRATES: std::ops::RangeInclusive<u32> = 16_000..=384_000;

/// What 16 bits cannot tell from zero: samples in floating point are seldom exactly silent, or equal in both channels.
const INAUDIBLE: f32 = 0.5;
/// What loud Opus may exceed full scale by; its listener's decoder is the one that clips.
const LIMIT_SAMPLE: f32 = 65_536.0;

/// What an encoder makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Channels of input and output: 1 or 2.
    pub channels: u8,
    /// Bits per second over all channels.
    pub bitrate: u32,
    /// Largest access unit in bytes, if smaller than the standard's 768 for each channel.
    pub largest_access_unit: Option<u16>,
}

/// Why an encoder did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncoderError {
    /// Neither one nor two channels, or a bitrate outside the limits.
    #[error("no AAC-LC encoder has {channels} channels at {bitrate} bit/s")]
    Config {
        /// Channels asked for.
        channels: u8,
        /// Bit/s asked for.
        bitrate: u32,
    },
    /// Not exactly one frame of samples: a bug in the caller.
    #[error("AAC encoder was given the wrong number of samples")]
    Length,
}

/// An AAC-LC encoder.
pub struct Encoder {
    config: Config,
    bank: &'static FilterBank,
    scratch: Scratch,
    channels: Vec<Channel>,
    // Of the last three frames of input, the newest first: whether it is silent, and whether both channels are equal.
    silent: [bool; 3],
    equal: [bool; 3],
    sequencer: Sequencer,
    shape: Shape,
    layout: Layout,
    mid_side: [bool; LIMIT_BANDS],
    demand: Box<Demand>,
    rate: Rate,
    out: BitWriter,
    bandwidth: usize,
}

impl Encoder {
    /// An encoder at the beginning of a stream.
    ///
    /// # Errors
    /// When no stream can have that many channels or that bitrate.
    pub fn new(config: Config) -> Result<Self, EncoderError> {
        let Config { channels, bitrate, .. } = config;
        if !(1..=2).contains(&channels) || !BITRATES.contains(&bitrate) {
            return Err(EncoderError::Config { channels, bitrate });
        }
        let count = usize::from(channels);
        let bank = FilterBank::shared();
        let buffer = BUFFER_BITS * count;
        let most = config.largest_access_unit.map_or(buffer, |bytes| usize::from(bytes) * 8);
        Ok(Self {
            config,
            bank,
            scratch: bank.scratch(),
            channels: (0..count).map(|_| Channel::new()).collect(),
            silent: [true; 3],
            equal: [count == 2; 3],
            sequencer: Sequencer::default(),
            shape: Shape::Sine,
            layout: Layout::long(),
            mid_side: [false; LIMIT_BANDS],
            demand: Box::new(Demand::new()),
            rate: Rate::new(bitrate, count, most),
            out: BitWriter::with_capacity(buffer / 8 + 512),
            bandwidth: bandwidth(bitrate / u32::from(channels)),
        })
    }

    /// Encodes one frame of interleaved samples as one raw data block, which is valid until the next call.
    ///
    /// # Errors
    /// The wrong number of samples.
    pub fn encode(&mut self, samples: &[i16]) -> Result<&[u8], EncoderError> {
        self.encode_from(samples, f32::from)
    }

    /// The same from samples of which full scale is between -1 and 1; what is beyond twice that is clipped, and what is no
    /// number is silent.
    ///
    /// # Errors
    /// The wrong number of samples.
    pub fn encode_f32(&mut self, samples: &[f32]) -> Result<&[u8], EncoderError> {
        self.encode_from(samples, |sample| {
            if sample.is_nan() {
                0.0
            } else {
                (sample * 32_768.0).clamp(-LIMIT_SAMPLE, LIMIT_SAMPLE)
            }
        })
    }

    /// The AudioSpecificConfig (1.6.2.1): AAC-LC, 48 kHz, frames of 1024 samples.
    #[must_use]
    pub const fn audio_specific_config(&self) -> [u8; 2] {
        [0b0001_0001, 0b1000_0000 | self.config.channels << 3]
    }

    fn encode_from<T: Copy>(
        &mut self,
        samples: &[T],
        convert: impl Fn(T) -> f32,
    ) -> Result<&[u8], EncoderError> {
        let count = self.channels.len();
        if samples.len() != LINES * count {
            return Err(EncoderError::Length);
        }
        for (index, channel) in self.channels.iter_mut().enumerate() {
            channel.samples.copy_within(LINES.., 0);
            let target = &mut channel.samples[SAMPLES - LINES..];
            if count == 1 {
                target.iter_mut().zip(samples).for_each(|(target, one)| *target = convert(*one));
                continue;
            }
            let (pairs, _) = samples.as_chunks::<2>();
            target.iter_mut().zip(pairs).for_each(|(target, pair)| *target = convert(pair[index]));
        }
        let is_silent = self.channels.iter().all(|channel| {
            let (eights, _) = channel.newest().as_chunks::<8>();
            eights.iter().all(|eight| largest(*eight) < INAUDIBLE)
        });
        let is_equal = match &self.channels[..] {
            [left, right] => {
                let (left, right) =
                    (left.newest().as_chunks::<8>().0, right.newest().as_chunks().0);
                let differences = left.iter().zip(right).map(|(left, right): (_, &[f32; 8])| {
                    std::array::from_fn(|lane| left[lane] - right[lane])
                });
                differences.map(largest).all(|difference| difference < INAUDIBLE)
            }
            _ => false,
        };
        self.silent = [is_silent, self.silent[0], self.silent[1]];
        self.equal = [is_equal, self.equal[0], self.equal[1]];
        let is_attack = self.detect();
        let sequence = self.sequencer.handle_attack(is_attack);
        if self.silent == [true; 3] {
            return Ok(self.code_silence(sequence));
        }
        let equal = self.equal == [true; 3];
        self.analyse(sequence, equal);
        Ok(self.code(sequence, equal))
    }

    /// Whether there is a transient in the newest samples of a channel.
    fn detect(&mut self) -> bool {
        if self.silent[0] {
            for channel in &mut self.channels {
                channel.detector = Detector::default();
            }
            return false;
        }
        let distinct = if self.equal[0] { 1 } else { self.channels.len() };
        let mut is_attack = false;
        for channel in &mut self.channels[..distinct] {
            let newest = &channel.samples[SAMPLES - LINES..];
            is_attack |= channel.detector.handle_samples(newest);
        }
        if let ([left, right], 1) = (&mut self.channels[..], distinct) {
            right.detector = left.detector.clone();
        }
        is_attack
    }

    /// A frame without any band.
    fn code_silence(&mut self, sequence: Sequence) -> &[u8] {
        self.shape = Shape::Sine;
        if (sequence == Sequence::Short) != self.layout.is_short() {
            self.layout =
                if sequence == Sequence::Short { Layout::short(&[8]) } else { Layout::long() };
        }
        for channel in &mut self.channels {
            channel.model.forget();
            channel.spectrum.largest.fill(0);
        }
        let frame = Frame { sequence, shape: self.shape, layout: &self.layout, bands: 0 };
        self.out.clear();
        let filters = [Filter::default(); 8];
        let filters = &filters[..if frame.layout.is_short() { 8 } else { 1 }];
        match &self.channels[..] {
            [left, right] => {
                let channels = [left, right]
                    .map(|channel| syntax::Channel { spectrum: &channel.spectrum, filters });
                let [left, right] = &channels;
                syntax::write_pair(&frame, MidSide::Off, [left, right], &mut self.out);
            }
            channels => {
                for channel in channels {
                    let channel = syntax::Channel { spectrum: &channel.spectrum, filters };
                    syntax::write_single(&frame, &channel, &mut self.out);
                }
            }
        }
        let bits = self.out.bits().next_multiple_of(8);
        self.rate.handle_frame(bits, None);
        self.out.finish()
    }

    /// Transforms the two frames of samples before the look-ahead, and finds how much noise each band may have.
    fn analyse(&mut self, sequence: Sequence, equal: bool) {
        let distinct = if equal { 1 } else { self.channels.len() };
        let next_shape = Shape::Sine;
        let shapes = [self.shape, next_shape];
        self.shape = next_shape;
        for channel in &mut self.channels[..distinct] {
            let (frames, _) = channel.samples.as_chunks();
            let target =
                if sequence == Sequence::Short { &mut channel.powers } else { &mut channel.lines };
            self.bank.transform(
                sequence,
                shapes,
                [&frames[0], &frames[1]],
                &mut self.scratch,
                target,
            );
        }
        if sequence == Sequence::Short {
            let mut lengths = [0; 8];
            let groups = blocks::group(
                self.channels[..distinct].iter().map(|channel| &*channel.powers),
                &mut lengths,
            );
            self.layout = Layout::short(&lengths[..groups]);
            for channel in &mut self.channels[..distinct] {
                blocks::interleave(&channel.powers, &lengths[..groups], &mut channel.lines);
            }
        } else if self.layout.is_short() {
            self.layout = Layout::long();
        }
        for channel in &mut self.channels[..distinct] {
            channel.energies.measure(&self.layout, &channel.lines[..]);
            channel.model.thresholds(&self.layout, &channel.energies, &mut channel.thresholds);
        }
        if let ([left, right], true) = (&mut self.channels[..], equal) {
            // The sum is the left channel, and the difference is empty.
            right.model = left.model.clone();
            right.energies = left.energies.clone();
            right.thresholds = left.thresholds;
            right.lines.fill(0.0);
        }
    }

    fn code(&mut self, sequence: Sequence, equal: bool) -> &[u8] {
        let bands = self.layout.bands_below(self.bandwidth);
        for channel in &mut self.channels {
            channel.choose_noise(&self.layout, bands, self.rate.shift());
        }
        if equal {
            self.mid_side.fill(true);
        } else if let [left, right] = &mut self.channels[..] {
            stereo::choose(&self.layout, bands, [left, right], &mut self.mid_side);
        }
        self.demand.clear();
        let mut noises = 0;
        let distinct = if equal { 1 } else { self.channels.len() };
        for channel in &mut self.channels[..distinct] {
            noises += channel.demand(&self.layout, bands, &mut self.demand);
        }
        let mut frame = Frame { sequence, shape: self.shape, layout: &self.layout, bands };
        let mid_side = (self.channels.len() == 2).then(|| stereo::written(&frame, &self.mid_side));
        let filters = if self.layout.is_short() { 8 } else { 1 };
        let mut side = syntax::fixed_bits(&frame, mid_side)
            + self
                .channels
                .iter()
                .map(|channel| syntax::channel_bits(&frame, &channel.filters[..filters]))
                .sum::<usize>();
        // Sections and scale factors, about.
        let overhead = side + self.channels.len() * layout_bits(&self.layout, bands) + 2 * noises;
        let budget = self.rate.budget(&self.demand, overhead);
        let mut shift = budget.shift;
        let mut used = side + quantise(&mut self.channels, &self.layout, bands, shift, equal);
        if used > budget.most {
            let corrected = self.rate.correct(&self.demand, budget, used);
            shift = corrected;
            used = side + quantise(&mut self.channels, &self.layout, bands, corrected, equal);
        }
        while used > budget.most && frame.bands > 0 {
            frame.bands -= 1;
            let mid_side =
                (self.channels.len() == 2).then(|| stereo::written(&frame, &self.mid_side));
            side = syntax::fixed_bits(&frame, mid_side)
                + self
                    .channels
                    .iter()
                    .map(|channel| syntax::channel_bits(&frame, &channel.filters[..filters]))
                    .sum::<usize>();
            used = side
                + self
                    .channels
                    .iter_mut()
                    .map(|channel| channel.spectrum.choose_books(&self.layout, frame.bands))
                    .sum::<usize>();
        }
        self.out.clear();
        let mut parts = self.channels.iter().map(|channel| syntax::Channel {
            spectrum: &channel.spectrum,
            filters: &channel.filters[..filters],
        });
        match (parts.next(), parts.next()) {
            (Some(one), None) => syntax::write_single(&frame, &one, &mut self.out),
            (Some(one), Some(two)) => syntax::write_pair(
                &frame,
                stereo::written(&frame, &self.mid_side),
                [&one, &two],
                &mut self.out,
            ),
            (None, _) => {}
        }
        debug_assert_eq!(self.out.bits(), used);
        let bits = self.out.bits().next_multiple_of(8);
        self.rate.handle_frame(bits, Some((&self.demand, shift, overhead)));
        self.out.finish()
    }
}

/// The largest magnitude.
fn largest(samples: [f32; 8]) -> f32 {
    samples
        .iter()
        .fold(0.0, |largest, sample| if sample.abs() > largest { sample.abs() } else { largest })
}

/// Bits of sections and scale factors, about.
fn layout_bits(layout: &Layout, bands: usize) -> usize {
    bands * layout.groups().len() * 5 / 2
}

/// Quantises all channels and returns the bits of their sections, scale factors and lines. Of `equal` channels the second
/// one is the empty difference.
fn quantise(
    channels: &mut [Channel],
    layout: &Layout,
    bands: usize,
    shift: f32,
    equal: bool,
) -> usize {
    if let ([sum, difference], true) = (&mut *channels, equal) {
        return sum.quantise(layout, bands, shift) + difference.empty(layout, bands, sum);
    }
    channels.iter_mut().map(|channel| channel.quantise(layout, bands, shift)).sum()
}

/// Lines that are coded, by the bitrate of each channel.
const fn bandwidth(bitrate: u32) -> usize {
    let hertz = match bitrate {
        0..20_000 => 8_000,
        20_000..28_000 => 11_000,
        28_000..40_000 => 16_000,
        40_000..80_000 => 18_000,
        _ => 20_000,
    };
    hertz * LINES / 24_000
}
