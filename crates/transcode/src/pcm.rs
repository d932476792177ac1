//! A buffer of samples between the decoder, which usually produces 20 ms at a time, and the encoder, which takes 1024
//! samples.

use headgate_media::Channels;
use headgate_media::aac::SAMPLES_PER_FRAME;

const FRAME: usize = SAMPLES_PER_FRAME as usize;

/// Interleaved samples between -1 and 1, a little beyond where the sound is loud: those not yet encoded, and some that have been. Its user bounds it by draining it after each
/// packet, which is never longer than 120 ms.
#[derive(Debug)]
pub(super) struct Pcm {
    samples: Vec<f32>,
    // Index of the first sample not yet encoded.
    encoded: usize,
    channels: Channels,
}

impl Pcm {
    pub(super) const fn new(channels: Channels) -> Self {
        Self { samples: Vec::new(), encoded: 0, channels }
    }

    /// Appends that many samples per channel for the caller to fill; they are silent until then.
    pub(super) fn grow(&mut self, samples: usize) -> &mut [f32] {
        let start = self.samples.len();
        self.samples.resize(start + samples * self.width(), 0.0);
        &mut self.samples[start..]
    }

    /// Removes the samples that `grow` appended last.
    pub(super) fn shrink(&mut self, samples: usize) {
        self.samples.truncate(self.samples.len().saturating_sub(samples * self.width()));
    }

    /// The next frame for the encoder, if there is one.
    pub(super) fn next_frame(&mut self) -> Option<&[f32]> {
        let length = FRAME * self.width();
        let frame = self.samples.get(self.encoded..self.encoded + length)?;
        self.encoded += length;
        Some(frame)
    }

    /// Discards encoded samples except the last `frames` frames.
    pub(super) fn forget(&mut self, frames: usize) {
        let kept = frames * FRAME * self.width();
        let forgotten = self.encoded.saturating_sub(kept);
        self.samples.drain(..forgotten);
        self.encoded -= forgotten;
    }

    /// Makes the last `frames` frames available again, as far as they are still buffered.
    pub(super) fn rewind(&mut self, frames: usize) {
        self.encoded = self.encoded.saturating_sub(frames * FRAME * self.width());
    }

    /// Discards all samples.
    pub(super) fn clear(&mut self) {
        self.samples.clear();
        self.encoded = 0;
    }

    /// Converts from mono to stereo.
    pub(super) fn widen(&mut self) {
        if self.channels == Channels::Mono {
            self.samples = self.samples.iter().flat_map(|sample| [*sample; 2]).collect();
            self.encoded *= 2;
            self.channels = Channels::Stereo;
        }
    }

    fn width(&self) -> usize {
        usize::from(self.channels.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_returned_in_order_and_again_after_a_rewind() {
        let mut pcm = Pcm::new(Channels::Mono);
        for packet in 0..4_u8 {
            pcm.grow(960).fill(packet.into());
        }
        let firsts: Vec<_> =
            std::iter::from_fn(|| pcm.next_frame().map(|frame| frame[0])).collect();
        assert_eq!(firsts, [0.0, 1.0, 2.0]);
        pcm.forget(2);
        pcm.rewind(2);
        assert_eq!(pcm.next_frame().map(|frame| frame[0]), Some(1.0));
        pcm.rewind(9);
        assert_eq!(pcm.next_frame().map(|frame| frame[0]), Some(1.0));
    }

    #[test]
    fn one_channel_becomes_two_in_place() {
        let mut pcm = Pcm::new(Channels::Mono);
        pcm.grow(1024).fill(1.0);
        pcm.grow(1024).fill(2.0);
        pcm.next_frame();
        pcm.widen();
        assert_eq!(pcm.next_frame(), Some(&[2.0; 2048][..]));
        assert_eq!(pcm.next_frame(), None);
    }
}
