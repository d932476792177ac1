//! What a push generates beside the stream's own media: within a budget, and counted. Pure.

use std::time::Instant;

use headgate_media::FillerBudget;
use headgate_media::aac::SAMPLES_PER_FRAME;

/// Duration of a silent frame at 48 kHz.
const FRAME_US: i64 = SAMPLES_PER_FRAME as i64 * 1_000 / 48;

/// The budget of one connection to an upstream, and what was generated since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct Filler {
    pub(crate) budget: FillerBudget,
    pub(crate) made: Made,
}

impl Filler {
    /// Whether silent frames may be generated from here to `ahead_us` later, both included. If not, the caller leaves
    /// them out.
    pub(crate) fn take(&mut self, ahead_us: i64, now: Instant) -> bool {
        if ahead_us < 0 {
            return true;
        }
        let may = self.budget.take((ahead_us / FRAME_US + 1) * FRAME_US, now);
        self.made.limited += u64::from(!may);
        may
    }
}

/// What was generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// Payload bytes.
    pub(crate) bytes: u64,
    /// How often the budget was used up.
    pub(crate) limited: u64,
}

impl Made {
    /// Adds what else was generated.
    pub(crate) fn add(&mut self, other: Option<Self>) {
        if let Some(Self { bytes, limited }) = other {
            self.bytes += bytes;
            self.limited += limited;
        }
    }

    /// Takes what was generated, if anything was.
    pub(crate) fn take(&mut self) -> Option<Self> {
        let made = std::mem::take(self);
        (made != Self::default()).then_some(made)
    }
}
