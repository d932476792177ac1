//! ADTS, the framing of AAC in files and transport streams, which FLV does not use.
//!
//! Source: ISO 14496-3 1.A.2.2, 1.A.3.2.

/// Without and with CRC.
const HEADER: usize = 7;
const HEADER_WITH_CRC: usize = 9;
const RATES: u8 = 13;

/// One ADTS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdtsFrame<'a> {
    /// The two bytes of AudioSpecificConfig that describe it: object type, rate and channels.
    pub configuration: [u8; 2],
    /// The raw data block.
    pub data: &'a [u8],
}

/// Whether data begins with the sync word of ADTS. A raw AAC frame never does: its first three bits would be those of
/// an end element.
#[must_use]
pub fn is_adts(data: &[u8]) -> bool {
    matches!(data, [0xff, second, ..] if second & 0xf6 == 0xf0)
}

/// Takes the next frame from `rest`; `None` if it is incomplete, reserved, or holds several raw data blocks, which
/// cannot be separated without decoding them.
pub fn take_adts_frame<'a>(rest: &mut &'a [u8]) -> Option<AdtsFrame<'a>> {
    let &[_, second, third, fourth, fifth, sixth, seventh, ..] = *rest else { return None };
    if !is_adts(rest) {
        return None;
    }
    let header = if second & 1 == 1 { HEADER } else { HEADER_WITH_CRC };
    let (profile, rate) = (third >> 6, third >> 2 & 0x0f);
    let channels = (third & 1) << 2 | fourth >> 6;
    let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
    if rate >= RATES || seventh & 3 != 0 || length <= header {
        return None;
    }
    let (frame, after) = rest.split_at_checked(length)?;
    *rest = after;
    let fields = u16::from(profile + 1) << 11 | u16::from(rate) << 7 | u16::from(channels) << 3;
    Some(AdtsFrame { configuration: fields.to_be_bytes(), data: frame.get(header..)? })
}

/// The configuration in an ADTS header, with or without the rest of the frame.
#[must_use]
pub fn adts_configuration(header: &[u8]) -> Option<[u8; 2]> {
    let &[_, _, third, fourth, ..] = header else { return None };
    let frame = [0xff, 0xf1, third, fourth & 0xfc, 1, 0, 0, 0];
    is_adts(header).then(|| take_adts_frame(&mut &frame[..]))?.map(|frame| frame.configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adts(crc: bool, blocks: u8, raw: &[u8]) -> Vec<u8> {
        let header = if crc { 9 } else { 7 };
        let length = header + raw.len();
        let mut frame = vec![0xff, 0xf0 | u8::from(!crc), 0x4c, 0x80 | (length >> 11) as u8];
        frame.extend([(length >> 3) as u8, (length << 5) as u8 | 0x1f, 0xfc | blocks]);
        frame.resize(header, 0xcc);
        [&frame[..], raw].concat()
    }

    #[test]
    fn frames_with_and_without_crc_are_read_one_after_another() {
        let data = [adts(false, 0, &[0x21, 1]), adts(true, 0, &[0x21, 2, 3])].concat();
        let mut rest = &data[..];
        let frames: Vec<_> = std::iter::from_fn(|| take_adts_frame(&mut rest)).collect();
        // AAC-LC, 48 kHz, stereo.
        assert_eq!(
            frames.iter().map(|frame| frame.configuration).collect::<Vec<_>>(),
            [[0x11, 0x90]; 2]
        );
        assert_eq!(
            frames.iter().map(|frame| frame.data).collect::<Vec<_>>(),
            [&[0x21, 1][..], &[0x21, 2, 3]]
        );
        assert!(rest.is_empty());
        assert_eq!(adts_configuration(&data[..7]), Some([0x11, 0x90]));
    }

    #[test]
    fn what_is_incomplete_or_reserved_is_not_read() {
        let whole = adts(false, 0, &[0x21, 1]);
        let reserved_rate = [&[0xff, 0xf1, 0x7c][..], &whole[3..]].concat();
        for data in [
            &whole[..6],
            &whole[..8],
            &adts(false, 0, &[]),
            &adts(false, 1, &[1]),
            &reserved_rate,
            &[0x21, 1],
        ] {
            assert_eq!(take_adts_frame(&mut &data[..]), None, "{data:x?}");
        }
    }
}
