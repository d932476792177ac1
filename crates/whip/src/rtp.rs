//! The RTP header (RFC 3550 5.1) and the header extensions we read. Not the meaning of the payload.

/// The RTP header of one packet, and where its payload lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// Last packet of an access unit.
    pub marker: bool,
    /// Payload type, as numbered in the answer.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Sampling time in units of the track's clock.
    pub timestamp: u32,
    /// Synchronisation source of the track.
    pub ssrc: u32,
    /// Where the payload starts.
    pub payload_at: usize,
    /// Where the payload ends: padding is excluded.
    pub payload_end: usize,
}

impl RtpHeader {
    /// Reads the header of a whole, decrypted packet. `None` when it is malformed. Padding longer than the packet leaves
    /// an empty payload, and padding without a length none.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (header, payload_at) = Self::read_clear(packet)?;
        let mut payload_end = packet.len();
        if packet[0] & 0x20 != 0 {
            let padding = usize::from(*packet.last()?);
            payload_end = payload_end.saturating_sub(padding).max(payload_at);
        }
        Some(Self { payload_at, payload_end, ..header })
    }

    /// Reads the part that SRTP leaves unencrypted; returns the header and that part's length.
    #[must_use]
    pub fn read_clear(packet: &[u8]) -> Option<(Self, usize)> {
        let &[first, second, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3, ..] = packet else {
            return None;
        };
        if first >> 6 != 2 {
            return None;
        }
        let mut length = 12 + 4 * usize::from(first & 0x0f);
        if first & 0x10 != 0 {
            let words = packet.get(length + 2..length + 4)?;
            length += 4 + 4 * usize::from(u16::from_be_bytes([words[0], words[1]]));
        }
        if length > packet.len() {
            return None;
        }
        let header = Self {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([i0, i1, i2, i3]),
            payload_at: length,
            payload_end: packet.len(),
        };
        Some((header, length))
    }
}

