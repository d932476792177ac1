//! The parameter sets of one stream: which are known, which one the slices activate, and the decoder configuration
//! built from them. Not how they are transported (`whip`).
//!
//! Sources: ITU-T H.264 7.3.2.1.1, 7.3.2.2, 7.3.3, 7.4.1.2.1; ISO 14496-15 5.3.3.1.

use bytes::{BufMut, Bytes, BytesMut};

use super::bits::Bits;
use super::sps::{Sps, read_sps};
use super::{NalKind, nal_kind};

/// Most bytes of one parameter set; real ones have 10 to 60.
const PARAMETER_SET_LIMIT: usize = 1024;
/// Sequence parameter sets kept: a publisher that changes resolution uses a handful of ids.
const SPS_LIMIT: usize = 8;
/// Picture parameter sets kept: encoders use up to three at a time.
const PPS_LIMIT: usize = 16;

/// The result of handling a parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// Rejected: malformed, too long, or not a parameter set.
    Refused,
    /// Already known with the same bytes under its id.
    Known,
    /// New, or with other bytes than those known under its id.
    Changed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SpsEntry {
    id: u32,
    bytes: Bytes,
    read: Option<Sps>,
    last_used: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PpsEntry {
    id: u32,
    sps_id: u32,
    bytes: Bytes,
    last_used: u64,
}

/// The current parameter sets by id. When there are more ids than are kept, the least recently used one is dropped, but
/// never the active SPS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterSets {
    sps: Vec<SpsEntry>,
    pps: Vec<PpsEntry>,
    /// Id of the SPS that the newest IDR access unit activated.
    active: Option<u32>,
    /// Counts uses, to find the least recently used one.
    uses: u64,
    changed: bool,
}

impl ParameterSets {
    /// Handles an SPS or PPS NAL unit.
    pub fn handle_nal(&mut self, nal: &[u8]) -> SetChange {
        let Some(&first) = nal.first() else { return SetChange::Refused };
        if nal.len() > PARAMETER_SET_LIMIT {
            return SetChange::Refused;
        }
        self.uses += 1;
        let change = match nal_kind(first) {
            NalKind::Sps => self.handle_sps(nal),
            NalKind::Pps => self.handle_pps(nal),
            NalKind::Slice | NalKind::Idr | NalKind::Sei | NalKind::Filler | NalKind::Other => None,
        };
        self.changed |= change == Some(SetChange::Changed);
        change.unwrap_or(SetChange::Refused)
    }

    /// Handles a slice of an IDR access unit: it activates the SPS that its PPS refers to (7.4.1.2.1). A slice with an
    /// unknown PPS changes nothing.
    pub fn activate(&mut self, idr_slice: &[u8]) {
        let Some(id) = slice_pps_id(idr_slice) else { return };
        self.uses += 1;
        let Some(pps) = self.pps.iter_mut().find(|pps| pps.id == id) else { return };
        pps.last_used = self.uses;
        let sps_id = pps.sps_id;
        let Some(sps) = self.sps.iter_mut().find(|sps| sps.id == sps_id) else { return };
        sps.last_used = self.uses;
        if self.active != Some(sps_id) {
            self.changed |= self.active.is_some() || self.sps.len() > 1;
            self.active = Some(sps_id);
        }
    }

    /// The decoder configuration, if both kinds of set are known and it may have changed since the last call.
    pub fn poll_configuration(&mut self) -> Option<Bytes> {
        if !self.changed {
            return None;
        }
        let configuration = self.to_configuration()?;
        self.changed = false;
        Some(configuration)
    }

