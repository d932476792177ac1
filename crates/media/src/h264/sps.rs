//! The contents of a sequence parameter set (H.264 7.3.2.1.1, E.1.1).

use super::bits::Bits;

/// Largest reorder depth that is accepted; H.264 allows 16, encoders use up to 4.
const REORDER_LIMIT: u32 = 16;

/// The fields we read from a sequence parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sps {
    /// Width in pixels after cropping.
    pub width: u32,
    /// Height in pixels after cropping.
    pub height: u32,
    /// How many frames may precede any frame in decoding order and follow it in output order; `None` if not declared.
    pub reorder_depth: Option<u32>,
    /// Bits of frame_num in a slice header; `None` where a picture may be a field or the header has further fields.
    pub frame_num_bits: Option<u8>,
}

/// Reads an SPS NAL unit; `None` if it is malformed before the size is known.
#[must_use]
pub fn read_sps(sps: &[u8]) -> Option<Sps> {
    let profile = *sps.get(1)?;
    let mut bits = Bits::new(sps.get(4..)?);
    bits.exp_golomb()?;
    let chroma = read_format(&mut bits, profile)?;
    let frame_num_bits = bits.exp_golomb()?.checked_add(4)?;
    let order = read_order(&mut bits)?;
    bits.exp_golomb()?;
    bits.bit()?;
    let ((width, height), has_fields) = read_size(&mut bits, chroma)?;
    let is_plain = !has_fields && chroma != 3 && frame_num_bits <= 16;
    let frame_num_bits = is_plain.then_some(frame_num_bits as u8);
    // Baseline has no B slices, and with type 2 the output order is the decoding order (8.2.1.3).
    let is_in_order = profile == 66 || order == 2;
    let reorder_depth = if is_in_order { Some(0) } else { read_reorder_depth(&mut bits) };
    Some(Sps { width, height, reorder_depth, frame_num_bits })
}

/// chroma_format_idc; 1 for profiles that do not contain it.
fn read_format(bits: &mut Bits<'_>, profile: u8) -> Option<u32> {
    if !matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135)
    {
        return Some(1);
    }
    let chroma = bits.exp_golomb()?;
    let lists = if chroma == 3 {
        bits.bit()?;
        12
    } else {
        8
    };
    bits.exp_golomb()?;
    bits.exp_golomb()?;
    bits.bit()?;
    if bits.bit()? == 1 {
        for list in 0..lists {
            if bits.bit()? == 1 {
                skip_scaling_list(bits, if list < 6 { 16 } else { 64 })?;
            }
        }
    }
    Some(chroma)
}

/// pic_order_cnt_type.
fn read_order(bits: &mut Bits<'_>) -> Option<u32> {
    let order = bits.exp_golomb()?;
    match order {
        0 => {
            bits.exp_golomb()?;
        }
        1 => {
            bits.bit()?;
            bits.exp_golomb()?;
            bits.exp_golomb()?;
            let cycle = bits.exp_golomb()?;
            for _ in 0..cycle.min(256) {
                bits.exp_golomb()?;
            }
        }
        _ => {}
    }
    Some(order)
}

/// Width and height, and whether a picture may be a field.
fn read_size(bits: &mut Bits<'_>, chroma: u32) -> Option<((u32, u32), bool)> {
    let width = bits.exp_golomb()?.checked_add(1)?.checked_mul(16)?;
    let map_units = bits.exp_golomb()?.checked_add(1)?;
    let frame_mbs_only = bits.bit()?;
    if frame_mbs_only == 0 {
        bits.bit()?;
    }
    bits.bit()?;
    let field = 2 - frame_mbs_only;
    let height = map_units.checked_mul(16)?.checked_mul(field)?;
    if bits.bit()? == 0 {
        return Some(((width, height), frame_mbs_only == 0));
    }
    let (across, down) = match chroma {
        1 => (2, 2 * field),
        2 => (2, field),
        _ => (1, field),
    };
    let (left, right) = (bits.exp_golomb()?, bits.exp_golomb()?);
    let (top, bottom) = (bits.exp_golomb()?, bits.exp_golomb()?);
    let size = (
        width.checked_sub(left.checked_add(right)?.checked_mul(across)?)?,
        height.checked_sub(top.checked_add(bottom)?.checked_mul(down)?)?,
    );
    Some((size, frame_mbs_only == 0))
}

/// max_num_reorder_frames from the bitstream restriction (E.1.1, E.2.1); everything before it is skipped.
fn read_reorder_depth(bits: &mut Bits<'_>) -> Option<u32> {
    /// The value of aspect_ratio_idc that is followed by two 16-bit numbers.
    const EXTENDED_RATIO: u32 = 255;
    if bits.bit()? == 0 {
        return None;
    }
    if bits.bit()? == 1 && bits.fixed(8)? == EXTENDED_RATIO {
        bits.fixed(32)?;
    }
    if bits.bit()? == 1 {
        bits.bit()?;
    }
    if bits.bit()? == 1 {
        bits.fixed(4)?;
        if bits.bit()? == 1 {
            bits.fixed(24)?;
        }
    }
    if bits.bit()? == 1 {
        bits.exp_golomb()?;
        bits.exp_golomb()?;
    }
    if bits.bit()? == 1 {
        bits.fixed(32)?;
        bits.fixed(32)?;
        bits.bit()?;
    }
    let mut has_buffer_model = false;
    for _ in 0..2 {
        if bits.bit()? == 1 {
            has_buffer_model = true;
            skip_buffer_model(bits)?;
        }
    }
    if has_buffer_model {
        bits.bit()?;
    }
    bits.bit()?;
    if bits.bit()? == 0 {
        return None;
    }
    bits.bit()?;
    for _ in 0..4 {
        bits.exp_golomb()?;
    }
    bits.exp_golomb().filter(|depth| *depth <= REORDER_LIMIT)
}

/// hrd_parameters (E.1.2).
fn skip_buffer_model(bits: &mut Bits<'_>) -> Option<()> {
    let count = bits.exp_golomb()?.min(31);
    bits.fixed(8)?;
    for _ in 0..=count {
        bits.exp_golomb()?;
        bits.exp_golomb()?;
        bits.bit()?;
    }
    bits.fixed(20)?;
    Some(())
}

fn skip_scaling_list(bits: &mut Bits<'_>, size: u32) -> Option<()> {
    let (mut last, mut next) = (8_i64, 8_i64);
    for _ in 0..size {
        if next != 0 {
            let code = i64::from(bits.exp_golomb()?);
            let delta = if code & 1 == 1 { (code + 1) / 2 } else { -(code / 2) };
            next = (last + delta + 256) % 256;
        }
        if next != 0 {
            last = next;
        }
    }
    Some(())
}

#[cfg(test)]
#[path = "sps_tests.rs"]
mod tests;
