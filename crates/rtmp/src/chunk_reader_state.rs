//! The state of a chunk reader between two messages: enough for another reader to continue from there.

use super::{ChunkReader, ChunkStream};
use crate::Limits;

/// Bytes per chunk stream in [`ReadingState::to_bytes`].
const STREAM_BYTES: usize = 26;

/// A reader's state between two messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadingState {
    chunk_size: u32,
    streams: Vec<LastHeader>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastHeader {
    id: u32,
    kind: u8,
    stream: u32,
    timestamp: u32,
    delta: u32,
    extended: Option<u32>,
    length: u32,
}

impl ReadingState {
    /// The state in fixed-width fields, big-endian; it contains no payload.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.chunk_size.to_be_bytes().to_vec();
        for of in &self.streams {
            for number in
                [of.id, of.stream, of.timestamp, of.delta, of.extended.unwrap_or(0), of.length]
            {
                bytes.extend_from_slice(&number.to_be_bytes());
            }
            bytes.extend_from_slice(&[of.kind, u8::from(of.extended.is_some())]);
        }
        bytes
    }

    /// Reads a state; `None` if no reader could be in it.
    #[must_use]
    pub fn read(bytes: &[u8], limits: &Limits) -> Option<Self> {
        let (size, rest) = bytes.split_first_chunk()?;
        let chunk_size = u32::from_be_bytes(*size);
        let count = rest.len() / STREAM_BYTES;
        let is_possible = chunk_size > 0
            && chunk_size <= limits.chunk_size
            && rest.len() % STREAM_BYTES == 0
            && count <= limits.chunk_streams;
        let streams = rest.chunks_exact(STREAM_BYTES).map(|bytes| {
            let number = |place: usize| {
                let field = bytes.get(4 * place..)?.first_chunk()?;
                Some(u32::from_be_bytes(*field))
            };
            let (kind, has_extended) = (*bytes.get(24)?, *bytes.get(25)? == 1);
            let extended = number(4)?;
            Some(LastHeader {
                id: number(0)?,
                kind,
                stream: number(1)?,
                timestamp: number(2)?,
                delta: number(3)?,
                extended: has_extended.then_some(extended),
                length: number(5)?,
            })
        });
        is_possible.then(|| Some(Self { chunk_size, streams: streams.collect::<Option<_>>()? }))?
    }
}

impl ChunkReader {
    /// The reader's state, if it is between two messages.
    pub(crate) fn state(&self) -> Option<ReadingState> {
        let is_between = self.chunk.is_none()
            && self.header_length == 0
            && self.carry_length == 0
            && self.streams.iter().all(|stream| !stream.is_open);
        let last = |stream: &ChunkStream| LastHeader {
            id: stream.id,
            kind: stream.kind,
            stream: stream.stream,
            timestamp: stream.timestamp,
            delta: stream.delta,
            extended: stream.extended,
            length: u32::try_from(stream.length).unwrap_or(u32::MAX),
        };
        let streams = || self.streams.iter().map(last).collect();
        is_between.then(|| ReadingState { chunk_size: self.chunk_size, streams: streams() })
    }

    /// Bytes at the end of the input so far that belong to a header, or may do so.
    pub(crate) const fn unsure_bytes(&self) -> usize {
        self.header_length + self.carry_length
    }

    /// The index of the chunk stream with this id.
    pub(crate) fn index_of(&self, id: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.id == id)
    }

    /// A reader that continues from `state`, with long messages allowed.
    pub(crate) fn resume(limits: Limits, state: &ReadingState) -> Self {
        let mut reader = Self::new(limits);
        reader.set_accepted();
        reader.chunk_size = state.chunk_size;
        reader.streams = state
            .streams
            .iter()
            .map(|of| ChunkStream {
                id: of.id,
                kind: of.kind,
                stream: of.stream,
                timestamp: of.timestamp,
                delta: of.delta,
                extended: of.extended,
                length: of.length as usize,
                ..ChunkStream::default()
            })
            .collect();
        reader
    }
}

#[cfg(test)]
#[path = "chunk_reader_state_tests.rs"]
mod tests;
