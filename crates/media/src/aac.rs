//! AudioSpecificConfig, the data of an AAC `Configuration` frame. Not an encoder.
//!
//! Source: ISO 14496-3 1.6.2.1, 1.6.3.3, tables 1.18 and 1.19.

mod adts;
mod silence;

use crate::Channels;

pub use adts::{AdtsFrame, adts_configuration, is_adts, take_adts_frame};
pub use silence::{Silence, silence};

/// Samples per channel in one frame of AAC-LC.
pub const SAMPLES_PER_FRAME: u32 = 1024;

const OBJECT_LC: u8 = 2;
const OBJECT_SBR: u8 = 5;
const OBJECT_PS: u8 = 29;
const OBJECT_ESCAPE: u8 = 31;
const RATE_EXPLICIT: u8 = 15;
const RATE_INDEX_48000: u8 = 3;
const RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// Why a configuration is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Shorter than its own fields.
    #[error("AudioSpecificConfig ends inside a field")]
    Truncated,
    /// A reserved frequency index, or a rate of zero.
    #[error("AudioSpecificConfig with a reserved sampling frequency")]
    Rate,
    /// A reserved channel configuration, or one defined in the stream (0), which no known encoder sends.
    #[error("AudioSpecificConfig with channel configuration {0}")]
    Channels(u8),
}

impl Error {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Truncated => "aac_truncated",
            Self::Rate => "aac_rate",
            Self::Channels(_) => "aac_channels",
        }
    }
}

/// The part of an AudioSpecificConfig that gives the decoded format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioSpecificConfig {
    /// Audio object type of the core: 2 is AAC-LC.
    pub object_type: u8,
    /// Samples per second of the output: with explicit SBR the doubled rate.
    pub sample_rate: u32,
    /// Channels of the output, 1 to 8: with explicit parametric stereo 2.
    pub channels: u8,
}

impl AudioSpecificConfig {
    /// Parses the first fields of the configuration; anything after them is ignored.
    ///
    /// # Errors
    /// When bits are missing or values are reserved.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut bits = Bits { bytes, position: 0 };
        let mut object_type = bits.object_type()?;
        let mut sample_rate = bits.sample_rate()?;
        let configuration = bits.read(4)? as u8;
        let mut channels = match configuration {
            count @ 1..=6 => count,
            7 => 8,
            other => return Err(Error::Channels(other)),
        };
        if matches!(object_type, OBJECT_SBR | OBJECT_PS) {
            if object_type == OBJECT_PS && channels == 1 {
                channels = 2;
            }
            sample_rate = bits.sample_rate()?;
            object_type = bits.object_type()?;
        }
        Ok(Self { object_type, sample_rate, channels })
    }
}

/// The configuration of AAC-LC at 48 kHz: `11 88` for mono, `11 90` for stereo.
#[must_use]
pub const fn lc_48k(channels: Channels) -> [u8; 2] {
    // Five bits of object type, four of rate index, four of channels, three flags of zero.
    let fields =
        (OBJECT_LC as u16) << 11 | (RATE_INDEX_48000 as u16) << 7 | (channels.count() as u16) << 3;
    fields.to_be_bytes()
}

/// One frame of silence in stereo, valid at any rate: a channel pair without a spectrum (`max_sfb` 0), then the end
/// (ISO 14496-3 4.4.2.1). Our own encoder produces it from zeros; a test of the crate `transcode` compares the two.
pub const SILENCE_STEREO: [u8; 6] = [0x21, 0x00, 0x03, 0x20, 0x64, 0x1c];

struct Bits<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Bits<'_> {
    /// Reads at most 32 bits, most significant first.
    fn read(&mut self, count: usize) -> Result<u32, Error> {
        let mut value = 0;
        for position in self.position..self.position + count {
            let byte = self.bytes.get(position / 8).ok_or(Error::Truncated)?;
            value = value << 1 | u32::from(byte >> (7 - position % 8) & 1);
        }
        self.position += count;
        Ok(value)
    }

    fn object_type(&mut self) -> Result<u8, Error> {
        match self.read(5)? as u8 {
            OBJECT_ESCAPE => Ok(32 + self.read(6)? as u8),
            object_type => Ok(object_type),
        }
    }

    fn sample_rate(&mut self) -> Result<u32, Error> {
        match self.read(4)? as u8 {
            RATE_EXPLICIT => Some(self.read(24)?).filter(|rate| *rate > 0),
            index => RATES.get(usize::from(index)).copied(),
        }
        .ok_or(Error::Rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(object_type: u8, sample_rate: u32, channels: u8) -> AudioSpecificConfig {
        AudioSpecificConfig { object_type, sample_rate, channels }
    }

    #[test]
    fn our_configurations_are_the_common_two_bytes() {
        assert_eq!(lc_48k(Channels::Mono), [0x11, 0x88]);
        assert_eq!(lc_48k(Channels::Stereo), [0x11, 0x90]);
        for channels in [Channels::Mono, Channels::Stereo] {
            let parsed = AudioSpecificConfig::parse(&lc_48k(channels));
            assert_eq!(parsed, Ok(config(2, 48_000, channels.count())));
        }
    }

    #[test]
    fn configurations_of_other_encoders_are_parsed() {
        for (bytes, expected) in [
            // OBS and ffmpeg, 44.1 kHz stereo, with and without the backward-compatible SBR extension.
            (&[0x12, 0x10][..], Ok(config(2, 44_100, 2))),
            (&[0x12, 0x10, 0x56, 0xe5, 0x00], Ok(config(2, 44_100, 2))),
            // 7.1.
            (&[0x11, 0xb8], Ok(config(2, 48_000, 8))),
            // HE-AAC with a 24 kHz core and 48 kHz output; HE-AAC v2 with a mono core and stereo output.
            (&[0x2b, 0x11, 0x88, 0x00], Ok(config(2, 48_000, 2))),
            (&[0xeb, 0x09, 0x88, 0x00], Ok(config(2, 48_000, 2))),
            // HE-AAC in mono.
            (&[0x2b, 0x09, 0x88, 0x00], Ok(config(2, 48_000, 1))),
            // An explicit rate: 40,000 Hz.
            (&[0x17, 0x80, 0x4e, 0x20, 0x10], Ok(config(2, 40_000, 2))),
            // Object type 42 by escape.
            (&[0xf9, 0x46, 0x40], Ok(config(42, 48_000, 2))),
        ] {
            assert_eq!(AudioSpecificConfig::parse(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn truncated_and_reserved_values_are_errors() {
        for (bytes, expected) in [
            (&[][..], Error::Truncated),
            (&[0x11], Error::Truncated),
            (&[0x17, 0x80, 0x4e, 0x20], Error::Truncated),
            (&[0x2b, 0x10], Error::Truncated),
            (&[0x16, 0x90], Error::Rate),
            (&[0x17, 0x80, 0, 0, 0x10], Error::Rate),
            (&[0x11, 0x80], Error::Channels(0)),
            (&[0x11, 0xc0], Error::Channels(8)),
        ] {
            assert_eq!(AudioSpecificConfig::parse(bytes), Err(expected), "{bytes:x?}");
        }
    }
}
