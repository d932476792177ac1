//! The syntax of a raw data block (ISO/IEC 14496-3, 4.4.2.1): one channel element and the end. Not what is in it.

use crate::bands::Layout;
use crate::bits::BitWriter;
use crate::filterbank::{Sequence, Shape};
use crate::sections::Spectrum;
use crate::tns::Filter;

const SINGLE_CHANNEL_ELEMENT: u32 = 0;
const CHANNEL_PAIR_ELEMENT: u32 = 1;
const END: u32 = 7;

/// What both channels of a frame share.
pub(crate) struct Frame<'a> {
    /// The windows.
    pub(crate) sequence: Sequence,
    /// Shape of the right half of the window.
    pub(crate) shape: Shape,
    /// Bands and groups.
    pub(crate) layout: &'a Layout,
    /// Coded bands of each group.
    pub(crate) bands: usize,
}

/// A coded channel.
pub(crate) struct Channel<'a> {
    /// The quantised lines, with their books chosen.
    pub(crate) spectrum: &'a Spectrum,
    /// Temporal noise shaping, of each window.
    pub(crate) filters: &'a [Filter],
}

/// Which bands are coded as sum and difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MidSide<'a> {
    /// None.
    Off,
    /// These, of all groups.
    Some(&'a [bool]),
    /// All.
    All,
}

impl MidSide<'_> {
    /// Bits that it takes.
    pub(crate) fn bits(self, frame: &Frame<'_>) -> usize {
        match self {
            Self::Off | Self::All => 2,
            Self::Some(_) => 2 + frame.bands * frame.layout.groups().len(),
        }
    }
}

/// Bits besides the channels' own: element, window, stereo and end.
pub(crate) fn fixed_bits(frame: &Frame<'_>, mid_side: Option<MidSide<'_>>) -> usize {
    let window = if frame.layout.is_short() { 15 } else { 11 };
    3 + 4 + window + 3 + mid_side.map_or(0, |mid_side| 1 + mid_side.bits(frame))
}

/// Bits of a channel besides sections, scale factors and lines.
pub(crate) fn channel_bits(frame: &Frame<'_>, filters: &[Filter]) -> usize {
    8 + 3 + filter_bits(frame, filters)
}

/// Writes one channel.
pub(crate) fn write_single(frame: &Frame<'_>, channel: &Channel<'_>, out: &mut BitWriter) {
    out.put(SINGLE_CHANNEL_ELEMENT, 3);
    out.put(0, 4);
    write_channel(frame, channel, true, out);
    out.put(END, 3);
}

/// Writes two channels with common windows.
pub(crate) fn write_pair(
    frame: &Frame<'_>,
    mid_side: MidSide<'_>,
    channels: [&Channel<'_>; 2],
    out: &mut BitWriter,
) {
    out.put(CHANNEL_PAIR_ELEMENT, 3);
    out.put(0, 4);
    out.put(1, 1);
    write_window(frame, out);
    match mid_side {
        MidSide::Off => out.put(0, 2),
        MidSide::All => out.put(2, 2),
        MidSide::Some(used) => {
            out.put(1, 2);
            for band in crate::sections::coded(frame.layout, frame.bands) {
                out.put(u32::from(used[band]), 1);
            }
        }
    }
    for channel in channels {
        write_channel(frame, channel, false, out);
    }
    out.put(END, 3);
}

fn write_window(frame: &Frame<'_>, out: &mut BitWriter) {
    out.put(0, 1);
    out.put(frame.sequence as u32, 2);
    out.put(frame.shape as u32, 1);
    if frame.layout.is_short() {
        out.put(frame.bands as u32, 4);
        // One bit for each window but the first of the frame: whether it continues a group.
        for (group, length) in frame.layout.groups().iter().enumerate() {
            if group > 0 {
                out.put(0, 1);
            }
            out.put((1 << (length - 1)) - 1, u32::from(*length) - 1);
        }
    } else {
        out.put(frame.bands as u32, 6);
        out.put(0, 1);
    }
}

/// An individual channel stream (table 4.50).
fn write_channel(frame: &Frame<'_>, channel: &Channel<'_>, window: bool, out: &mut BitWriter) {
    let (spectrum, layout, bands) = (channel.spectrum, frame.layout, frame.bands);
    out.put(spectrum.global_gain(layout, bands) as u32, 8);
    if window {
        write_window(frame, out);
    }
    spectrum.write_sections(layout, bands, out);
    spectrum.write_scale_factors(layout, bands, out);
    // No pulses.
    out.put(0, 1);
    write_filters(frame, channel.filters, out);
    // No gain control.
    out.put(0, 1);
    spectrum.write_lines(layout, bands, out);
}

fn filter_bits(frame: &Frame<'_>, filters: &[Filter]) -> usize {
    if filters.iter().all(|filter| filter.order() == 0) {
        return 0;
    }
    let (count, length, order) = if frame.layout.is_short() { (1, 4, 3) } else { (2, 6, 5) };
    let bits = |filter: &Filter| match filter.order() {
        0 => count,
        coefficients => count + 1 + length + order + 2 + 4 * coefficients,
    };
    filters.iter().map(bits).sum()
}

/// Temporal noise shaping (table 4.54): at most one filter for each window, of 4 bits a coefficient.
fn write_filters(frame: &Frame<'_>, filters: &[Filter], out: &mut BitWriter) {
    let is_used = filters.iter().any(|filter| filter.order() > 0);
    out.put(u32::from(is_used), 1);
    if !is_used {
        return;
    }
    let (count, length, order) = if frame.layout.is_short() { (1, 4, 3) } else { (2, 6, 5) };
    for filter in filters {
        out.put(u32::from(filter.order() > 0), count);
        if filter.order() > 0 {
            out.put(1, 1);
            out.put(filter.bands() as u32, length);
            out.put(filter.order() as u32, order);
            // Upwards, and all bits of each coefficient.
            out.put(0, 2);
            for coefficient in filter.coefficients() {
                out.put(u32::from(*coefficient as u8 & 15), 4);
            }
        }
    }
}
