//! A whole ClientHello: its version, and which SRTP profiles it lists (RFC 5764 4.1.2). Not how its fragments are put
//! together (`reassembly`).

use super::gate::{HANDSHAKE, RECORD_HEADER};
use super::reassembly::MESSAGE_HEADER;

/// DTLS 1.2; later versions announce themselves in an extension and say this too.
const VERSION: [u8; 2] = [0xfe, 0xfd];
const CLIENT_HELLO: u8 = 1;
const USE_SRTP: u16 = 14;

/// What decides how a client is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientHello {
    /// The client offers DTLS 1.2.
    pub(super) is_current: bool,
    /// SRTP profiles in the client's order; empty when it lists none.
    pub(super) profiles: Vec<u16>,
}

impl ClientHello {
    /// Reads the first record of a datagram that passed the gate.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let message = datagram.get(RECORD_HEADER..)?;
        if datagram.first() != Some(&HANDSHAKE) || message.first() != Some(&CLIENT_HELLO) {
            return None;
        }
        let length = message.get(1..4)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let body = message.get(MESSAGE_HEADER..MESSAGE_HEADER + length)?;
        let is_current = body.starts_with(&VERSION);
        Some(Self { is_current, profiles: srtp_profiles(body).unwrap_or_default() })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(version: [u8; 2]) -> Vec<u8> {
        let extensions = [0, 23, 0, 0, 0, 51, 0, 2, 7, 7, 0, 14, 0, 9, 0, 6, 0, 1, 0, 8, 0, 7, 0];
        let fixed = [0, 0, 0, 2, 0xc0, 0x2b, 1, 0, 0, extensions.len() as u8];
        let body = [&version[..], &[9; 32], &fixed, &extensions].concat();
        let length = body.len() as u8;
        let head = [&[CLIENT_HELLO, 0, 0, length][..], &[0; 5], &[0, 0, length]].concat();
        [&[HANDSHAKE][..], &[0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &head, &body].concat()
    }

    #[test]
    fn the_version_and_the_profiles_are_read() {
        let current = ClientHello { is_current: true, profiles: vec![1, 8, 7] };
        assert_eq!(ClientHello::read(&hello(VERSION)), Some(current));
        assert!(!ClientHello::read(&hello([0xfe, 0xff])).expect("a hello").is_current);
    }

    #[test]
    fn truncated_or_mutated_input_is_parsed_without_a_panic() {
        let whole = hello(VERSION);
        for at in 0..whole.len() {
            assert_eq!(ClientHello::read(&whole[..at]), None);
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            let _ = ClientHello::read(&changed);
        }
        for (at, other) in [(0, 21), (0, 23), (RECORD_HEADER, 2), (RECORD_HEADER, 16)] {
            let mut changed = whole.clone();
            changed[at] = other;
            assert_eq!(ClientHello::read(&changed), None, "{other} at {at}");
        }
    }
}
