//! When a frame is cut into short windows: transients, found in the energies of eighths of a frame, half a frame ahead
//! of the transform. And how short windows are grouped.

use crate::bands::{LINES, SHORT, SHORT_BANDS, SHORT_LINES, SHORT_WINDOWS};
use crate::filterbank::Sequence;

/// Samples after a window in which transients cut the next one: its short windows begin in the second half of this
/// window's second frame, and end in the half frame after it.
pub(crate) const LOOK_AHEAD: usize = LINES / 2;
/// Ratio to that mean that makes a transient.
const ATTACK: f32 = 10.0;
/// Energies of eighths of a frame are compared with a mean that decays by this factor each eighth.
const DECAY: f32 = 0.7;
/// Energy of an eighth (of samples of 16 bits, after the high-pass) below which nothing is a transient.
const QUIET: f32 = SHORT_LINES as f32 * 100.0;

/// Finds the transients of one channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detector {
    // The last two samples.
    samples: [f32; 2],
    // Mean energy of the eighths before.
    mean: f32,
}

impl Detector {
    /// Whether a transient begins in the next samples.
    pub(crate) fn handle_samples(&mut self, samples: &[f32]) -> bool {
        let mut is_attack = false;
        for samples in samples.chunks_exact(SHORT_LINES) {
            let energy = self.energy(samples);
            is_attack |= energy > self.mean * ATTACK && energy > QUIET;
            self.mean = (self.mean * DECAY + energy * (1.0 - DECAY)).max(energy * 0.1);
        }
        is_attack
    }

    /// Energy of the second differences.
    fn energy(&mut self, samples: &[f32]) -> f32 {
        let [before, last] = self.samples;
        let head = [samples[0] - 2.0 * last + before, samples[1] - 2.0 * samples[0] + last];
        let mut sums = [0.0_f32; 8];
        let count = samples.len() - 2;
        let (first, second, third) = (&samples[..count], &samples[1..=count], &samples[2..]);
        for ((first, second), third) in
            first.chunks_exact(8).zip(second.chunks_exact(8)).zip(third.chunks_exact(8))
        {
            for lane in 0..8 {
                let difference = third[lane] - 2.0 * second[lane] + first[lane];
                sums[lane] += difference * difference;
            }
        }
        for index in count / 8 * 8..count {
            let difference = third[index] - 2.0 * second[index] + first[index];
            sums[0] += difference * difference;
        }
        self.samples = [samples[count], samples[count + 1]];
        sums.iter().sum::<f32>() + head[0] * head[0] + head[1] * head[1]
    }
}

/// Chooses the sequence of windows, one frame behind the transients.
#[derive(Clone, Debug)]
pub(crate) struct Sequencer {
    sequence: Sequence,
    // Whether the next frame to be coded is cut.
    cut: bool,
}

impl Default for Sequencer {
    fn default() -> Self {
        Self { sequence: Sequence::Long, cut: false }
    }
}

impl Sequencer {
    /// The sequence of the next window, given whether there is a transient in the last half of it or in the look-ahead.
    pub(crate) fn handle_attack(&mut self, is_attack: bool) -> Sequence {
        self.sequence = match (self.cut, self.sequence, is_attack) {
            (true, _, _) => Sequence::Short,
            (false, Sequence::Short, true) => Sequence::Short,
            (false, Sequence::Short, false) => Sequence::Stop,
            (false, _, true) => Sequence::Start,
            (false, _, false) => Sequence::Long,
        };
        self.cut = is_attack;
        self.sequence
    }
}

/// Groups of windows of similar energy: a louder window never shares the scale factors of quieter ones before it.
pub(crate) fn group<'a>(
    channels: impl Iterator<Item = &'a [f32; LINES]>,
    lengths: &mut [u8; SHORT_WINDOWS],
) -> usize {
    let mut energies = [0.0_f32; SHORT_WINDOWS];
    for lines in channels {
        for (energy, window) in energies.iter_mut().zip(lines.chunks_exact(SHORT_LINES)) {
            // Without the lowest lines, which change least.
            *energy += window[4..].iter().map(|line| line * line).sum::<f32>();
        }
    }
    let mut groups = 0;
    let mut mean = energies[0];
    lengths.fill(0);
    for (window, energy) in energies.iter().enumerate() {
        let differs = *energy > 3.0 * mean || *energy < mean / 6.0;
        if window == 0 {
            groups = 1;
        } else if differs && groups < 4 {
            groups += 1;
            mean = *energy;
        } else {
            mean = 0.5 * (mean + energy);
        }
        lengths[groups - 1] += 1;
    }
    groups
}

/// Puts the lines of short windows in coding order: group by group, band by band, window by window.
pub(crate) fn interleave(lines: &[f32; LINES], lengths: &[u8], out: &mut [f32; LINES]) {
    let (mut window, mut target) = (0, 0);
    for length in lengths.iter().map(|length| usize::from(*length)) {
        for band in 0..SHORT_BANDS {
            let (first, end) = (usize::from(SHORT[band]), usize::from(SHORT[band + 1]));
            for window in window..window + length {
                let source = &lines[window * SHORT_LINES..][first..end];
                out[target..target + source.len()].copy_from_slice(source);
                target += source.len();
            }
        }
        window += length;
    }
}
