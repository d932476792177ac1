//! Properties of an Opus packet that can be read without decoding it, and the OpusHead. Not a decoder.
//!
//! Sources: RFC 6716 3.1 and 3.2; RFC 7845 5.1.

/// The Opus clock, independent of a packet's bandwidth (RFC 7587 4.1).
pub const SAMPLE_RATE: u32 = 48_000;

/// No packet is longer than 120 ms (RFC 6716 3.2.5, R5).
pub const LONGEST_PACKET_SAMPLES: u32 = 5760;

/// Samples a decoder discards at the start: libopus's lookahead of 6.5 ms.
pub const PRE_SKIP: u16 = 312;

/// A packet of silence that any decoder accepts: one CELT frame, full band, mono, without energy (RFC 6716 3.1, 4.3).
pub const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];
/// Duration of [`SILENCE`] in microseconds.
pub const SILENCE_US: i64 = 20_000;

/// A packet of at most this many bytes contains no audio: the sender is in discontinuous transmission.
const DTX_BYTES: usize = 2;

/// Channels of the audio; more than two are not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channels {
    /// One.
    Mono,
    /// Two, interleaved left first.
    Stereo,
}

impl Channels {
    /// 1 or 2.
    #[must_use]
    pub const fn count(self) -> u8 {
        match self {
            Self::Mono => 1,
            Self::Stereo => 2,
        }
    }
}

/// Why a packet's header is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The TOC byte is missing, or the frame count byte that the TOC requires.
    #[error("Opus packet ends inside its header")]
    Truncated,
    /// A frame count of zero, or more than 120 ms.
    #[error("Opus packet of an impossible duration")]
    Duration,
    /// Neither mono nor stereo: a mapping family other than 0, or a channel count not allowed in family 0.
    #[error("multichannel Opus (mapping family {family}, {channels} channels)")]
    Multichannel {
        /// Channel mapping family (RFC 7845 5.1.1).
        family: u8,
        /// Channel count in the OpusHead.
        channels: u8,
    },
}

impl Error {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Truncated => "opus_truncated",
            Self::Duration => "opus_duration",
            Self::Multichannel { .. } => "opus_multichannel",
        }
    }
}

/// The duration of the packet in samples of the 48 kHz clock: 120 to 5760.
///
/// # Errors
/// When the header is truncated or the duration not allowed.
pub fn duration(packet: &[u8]) -> Result<u32, Error> {
    let &toc = packet.first().ok_or(Error::Truncated)?;
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1).ok_or(Error::Truncated)? & 0x3f),
    };
    match frames * frame_samples(toc) {
        samples @ 1..=LONGEST_PACKET_SAMPLES => Ok(samples),
        _ => Err(Error::Duration),
    }
}

/// The channels encoded in the packet (bit 2 of the TOC).
///
/// # Errors
/// When the packet is empty.
pub fn channels(packet: &[u8]) -> Result<Channels, Error> {
    let &toc = packet.first().ok_or(Error::Truncated)?;
    Ok(if toc & 4 == 0 { Channels::Mono } else { Channels::Stereo })
}

/// Whether the sender is silent (RFC 6716 2.1.9): it then omits packets as well.
#[must_use]
pub const fn is_dtx(packet: &[u8]) -> bool {
    packet.len() <= DTX_BYTES
}

/// Whether a packet is what encoders make of zeros: one frame of CELT (RFC 6716 3.1, 4.3) of which all that is coded is
/// that it is silent.
#[must_use]
pub const fn is_digital_silence(packet: &[u8]) -> bool {
    // Of the first byte: a CELT configuration (16 and more), and one frame (code 0).
    matches!(packet, [toc, 0xff, 0xfe] if *toc & 0x83 == 0x80)
}

/// The OpusHead of a stream with mapping family 0, the data of an Opus `Configuration` frame.
#[must_use]
pub fn head(channels: Channels) -> [u8; 19] {
    let mut head = *b"OpusHead\x01\x02\0\0\0\0\0\0\0\0\0";
    head[9] = channels.count();
    head[10..12].copy_from_slice(&PRE_SKIP.to_le_bytes());
    head[12..16].copy_from_slice(&SAMPLE_RATE.to_le_bytes());
    head
}

/// Whether these bytes are an OpusHead (RFC 7845 5.1).
#[must_use]
pub fn is_head(bytes: &[u8]) -> bool {
    bytes.starts_with(b"OpusHead")
}

/// The channels in an OpusHead with mapping family 0, the only one supported (RFC 7845 5.1.1.1).
///
/// # Errors
/// When the head is truncated or declares multichannel Opus.
pub fn head_channels(head: &[u8]) -> Result<Channels, Error> {
    let (Some(&channels), Some(&family)) = (head.get(9), head.get(18)) else {
        return Err(Error::Truncated);
    };
    match (family, channels) {
        (0, 1) => Ok(Channels::Mono),
        (0, 2) => Ok(Channels::Stereo),
        (family, channels) => Err(Error::Multichannel { family, channels }),
    }
}

