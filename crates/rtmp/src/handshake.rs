//! The RTMP handshake (RTMP 5.2): plain and, as a server, also with digests when the C1 contains a valid one.
//!
//! No peer is refused for its digest: if it cannot be verified, the answer is the plain one, which every live encoder
//! accepts.

mod digest;

use crate::{Error, Output};

/// C1, S1, C2 and S2.
const PACKET: usize = 1536;
/// Bytes from here on in C0 mean a text protocol sent to the wrong port.
const FIRST_FORBIDDEN_VERSION: u8 = 32;
const VERSION: u8 = 3;
/// The server version in the `fmsVer` field of an S1 with a digest: players check digests from 3.0.0.0 on.
const SERVER_VERSION: [u8; 4] = [3, 0, 1, 123];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Server: C0 and C1.
    AwaitsC1,
    /// Server: C2, whose content is not validated.
    AwaitsC2,
    /// Client: S0, S1 and S2.
    AwaitsS2,
    Done,
}

/// One side of the handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    step: Step,
    received: Vec<u8>,
    random: [u8; 8],
}

impl Handshake {
    pub(crate) const fn server(seed: [u8; 8]) -> Self {
        Self { step: Step::AwaitsC1, received: Vec::new(), random: seed }
    }

    /// A handshake that is already complete.
    pub(crate) const fn done() -> Self {
        Self { step: Step::Done, received: Vec::new(), random: [0; 8] }
    }

    /// Writes C0 and C1 immediately.
    pub(crate) fn client(seed: [u8; 8], output: &mut Output) -> Self {
        let handshake = Self { step: Step::AwaitsS2, received: Vec::new(), random: seed };
        output.put(&[VERSION]);
        output.put(&handshake.packet());
        handshake
    }

    pub(crate) fn is_done(&self) -> bool {
        self.step == Step::Done
    }

    /// Takes what it needs from the front of `input`.
    pub(crate) fn read(&mut self, input: &mut &[u8], output: &mut Output) -> Result<(), Error> {
        while !self.is_done() {
            let need = match self.step {
                Step::AwaitsC1 => 1 + PACKET,
                Step::AwaitsC2 => PACKET,
                Step::AwaitsS2 => 1 + 2 * PACKET,
                Step::Done => 0,
            };
            let (now, rest) = input.split_at((need - self.received.len()).min(input.len()));
            self.received.extend_from_slice(now);
            *input = rest;
            let has_version = matches!(self.step, Step::AwaitsC1 | Step::AwaitsS2);
            if has_version && self.received.first().is_some_and(|v| *v >= FIRST_FORBIDDEN_VERSION) {
                return Err(Error::Version);
            }
            if self.received.len() < need {
                return Ok(());
            }
            self.step = self.finish_step(output);
            self.received.clear();
        }
        self.received = Vec::new();
        Ok(())
    }

    fn finish_step(&self, output: &mut Output) -> Step {
        let peers_first = self.received.get(1..=PACKET).unwrap_or_default();
        match self.step {
            Step::AwaitsC1 => {
                output.put(&[VERSION]);
                if let Some([s1, s2]) = self.with_digests(peers_first) {
                    output.put(&s1);
                    output.put(&s2);
                } else {
                    output.put(&self.packet());
                    output.put(peers_first);
                }
                Step::AwaitsC2
            }
            Step::AwaitsS2 => {
                output.put(peers_first);
                Step::Done
            }
            Step::AwaitsC2 | Step::Done => Step::Done,
        }
    }

    /// S1 and S2 for a C1 with a version and a valid digest, in the C1's own scheme.
    fn with_digests(&self, c1: &[u8]) -> Option<[[u8; PACKET]; 2]> {
        let c1: &[u8; PACKET] = c1.try_into().ok()?;
        let [_, _, _, _, version @ ..] = c1.first_chunk::<8>()?;
        if *version == [0; 4] {
            return None;
        }
        let (scheme, digest) = digest::find(c1)?;
        let mut random = Random::new(self.random);
        let (mut s1, mut s2) = ([0; PACKET], [0; PACKET]);
        s1[4..8].copy_from_slice(&SERVER_VERSION);
        random.fill(&mut s1[8..]);
        random.fill(&mut s2);
        digest::put(&mut s1, scheme);
        digest::answer(&mut s2, &digest);
        Some([s1, s2])
    }

    /// Time 0, version 0, then random bytes.
    fn packet(&self) -> [u8; PACKET] {
        let mut packet = [0; PACKET];
        Random::new(self.random).fill(&mut packet[8..]);
        packet
    }
}

/// A source of bytes that only have to differ from session to session.
struct Random(u64);

impl Random {
    fn new(seed: [u8; 8]) -> Self {
        Self(u64::from_ne_bytes(seed) | 1)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            *byte = self.0.to_le_bytes()[3];
        }
    }
}
