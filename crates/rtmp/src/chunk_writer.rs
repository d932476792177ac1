//! Writes messages as chunks (RTMP 5.3.1). Always with a full header, the only form every peer handles correctly.

use bytes::Bytes;

use crate::Output;
use crate::chunk_header::EXTENDED;
use crate::chunk_reader::DEFAULT_CHUNK_SIZE;

/// The chunk size we announce and use: most frames then fit into one chunk.
pub(crate) const OUR_CHUNK_SIZE: u32 = 65_536;

/// Ids of the chunk streams we send on; all are within 2…8, which every peer accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ChunkStreamId {
    Control = 2,
    Command = 3,
    Script = 5,
    Audio = 6,
    Video = 7,
}

/// The fields of a message's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) chunk_stream: ChunkStreamId,
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) timestamp: u32,
}

#[derive(Debug)]
pub(crate) struct ChunkWriter {
    chunk_size: u32,
}

impl ChunkWriter {
    pub(crate) const fn new() -> Self {
        Self { chunk_size: DEFAULT_CHUNK_SIZE }
    }

    pub(crate) const fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// Applies from the next message on; a SetChunkSize must have been sent to the peer.
    pub(crate) const fn set_chunk_size(&mut self, size: u32) {
        self.chunk_size = size;
    }

    /// Writes a message consisting of `prefix` and `payload`; the payload is shared, not copied.
    pub(crate) fn write(&self, output: &mut Output, head: Head, prefix: &[u8], payload: &Bytes) {
        let length = prefix.len() + payload.len();
        let is_extended = head.timestamp >= EXTENDED;
        let [_, t0, t1, t2] = if is_extended { EXTENDED } else { head.timestamp }.to_be_bytes();
        let [l0, l1, l2] = length_24(length);
        let [s0, s1, s2, s3] = head.stream.to_le_bytes();
        let id = head.chunk_stream as u8;
        output.put(&[id, t0, t1, t2, l0, l1, l2, head.kind, s0, s1, s2, s3]);
        let extended = head.timestamp.to_be_bytes();
        if is_extended {
            output.put(&extended);
        }
        // Prefixes are a few bytes of tag header and always fit into the first chunk.
        output.put(prefix);
        let chunk_size = self.chunk_size as usize;
        let mut at = chunk_size.saturating_sub(prefix.len()).min(payload.len());
        output.put_shared(payload.slice(..at));
        while at < payload.len() {
            output.put(&[0xc0 | id]);
            if is_extended {
                output.put(&extended);
            }
            let end = (at + chunk_size).min(payload.len());
            output.put_shared(payload.slice(at..end));
            at = end;
        }
    }
}

/// Our messages are shorter than 16 MiB, the limit of three bytes.
#[allow(clippy::cast_possible_truncation, reason = "frames are bounded by the message limit")]
const fn length_24(length: usize) -> [u8; 3] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    [a, b, c]
}
