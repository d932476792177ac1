//! H.264 NAL units, parameter sets and the decoder configuration made of them. Not their RTP packing (`whip`).
//!
//! Sources: ITU-T H.264 7.3.1, 7.3.2.1.1, 7.4.1; ISO 14496-15 5.3.3.

mod bits;
mod sps;

use bits::Bits;
use bytes::{BufMut, Bytes, BytesMut};
pub use sps::{Sps, read_sps};

/// One parameter set may have so many bytes; real ones have 10 to 60.
const PARAMETER_SET_LIMIT: usize = 1024;
/// Sequence parameter sets that are kept: a publisher with simulcast or several sizes uses a handful.
const SPS_LIMIT: usize = 8;
/// Picture parameter sets that are kept.
const PPS_LIMIT: usize = 16;

/// What a NAL unit is, as far as we care (H.264 table 7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NalKind {
    /// A coded slice of a picture that needs earlier ones.
    Slice,
    /// A coded slice of an IDR picture.
    Idr,
    /// Supplemental enhancement information: kept, customers put timecodes there.
    Sei,
    /// Sequence parameter set.
    Sps,
    /// Picture parameter set.
    Pps,
    /// Access unit delimiter, end of sequence or stream, filler: nothing a decoder needs.
    Filler,
    /// Anything else: passed on.
    Other,
}

/// The kind of a NAL unit by its first byte.
#[must_use]
pub const fn nal_kind(first: u8) -> NalKind {
    match first & 0x1f {
        1..=4 => NalKind::Slice,
        5 => NalKind::Idr,
        6 => NalKind::Sei,
        7 => NalKind::Sps,
        8 => NalKind::Pps,
        9..=12 => NalKind::Filler,
        _ => NalKind::Other,
    }
}

/// Whether any picture refers to this one (nal_ref_idc, 7.4.1).
#[must_use]
pub const fn is_reference(first: u8) -> bool {
    first & 0x60 != 0
}

/// Whether this slice is the first of its picture: first_mb_in_slice is 0 (7.3.3), coded as a single 1 bit.
#[must_use]
pub fn is_first_slice(nal: &[u8]) -> bool {
    nal.get(1).is_some_and(|byte| byte & 0x80 != 0)
}

/// The parameter sets in force, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterSets {
    sps: Vec<(u32, Bytes)>,
    pps: Vec<(u32, Bytes)>,
    changed: bool,
}

impl ParameterSets {
    /// Takes an SPS or PPS NAL unit; anything else, anything malformed and anything past the limits is left out.
    pub fn handle_nal(&mut self, nal: &[u8]) {
        let Some(&first) = nal.first() else { return };
        if nal.len() > PARAMETER_SET_LIMIT {
            return;
        }
        let (sets, limit, id) = match nal_kind(first) {
            NalKind::Sps if nal.len() >= 5 => (&mut self.sps, SPS_LIMIT, sps_id(nal)),
            NalKind::Pps if nal.len() >= 2 => (&mut self.pps, PPS_LIMIT, pps_id(nal)),
            NalKind::Slice | NalKind::Idr | NalKind::Sei | NalKind::Filler => return,
            NalKind::Sps | NalKind::Pps | NalKind::Other => return,
        };
        let Some(id) = id else { return };
        let has_room = sets.len() < limit;
        match sets.iter_mut().find(|(known, _)| *known == id) {
            Some((_, bytes)) if bytes[..] == *nal => {}
            Some((_, bytes)) => {
                *bytes = Bytes::copy_from_slice(nal);
                self.changed = true;
            }
            None if has_room => {
                sets.push((id, Bytes::copy_from_slice(nal)));
                self.changed = true;
            }
            None => {}
        }
    }

    /// The decoder configuration when both kinds are there and their bytes changed since the last call.
    pub fn poll_configuration(&mut self) -> Option<Bytes> {
        if !self.changed {
            return None;
        }
        let configuration = self.to_configuration()?;
        self.changed = false;
        Some(configuration)
    }

