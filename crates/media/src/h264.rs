//! H.264 NAL units, parameter sets and the decoder configuration built from them. Not their RTP packing (`whip`).
//!
//! Sources: ITU-T H.264 7.3.1, 7.4.1.

mod bits;
mod framing;
mod record;
mod recovery;
mod sets;
mod sps;

pub use framing::{Framing, StartCodeUnits, UnitKinds, Units, without_trailing_zeros};
pub use record::{Record, is_usable, read_record};
pub use recovery::{is_intra, is_recovery_point};
pub use sets::{ParameterSets, SetChange};
pub use sps::{Sps, read_sps};

/// The kinds of NAL unit that matter here (H.264 table 7-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NalKind {
    /// A coded slice that refers to earlier frames.
    Slice,
    /// A coded slice of an IDR access unit.
    Idr,
    /// Supplemental enhancement information: kept, because customers put timecodes there.
    Sei,
    /// Sequence parameter set.
    Sps,
    /// Picture parameter set.
    Pps,
    /// Access unit delimiter, end of sequence or stream, filler: not needed by a decoder.
    Filler,
    /// Anything else: forwarded.
    Other,
}

/// The kind of a NAL unit, from its first byte.
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

/// Whether other frames refer to this one (nal_ref_idc, 7.4.1).
#[must_use]
pub const fn is_reference(first: u8) -> bool {
    first & 0x60 != 0
}

/// Whether this slice is the first of its frame: first_mb_in_slice is 0 (7.3.3), coded as a single 1 bit.
#[must_use]
pub fn is_first_slice(nal: &[u8]) -> bool {
    nal.get(1).is_some_and(|byte| byte & 0x80 != 0)
}

/// frame_num of a slice (7.3.3), which has this many bits ([`Sps::frame_num_bits`]).
#[must_use]
pub fn frame_num(slice: &[u8], frame_num_bits: u8) -> Option<u32> {
    let mut bits = bits::Bits::new(slice.get(1..)?);
    for _ in 0..3 {
        bits.exp_golomb()?;
    }
    bits.fixed(frame_num_bits)
}

/// Bytes of a slice after the NAL unit's first that [`blank_unit`] keeps: its position, type and parameter set.
const SLICE_HEADER: usize = 6;

/// Overwrites the image data of a NAL unit and keeps what a parser reads. Parameter sets are left unchanged.
pub fn blank_unit(unit: &mut [u8]) {
    let kept = match unit.first().map(|first| nal_kind(*first)) {
        Some(NalKind::Sps | NalKind::Pps) => unit.len(),
        Some(NalKind::Slice | NalKind::Idr) => 1 + SLICE_HEADER,
        Some(NalKind::Sei | NalKind::Filler | NalKind::Other) | None => 1,
    };
    unit.iter_mut().skip(kept).for_each(|byte| *byte = 0);
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
    #[test]
    fn resolution_is_read_after_cropping() {
        assert_eq!(resolution(HIGH), Some((1280, 720)));
        assert_eq!(resolution(&BASELINE[..5]), None);
    }

    #[test]
    fn a_frame_is_a_reference_unless_nal_ref_idc_is_0() {
        assert!(is_reference(0x65) && is_reference(0x41) && is_reference(0x21));
        assert!(!is_reference(0x01));
    }
}