/// Samples in one frame of a packet (RFC 6716 table 2).
const fn frame_samples(toc: u8) -> u32 {
    const MS: u32 = SAMPLE_RATE / 1000;
    let size = toc >> 3 & 3;
    match toc >> 3 {
        // SILK: 10, 20, 40, 60 ms.
        0..12 if size == 3 => 60 * MS,
        0..12 => (10 * MS) << size,
        // Hybrid: 10, 20 ms.
        12..16 => (10 * MS) << (size & 1),
        // CELT: 2.5, 5, 10, 20 ms.
        _ => (5 * MS / 2) << size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toc_gives_the_duration_of_a_frame() {
        let silk = [480, 960, 1920, 2880];
        let hybrid = [480, 960];
        let celt = [120, 240, 480, 960];
        let table = [&silk[..], &silk, &silk, &hybrid, &hybrid, &celt, &celt, &celt, &celt];
        let expected: Vec<u32> = table.concat();
        assert_eq!(expected.len(), 32);
        for (configuration, samples) in (0u8..).zip(expected) {
            assert_eq!(duration(&[configuration << 3, 1]), Ok(samples), "{configuration}");
            assert_eq!(duration(&[configuration << 3 | 4]), Ok(samples), "{configuration}");
        }
    }

    #[test]
    fn the_frame_count_multiplies_it() {
        const CELT_20: u8 = 31 << 3;
        const CELT_2_5: u8 = 28 << 3;
        const SILK_60: u8 = 3 << 3;
        for (packet, expected) in [
            (&[CELT_20][..], Ok(960)),
            (&[CELT_20 | 1, 0, 0], Ok(1920)),
            (&[CELT_20 | 2, 1, 0], Ok(1920)),
            (&[CELT_20 | 3, 3], Ok(2880)),
            (&[CELT_20 | 3, 6 | 0xc0], Ok(5760)),
            (&[CELT_20 | 3, 7], Err(Error::Duration)),
            (&[CELT_2_5 | 3, 48], Ok(5760)),
            (&[CELT_2_5 | 3, 49], Err(Error::Duration)),
            (&[SILK_60 | 1], Ok(5760)),
            (&[SILK_60 | 3, 3], Err(Error::Duration)),
            (&[CELT_20 | 3, 0], Err(Error::Duration)),
            (&[CELT_20 | 3], Err(Error::Truncated)),
            (&[], Err(Error::Truncated)),
        ] {
            assert_eq!(duration(packet), expected, "{packet:x?}");
        }
    }

    #[test]
    fn the_toc_gives_the_channels() {
        assert_eq!(channels(&[0xf8]), Ok(Channels::Mono));
        assert_eq!(channels(&[0xfc]), Ok(Channels::Stereo));
        assert_eq!(channels(&[]), Err(Error::Truncated));
    }

    #[test]
    fn packets_of_two_bytes_are_silence() {
        assert!(is_dtx(&[]) && is_dtx(&[0xf8]) && is_dtx(&[0xf8, 0xff]));
        assert!(!is_dtx(&[0xf8, 0xff, 0xfe]));
        assert!(is_digital_silence(&SILENCE) && is_digital_silence(&[0xfc, 0xff, 0xfe]));
        // SILK, two frames, more than the flag.
        for packet in [&[0x78, 0xff, 0xfe][..], &[0xf9, 0xff, 0xfe], &[0xf8, 0xff, 0xfe, 0]] {
            assert!(!is_digital_silence(packet), "{packet:02x?}");
        }
    }

    #[test]
    fn the_head_is_that_of_family_0() {
        let stereo = *b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
        assert_eq!(head(Channels::Stereo), stereo);
        let mono = *b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0";
        assert_eq!(head(Channels::Mono), mono);
    }

    #[test]
    fn a_head_of_more_than_two_channels_is_rejected() {
        for channels in [Channels::Mono, Channels::Stereo] {
            assert_eq!(head_channels(&head(channels)), Ok(channels));
        }
        for (family, channels) in [(1, 6), (0, 3), (0, 0), (255, 2), (3, 2)] {
            let mut multichannel = head(Channels::Stereo);
            (multichannel[9], multichannel[18]) = (channels, family);
            assert_eq!(head_channels(&multichannel), Err(Error::Multichannel { family, channels }));
        }
        let error = Error::Multichannel { family: 1, channels: 6 };
        assert_eq!(error.to_string(), "multichannel Opus (mapping family 1, 6 channels)");
        assert_eq!(head_channels(&head(Channels::Mono)[..18]), Err(Error::Truncated));
    }
}
