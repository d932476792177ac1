//! Decoder, samples and encoder for one channel layout. It counts samples; `timeline` handles time.

use ::opus::Error;
use bytes::Bytes;

use super::decoder::OpusDecoder;
use super::encoder::EncoderError;
use super::pcm::Pcm;
use super::pool::Encoder;
use headgate_media::Channels;
use headgate_media::aac::SAMPLES_PER_FRAME;

const FRAME_SAMPLES: usize = SAMPLES_PER_FRAME as usize;

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
    // `None` after a failure, until `install`.
    encoder: Option<Encoder>,
    // Frames encoded in advance so that the next output begins with the segment, and how many of them are outstanding.
    priming_frames: usize,
    unprimed: usize,
}

impl Pipeline {
    /// A pipeline at the beginning of a segment.
    pub(super) fn new(channels: Channels, encoder: Encoder) -> Result<Self, Error> {
        let decoder = OpusDecoder::new(channels)?;
        let pcm = Pcm::new(channels);
        let mut pipeline = Self { decoder, pcm, encoder: None, priming_frames: 0, unprimed: 0 };
        pipeline.install(encoder);
        Ok(pipeline)
    }

    /// Replaces an encoder that failed, at the beginning of a segment.
    pub(super) fn install(&mut self, encoder: Encoder) {
        let lead = lead_samples(&encoder);
        self.priming_frames = (encoder.delay_samples() + lead) / FRAME_SAMPLES;
        self.unprimed = self.priming_frames;
        self.pcm.restart(lead);
        self.encoder = Some(encoder);
    }

    /// Continues in stereo without a gap: the two-channel encoder first encodes again what the old one still holds.
    pub(super) fn widen(&mut self, encoder: Encoder) -> Result<(), Error> {
        self.decoder = OpusDecoder::new(Channels::Stereo)?;
        self.pcm.widen();
        self.pcm.rewind(self.priming_frames - self.unprimed);
        self.unprimed = self.priming_frames;
        self.encoder = Some(encoder);
        Ok(())
    }

    /// Begins a segment unrelated to the audio before it.
    pub(super) fn restart(&mut self) {
        self.decoder.reset();
        self.unprimed = self.priming_frames;
        self.pcm.restart(self.encoder.as_ref().map_or(0, lead_samples));
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

    /// The next AAC frame, if its samples are complete. After an error there is no encoder.
    pub(super) fn next_frame(&mut self) -> Option<Result<Bytes, EncoderError>> {
        while let (Some(encoder), Some(pcm)) = (&mut self.encoder, self.pcm.next_frame()) {
            match encoder.encode(pcm) {
                Ok(_) if self.unprimed > 0 => self.unprimed -= 1,
                Ok(data) => return Some(Ok(Bytes::copy_from_slice(data))),
                Err(error) => {
                    self.encoder = None;
                    return Some(Err(error));
                }
            }
        }
        self.pcm.forget(self.priming_frames);
        None
    }

    pub(super) const fn channels(&self) -> Channels {
        self.decoder.channels()
    }

    pub(super) const fn has_encoder(&self) -> bool {
        self.encoder.is_some()
    }
}

/// Silent samples that extend the encoder's delay to a whole number of frames.
fn lead_samples(encoder: &Encoder) -> usize {
    encoder.delay_samples().next_multiple_of(FRAME_SAMPLES) - encoder.delay_samples()
}
