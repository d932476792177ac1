//! Counters of irregularities that a worker writes and the gateway reads, per publish and for the process.

use std::sync::atomic::{AtomicU64, Ordering};

use headgate_media::{Irregularity, IrregularityCounts};

/// Of all publishes since the start of the process.
static TOTALS: Irregularities = Irregularities::new();

/// One counter per kind.
#[derive(Debug)]
pub(crate) struct Irregularities([AtomicU64; Irregularity::ALL.len()]);

impl Irregularities {
    /// None has occurred.
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Irregularity::ALL.len()])
    }

    /// Counts `times` more of one kind, here and for the process.
    pub(crate) fn note(&self, kind: Irregularity, times: u64) {
        for counters in [self, &TOTALS] {
            counters.0[kind as usize].fetch_add(times, Ordering::Relaxed);
        }
    }

    /// The counts at this moment.
    pub(crate) fn read(&self) -> IrregularityCounts {
        let mut counts = IrregularityCounts::default();
        for (kind, counter) in Irregularity::ALL.into_iter().zip(&self.0) {
            counts.add(kind, counter.load(Ordering::Relaxed));
        }
        counts
    }
}

/// The counts of all publishes since the start of the process.
#[must_use]
pub fn irregularity_totals() -> IrregularityCounts {
    TOTALS.read()
}
