//! How the NAL units of an access unit are separated: lengths (ISO 14496-15 5.3.3) or start codes (H.264 annex B).

use bytes::{BufMut, Bytes, BytesMut};

/// Longest access unit that is converted between framings, as for RTP.
const CONVERSION_LIMIT: usize = 8 << 20;

/// One way of separating NAL units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each after its length in this many bytes, 1 to 4.
    Lengths(u8),
    /// Each after a start code of three or four bytes.
    StartCodes,
}

impl Framing {
    /// In the order in which an unknown framing is tried. Short lengths come last: they fit other bytes by chance.
    const CANDIDATES: [Self; 5] =
        [Self::Lengths(4), Self::StartCodes, Self::Lengths(2), Self::Lengths(3), Self::Lengths(1)];

    /// The framing in which `data` is a sequence of plausible NAL units with a slice or parameter set.
    #[must_use]
    pub fn of(data: &[u8]) -> Option<(Self, UnitKinds)> {
        let read = |framing: Self| Some((framing, framing.kinds(data)?));
        Self::CANDIDATES.into_iter().filter_map(read).find(|(_, kinds)| kinds.is_plausible())
    }

    /// The kinds of the NAL units in `data`; `None` if it is not framed in this way to its last byte.
    #[must_use]
    pub fn kinds(self, data: &[u8]) -> Option<UnitKinds> {
        match self {
            Self::Lengths(4) => length_kinds::<4>(data),
            Self::Lengths(3) => length_kinds::<3>(data),
            Self::Lengths(2) => length_kinds::<2>(data),
            Self::Lengths(_) => length_kinds::<1>(data),
            Self::StartCodes => {
                let mut kinds = UnitKinds::default();
                let mut units = StartCodeUnits::new(data)?;
                units.by_ref().for_each(|unit| kinds.add(unit));
                Some(kinds)
            }
        }
    }

    /// The NAL units, up to the first that is incomplete.
    pub fn units(self, data: &[u8]) -> Units<'_> {
        match self {
            Self::Lengths(size) => Units::Lengths { rest: data, size: usize::from(size) },
            Self::StartCodes => Units::StartCodes(StartCodeUnits::new(data)),
        }
    }

    /// The same NAL units after four-byte lengths; `None` if there are none or the result would be too long.
    #[must_use]
    pub fn to_four_byte_lengths(self, data: &[u8]) -> Option<Bytes> {
        let bytes = self.units(data).map(|unit| 4 + unit.len()).sum();
        if bytes == 0 || bytes > CONVERSION_LIMIT {
            return None;
        }
        let mut converted = BytesMut::with_capacity(bytes);
        for unit in self.units(data) {
            converted.put_u32(u32::try_from(unit.len()).ok()?);
            converted.put_slice(unit);
        }
        Some(converted.freeze())
    }
}

/// Which kinds of NAL unit occur: one bit for each nal_unit_type (H.264 table 7-1), bit 0 also for units with the
/// forbidden bit and empty ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitKinds(u32);

impl UnitKinds {
    const SLICES: u32 = 0b11110;
    const IDR: u32 = 1 << 5;
    const SEI: u32 = 1 << 6;
    const SETS: u32 = 1 << 7 | 1 << 8;
    /// Unspecified types and forbidden bits, which real access units do not contain.
    const IMPLAUSIBLE: u32 = 0xff00_0001;

    fn add(&mut self, unit: &[u8]) {
        if let Some(&first) = unit.first() {
            self.0 |= if first & 0x80 == 0 { 1 << (first & 0x1f) } else { 1 };
        }
    }

    /// Slices of an IDR picture.
    #[must_use]
    pub const fn has_idr(self) -> bool {
        self.0 & Self::IDR != 0
    }

    /// Slices of any picture.
    #[must_use]
    pub const fn has_slice(self) -> bool {
        self.0 & (Self::SLICES | Self::IDR) != 0
    }

    /// SEI messages.
    #[must_use]
    pub const fn has_sei(self) -> bool {
        self.0 & Self::SEI != 0
    }

    /// Parameter sets.
    #[must_use]
    pub const fn has_sets(self) -> bool {
        self.0 & Self::SETS != 0
    }

    /// Empty NAL units, which some decoders refuse, or units with the forbidden bit.
    #[must_use]
    pub const fn has_faults(self) -> bool {
        self.0 & 1 != 0
    }

    const fn is_plausible(self) -> bool {
        (self.has_slice() || self.has_sets()) && self.0 & Self::IMPLAUSIBLE == 0
    }
}

