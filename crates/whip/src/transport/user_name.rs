//! Whom a STUN binding request is for. Reads nothing else of it.

/// Most bytes of a binding request, the least MTU of IPv6. A request has a handful of attributes; libwebrtc may add a
/// DTLS flight, which makes it up to 1,220 bytes long (attributes 0xC070 and 0xC071, draft-hancke-webrtc-sped-00). We
/// ignore the flight: the client sees neither attribute in our answer, and sends DTLS on its own.
const REQUEST_LIMIT: usize = 1_280;
const HEADER: usize = 20;
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const USERNAME: u16 = 0x0006;

/// Our half of the USERNAME in a STUN binding request, by which the worker finds the session. Bounds are checked,
/// nothing is allocated.
#[must_use]
pub fn ufrag_of(datagram: &[u8]) -> Option<&[u8]> {
    user_name_of(datagram).map(|(ours, _)| ours)
}

/// Our half of the USERNAME in a STUN binding request, and the client's.
pub(super) fn user_name_of(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    if datagram.len() > REQUEST_LIMIT || datagram.get(..2)? != [0, 1] {
        return None;
    }
    let header = datagram.get(..HEADER)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[4..8] != MAGIC_COOKIE || length != datagram.len() - HEADER {
        return None;
    }
    let mut rest = datagram.get(HEADER..)?;
    while let Some(head) = rest.get(..4) {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let value = rest.get(4..4 + length)?;
        if u16::from_be_bytes([head[0], head[1]]) == USERNAME {
            let colon = value.iter().position(|byte| *byte == b':')?;
            return Some((value.get(..colon)?, value.get(colon + 1..)?));
        }
        rest = rest.get(4 + length.next_multiple_of(4)..)?;
    }
    None
}
