//! Reads bits and Exp-Golomb numbers of a NAL unit (H.264 7.2, 9.1).

/// The bits of a NAL unit's payload, without emulation prevention bytes (7.4.1.1).
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    left: u8,
    zeros: u8,
}

impl<'a> Bits<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, left: 8, zeros: 0 }
    }

    pub(super) fn bit(&mut self) -> Option<u32> {
        if self.left == 0 {
            self.zeros = if *self.bytes.get(self.at)? == 0 { self.zeros + 1 } else { 0 };
            self.at += 1;
            self.left = 8;
            if self.zeros >= 2 && self.bytes.get(self.at) == Some(&3) {
                self.at += 1;
                self.zeros = 0;
            }
        }
        self.left -= 1;
        Some(u32::from(*self.bytes.get(self.at)? >> self.left & 1))
    }

    pub(super) fn exp_golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.bit()? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let mut value = 1_u64;
        for _ in 0..zeros {
            value = value << 1 | u64::from(self.bit()?);
        }
        u32::try_from(value - 1).ok()
    }

    /// Reads `count` bits; the result contains the last 32.
    pub(super) fn fixed(&mut self, count: u8) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | self.bit()?;
        }
        Some(value)
    }
}

#[cfg(test)]
#[path = "bits_tests.rs"]
pub(super) mod tests;
