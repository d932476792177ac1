//! What an H.264 RTP payload (RFC 6184) holds, as far as that is visible without assembling it, and NAL units that a
//! sender joined into one. Pure.

use headgate_media::h264::{NalKind, is_first_slice, nal_kind};
use memchr::memmem;

pub(crate) const STAP_A: u8 = 24;
pub(crate) const STAP_B: u8 = 25;
pub(crate) const MTAP_16: u8 = 26;
pub(crate) const MTAP_24: u8 = 27;
pub(crate) const FU_A: u8 = 28;
pub(crate) const FU_B: u8 = 29;
pub(crate) const FU_START: u8 = 0x80;
pub(crate) const FU_END: u8 = 0x40;
pub(crate) const FORBIDDEN: u8 = 0x80;
/// forbidden_zero_bit and nal_unit_type are left out.
pub(crate) const IMPORTANCE: u8 = 0x60;
/// NAL units accepted from one that a sender joined: more than any picture has slices.
const JOINED_LIMIT: usize = 256;

/// How a payload relates to the slices before it that have the same timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It begins an access unit (H.264 7.4.1.2.3).
    Begins,
    /// It continues the one before it.
    Continues,
    /// Neither follows from it.
    Unknown,
}

/// Where a payload belongs.
pub(crate) fn place(payload: &[u8]) -> Place {
    let (first, second) = match *payload {
        [first, header, second, ..] if first & 0x1f == FU_A => {
            if header & FU_START == 0 {
                return Place::Continues;
            }
            (header, second)
        }
        [first, _, _, inside, second, ..] if first & 0x1f == STAP_A => (inside, second),
        [first, second, ..] => (first, second),
        _ => return Place::Unknown,
    };
    match first & 0x1f {
        1..=5 if is_first_slice(&[first, second]) => Place::Begins,
        1..=5 => Place::Continues,
        6..=9 => Place::Begins,
        _ => Place::Unknown,
    }
}

/// The first byte of the NAL unit of which the payload carries a slice or a part of one.
pub(crate) fn slice_header(payload: &[u8]) -> Option<u8> {
    let &first = payload.first()?;
    let kind = if first & 0x1f == FU_A { payload.get(1)? & 0x1f } else { first & 0x1f };
    matches!(kind, 1..=5).then_some(first & IMPORTANCE | kind)
}

/// Whether a picture is incomplete without the NAL unit that begins with this byte.
pub(crate) const fn is_needed(first: u8) -> bool {
    first & FORBIDDEN == 0 && matches!(first & 0x1f, 1..=5 | 7 | 8)
}

/// Whether a payload does not belong between the fragments of a slice and can be taken aside: it holds no slice.
pub(crate) fn is_stray(payload: &[u8]) -> bool {
    payload.first().is_some_and(|first| match first & 0x1f {
        // After a zero there may be several NAL units.
        0 => *first != 0,
        1..=5 | FU_A => false,
        7 | 8 => split_joined(payload).is_none(),
        STAP_A => members(payload).is_some_and(|units| {
            let is_aside = |unit: &&[u8]| match unit.first() {
                Some(first) => first & 0x1f != STAP_A && is_stray(unit),
                None => true,
            };
            units.iter().all(is_aside)
        }),
        STAP_B | MTAP_16 | MTAP_24 | FU_B => !is_interleaved_slice(payload),
        _ => true,
    })
}

/// The NAL units of a STAP-A, or `None` if one is cut.
pub(crate) fn members(payload: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut units, mut rest) = (Vec::new(), payload.get(1..)?);
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk()?;
        let (unit, next) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        units.push(unit);
        rest = next;
    }
    Some(units)
}

/// Whether a payload of the interleaved mode, which no answer accepts, is well-formed and carries a slice: the picture
/// that lacks it is incomplete.
pub(crate) fn is_interleaved_slice(payload: &[u8]) -> bool {
    let Some(&first) = payload.first() else { return false };
    let size = |at: usize| {
        Some(usize::from(u16::from_be_bytes([*payload.get(at)?, *payload.get(at + 1)?])))
    };
    // After the decoding order number: the size of the first NAL unit and, in an MTAP, its own order and time.
    let nal_at = match first & 0x1f {
        STAP_B => 5,
        MTAP_16 => 8,
        MTAP_24 => 9,
        FU_B => {
            return payload.len() > 4
                && payload.get(1).is_some_and(|header| is_needed(header & 0x1f));
        }
        _ => return false,
    };
    let is_whole = size(3).is_some_and(|size| size > 2 && payload.len() >= nal_at + size);
    is_whole && payload.get(nal_at).is_some_and(|first| is_needed(*first))
}