fn length_kinds<const SIZE: usize>(mut data: &[u8]) -> Option<UnitKinds> {
    let mut kinds = UnitKinds::default();
    while !data.is_empty() {
        let (length, rest) = data.split_first_chunk::<SIZE>()?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        if length == 0 {
            // Shorter lengths with zeros are those of another size.
            if SIZE < 4 {
                return None;
            }
            kinds.0 |= 1;
        }
        let (unit, rest) = rest.split_at_checked(length)?;
        kinds.add(unit);
        data = rest;
    }
    Some(kinds)
}

/// NAL units in either framing; empty ones are skipped.
#[derive(Clone, Debug)]
pub enum Units<'a> {
    /// After lengths of `size` bytes.
    Lengths {
        /// What follows.
        rest: &'a [u8],
        /// Bytes of a length.
        size: usize,
    },
    /// After start codes; `None` if there is none.
    StartCodes(Option<StartCodeUnits<'a>>),
}

impl<'a> Iterator for Units<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Lengths { rest, size } => loop {
                let (length, after) = rest.split_at_checked(*size)?;
                let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                let (unit, after) = after.split_at_checked(length)?;
                *rest = after;
                if !unit.is_empty() {
                    return Some(unit);
                }
            },
            Self::StartCodes(units) => units.as_mut()?.next(),
        }
    }
}

/// NAL units after start codes (annex B.1), without the zeros around them.
#[derive(Clone, Debug)]
pub struct StartCodeUnits<'a> {
    /// After a start code.
    rest: &'a [u8],
}

impl<'a> StartCodeUnits<'a> {
    /// `None` if `data` does not begin with a start code, possibly after zeros.
    fn new(data: &'a [u8]) -> Option<Self> {
        let zeros = data.iter().take_while(|byte| **byte == 0).count();
        let has_code = zeros >= 2 && data.get(zeros) == Some(&1);
        has_code.then(|| Self { rest: data.get(zeros + 1..).unwrap_or_default() })
    }
}

impl<'a> Iterator for StartCodeUnits<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let code = self.rest.windows(3).position(|three| three == [0, 0, 1]);
            let (unit, rest) = self.rest.split_at(code.unwrap_or(self.rest.len()));
            self.rest = rest.get(3..).unwrap_or_default();
            let unit = without_trailing_zeros(unit);
            if !unit.is_empty() {
                return Some(unit);
            }
        }
        None
    }
}

/// A NAL unit never ends in a zero (7.4.1): zeros after it are padding.
#[must_use]
pub fn without_trailing_zeros(unit: &[u8]) -> &[u8] {
    let length = unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    unit.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [&[u8]; 3] = [&[9, 0xf0], &[6, 1, 2, 3], &[0x65, 0x88, 0x84, 5]];

    fn with_lengths(size: usize) -> Vec<u8> {
        let prefixed = |unit: &&[u8]| {
            let length = (unit.len() as u32).to_be_bytes();
            [&length[4 - size..], *unit].concat()
        };
        UNITS.iter().flat_map(prefixed).collect()
    }

    #[test]
    fn every_framing_is_recognised_and_converted_to_four_byte_lengths() {
        let want = with_lengths(4);
        for size in 1..=4 {
            let data = with_lengths(size);
            let (framing, kinds) = Framing::of(&data).expect("framed");
            assert_eq!(framing, Framing::Lengths(size as u8));
            assert!(kinds.has_idr() && kinds.has_sei() && !kinds.has_sets());
            assert_eq!(framing.to_four_byte_lengths(&data).as_deref(), Some(&want[..]));
        }
        let [four, three, five]: [&[u8]; 3] = [&[0, 0, 0, 1], &[0, 0, 1], &[0, 0, 0, 0, 1]];
        for codes in [[four; 3], [three; 3], [five, three, four]] {
            let data: Vec<_> =
                codes.iter().zip(UNITS).flat_map(|(code, unit)| [*code, unit].concat()).collect();
            let (framing, _) = Framing::of(&data).expect("framed");
            assert_eq!(framing, Framing::StartCodes);
            assert_eq!(framing.to_four_byte_lengths(&data).as_deref(), Some(&want[..]));
        }
    }

    #[test]
    fn a_length_that_resembles_a_start_code_is_a_length() {
        let unit = [&[0x41][..], &[7; 0x140]].concat();
        let data = [&[0, 0, 1, 0x41][..], &unit].concat();
        assert_eq!(Framing::of(&data).map(|(framing, _)| framing), Some(Framing::Lengths(4)));
    }

    #[test]
    fn bytes_without_a_framing_have_none() {
        for data in [&b""[..], b"slice", &[0; 64], &[0xff; 64], &[0, 0, 0, 9, 0x65, 1], &[0, 0, 1]]
        {
            assert_eq!(Framing::of(data), None, "{data:x?}");
        }
    }
}