    /// Whether both an SPS and a PPS are known.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        !self.sps.is_empty() && !self.pps.is_empty()
    }

    /// The contents of the active SPS.
    #[must_use]
    pub fn sps(&self) -> Option<Sps> {
        self.active_sps()?.read
    }

    /// profile_idc, constraint flags and level_idc of the active SPS.
    #[must_use]
    pub fn profile(&self) -> Option<[u8; 3]> {
        self.active_sps()?.bytes.get(1..4)?.try_into().ok()
    }

    /// The SPS activated by the newest IDR access unit or, until then, the newest one.
    fn active_sps(&self) -> Option<&SpsEntry> {
        let activated = self.sps.iter().find(|sps| Some(sps.id) == self.active);
        activated.or_else(|| self.sps.iter().max_by_key(|sps| sps.last_used))
    }

    fn handle_sps(&mut self, nal: &[u8]) -> Option<SetChange> {
        let id = sps_id(nal)?;
        if let Some(known) = self.sps.iter_mut().find(|sps| sps.id == id) {
            known.last_used = self.uses;
            if known.bytes[..] == *nal {
                return Some(SetChange::Known);
            }
            (known.bytes, known.read) = (Bytes::copy_from_slice(nal), read_sps(nal));
            return Some(SetChange::Changed);
        }
        if self.sps.len() >= SPS_LIMIT {
            let idle = self.sps.iter().enumerate().filter(|(_, sps)| Some(sps.id) != self.active);
            let (at, _) = idle.min_by_key(|(_, sps)| sps.last_used)?;
            self.sps.swap_remove(at);
        }
        let (bytes, read) = (Bytes::copy_from_slice(nal), read_sps(nal));
        self.sps.push(SpsEntry { id, bytes, read, last_used: self.uses });
        Some(SetChange::Changed)
    }

    fn handle_pps(&mut self, nal: &[u8]) -> Option<SetChange> {
        let (id, sps_id) = pps_ids(nal)?;
        if let Some(known) = self.pps.iter_mut().find(|pps| pps.id == id) {
            known.last_used = self.uses;
            if known.bytes[..] == *nal {
                return Some(SetChange::Known);
            }
            (known.bytes, known.sps_id) = (Bytes::copy_from_slice(nal), sps_id);
            return Some(SetChange::Changed);
        }
        if self.pps.len() >= PPS_LIMIT {
            let (at, _) = self.pps.iter().enumerate().min_by_key(|(_, pps)| pps.last_used)?;
            self.pps.swap_remove(at);
        }
        let bytes = Bytes::copy_from_slice(nal);
        self.pps.push(PpsEntry { id, sps_id, bytes, last_used: self.uses });
        Some(SetChange::Changed)
    }

    /// AVCDecoderConfigurationRecord with four-byte NAL lengths: the active SPS and the PPSs that refer to it. Only an
    /// IDR access unit can activate another SPS, and it then gets its own configuration.
    fn to_configuration(&self) -> Option<Bytes> {
        let active = self.active_sps()?;
        let sps = &active.bytes;
        let mut pps: Vec<_> = self.pps.iter().filter(|pps| pps.sps_id == active.id).collect();
        if pps.is_empty() {
            // The reference may have been misread, so the decoder gets every PPS.
            pps.extend(&self.pps);
        }
        if pps.is_empty() {
            return None;
        }
        pps.sort_unstable_by_key(|pps| pps.id);
        let &[_, profile, compatibility, level, ..] = &sps[..] else { return None };
        let mut record = BytesMut::with_capacity(64);
        record.put_slice(&[1, profile, compatibility, level, 0xff, 0xe1]);
        put_set(&mut record, sps);
        record.put_u8(pps.len() as u8);
        for pps in pps {
            put_set(&mut record, &pps.bytes);
        }
        if matches!(profile, 100 | 110 | 122 | 144) {
            let (chroma, luma_depth, chroma_depth) = sample_format(sps)?;
            record.put_slice(&[0xfc | chroma, 0xf8 | luma_depth, 0xf8 | chroma_depth, 0]);
        }
        Some(record.freeze())
    }
}

fn put_set(record: &mut BytesMut, set: &[u8]) {
    record.put_u16(set.len() as u16);
    record.put_slice(set);
}

/// seq_parameter_set_id (7.3.2.1.1).
fn sps_id(nal: &[u8]) -> Option<u32> {
    Bits::new(nal.get(4..)?).exp_golomb().filter(|id| *id < 32)
}

/// pic_parameter_set_id and the seq_parameter_set_id it refers to (7.3.2.2).
fn pps_ids(nal: &[u8]) -> Option<(u32, u32)> {
    let mut bits = Bits::new(nal.get(1..)?);
    let id = bits.exp_golomb().filter(|id| *id < 256)?;
    let sps_id = bits.exp_golomb().filter(|id| *id < 32)?;
    Some((id, sps_id))
}

/// pic_parameter_set_id of a slice, after first_mb_in_slice and slice_type (7.3.3).
fn slice_pps_id(nal: &[u8]) -> Option<u32> {
    let mut bits = Bits::new(nal.get(1..)?);
    bits.exp_golomb()?;
    bits.exp_golomb()?;
    bits.exp_golomb().filter(|id| *id < 256)
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

#[cfg(test)]
#[path = "sets_tests.rs"]
mod tests;
