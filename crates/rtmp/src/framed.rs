//! A media message with its chunk headers, written once for all peers that get it.

use std::sync::Arc;

use bytes::Bytes;

use crate::chunk_writer::{ChunkWriter, OUR_CHUNK_SIZE};
use crate::wire::{MEDIA_STREAM, media_head};
use crate::{MediaKind, Output};

/// One media message in chunks, immutable and cheap to clone: on the message stream that every `createStream` of ours is
/// answered with, in chunks of our size, with a full header and an absolute timestamp. A session for which any of this
/// differs writes the message anew.
#[derive(Clone, Debug)]
pub struct Framed(Arc<Written>);

#[derive(Debug)]
struct Written {
    kind: MediaKind,
    timestamp: u32,
    header: Bytes,
    payload: Bytes,
    parts: Vec<Bytes>,
    bytes: usize,
}

impl Framed {
    /// Writes a message; `header` is what precedes `payload` in the tag body. The payload is shared, not copied, unless it
    /// is small.
    #[must_use]
    pub fn new(kind: MediaKind, timestamp: u32, header: &[u8], payload: &Bytes) -> Self {
        let mut output = Output::default();
        let mut writer = ChunkWriter::new();
        writer.set_chunk_size(OUR_CHUNK_SIZE);
        writer.write(&mut output, media_head(MEDIA_STREAM, kind, timestamp), header, payload);
        let bytes = output.pending_bytes();
        let (header, payload) = (Bytes::copy_from_slice(header), payload.clone());
        let parts = output.into_parts();
        Self(Arc::new(Written { kind, timestamp, header, payload, parts, bytes }))
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.0.bytes
    }

    pub(crate) fn kind(&self) -> MediaKind {
        self.0.kind
    }

    pub(crate) fn timestamp(&self) -> u32 {
        self.0.timestamp
    }

    pub(crate) fn header(&self) -> &[u8] {
        &self.0.header
    }

    pub(crate) fn payload(&self) -> &Bytes {
        &self.0.payload
    }

    pub(crate) fn parts(&self) -> &[Bytes] {
        &self.0.parts
    }
}