/// The two-byte value of header extension `id`, such as the transport-wide sequence number.
#[must_use]
pub fn extension_u16(packet: &[u8], id: u8) -> Option<u16> {
    match extension(packet, id)? {
        &[high, low] => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// The value of header extension `id`, one- or two-byte form (RFC 8285).
#[must_use]
pub fn extension(packet: &[u8], id: u8) -> Option<&[u8]> {
    let first = *packet.first()?;
    if first & 0x10 == 0 {
        return None;
    }
    let at = 12 + 4 * usize::from(first & 0x0f);
    let &[p0, p1, w0, w1] = packet.get(at..at + 4)? else { return None };
    let end = at + 4 + 4 * usize::from(u16::from_be_bytes([w0, w1]));
    let mut rest = packet.get(at + 4..end)?;
    let one_byte = [p0, p1] == [0xbe, 0xde];
    if !one_byte && (p0 != 0x10 || p1 & 0xf0 != 0) {
        return None;
    }
    while let Some((&head, after)) = rest.split_first() {
        if head == 0 {
            rest = after;
            continue;
        }
        let (found, length, value) = if one_byte {
            if head >> 4 == 15 {
                return None;
            }
            (head >> 4, usize::from(head & 0x0f) + 1, after)
        } else {
            let (&length, value) = after.split_first()?;
            (head, usize::from(length), value)
        };
        if found == id {
            return value.get(..length);
        }
        rest = value.get(length..)?;
    }
    None
}

/// How far `sequence` lies ahead of the extended number `highest`, or behind it if that is less than `reach`. A packet
/// further back is of no use to the receiver, so its number is read as one ahead: otherwise a receiver that has missed
/// more than half of all numbers would reject everything that follows.
#[must_use]
pub(crate) fn step_to(highest: u64, sequence: u16, reach: u64) -> i64 {
    let behind = (highest as u16).wrapping_sub(sequence);
    let cycle = if u64::from(behind) < reach { 0 } else { 1 << 16 };
    cycle - i64::from(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: &[u8] = &[
        0xb0, 0xe6, 0x12, 0x34, 0, 0, 0, 9, 0, 0, 0, 7, 0xbe, 0xde, 0, 2, 0x20, 0xaa, 0x31, 0xab,
        0xcd, 0, 0, 0, 1, 2, 3, 0, 2,
    ];

    #[test]
    fn header_extension_and_padding_are_separated_from_the_payload() {
        let header = RtpHeader::read(PACKET).expect("valid");
        assert_eq!((header.sequence, header.timestamp, header.ssrc), (0x1234, 9, 7));
        assert_eq!((header.marker, header.payload_type), (true, 102));
        assert_eq!(&PACKET[header.payload_at..header.payload_end], [1, 2, 3]);
        assert_eq!(extension_u16(PACKET, 3), Some(0xabcd));
        assert_eq!(extension_u16(PACKET, 2), None);
        assert_eq!(extension_u16(PACKET, 4), None);
    }

    /// A packet without contributing sources, padding or payload, with a header extension of this profile.
    fn extended(profile: [u8; 2], words: &[u8]) -> Vec<u8> {
        let head = [0x90, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        let length = [0, u8::try_from(words.len() / 4).expect("short")];
        [&head[..], &profile, &length, words].concat()
    }

    #[test]
    fn extensions_are_parsed_in_both_forms_and_after_csrcs() {
        let one = extended([0xbe, 0xde], &[0x10, 9, 0, 0x31, 0xab, 0xcd, 0, 0]);
        let two = extended([0x10, 0], &[1, 0, 0, 3, 2, 0xab, 0xcd, 0]);
        for packet in [&one, &two, &extended([0x10, 0x0f], &two[16..])] {
            assert_eq!(extension_u16(packet, 3), Some(0xabcd), "{packet:x?}");
            assert_eq!(extension_u16(packet, 4), None);
            let mut behind = packet.clone();
            behind[0] |= 2;
            behind.splice(12..12, [1; 8]);
            assert_eq!(extension_u16(&behind, 3), Some(0xabcd), "{behind:x?}");
            assert_eq!(RtpHeader::read(&behind).map(|header| header.payload_at), Some(32));
        }
        assert_eq!(extension(&two, 1), Some(&[][..]));
    }

    #[test]
    fn extensions_outside_rfc_8285_are_ignored() {
        let words = &[3, 2, 0xab, 0xcd][..];
        for profile in [[0x10, 0x10], [0x11, 0], [0xbe, 0xdf], [0, 0]] {
            assert_eq!(extension(&extended(profile, words), 3), None, "{profile:x?}");
        }
        let mut without = extended([0x10, 0], words);
        without[0] &= !0x10;
        assert_eq!(extension(&without, 3), None);
        // Id 15 ends the elements of the one-byte form.
        let ended = extended([0xbe, 0xde], &[0xf0, 9, 0x31, 0xab, 0xcd, 0, 0, 0]);
        assert_eq!(extension(&ended, 3), None);
    }

    #[test]
    fn a_number_is_behind_only_within_the_reach() {
        let highest = 0x5_0010;
        for (sequence, step) in [(0x0010, 0), (0x0011, 1), (0x000f, -1), (0xfc11, -1_023)] {
            assert_eq!(step_to(highest, sequence, 1_024), step, "{sequence:x}");
        }
        for (sequence, step) in [(0x8010, 0x8000), (0x9010, 0x9000), (0xfc10, 0xfc00)] {
            assert_eq!(step_to(highest, sequence, 1_024), step, "{sequence:x}");
        }
    }

    #[test]
    fn every_truncation_is_rejected_or_parsed_without_a_panic() {
        for length in 0..PACKET.len() {
            let _ = RtpHeader::read(&PACKET[..length]);
            let _ = extension_u16(&PACKET[..length], 3);
        }
        assert_eq!(RtpHeader::read(&[0x40; 12]), None);
        let mut all_padding = PACKET.to_vec();
        *all_padding.last_mut().expect("not empty") = 255;
        let header = RtpHeader::read(&all_padding).expect("valid");
        assert_eq!(header.payload_at, header.payload_end);
        *all_padding.last_mut().expect("not empty") = 0;
        let header = RtpHeader::read(&all_padding).expect("valid");
        assert_eq!(header.payload_end, PACKET.len());
    }
}