/// The NAL units of one that a sender joined by start codes (annex B) or by lengths of four bytes; `None` for an
/// ordinary NAL unit.
pub(crate) fn split_joined(nal: &[u8]) -> Option<Vec<&[u8]>> {
    let &first = nal.first()?;
    if first == 0
        && let Some(parts) = split_lengths(nal)
    {
        return Some(parts);
    }
    let (mut parts, mut begin) = (Vec::new(), 0);
    for at in memmem::find_iter(nal, &[0, 0, 1]) {
        let next = nal.get(at + 3..).unwrap_or_default();
        if begin == at || may_follow(first, next) {
            push(&mut parts, nal.get(begin..at).unwrap_or_default());
            begin = at + 3;
        }
        if parts.len() > JOINED_LIMIT {
            return None;
        }
    }
    if begin == 0 {
        return None;
    }
    push(&mut parts, nal.get(begin..).unwrap_or_default());
    Some(parts)
}

/// Whether what follows a start code inside a NAL unit of type `first` is another NAL unit of the same picture. A
/// slice is followed by slices alone; a sequence that only resembles a start code stays where it is.
fn may_follow(first: u8, next: &[u8]) -> bool {
    let Some(&header) = next.first() else { return true };
    match nal_kind(first) {
        NalKind::Slice | NalKind::Idr => {
            (header ^ first) & !FORBIDDEN == 0 && next.len() > 2 && !is_first_slice(next)
        }
        NalKind::Sei | NalKind::Sps | NalKind::Pps | NalKind::Filler | NalKind::Other => {
            matches!(header & 0x1f, 1..=20)
        }
    }
}

/// Without the zero bytes at the end, which belong to the next start code (annex B, `trailing_zero_8bits`).
fn push<'a>(parts: &mut Vec<&'a [u8]>, nal: &'a [u8]) {
    let length = nal.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if let Some(nal) = nal.get(..length).filter(|nal| !nal.is_empty()) {
        parts.push(nal);
    }
}

fn split_lengths(nal: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut parts, mut rest) = (Vec::new(), nal);
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        // A length of 1 is a start code.
        if length < 2 || parts.len() >= JOINED_LIMIT {
            return None;
        }
        let (nal, next) = after.split_at_checked(length)?;
        parts.push(nal);
        rest = next;
    }
    rest.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_units_are_split_and_ordinary_ones_are_left_alone() {
        type Units<'a> = Option<&'a [&'a [u8]]>;
        let slices = [0x65, 0x88, 7, 0, 0, 1, 0x65, 0x08, 8];
        let table: [(&[u8], Units); 9] = [
            (&[0, 0, 0, 1, 0x65, 0x88, 7], Some(&[&[0x65, 0x88, 7]])),
            (&[0, 0, 1, 0x67, 4, 0, 0, 0, 1, 0x68, 5], Some(&[&[0x67, 4], &[0x68, 5]])),
            (&[0x67, 4, 0, 0, 1, 0x68, 5, 0, 0, 1], Some(&[&[0x67, 4], &[0x68, 5]])),
            (&slices, Some(&[&[0x65, 0x88, 7], &[0x65, 0x08, 8]])),
            (
                &[0, 0, 0, 3, 0x65, 0x88, 7, 0, 0, 0, 2, 0x65, 0x08],
                Some(&[&[0x65, 0x88, 7], &[0x65, 0x08]]),
            ),
            (&[0x65, 0x88, 0, 0, 1, 1, 1], None),
            (&[0x41, 0x9a, 0, 0, 3, 1, 9], None),
            (&[0, 9, 9, 9], None),
            (&[], None),
        ];
        for (nal, parts) in table {
            assert_eq!(split_joined(nal).as_deref(), parts, "{nal:02x?}");
        }
    }

    #[test]
    fn a_payload_begins_a_picture_with_its_first_slice_or_what_precedes_one() {
        let table: [(&[u8], Place); 10] = [
            (&[0x65, 0x88], Place::Begins),
            (&[0x41, 0x40], Place::Continues),
            (&[0x67, 0x42], Place::Begins),
            (&[0x7c, 0x85, 0x88], Place::Begins),
            (&[0x7c, 0x85, 0x08], Place::Continues),
            (&[0x7c, 0x05, 0x88], Place::Continues),
            (&[0x78, 0, 2, 0x41, 0x9a], Place::Begins),
            (&[0x78, 0, 2, 0x41, 0x1a], Place::Continues),
            (&[0x0c, 0xff], Place::Unknown),
            (&[0x41], Place::Unknown),
        ];
        for (payload, expected) in table {
            assert_eq!(place(payload), expected, "{payload:02x?}");
        }
    }
}
