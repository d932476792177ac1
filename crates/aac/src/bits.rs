//! Writes bit fields, most significant bit first. Not what they mean (`syntax`).

/// The bits of one access unit.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    // The last `pending` bits, fewer than 32 between calls, are not in `bytes` yet.
    word: u64,
    pending: u32,
}

impl BitWriter {
    /// With space for that many bytes, so that writing them allocates nothing.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), word: 0, pending: 0 }
    }

    /// Begins the next access unit.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.word, self.pending) = (0, 0);
    }

    /// Appends the lowest `count` bits of a value that has no others; at most 32.
    #[inline]
    pub(crate) fn put(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && u64::from(value) < 1 << count, "{value} in {count} bits");
        self.word = self.word << count | u64::from(value);
        self.pending += count;
        if self.pending >= 32 {
            self.pending -= 32;
            self.bytes.extend_from_slice(&((self.word >> self.pending) as u32).to_be_bytes());
        }
    }

    /// Bits written so far.
    pub(crate) fn bits(&self) -> usize {
        self.bytes.len() * 8 + self.pending as usize
    }

    /// Completes the last byte with zeros and returns all.
    pub(crate) fn finish(&mut self) -> &[u8] {
        self.put(0, self.pending.wrapping_neg() % 8);
        while self.pending > 0 {
            self.pending -= 8;
            self.bytes.push((self.word >> self.pending) as u8);
        }
        &self.bytes
    }
}
