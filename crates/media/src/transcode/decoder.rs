//! Opus packets, lost ones included, to samples. The length of the slice is the time decoded or concealed.

use ::opus::Decoder;

use crate::Channels;
use crate::opus::SAMPLE_RATE;

/// One libopus decoder.
pub(super) struct OpusDecoder {
    decoder: Decoder,
    channels: Channels,
}

impl OpusDecoder {
    pub(super) fn new(channels: Channels) -> Result<Self, ::opus::Error> {
        let layout = match channels {
            Channels::Mono => ::opus::Channels::Mono,
            Channels::Stereo => ::opus::Channels::Stereo,
        };
        Ok(Self { decoder: Decoder::new(SAMPLE_RATE, layout)?, channels })
    }

    /// Fills `pcm` from a packet of that duration. `false`, and nothing written, if the packet is corrupt.
    pub(super) fn decode(&mut self, packet: &[u8], pcm: &mut [i16]) -> bool {
        // An empty packet would mean concealment to libopus.
        !packet.is_empty() && self.fill(packet, pcm, false)
    }

    /// Fills `pcm` with what may have been there, from what was heard before.
    pub(super) fn conceal(&mut self, pcm: &mut [i16]) {
        if !self.fill(&[], pcm, false) {
            pcm.fill(0);
        }
    }

    /// Fills `pcm`, the time just before a packet, from the packet's in-band redundancy (RFC 6716 2.1.7), or
    /// conceals where it has none.
    pub(super) fn recover(&mut self, packet: &[u8], pcm: &mut [i16]) {
        if packet.is_empty() || !self.fill(packet, pcm, true) {
            self.conceal(pcm);
        }
    }

    /// Forgets what was heard.
    pub(super) fn reset(&mut self) {
        // Fails only on an unknown request.
        let _ = self.decoder.reset_state();
    }

    pub(super) const fn channels(&self) -> Channels {
        self.channels
    }

    fn fill(&mut self, packet: &[u8], pcm: &mut [i16], fec: bool) -> bool {
        let expected = pcm.len() / usize::from(self.channels.count());
        self.decoder.decode(packet, pcm, fec).is_ok_and(|samples| samples == expected)
    }
}
