//! Decoder, samples and encoder for one channel layout. It counts samples; `timeline` handles time.

use ::opus::Error;
use bytes::Bytes;

use super::decoder::OpusDecoder;
use super::encoder::AacEncoder;
use super::pcm::Pcm;
use headgate_media::Channels;

/// How a period without packets is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling<'a> {
    /// Extrapolated from the audio before it.
    Concealment,
    /// With zeros.
    Silence,
    /// From the in-band redundancy of the packet after it.
    Redundancy(&'a [u8]),
}

/// Converts Opus packets to AAC frames, without timestamps.
pub(super) struct Pipeline {
    decoder: OpusDecoder,
    pcm: Pcm,
    encoder: Box<dyn AacEncoder>,
    // Frames still to be encoded, and not sent, before the next output begins with the segment: the encoder's delay.
    unprimed: usize,
}

impl Pipeline {
    /// A pipeline at the beginning of a segment.
    pub(super) fn new(channels: Channels, encoder: Box<dyn AacEncoder>) -> Result<Self, Error> {
        let (decoder, pcm) = (OpusDecoder::new(channels)?, Pcm::new(channels));
        let mut pipeline = Self { decoder, pcm, unprimed: 0, encoder };
        pipeline.prime();
        Ok(pipeline)
    }

    /// Continues in stereo without a gap: the two-channel encoder first encodes again what the old one still holds.
    pub(super) fn widen(&mut self, encoder: Box<dyn AacEncoder>) -> Result<(), Error> {
        self.decoder = OpusDecoder::new(Channels::Stereo)?;
        self.pcm.widen();
        self.pcm.rewind(self.encoder.delay_frames() - self.unprimed);
        self.unprimed = encoder.delay_frames();
        self.encoder = encoder;
        Ok(())
    }

    /// Begins a segment unrelated to the audio before it.
    pub(super) fn restart(&mut self) {
        self.decoder.reset();
        self.pcm.clear();
        self.prime();
    }

    fn prime(&mut self) {
        self.unprimed = self.encoder.delay_frames();
        self.pcm.grow(self.encoder.lead_samples());
    }

    /// Decodes a packet of this many samples. Returns `false` and adds nothing if it is corrupt.
    pub(super) fn decode(&mut self, packet: &[u8], samples: usize) -> bool {
        let intact = self.decoder.decode(packet, self.pcm.grow(samples));
        if !intact {
            self.pcm.shrink(samples);
        }
        intact
    }

    /// Fills at most 120 ms without a packet.
    pub(super) fn fill(&mut self, filling: Filling<'_>, samples: usize) {
        let pcm = self.pcm.grow(samples);
        match filling {
            Filling::Concealment => self.decoder.conceal(pcm),
            Filling::Silence => {}
            Filling::Redundancy(packet) => self.decoder.recover(packet, pcm),
        }
    }

    /// The next AAC frame, if its samples are complete.
    pub(super) fn next_frame(&mut self) -> Option<Bytes> {
        while let Some(pcm) = self.pcm.next_frame() {
            let data = self.encoder.encode(pcm);
            if self.unprimed == 0 {
                return Some(Bytes::copy_from_slice(data));
            }
            self.unprimed -= 1;
        }
        self.pcm.forget(self.encoder.delay_frames());
        None
    }

    pub(super) const fn channels(&self) -> Channels {
        self.decoder.channels()
    }
}
