//! The digests of the Flash handshake: found in a C1, put into an S1, signed into an S2. Not RTMPE: nothing is
//! encrypted.
//!
//! Adobe never published it; the sources are what peers check: librtmp, FFmpeg (`rtmpproto.c`) and nginx-rtmp
//! (`ngx_rtmp_handshake.c`).

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::PACKET;

/// Bytes of an HMAC-SHA256.
const DIGEST: usize = 32;
/// Four offset bytes give the digest's place in its half of the packet: after them, at their sum modulo this.
const OFFSETS: usize = 728;
/// Key with which a player signs its first packet.
const PLAYER_NAME: &[u8] = b"Genuine Adobe Flash Player 001";
/// Key with which a server signs its first packet.
const SERVER_NAME: &[u8] = b"Genuine Adobe Flash Media Server 001";
/// Appended to the server's key when it signs its second packet. It is public: it identifies, but protects nothing.
const KEY_END: [u8; 32] = [
    0xf0, 0xee, 0xc2, 0x4a, 0x80, 0x68, 0xbe, 0xe8, 0x2e, 0x00, 0xd0, 0xd1, 0x02, 0x9e, 0x7e, 0x57,
    0x6e, 0xec, 0x5d, 0x2d, 0x29, 0x80, 0x6f, 0xab, 0x93, 0xb8, 0xe6, 0x36, 0xcf, 0xeb, 0x31, 0xae,
];

/// Which half of the packet contains the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Bytes 12 to 771: what FFmpeg and nginx-rtmp send over plain RTMP.
    FirstHalf,
    /// Bytes 776 to 1535.
    SecondHalf,
}

impl Scheme {
    /// Position of the four offset bytes.
    const fn place(self) -> usize {
        match self {
            Self::FirstHalf => 8,
            Self::SecondHalf => 772,
        }
    }

    /// The packet before its digest, the digest, and the packet after it.
    fn split(self, packet: &[u8; PACKET]) -> (&[u8], &[u8; DIGEST], &[u8]) {
        let sum: usize = packet.iter().skip(self.place()).take(4).map(|b| usize::from(*b)).sum();
        let (before, rest) = packet.split_at(self.place() + 4 + sum % OFFSETS);
        let (digest, behind) =
            rest.split_first_chunk().expect("at most 772 + 4 + 727 bytes precede a digest");
        (before, digest, behind)
    }
}

/// The digest in a C1, if it has a valid one.
pub(super) fn find(c1: &[u8; PACKET]) -> Option<(Scheme, [u8; DIGEST])> {
    [Scheme::FirstHalf, Scheme::SecondHalf].into_iter().find_map(|scheme| {
        let (before, digest, behind) = scheme.split(c1);
        (sign(&[PLAYER_NAME], &[before, behind]) == *digest).then_some((scheme, *digest))
    })
}

/// Puts a server's digest into an S1.
pub(super) fn put(s1: &mut [u8; PACKET], scheme: Scheme) {
    let (before, _, behind) = scheme.split(s1);
    let (at, digest) = (before.len(), sign(&[SERVER_NAME], &[before, behind]));
    s1[at..at + DIGEST].copy_from_slice(&digest);
}

/// Signs an S2 in its last bytes, in response to the digest of a C1.
pub(super) fn answer(s2: &mut [u8; PACKET], digest: &[u8; DIGEST]) {
    let key = sign(&[SERVER_NAME, &KEY_END], &[digest]);
    let (signed, signature) = s2.split_at_mut(PACKET - DIGEST);
    signature.copy_from_slice(&sign(&[&key], &[signed]));
}

/// HMAC-SHA256 of the parts.
fn sign(key: &[&[u8]], parts: &[&[u8]]) -> [u8; DIGEST] {
    let mut hmac =
        Hmac::<Sha256>::new_from_slice(&key.concat()).expect("HMAC takes keys of every length");
    for part in parts {
        hmac.update(part);
    }
    hmac.finalize().into_bytes().into()
}
