//! Random numbers that are the same in every run.

/// A linear congruential generator (Knuth's MMIX constants) that returns its upper half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn roll(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Below `sides`, which is not 0.
    pub(crate) const fn below(&mut self, sides: usize) -> usize {
        self.roll() as usize % sides
    }
}