    /// Both an SPS and a PPS are known.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        !self.sps.is_empty() && !self.pps.is_empty()
    }

    /// Width and height in pixels of the first SPS.
    #[must_use]
    pub fn resolution(&self) -> Option<(u32, u32)> {
        resolution(&self.sps.first()?.1)
    }

    /// What the first SPS says.
    #[must_use]
    pub fn sps(&self) -> Option<Sps> {
        read_sps(&self.sps.first()?.1)
    }

    /// profile_idc, constraint flags and level_idc of the first SPS.
    #[must_use]
    pub fn profile(&self) -> Option<[u8; 3]> {
        self.sps.first()?.1.get(1..4)?.try_into().ok()
    }

    /// AVCDecoderConfigurationRecord with four-byte NAL lengths.
    fn to_configuration(&self) -> Option<Bytes> {
        let (_, sps) = self.sps.first()?;
        if self.pps.is_empty() {
            return None;
        }
        let &[_, profile, compatibility, level, ..] = &sps[..] else { return None };
        let mut record = BytesMut::with_capacity(64);
        record.put_slice(&[1, profile, compatibility, level, 0xff]);
        record.put_u8(0xe0 | self.sps.len() as u8);
        put_sets(&mut record, &self.sps);
        record.put_u8(self.pps.len() as u8);
        put_sets(&mut record, &self.pps);
        if matches!(profile, 100 | 110 | 122 | 144) {
            let (chroma, luma_depth, chroma_depth) = sample_format(sps)?;
            record.put_slice(&[0xfc | chroma, 0xf8 | luma_depth, 0xf8 | chroma_depth, 0]);
        }
        Some(record.freeze())
    }
}

fn put_sets(record: &mut BytesMut, sets: &[(u32, Bytes)]) {
    for (_, set) in sets {
        record.put_u16(set.len() as u16);
        record.put_slice(set);
    }
}

fn sps_id(nal: &[u8]) -> Option<u32> {
    Bits::new(nal.get(4..)?).exp_golomb().filter(|id| *id < 32)
}

fn pps_id(nal: &[u8]) -> Option<u32> {
    Bits::new(nal.get(1..)?).exp_golomb().filter(|id| *id < 256)
}

/// chroma_format_idc and the two bit depths minus 8, of a High profile SPS.
fn sample_format(sps: &[u8]) -> Option<(u8, u8, u8)> {
    let mut bits = Bits::new(sps.get(4..)?);
    bits.exp_golomb()?;
    let chroma = bits.exp_golomb()?;
    if chroma == 3 {
        bits.bit()?;
    }
    let (luma, chroma_depth) = (bits.exp_golomb()?, bits.exp_golomb()?);
    (chroma < 4 && luma < 7 && chroma_depth < 7).then_some((
        chroma as u8,
        luma as u8,
        chroma_depth as u8,
    ))
}

/// Width and height in pixels after cropping.
#[must_use]
pub fn resolution(sps: &[u8]) -> Option<(u32, u32)> {
    read_sps(sps).map(|sps| (sps.width, sps.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x264, High, 1280x720 with scaling 4:2:0.
    const HIGH: &[u8] = &[
        0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9, 0x40, 0x50, 0x05, 0xbb, 0x01, 0x10, 0x00, 0x00, 0x03,
        0x00, 0x10, 0x00, 0x00, 0x03, 0x03, 0x20, 0xf1, 0x83, 0x19, 0x60,
    ];
    /// OpenH264 in Chromium, constrained Baseline, 1280x720.
    const BASELINE: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0x1e, 0xd0, 0x0f];
    const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];

    #[test]
    fn resolution_is_read_after_cropping() {
        assert_eq!(resolution(HIGH), Some((1280, 720)));
        assert_eq!(resolution(&BASELINE[..5]), None);
    }

    #[test]
    fn a_configuration_comes_once_both_sets_are_there_and_again_when_bytes_change() {
        let mut sets = ParameterSets::default();
        sets.handle_nal(BASELINE);
        assert_eq!(sets.poll_configuration(), None);
        sets.handle_nal(PPS);
        let record = sets.poll_configuration().expect("complete");
        assert_eq!(&record[..6], [1, 0x42, 0xc0, 0x1f, 0xff, 0xe1]);
        assert_eq!(&record[6..8], [0, BASELINE.len() as u8]);
        assert!(record.ends_with(PPS));
        sets.handle_nal(BASELINE);
        sets.handle_nal(PPS);
        assert_eq!(sets.poll_configuration(), None);
        sets.handle_nal(HIGH);
        let record = sets.poll_configuration().expect("changed");
        assert!(record.ends_with(&[0xfd, 0xf8, 0xf8, 0]), "High profile carries the sample format");
    }

    #[test]
    fn what_is_no_parameter_set_is_left_out() {
        let mut sets = ParameterSets::default();
        for nal in [&[][..], &[0x67], &[0x68], &[0x65, 1, 2, 3, 4, 5], &[0x67; 2000]] {
            sets.handle_nal(nal);
        }
        for id in 0..300_u32 {
            sets.handle_nal(&[0x68, 0x80 | id as u8, (id >> 8) as u8]);
        }
        assert!(!sets.is_complete());
        assert!(sets.pps.len() <= PPS_LIMIT);
    }
}
