//! The first ClientHello, reassembled to find out which SRTP profiles it lists (RFC 5764 4.1.2).
//!
//! Browsers write their extensions in random order, around a key share that fills a datagram: the extension that lists
//! the SRTP profiles may be in any fragment.

use bytes::BytesMut;

/// Datagrams that are held back; a ClientHello takes one or two.
const DATAGRAM_LIMIT: usize = 6;
/// Bytes before the content of a DTLS record (RFC 6347 4.1).
pub(super) const RECORD_HEADER: usize = 13;
/// Bytes before the body of a handshake message (RFC 6347 4.2.2).
pub(super) const MESSAGE_HEADER: usize = 12;
/// Content type of a record of handshake messages.
pub(super) const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const USE_SRTP: u16 = 14;

/// The datagrams of a ClientHello that is still incomplete.
#[derive(Debug, Default)]
pub(super) struct ClientHello {
    datagrams: Vec<BytesMut>,
}

/// The outcome of reassembling a ClientHello.
#[derive(Debug)]
pub(super) struct WholeHello {
    /// SRTP profiles in the client's order; empty when it lists none, or when it was never completed.
    pub(super) profiles: Vec<u16>,
    /// The datagrams that were held back, in order.
    pub(super) datagrams: Vec<BytesMut>,
}

impl ClientHello {
    /// Takes a datagram that passed the gate; returns all of them once the ClientHello is complete or too many are
    /// held.
    pub(super) fn handle_datagram(&mut self, datagram: BytesMut) -> Option<WholeHello> {
        self.datagrams.push(datagram);
        let hello = self.assemble();
        if hello.is_none() && self.datagrams.len() < DATAGRAM_LIMIT {
            return None;
        }
        let profiles = hello.as_deref().and_then(srtp_profiles).unwrap_or_default();
        Some(WholeHello { profiles, datagrams: std::mem::take(&mut self.datagrams) })
    }

    /// The body of the ClientHello, once its fragments cover it.
    fn assemble(&self) -> Option<Vec<u8>> {
        let mut fragments: Vec<(usize, &[u8])> = Vec::new();
        let mut length = None;
        for datagram in &self.datagrams {
            let Some((whole, offset, body)) = fragment_of(datagram) else { continue };
            length = Some(whole);
            fragments.push((offset, body));
        }
        let length = length?;
        fragments.sort_by_key(|(offset, _)| *offset);
        let mut hello = Vec::with_capacity(length);
        for (offset, body) in fragments {
            if offset > hello.len() {
                return None;
            }
            hello.extend_from_slice(body.get(hello.len() - offset..).unwrap_or_default());
        }
        (hello.len() == length).then_some(hello)
    }
}

/// The length of the whole message, and one fragment with its offset (RFC 6347 4.2.2).
fn fragment_of(datagram: &[u8]) -> Option<(usize, usize, &[u8])> {
    let message = datagram.get(RECORD_HEADER..)?;
    let header = message.get(..MESSAGE_HEADER)?;
    if datagram.first() != Some(&HANDSHAKE) || header.first() != Some(&CLIENT_HELLO) {
        return None;
    }
    let (length, offset, part) = (be24(header, 1)?, be24(header, 6)?, be24(header, 9)?);
    Some((length, offset, message.get(MESSAGE_HEADER..MESSAGE_HEADER + part)?))
}

fn srtp_profiles(hello: &[u8]) -> Option<Vec<u16>> {
    // After version and random: session id, cookie, cipher suites and compression methods, each prefixed by its length.
    let mut rest = hello.get(34..)?;
    for width in [1, 1, 2, 1] {
        rest = split_vector(rest, width)?.1;
    }
    let (mut extensions, _) = split_vector(rest, 2)?;
    while let Some(&[high, low]) = extensions.get(..2) {
        let (body, after) = split_vector(extensions.get(2..)?, 2)?;
        if u16::from_be_bytes([high, low]) == USE_SRTP {
            let (list, _) = split_vector(body, 2)?;
            return Some(
                list.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect(),
            );
        }
        extensions = after;
    }
    None
}

/// A vector prefixed by a length of one or two bytes, and the bytes after it.
fn split_vector(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let length = bytes.get(..width)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    bytes.get(width..)?.split_at_checked(length)
}

fn be24(bytes: &[u8], at: usize) -> Option<usize> {
    Some(bytes.get(at..at + 3)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(padding: usize) -> Vec<u8> {
        let mut extensions = vec![0, 23, 0, 0, 0, 51];
        extensions.extend_from_slice(&(padding as u16).to_be_bytes());
        extensions.resize(extensions.len() + padding, 7);
        extensions.extend_from_slice(&[0, 14, 0, 9, 0, 6, 0, 1, 0, 8, 0, 7, 0]);
        let mut hello = [&[0xfe, 0xfd][..], &[9; 32], &[0, 0, 0, 2, 0xc0, 0x2b, 1, 0]].concat();
        hello.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
        hello.extend_from_slice(&extensions);
        hello
    }

    fn datagram(hello: &[u8], from: usize, to: usize) -> BytesMut {
        let three = |value: usize| [(value >> 16) as u8, (value >> 8) as u8, value as u8];
        let part = &hello[from..to];
        let mut bytes = vec![HANDSHAKE, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&((part.len() + MESSAGE_HEADER) as u16).to_be_bytes());
        bytes.push(CLIENT_HELLO);
        for field in [&three(hello.len())[..], &[0, 0], &three(from), &three(part.len()), part] {
            bytes.extend_from_slice(field);
        }
        bytes[..].into()
    }

    #[test]
    fn profiles_are_found_in_one_datagram_or_several_in_any_order() {
        let short = hello(20);
        let whole = ClientHello::default().handle_datagram(datagram(&short, 0, short.len()));
        assert_eq!(whole.expect("whole").profiles, [1, 8, 7]);
        let long = hello(1400);
        for parts in [[(0, 1100), (1100, long.len())], [(1100, long.len()), (0, 1100)]] {
            let mut assembled = ClientHello::default();
            let [first, second] = parts.map(|(from, to)| datagram(&long, from, to));
            assert!(assembled.handle_datagram(first).is_none());
            let whole = assembled.handle_datagram(second).expect("whole");
            assert_eq!((whole.profiles, whole.datagrams.len()), (vec![1, 8, 7], 2));
        }
    }

    #[test]
    fn a_hello_that_stays_incomplete_is_given_back() {
        let (long, mut assembled) = (hello(1400), ClientHello::default());
        for _ in 1..DATAGRAM_LIMIT {
            assert!(assembled.handle_datagram(datagram(&long, 0, 900)).is_none());
        }
        let given = assembled.handle_datagram(datagram(&long, 0, 900)).expect("too many wait");
        assert_eq!((given.profiles.len(), given.datagrams.len()), (0, DATAGRAM_LIMIT));
    }

    #[test]
    fn only_client_hello_fragments_in_a_handshake_record_are_parsed() {
        let whole = datagram(&hello(20), 0, hello(20).len());
        assert!(fragment_of(&whole).is_some());
        for (at, other) in [(0, 21), (0, 23), (RECORD_HEADER, 2), (RECORD_HEADER, 16)] {
            let mut changed = whole.clone();
            changed[at] = other;
            assert!(fragment_of(&changed).is_none(), "{other} at {at}");
        }
    }

    #[test]
    fn truncated_or_mutated_input_is_parsed_without_a_panic() {
        let whole = datagram(&hello(20), 0, hello(20).len());
        for at in 0..whole.len() {
            ClientHello::default().handle_datagram(whole[..at].into());
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            ClientHello::default().handle_datagram(changed);
        }
    }
}
