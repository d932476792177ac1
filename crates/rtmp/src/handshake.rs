//! The RTMP handshake (RTMP 5.2), the plain form. A digest-form C1 gets the plain answer, which every live encoder takes.

use crate::{Error, Output};

/// C1, S1, C2 and S2.
const PACKET: usize = 1536;
/// Versions from here on are text protocols that knocked at the wrong door.
const FIRST_FORBIDDEN_VERSION: u8 = 32;
const VERSION: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Server: C0 and C1.
    AwaitsC1,
    /// Server: C2, whose content nobody should judge.
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

    /// Writes C0 and C1 at once.
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
                output.put(&self.packet());
                output.put(peers_first);
                Step::AwaitsC2
            }
            Step::AwaitsS2 => {
                output.put(peers_first);
                Step::Done
            }
            Step::AwaitsC2 | Step::Done => Step::Done,
        }
    }

    /// Time 0, version 0, then bytes that need only differ from session to session.
    fn packet(&self) -> [u8; PACKET] {
        let mut packet = [0; PACKET];
        let mut state = u64::from_ne_bytes(self.random) | 1;
        for byte in packet.iter_mut().skip(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state.to_le_bytes()[3];
        }
        packet
    }
}
