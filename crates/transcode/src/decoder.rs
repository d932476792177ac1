//! Decodes Opus packets to samples in floating point, which libopus neither clips nor rounds, and conceals missing
//! ones. The length of the slice is the time to be filled.

use ::opus::Decoder;

use headgate_media::Channels;
use headgate_media::opus::{SAMPLE_RATE, is_digital_silence};

/// Equal packets of digital silence after which another one neither changes the decoder nor sounds. After two the
/// energies and the pitch filter of those before are gone, after 2.5 ms times 20 the overlap, the history of 2,048
/// samples and the deemphasis; this is more than twice that.
const SETTLED_PACKETS: u32 = 50;

/// A libopus decoder.
pub(super) struct OpusDecoder {
    decoder: Decoder,
    channels: Channels,
    silence: Silence,
}

/// The packets of digital silence that were decoded last.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    // Their first byte: mode, bandwidth, duration and channels.
    toc: u8,
    packets: u32,
}

impl OpusDecoder {
    pub(super) fn new(channels: Channels) -> Result<Self, ::opus::Error> {
        let layout = match channels {
            Channels::Mono => ::opus::Channels::Mono,
            Channels::Stereo => ::opus::Channels::Stereo,
        };
        let decoder = Decoder::new(SAMPLE_RATE, layout)?;
        Ok(Self { decoder, channels, silence: Silence::default() })
    }

    /// Fills `pcm` from a packet of that duration. Returns `false` and writes nothing if the packet is corrupt.
    pub(super) fn decode(&mut self, packet: &[u8], pcm: &mut [f32]) -> bool {
        // To libopus an empty packet would mean concealment.
        let Some(&toc) = packet.first() else { return false };
        if !is_digital_silence(packet) {
            return self.fill(packet, pcm, false);
        }
        let before = if toc == self.silence.toc { self.silence.packets } else { 0 };
        if before >= SETTLED_PACKETS {
            pcm.fill(0.0);
            return true;
        }
        let is_intact = self.fill(packet, pcm, false);
        self.silence = Silence { toc, packets: if is_intact { before + 1 } else { 0 } };
        is_intact
    }

    /// Fills `pcm` by concealment, from the audio before it.
    pub(super) fn conceal(&mut self, pcm: &mut [f32]) {
        if !self.fill(&[], pcm, false) {
            pcm.fill(0.0);
        }
    }

    /// Fills `pcm`, the time just before a packet, from the packet's in-band redundancy (RFC 6716 2.1.7), or by
    /// concealment if it has none.
    pub(super) fn recover(&mut self, packet: &[u8], pcm: &mut [f32]) {
        if packet.is_empty() || !self.fill(packet, pcm, true) {
            self.conceal(pcm);
        }
    }

    /// Forgets the audio decoded so far.
    pub(super) fn reset(&mut self) {
        self.silence = Silence::default();
        // Can only fail for an unknown request.
        let _ = self.decoder.reset_state();
    }

    pub(super) const fn channels(&self) -> Channels {
        self.channels
    }

    /// Passes a packet to libopus, which ends a run of silence.
    fn fill(&mut self, packet: &[u8], pcm: &mut [f32], fec: bool) -> bool {
        self.silence = Silence::default();
        let expected = pcm.len() / usize::from(self.channels.count());
        self.decoder.decode_float(packet, pcm, fec).is_ok_and(|samples| samples == expected)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]
mod tests {
    use ::opus::{Application, Bitrate, Encoder};

    use super::*;

    const SAMPLES: usize = 960;

    /// A packet, empty for a loss, and whether its redundancy is decoded in place of the packet before it.
    type Step = (Vec<u8>, bool);

    fn noise(packets: usize, application: Application, stereo: bool) -> Vec<Vec<u8>> {
        let layout = if stereo { ::opus::Channels::Stereo } else { ::opus::Channels::Mono };
        let mut encoder = Encoder::new(48_000, layout, application).unwrap();
        encoder.set_bitrate(Bitrate::Bits(if stereo { 64_000 } else { 24_000 })).unwrap();
        encoder.set_inband_fec(true).unwrap();
        encoder.set_packet_loss_perc(20).unwrap();
        let mut state = 1_u32;
        let width = 1 + usize::from(stereo);
        let mut frame = || -> Vec<i16> {
            (0..SAMPLES * width)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 17) as i16 - 16_384
                })
                .collect()
        };
        (0..packets).map(|_| encoder.encode_vec(&frame(), 1_500).unwrap()).collect()
    }

    /// Whether 16 bits cannot tell it from zero.
    fn is_silent(sample: f32) -> bool {
        (sample * 32_768.0).abs() < 0.5
    }

    /// Decodes with a decoder of ours and one of libopus alone; returns how many steps sounded as zeros in both.
    fn zeros(channels: Channels, steps: &[Step]) -> usize {
        let width = usize::from(channels.count());
        let mut ours = OpusDecoder::new(channels).unwrap();
        let mut reference = OpusDecoder::new(channels).unwrap().decoder;
        let is_zero = |(packet, fec): &&Step| {
            let (mut pcm, mut expected) = (vec![1.0; SAMPLES * width], vec![0.0; SAMPLES * width]);
            match (packet.is_empty(), fec) {
                (true, _) => ours.conceal(&mut pcm),
                (false, true) => ours.recover(packet, &mut pcm),
                (false, false) => assert!(ours.decode(packet, &mut pcm)),
            }
            reference.decode_float(packet, &mut expected, *fec).unwrap();
            assert!(pcm.iter().zip(&expected).all(|(pcm, expected)| is_silent(pcm - expected)));
            pcm.iter().all(|sample| is_silent(*sample))
        };
        steps.iter().filter(is_zero).count()
    }

    #[test]
    fn what_follows_settled_silence_is_what_libopus_makes_of_all_of_it() {
        let layouts = [(Channels::Mono, 0xf8), (Channels::Stereo, 0xfc), (Channels::Stereo, 0xf8)];
        for application in [Application::Voip, Application::Audio] {
            for (channels, toc) in layouts {
                let sound: Vec<Step> = noise(40, application, toc == 0xfc)
                    .into_iter()
                    .map(|packet| (packet, false))
                    .collect();
                let silence = |toc: u8| (vec![toc, 0xff, 0xfe], false);
                let next = [
                    vec![],
                    vec![(vec![], false); 5],
                    vec![(sound[20].0.clone(), true)],
                    vec![silence(toc ^ 0x04); 100],
                ];
                for next in next {
                    let quiet = vec![silence(toc); 200];
                    let steps = [&sound[..20], &quiet, &next, &sound[20..]].concat();
                    assert!(zeros(channels, &steps) > 150);
                }
            }
        }
    }

    #[test]
    fn settled_silence_is_not_passed_to_libopus() {
        let mut decoder = OpusDecoder::new(Channels::Mono).unwrap();
        let mut pcm = [0.0; SAMPLES];
        let before = |decoder: &OpusDecoder| decoder.silence.packets;
        for _ in 0..SETTLED_PACKETS + 10 {
            assert!(decoder.decode(&[0xf8, 0xff, 0xfe], &mut pcm));
        }
        assert_eq!(before(&decoder), SETTLED_PACKETS);
        decoder.conceal(&mut pcm);
        assert_eq!(before(&decoder), 0);
    }
}
