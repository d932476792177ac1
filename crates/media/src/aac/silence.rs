//! Silent frames for a decoder configuration, to continue a stream whose encoder is gone. Not an encoder.
//!
//! Source: ISO 14496-3 4.4.1.1 and 4.4.2.1: elements without a spectrum (`max_sfb` 0), then the end element.

use std::ops::RangeInclusive;

use bytes::Bytes;

use super::{Bits, OBJECT_LC, OBJECT_PS, OBJECT_SBR, SAMPLES_PER_FRAME};

/// Samples per channel when GASpecificConfig sets frameLengthFlag.
const SHORT_FRAME_SAMPLES: u32 = 960;
/// Sample rates for which AAC is defined (ISO 14496-3 table 1.18). An explicit rate beyond them would mean thousands of
/// frames a second.
const RATES_HZ: RangeInclusive<u32> = 7_350..=96_000;
/// Any gain will do when there is nothing to scale; this is the value our own encoder writes.
const GLOBAL_GAIN: u32 = 100;

/// A frame of silence for a certain decoder configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The encoded frame (raw data block).
    pub data: Bytes,
    /// Its duration in microseconds, rounded down.
    pub duration_us: i64,
}

/// An element of a frame (ISO 14496-3 table 4.85).
#[derive(Clone, Copy)]
enum Element {
    Single = 0,
    Pair = 1,
    LowFrequency = 3,
}

/// Silence for this AudioSpecificConfig: AAC-LC, and HE-AAC by its core. `None` for other object types and for channels
/// defined in the stream.
#[must_use]
pub fn silence(configuration: &[u8]) -> Option<Silence> {
    use Element::{LowFrequency, Pair, Single};
    let mut bits = Bits { bytes: configuration, position: 0 };
    let mut object_type = bits.object_type().ok()?;
    let core_rate = bits.sample_rate().ok().filter(|rate| RATES_HZ.contains(rate))?;
    // ISO 14496-3 table 1.19.
    let elements: &[Element] = match bits.read(4).ok()? {
        1 => &[Single],
        2 => &[Pair],
        3 => &[Single, Pair],
        4 => &[Single, Pair, Single],
        5 => &[Single, Pair, Pair],
        6 => &[Single, Pair, Pair, LowFrequency],
        7 => &[Single, Pair, Pair, Pair, LowFrequency],
        _ => return None,
    };
    if matches!(object_type, OBJECT_SBR | OBJECT_PS) {
        bits.sample_rate().ok()?;
        object_type = bits.object_type().ok()?;
    }
    if object_type != OBJECT_LC {
        return None;
    }
    let is_short = bits.read(1).is_ok_and(|flag| flag == 1);
    let samples = if is_short { SHORT_FRAME_SAMPLES } else { SAMPLES_PER_FRAME };
    let duration_us = i64::from(samples) * 1_000_000 / i64::from(core_rate);
    Some(Silence { data: block(elements), duration_us })
}

fn block(elements: &[Element]) -> Bytes {
    let mut writer = Writer::default();
    let mut counts = [0; 4];
    for element in elements {
        let tag = &mut counts[*element as usize];
        writer.put(*element as u32, 3);
        writer.put(*tag, 4);
        *tag += 1;
        match element {
            Element::Pair => {
                // common_window, ics_info, ms_mask_present.
                writer.put(1, 1);
                writer.window();
                writer.put(0, 2);
                for _ in 0..2 {
                    writer.put(GLOBAL_GAIN, 8);
                    writer.no_tools();
                }
            }
            Element::Single | Element::LowFrequency => {
                writer.put(GLOBAL_GAIN, 8);
                writer.window();
                writer.no_tools();
            }
        }
    }
    // ID_END.
    writer.put(7, 3);
    writer.bytes.into()
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    length: usize,
}

impl Writer {
    /// Appends the low `count` bits, most significant first.
    fn put(&mut self, value: u32, count: usize) {
        for at in (0..count).rev() {
            if self.length.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> at & 1) as u8) << (7 - self.length % 8);
            }
            self.length += 1;
        }
    }

    /// Writes ics_info: one long window of the shape of a sine, as our own encoder's, no bands, no prediction.
    fn window(&mut self) {
        self.put(0b0000, 4);
        self.put(0, 7);
    }

    /// Writes flags for no pulses, no noise shaping, no gain control.
    fn no_tools(&mut self) {
        self.put(0, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SILENCE_STEREO, lc_48k};
    use super::*;
    use crate::Channels;

    /// AAC-LC in stereo of an explicit sample rate.
    fn explicit(rate: u32) -> [u8; 5] {
        let bits = 2_u64 << 35 | 15 << 31 | u64::from(rate) << 7 | 2 << 3;
        let [.., a, b, c, d, e] = bits.to_be_bytes();
        [a, b, c, d, e]
    }

    #[test]
    fn pushes_without_audio_get_stereo_silence() {
        let silence = silence(&lc_48k(Channels::Stereo)).expect("AAC-LC");
        assert_eq!((&silence.data[..], silence.duration_us), (&SILENCE_STEREO[..], 21_333));
    }

    #[test]
    fn silence_matches_channels_and_sample_rate_of_the_configuration() {
        for (configuration, want) in [
            // 44.1 kHz mono and 5.1; HE-AAC with a core of 24 kHz; frames of 960 samples at 48 kHz.
            (&[0x12, 0x08][..], Some((4, 23_219))),
            (&[0x12, 0x30], Some((19, 23_219))),
            (&[0x2b, 0x11, 0x88, 0x00], Some((6, 42_666))),
            (&[0x11, 0x94], Some((6, 20_000))),
            // Explicit rates of 16,777,215, 1, 7,349 and 96,001 Hz; the lowest and the highest that are sane.
            (&[0x17, 0xff, 0xff, 0xff, 0x90], None),
            (&[0x17, 0x80, 0x00, 0x00, 0x90], None),
            (&explicit(7_349), None),
            (&explicit(96_001), None),
            (&explicit(7_350), Some((6, 139_319))),
            (&explicit(96_000), Some((6, 10_666))),
            // AAC Main; channels defined in the stream; empty.
            (&[0x09, 0x90], None),
            (&[0x11, 0x80], None),
            (&[], None),
        ] {
            let silence = silence(configuration);
            let got = silence.map(|silence| (silence.data.len(), silence.duration_us));
            assert_eq!(got, want, "{configuration:x?}");
        }
    }
}
