//! Decodes Opus packets to samples and conceals missing ones. The length of the slice is the time to be filled.

use ::opus::Decoder;

use headgate_media::Channels;
use headgate_media::opus::SAMPLE_RATE;

/// A libopus decoder.
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

    /// Fills `pcm` from a packet of that duration. Returns `false` and writes nothing if the packet is corrupt.
    pub(super) fn decode(&mut self, packet: &[u8], pcm: &mut [i16]) -> bool {
        // To libopus an empty packet would mean concealment.
        !packet.is_empty() && self.fill(packet, pcm, false)
    }

    /// Fills `pcm` by concealment, from the audio before it.
    pub(super) fn conceal(&mut self, pcm: &mut [i16]) {
        if !self.fill(&[], pcm, false) {
            pcm.fill(0);
        }
    }

    /// Fills `pcm`, the time just before a packet, from the packet's in-band redundancy (RFC 6716 2.1.7), or by
    /// concealment if it has none.
    pub(super) fn recover(&mut self, packet: &[u8], pcm: &mut [i16]) {
        if packet.is_empty() || !self.fill(packet, pcm, true) {
            self.conceal(pcm);
        }
    }

    /// Forgets the audio decoded so far.
    pub(super) fn reset(&mut self) {
        // Can only fail for an unknown request.
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
