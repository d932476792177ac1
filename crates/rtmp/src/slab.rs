//! Memory for the messages of one connection: many small ones share an allocation, because allocating, counting and
//! freeing each by itself costs more cache misses than reading it.

use bytes::BytesMut;

/// Size of one allocation. It lives as long as any message in it.
const SLAB_BYTES: usize = 64 << 10;
/// Shorter messages have their own memory: they may be decoder configurations, which are kept for the whole publish and
/// would keep everything around them.
const SHORTEST: usize = 128;
/// Longer messages have their own memory, which grows as they arrive.
const LONGEST: usize = SLAB_BYTES / 4;

/// The rest of the newest allocation.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    rest: BytesMut,
}

impl Slab {
    /// An empty buffer for a message of `length` bytes. Its capacity is either `length` or 0.
    pub(crate) fn take(&mut self, length: usize) -> BytesMut {
        if !(SHORTEST..=LONGEST).contains(&length) {
            return BytesMut::new();
        }
        if self.rest.capacity() < length {
            self.rest = BytesMut::with_capacity(SLAB_BYTES);
        }
        let rest = self.rest.split_off(length);
        std::mem::replace(&mut self.rest, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_share_an_allocation_until_it_is_full() {
        let mut slab = Slab::default();
        let first = slab.take(LONGEST);
        let addresses = (1..4).map(|_| slab.take(LONGEST).as_ptr().addr());
        let offsets: Vec<usize> = addresses.map(|at| at - first.as_ptr().addr()).collect();
        assert_eq!(offsets, [LONGEST, 2 * LONGEST, 3 * LONGEST]);
        assert_eq!(slab.rest.capacity(), 0);
        assert_eq!(slab.take(SHORTEST).capacity(), SHORTEST);
        assert_eq!(slab.rest.capacity(), SLAB_BYTES - SHORTEST);
    }

    #[test]
    fn very_short_and_long_messages_have_their_own_memory() {
        let mut slab = Slab::default();
        for length in [0, SHORTEST - 1, LONGEST + 1] {
            assert_eq!(slab.take(length).capacity(), 0);
        }
        assert_eq!(slab.rest.capacity(), 0);
    }
}
