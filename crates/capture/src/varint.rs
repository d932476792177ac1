//! Integers of one to ten bytes, seven bits each, least significant first (LEB128).

/// Longest encoding, that of a 64-bit integer.
const BYTES_LIMIT: usize = 10;

pub(crate) fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        #[allow(clippy::cast_possible_truncation, reason = "the low seven bits are what is meant")]
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[allow(clippy::cast_possible_truncation, reason = "below 128")]
    out.push(value as u8);
}

/// Takes an integer from the front of `bytes`; `None` when it is truncated or too large.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for place in 0..BYTES_LIMIT {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if place == BYTES_LIMIT - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * place);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Zigzag encoding: small numbers of either sign become small unsigned numbers.
pub(crate) const fn folded(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

pub(crate) const fn unfolded(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_reads_back_and_invalid_encodings_are_rejected() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut bytes = Vec::new();
            put(value, &mut bytes);
            assert_eq!(take(&mut &bytes[..]), Some(value));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unfolded(folded(value)), value);
        }
    }
}
