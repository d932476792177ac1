//! A media message with its chunk headers, written once for all peers that receive it.

use std::sync::Arc;

use bytes::Bytes;

use crate::chunk_writer::{ChunkWriter, OUR_CHUNK_SIZE};
use crate::wire::{MEDIA_STREAM, media_head};
use crate::{MediaKind, Output};

/// One media message in chunks, immutable and cheap to clone. It uses the message stream we return for every
/// `createStream`, our chunk size, a full header and an absolute timestamp. A session in which any of this differs
/// writes the message itself.
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
    /// Writes a message; `header` precedes `payload` in the tag body. The payload is shared, not copied, unless it is
    /// small.
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

    /// Length on the wire in bytes.
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
