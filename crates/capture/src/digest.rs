//! What a capture records of each forwarded frame: enough to tell whether a replay produces the same frame.

use headgate_media::{Codec, Frame, FrameKind, SoundFlags};

use crate::varint;

/// A running hash (FNV-1a, 64 bits): it detects differences and does not protect secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds bytes to the hash.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The hash of all bytes so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// The digest of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameDigest {
    /// Codec of the frame.
    pub codec: Codec,
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Decode time in microseconds.
    pub timestamp_us: i64,
    /// Composition time in milliseconds: presentation time minus decode time.
    pub composition_ms: i32,
    /// Length of its data in bytes.
    pub size: u64,
    /// Hash of its data.
    pub hash: u64,
}

const CODECS: [Codec; 8] = [
    Codec::H264,
    Codec::Hevc,
    Codec::Av1,
    Codec::Vp9,
    Codec::Aac,
    Codec::Opus,
    Codec::Mp3(SoundFlags::STEREO),
    Codec::Amf0,
];
const KINDS: [FrameKind; 7] = [
    FrameKind::Configuration,
    FrameKind::ColorInfo,
    FrameKind::Keyframe,
    FrameKind::Inter,
    FrameKind::Disposable,
    FrameKind::Audio,
    FrameKind::Script,
];

impl FrameDigest {
    /// The digest of a frame.
    #[must_use]
    pub fn of(frame: &Frame) -> Self {
        let mut hash = Hash::default();
        hash.add(&frame.data);
        Self {
            codec: match frame.codec {
                // Its flags are not stored.
                Codec::Mp3(_) => Codec::Mp3(SoundFlags::STEREO),
                codec => codec,
            },
            kind: frame.kind,
            timestamp_us: frame.timestamp.as_micros(),
            composition_ms: frame.composition_ms,
            size: frame.data.len() as u64,
            hash: hash.value(),
        }
    }

    /// The digest as written to the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let place =
            |found: Option<usize>| found.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX);
        let mut bytes = vec![
            place(CODECS.iter().position(|codec| *codec == self.codec)),
            place(KINDS.iter().position(|kind| *kind == self.kind)),
        ];
        varint::put(varint::folded(self.timestamp_us), &mut bytes);
        varint::put(varint::folded(self.composition_ms.into()), &mut bytes);
        varint::put(self.size, &mut bytes);
        bytes.extend_from_slice(&self.hash.to_be_bytes());
        bytes
    }

    /// Reads a digest; `None` for anything else.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (&[codec, kind], mut rest) = bytes.split_first_chunk()?;
        let timestamp_us = varint::unfolded(varint::take(&mut rest)?);
        let composition_ms = i32::try_from(varint::unfolded(varint::take(&mut rest)?)).ok()?;
        let size = varint::take(&mut rest)?;
        let hash = u64::from_be_bytes(rest.try_into().ok()?);
        let (codec, kind) = (*CODECS.get(usize::from(codec))?, *KINDS.get(usize::from(kind))?);
        Some(Self { codec, kind, timestamp_us, composition_ms, size, hash })
    }
}
