//! Chunks as an encoder writes them: its own chunk size, short headers where possible (RTMP 5.3.1). Sans-I/O.

use bytes::{BufMut, BytesMut};
use headgate_rtmp::MediaKind;

/// Message types (RTMP 5.4, 7.1).
pub(crate) const SET_CHUNK_SIZE: u8 = 1;
pub(crate) const USER_CONTROL: u8 = 4;
pub(crate) const AUDIO: u8 = 8;
pub(crate) const VIDEO: u8 = 9;
pub(crate) const DATA_AMF0: u8 = 18;
pub(crate) const COMMAND_AMF0: u8 = 20;
/// The message stream id that every server here assigns.
const MEDIA_STREAM: u32 = 1;
/// From this value on a timestamp takes four more bytes (RTMP 5.3.1.3).
const EXTENDED: u32 = 0x00ff_ffff;

/// Writes messages in chunks of one size.
pub(crate) struct Chunks {
    size: usize,
}

impl Chunks {
    /// Announces the size in `out`.
    pub(crate) fn announce(size: u32, out: &mut BytesMut) -> Self {
        // The message fits into one chunk of the default size.
        Self { size: 128 }.write(SET_CHUNK_SIZE, 0, &size.to_be_bytes(), out);
        Self { size: size as usize }
    }

    /// A whole message with a full header.
    pub(crate) fn write(&self, kind: u8, timestamp: u32, payload: &[u8], out: &mut BytesMut) {
        let (id, stream) = match kind {
            SET_CHUNK_SIZE | USER_CONTROL => (2, 0),
            COMMAND_AMF0 => (3, 0),
            DATA_AMF0 => (5, MEDIA_STREAM),
            AUDIO => (6, MEDIA_STREAM),
            _ => (7, MEDIA_STREAM),
        };
        let is_extended = timestamp >= EXTENDED;
        out.put_u8(id);
        out.put_uint(u64::from(timestamp.min(EXTENDED)), 3);
        out.put_uint(payload.len() as u64, 3);
        out.put_u8(kind);
        out.put_u32_le(stream);
        for (at, chunk) in payload.chunks(self.size).enumerate() {
            if at > 0 {
                out.put_u8(0xc0 | id);
            }
            if is_extended {
                out.put_u32(timestamp);
            }
            out.put_slice(chunk);
        }
    }

    /// Repeats the previous message with the same timestamp; [`Chunks::repeat`] then keeps that timestamp too.
    pub(crate) fn repeat_at_once(id: u8, kind: u8, payload: &[u8], out: &mut BytesMut) {
        out.put_u8(0x40 | id);
        out.put_uint(0, 3);
        out.put_uint(payload.len() as u64, 3);
        out.put_u8(kind);
        out.put_slice(payload);
    }

    /// The shortest message: same type, length and stream as the previous one on its chunk stream, and a payload that
    /// fits in one chunk.
    pub(crate) fn repeat(id: u8, payload: &[u8], out: &mut BytesMut) {
        out.put_u8(0xc0 | id);
        out.put_slice(payload);
    }
}

/// The message type of media.
pub(crate) const fn message_type(kind: MediaKind) -> u8 {
    match kind {
        MediaKind::Audio => AUDIO,
        MediaKind::Video => VIDEO,
        MediaKind::Script => DATA_AMF0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_split_at_the_announced_size() {
        let mut out = BytesMut::new();
        let chunks = Chunks::announce(3, &mut out);
        assert_eq!(&out[..], [2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 3]);
        out.clear();
        chunks.write(VIDEO, 0x0102_0304, b"abcde", &mut out);
        let head = [7, 255, 255, 255, 0, 0, 5, 9, 1, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(&out[..], [&head[..], b"abc", &[0xc7, 1, 2, 3, 4], b"de"].concat());
    }
}
