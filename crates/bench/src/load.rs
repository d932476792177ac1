//! What a publisher sends: 720p25-shaped H.264 at 2 Mbit/s with a keyframe every two seconds, and AAC-shaped audio of
//! 128 kbit/s. Every frame carries its publisher, number and sending time.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use headgate_rtmp::MediaKind;

/// Pictures in a second.
const FRAMES_PER_SECOND: u32 = 25;
/// Pictures in a GOP.
const GOP: u32 = 50;
/// Bytes of one picture: 2 Mbit/s over 25.
const PICTURE_BYTES: usize = 10_000;
/// Bytes of one AAC packet: 128 kbit/s over 46.875.
const SOUND_BYTES: usize = 341;
/// Bytes before the stamp. Video: tag header, NAL length and NAL header; audio: tag header.
const VIDEO_OFFSET: usize = 10;
const AUDIO_OFFSET: usize = 2;

/// The headers that precede the first frame: an AVC decoder configuration (Baseline 3.1) and AAC-LC 48 kHz stereo.
pub(crate) const HEADERS: [(MediaKind, &[u8]); 2] = [
    (
        MediaKind::Video,
        b"\x17\0\0\0\0\x01\x42\xe0\x1f\xff\xe1\0\x09\x67\x42\xe0\x1f\xda\x01\x40\x16\xe4\x01\0\x04\x68\xce\x3c\x80",
    ),
    (MediaKind::Audio, b"\xaf\0\x11\x90"),
];

/// What each frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Number of the publisher that sent it.
    pub(crate) publisher: u32,
    /// Its number within its track, from 0.
    pub(crate) number: u32,
    /// When it was handed to the socket, since the start of the run.
    pub(crate) sent: Duration,
}

impl Stamp {
    /// Appends it to `body`.
    pub(crate) fn write(self, body: &mut BytesMut) {
        body.put_u32(self.publisher);
        body.put_u32(self.number);
        body.put_u64(u64::try_from(self.sent.as_micros()).unwrap_or(u64::MAX));
    }

    /// Reads it from the start of `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (publisher, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        Some(Self {
            publisher: u32::from_be_bytes(*publisher),
            number: u32::from_be_bytes(*number),
            sent: Duration::from_micros(u64::from_be_bytes(*sent)),
        })
    }
}

/// When frame `number` of a track is due, from the publisher's start.
pub(crate) fn due(kind: MediaKind, number: u32) -> Duration {
    match kind {
        MediaKind::Video | MediaKind::Script => Duration::from_secs(1) * number / FRAMES_PER_SECOND,
        // 1,024 samples at 48 kHz.
        MediaKind::Audio => Duration::from_nanos(u64::from(number) * 1024 * 1_000_000_000 / 48_000),
    }
}

/// The tag body of one unit.
pub(crate) fn unit(kind: MediaKind, stamp: Stamp) -> Bytes {
    let mut body = BytesMut::with_capacity(PICTURE_BYTES + VIDEO_OFFSET);
    let size = match kind {
        MediaKind::Video | MediaKind::Script => {
            let is_key = stamp.number.is_multiple_of(GOP);
            body.put_slice(&[if is_key { 0x17 } else { 0x27 }, 1, 0, 0, 0]);
            body.put_u32(u32::try_from(PICTURE_BYTES - 4).unwrap_or(0));
            body.put_u8(if is_key { 0x65 } else { 0x41 });
            5 + PICTURE_BYTES
        }
        MediaKind::Audio => {
            body.put_slice(&[0xaf, 1]);
            AUDIO_OFFSET + SOUND_BYTES
        }
    };
    stamp.write(&mut body);
    body.resize(size, 0x55);
    body.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headgate_media::h264::{NalKind, is_usable, read_record};

    #[test]
    fn a_decoder_can_read_the_configuration() {
        let record = read_record(&HEADERS[0].1[5..]);
        assert_eq!(record.length_size, Some(4));
        let usable = |at: usize, kind| record.sets.get(at).is_some_and(|set| is_usable(set, kind));
        assert!(usable(0, NalKind::Sps) && usable(1, NalKind::Pps));
    }
}
