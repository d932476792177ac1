//! Places other than IDR pictures where decoding can start: recovery points and intra pictures.
//!
//! Sources: ITU-T H.264 7.3.2.3.1, 7.4.3, D.1.8, D.2.8.

use super::bits::Bits;
use super::{NalKind, nal_kind};

/// payload_type of a recovery point.
const RECOVERY_POINT: usize = 6;
/// SEI messages that are looked at in one NAL unit, and slices in one access unit.
const MESSAGES_LIMIT: usize = 64;
const SLICES_LIMIT: usize = 64;

/// Whether an SEI NAL unit contains a recovery point: a decoder that starts there shows correct pictures after a number
/// of frames.
#[must_use]
pub fn is_recovery_point(sei: &[u8]) -> bool {
    let mut rest = sei.get(1..).unwrap_or_default();
    for _ in 0..MESSAGES_LIMIT {
        // One byte, the stop bit, follows the last message.
        let Some(kind) = take_number(&mut rest).filter(|_| !rest.is_empty()) else { return false };
        if kind == RECOVERY_POINT {
            return true;
        }
        // Emulation prevention bytes lengthen a message on the wire, at most by half.
        let Some(length) = take_number(&mut rest) else { return false };
        let Some(after) = skip_payload(rest, length) else { return false };
        rest = after;
    }
    false
}

/// Whether every slice is an I slice (7.4.3, table 7-6).
pub fn is_intra<'a>(units: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut slices = units
        .filter(|unit| unit.first().is_some_and(|first| nal_kind(*first) == NalKind::Slice))
        .take(SLICES_LIMIT)
        .peekable();
    slices.peek().is_some() && slices.all(is_intra_slice)
}

fn is_intra_slice(slice: &[u8]) -> bool {
    let mut bits = Bits::new(slice.get(1..).unwrap_or_default());
    let kind = bits.exp_golomb().and_then(|_| bits.exp_golomb());
    matches!(kind, Some(2 | 7))
}

/// A number coded as bytes of 255 and a last smaller one.
fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let full = rest.iter().take_while(|byte| **byte == 255).count();
    let last = *rest.get(full)?;
    *rest = rest.get(full + 1..)?;
    Some(full * 255 + usize::from(last))
}

/// Skips `length` bytes of payload and the emulation prevention bytes in between.
fn skip_payload(bytes: &[u8], length: usize) -> Option<&[u8]> {
    let (mut at, mut left, mut zeros) = (0, length, 0);
    while left > 0 {
        let byte = *bytes.get(at)?;
        at += 1;
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        left -= 1;
    }
    bytes.get(at..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_point_is_found_alone_and_among_other_messages() {
        for sei in [
            &[6, 6, 1, 0xc4, 0x80][..],
            &[6, 6, 6, 1, 0x9c, 0x80][1..],
            // After user data with a long payload and one with emulation prevention.
            &[&[6, 5, 255, 3][..], &[9; 258], &[6, 1, 0xc4, 0x80]].concat(),
            &[6, 4, 5, 0, 0, 3, 1, 7, 7, 6, 1, 0xc4, 0x80],
        ] {
            assert!(is_recovery_point(sei), "{sei:x?}");
        }
        for sei in [
            &[6][..],
            &[6, 5, 3, 6, 6, 6, 0x80],
            &[6, 1, 9, 6],
            &[6, 255, 255, 255],
            &[6, 5, 1, 0, 6],
        ] {
            assert!(!is_recovery_point(sei), "{sei:x?}");
        }
    }

    #[test]
    fn a_picture_is_intra_when_all_its_slices_are() {
        // first_mb_in_slice 0, then slice_type 7 (0001000), 2 (011), 5 (00110).
        let (i_only, i, p) = (&[0x41, 0x88, 0x80][..], &[0x41, 0xb0][..], &[0x41, 0x9a][..]);
        assert!(is_intra([&[9, 0xf0][..], i_only, i].into_iter()));
        assert!(!is_intra([i, p].into_iter()));
        assert!(!is_intra([&[9, 0xf0][..]].into_iter()));
    }
}
