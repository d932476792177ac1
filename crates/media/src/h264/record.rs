//! Reads AVCDecoderConfigurationRecords, sound and damaged ones. Not what builds them (`sets`).
//!
//! Source: ISO 14496-15 5.3.3.1.

use super::framing::{Framing, without_trailing_zeros};
use super::{NalKind, nal_kind, read_sps};

/// Version, profile, compatibility, level, length size and number of SPSs.
const HEADER: usize = 6;

/// What a decoder configuration contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Bytes of a NAL unit's length; `None` if the record is damaged and cannot be used as it is.
    pub length_size: Option<u8>,
    /// Its usable parameter sets, SPSs first; of a damaged record what is left of them.
    pub sets: Vec<&'a [u8]>,
}

/// Reads a decoder configuration, whatever is left of it.
#[must_use]
pub fn read_record(data: &[u8]) -> Record<'_> {
    if let Some((length_size, sets)) = read_sound(data) {
        return Record { length_size: Some(length_size), sets };
    }
    // With wrong counts, most likely one of each kind; or parameter sets in the framing of an access unit.
    let after_header = data.get(HEADER..).unwrap_or_default();
    let mut sets = Vec::new();
    if let Some((sps, rest)) = take_set(after_header) {
        sets.push(sps);
        sets.extend(rest.get(1..).and_then(take_set).map(|(pps, _)| pps));
    }
    if !sets.iter().any(|set| is_usable(set, NalKind::Sps))
        && let Some((framing, _)) = Framing::of(data)
    {
        sets = framing.units(data).collect();
    }
    sets.retain(|set| is_usable(set, NalKind::Sps) || is_usable(set, NalKind::Pps));
    sets.sort_by_key(|set| set.first().is_some_and(|first| nal_kind(*first) != NalKind::Sps));
    Record { length_size: None, sets: sets.into_iter().map(without_trailing_zeros).collect() }
}

fn read_sound(data: &[u8]) -> Option<(u8, Vec<&[u8]>)> {
    let (&[version, _, _, _, size, sps_count], mut rest) = data.split_first_chunk::<HEADER>()?;
    let length_size = (size & 3) + 1;
    if version != 1 || length_size == 3 {
        return None;
    }
    let mut sets = Vec::new();
    read_sets(sps_count & 0x1f, NalKind::Sps, &mut rest, &mut sets)?;
    let (&pps_count, mut rest) = rest.split_first()?;
    read_sets(pps_count, NalKind::Pps, &mut rest, &mut sets)?;
    Some((length_size, sets))
}

/// Reads `count` usable sets of a kind, at least one.
fn read_sets<'a>(
    count: u8,
    kind: NalKind,
    rest: &mut &'a [u8],
    sets: &mut Vec<&'a [u8]>,
) -> Option<()> {
    for _ in 0..count {
        let (set, after) = take_set(rest)?;
        sets.push(Some(without_trailing_zeros(set)).filter(|set| is_usable(set, kind))?);
        *rest = after;
    }
    (count > 0).then_some(())
}

/// A parameter set after its length, and what follows it.
fn take_set(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Whether a NAL unit is a parameter set of this kind that a decoder can read.
#[must_use]
pub fn is_usable(unit: &[u8], kind: NalKind) -> bool {
    let is_kind = unit.first().is_some_and(|first| first & 0x80 == 0 && nal_kind(*first) == kind);
    is_kind
        && match kind {
            NalKind::Sps => read_sps(unit).is_some_and(|sps| sps.width > 0 && sps.height > 0),
            // Its two ids, a flag for entropy coding, and more.
            _ => unit.len() > 2,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
    const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];

    fn record(version: u8, size: u8, counts: [u8; 2]) -> Vec<u8> {
        let header = [version, 0x42, 0xc0, 0x1f, 0xfc | size, 0xe0 | counts[0], 0, SPS.len() as u8];
        [&header[..], SPS, &[counts[1], 0, PPS.len() as u8], PPS].concat()
    }

    #[test]
    fn sound_records_of_each_legal_length_size_are_read() {
        for size in [0, 1, 3] {
            let data = record(1, size, [1, 1]);
            let read = read_record(&data);
            assert_eq!(read, Record { length_size: Some(size + 1), sets: vec![SPS, PPS] });
        }
        // Extensions of High, and reserved bits that are not set.
        let mut data = [&record(1, 3, [1, 1])[..], &[0xfd, 0xf8, 0xf8, 0]].concat();
        data[4] = 3;
        data[5] = 1;
        assert_eq!(read_record(&data).length_size, Some(4));
    }

    #[test]
    fn a_set_is_of_its_kind_and_long_enough() {
        let usable = |unit: &[u8]| [NalKind::Sps, NalKind::Pps].map(|kind| is_usable(unit, kind));
        assert_eq!((usable(SPS), usable(PPS)), ([true, false], [false, true]));
        // The forbidden bit, the ids alone, nothing.
        for unit in [&[0xe8, 0xce, 0x3c][..], &[0x68, 0xce], &[]] {
            assert_eq!(usable(unit), [false; 2], "{unit:x?}");
        }
    }

    #[test]
    fn the_sets_of_damaged_records_are_kept() {
        for data in [
            record(0, 3, [1, 1]),
            record(2, 3, [1, 1]),
            record(1, 2, [1, 1]),
            record(1, 3, [0, 1]),
            record(1, 3, [2, 1]),
            record(1, 3, [1, 0]),
            record(1, 3, [1, 4]),
            record(1, 3, [31, 255]),
            [&[0, 0, 0, 1][..], SPS, &[0, 0, 1], PPS].concat(),
            [&[0, 0, 0, SPS.len() as u8][..], SPS, &[0, 0, 0, 4], PPS].concat(),
        ] {
            assert_eq!(
                read_record(&data),
                Record { length_size: None, sets: vec![SPS, PPS] },
                "{data:x?}"
            );
        }
    }

    #[test]
    fn nothing_is_read_from_zeros_and_from_what_is_cut_off() {
        let whole = record(1, 3, [1, 1]);
        for data in [&[][..], &[0; 40], &[1], &whole[..8 + SPS.len() - 1]] {
            assert_eq!(read_record(data), Record { length_size: None, sets: vec![] }, "{data:x?}");
        }
        for length in [8 + SPS.len(), whole.len() - 1] {
            assert_eq!(read_record(&whole[..length]).sets, [SPS]);
            assert_eq!(read_record(&whole[..length]).length_size, None);
        }
    }
}
