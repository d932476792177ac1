//! What a push generates beside the stream's own media: within a budget, and counted. Pure.

use std::time::Instant;

use headgate_media::{FillerBudget, Frame};

/// The budget of one connection to an upstream, and what was generated since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct SilenceBudget {
    budget: FillerBudget,
    made: Made,
}

impl SilenceBudget {
    /// For the next connection to the same upstream.
    pub(crate) fn renewed(&self) -> Self {
        Self { budget: self.budget, made: Made::default() }
    }

    /// Whether silence of this duration may be generated. If not, the caller leaves it out.
    pub(crate) fn take(&mut self, duration_us: i64, now: Instant) -> bool {
        if duration_us <= 0 {
            return true;
        }
        let may = self.budget.take(duration_us, now);
        self.made.limited += u64::from(!may);
        may
    }

    /// Counts a frame that was generated.
    pub(crate) fn note(&mut self, frame: &Frame) {
        self.made.bytes += frame.payload_bytes();
    }

    /// What was generated since the last call.
    pub(crate) fn take_made(&mut self) -> Option<Made> {
        self.made.take()
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
