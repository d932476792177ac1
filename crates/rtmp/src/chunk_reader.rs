//! Reassembles messages from chunks (RTMP 5.3.1). Input may be split anywhere.

use bytes::{Bytes, BytesMut};

use crate::allowance::Allowance;
use crate::chunk_header::{ChunkHeader, Form, HEADER_LIMIT};
use crate::message::{AUDIO, COMMAND_AMF0, COMMAND_AMF3, DATA_AMF0, DATA_AMF3, VIDEO};
use crate::slab::Slab;
use crate::{Dropped, Error, Limits};

/// Chunk size until a peer sets it (RTMP 5.4.1).
pub(crate) const DEFAULT_CHUNK_SIZE: u32 = 128;
/// Least capacity reserved for a growing message.
const RESERVE_BYTES: usize = 512;
/// A chunk stream beyond every so many costs one more unit of work: it is searched for from the first one on.
const SEARCHED: usize = 32;

/// One complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) timestamp: u32,
    pub(crate) payload: Bytes,
    /// Why it has no payload, although it was sent with one.
    pub(crate) dropped: Option<Dropped>,
}

#[derive(Debug, Default)]
struct ChunkStream {
    id: u32,
    kind: u8,
    stream: u32,
    timestamp: u32,
    /// The time added by a type 3 chunk that starts a message.
    delta: u32,
    /// The extended timestamp in the last header, if it had one.
    extended: Option<u32>,
    length: usize,
    payload: BytesMut,
    /// Bytes of the message read so far.
    received: usize,
    /// A message is being received.
    is_open: bool,
    /// The message is longer than allowed: its payload is not kept.
    is_too_long: bool,
}

/// Reassembles all chunk streams of one connection.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    limits: Limits,
    message_limit: usize,
    chunk_size: u32,
    streams: Vec<ChunkStream>,
    /// Where the search for a chunk stream to forget begins.
    forget_from: usize,
    slab: Slab,
    partial: usize,
    header: [u8; HEADER_LIMIT],
    header_length: usize,
    /// Bytes read as an extended timestamp that turned out to be payload.
    carry: [u8; 4],
    carry_length: usize,
    /// The chunk whose payload is being read: index of its stream, and bytes left.
    chunk: Option<(usize, usize)>,
    /// A message that ended unfinished where that chunk began another on its stream.
    unfinished: Option<Message>,
}

impl ChunkReader {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            message_limit: limits.message_before_bytes,
            limits,
            chunk_size: DEFAULT_CHUNK_SIZE,
            streams: Vec::new(),
            forget_from: 0,
            slab: Slab::default(),
            partial: 0,
            header: [0; HEADER_LIMIT],
            header_length: 0,
            carry: [0; 4],
            carry_length: 0,
            chunk: None,
            unfinished: None,
        }
    }

    /// From now on messages up to the longer limit are allowed.
    pub(crate) const fn set_accepted(&mut self) {
        self.message_limit = self.limits.message_after_bytes;
    }

    /// Applies the peer's SetChunkSize to the chunks that follow. The highest bit is reserved (RTMP 5.4.1), and more than
    /// the longest message is as good as that. False for 0, which means nothing and changes nothing.
    pub(crate) fn set_chunk_size(&mut self, announced: u32) -> bool {
        let size = (announced & 0x7fff_ffff).min(self.limits.chunk_size);
        if size > 0 {
            self.chunk_size = size;
        }
        size > 0
    }

    /// Applies the peer's Abort: the unfinished message on that chunk stream is dropped.
    pub(crate) fn abort(&mut self, id: u32) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            self.partial -= stream.drop_message();
        }
    }

    /// The next complete message, taking from the front of `input` only what it needs. `None`: all input was taken, or
    /// the allowance is spent.
    pub(crate) fn read(
        &mut self,
        input: &mut &[u8],
        allowance: &mut Allowance,
    ) -> Result<Option<Message>, Error> {
        let message = self.read_traced(input, allowance, |_| {})?;
        Ok(message.map(|(_, message)| message))
    }

    /// The same, with the index of the message's chunk stream; `trace` is called with the position of each piece of
    /// payload.
    #[inline]
    pub(crate) fn read_traced(
        &mut self,
        input: &mut &[u8],
        allowance: &mut Allowance,
        mut trace: impl FnMut(Piece),
    ) -> Result<Option<(usize, Message)>, Error> {
        loop {
            match self.chunk {
                None => {
                    if allowance.is_spent() || !self.read_header(input)? {
                        return Ok(None);
                    }
                    let index = self.chunk.map_or(0, |(index, _)| index);
                    allowance.spend(1 + index / SEARCHED);
                    if let Some(message) = self.unfinished.take() {
                        return Ok(Some((index, message)));
                    }
                }
                Some((index, left)) => {
                    let (before, carry) = (input.len(), self.carry_length);
                    let left = self.read_payload(index, left, input);
                    let (carried, taken) = (carry - self.carry_length, before - input.len());
                    let is_too_long = self.streams.get(index).is_some_and(|of| of.is_too_long);
                    trace(Piece { index, carry, carried, before, taken, is_too_long });
                    allowance.spend_payload(before - input.len());
                    if left > 0 {
                        self.chunk = Some((index, left));
                        return Ok(None);
                    }
                    self.chunk = None;
                    if let Some(message) = self.finish(index) {
                        return Ok(Some((index, message)));
                    }
                }
            }
        }
    }

    /// Whether there is more to read without further input: bytes mistaken for an extended timestamp, because the
    /// allowance was spent, or an empty message after an unfinished one.
    pub(crate) const fn has_pending(&self) -> bool {
        self.carry_length > 0 || matches!(self.chunk, Some((_, 0)))
    }

    /// Least number of bytes that complete another message; 0 between two messages.
    pub(crate) fn missing_bytes(&self) -> usize {
        if self.header_length > 0 {
            return 1;
        }
        let open = self.streams.iter().filter(|stream| stream.is_open);
        open.map(|stream| stream.length - stream.received).min().unwrap_or(0)
    }

    fn read_payload(&mut self, index: usize, mut left: usize, input: &mut &[u8]) -> usize {
        let Some(stream) = self.streams.get_mut(index) else { return 0 };
        if self.carry_length > 0 {
            let take = left.min(self.carry_length);
            self.partial += stream.keep(&self.carry[..take], take);
            self.carry.copy_within(take..self.carry_length, 0);
            self.carry_length -= take;
            left -= take;
        }
        let (now, rest) = input.split_at(left.min(input.len()));
        self.partial += stream.keep(now, input.len());
        *input = rest;
        left - now.len()
    }

    fn finish(&mut self, index: usize) -> Option<Message> {
        let stream = self.streams.get_mut(index)?;
        if stream.received < stream.length {
            return None;
        }
        (stream.is_open, stream.received) = (false, 0);
        self.partial -= stream.payload.len();
        let payload = std::mem::take(&mut stream.payload).freeze();
        let ChunkStream { kind, timestamp, is_too_long, .. } = *stream;
        let dropped = is_too_long.then_some(Dropped::TooLong);
        Some(Message { kind, stream: stream.stream, timestamp, payload, dropped })
    }

    /// Reads a header, which may arrive in parts; false when the input ends first.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool, Error> {
        if self.header_length == 0
            && self.carry_length == 0
            && let Some(front) = input.first_chunk::<HEADER_LIMIT>()
            && let Some((header, known)) = self.parse_header(front)?
        {
            // An omitted extended timestamp is left in the input, where it is payload.
            *input = input.get(header.length..).unwrap_or_default();
            self.chunk = Some(self.begin_chunk(&header, known)?);
            return Ok(true);
        }
        loop {
            if let Some((header, known)) = self.parse_header(&self.header[..self.header_length])? {
                // Bytes collected beyond it are payload; none were carried over then.
                if let Some(beyond) = self.header.get(header.length..self.header_length)
                    && !beyond.is_empty()
                {
                    self.carry_length = beyond.len();
                    self.carry[..beyond.len()].copy_from_slice(beyond);
                }
                self.header_length = 0;
                self.chunk = Some(self.begin_chunk(&header, known)?);
                return Ok(true);
            }
            let byte = if self.carry_length > 0 {
                let byte = self.carry[0];
                self.carry.copy_within(1..self.carry_length, 0);
                self.carry_length -= 1;
                byte
            } else if let Some((byte, rest)) = input.split_first() {
                *input = rest;
                *byte
            } else {
                return Ok(false);
            };
            self.header[self.header_length] = byte;
            self.header_length += 1;
        }
    }

    /// The header that begins here, if it is complete, and the index of its chunk stream if that is known.
    fn parse_header(&self, bytes: &[u8]) -> Result<Option<(ChunkHeader, Option<usize>)>, Error> {
        let Some(basic) = ChunkHeader::chunk_stream(bytes) else { return Ok(None) };
        let known = self.streams.iter().position(|stream| stream.id == basic.0);
        let last = known.and_then(|at| self.streams.get(at));
        let Some(header) = ChunkHeader::read(bytes, basic, last.and_then(|last| last.extended))
        else {
            return Ok(None);
        };
        match (header.form, known) {
            // An old library sends its pings as type 1 on a fresh chunk stream; types 2 and 3 would be meaningless
            // there.
            (Form::Delta { .. } | Form::Repeated, None) => Err(Error::Chunk),
            _ => Ok(Some((header, known))),
        }
    }

    /// Begins a chunk: the index of its stream, and the bytes of its payload.
    fn begin_chunk(
        &mut self,
        header: &ChunkHeader,
        known: Option<usize>,
    ) -> Result<(usize, usize), Error> {
        let index = match known {
            Some(index) => index,
            None => self.new_stream(header.id)?,
        };
        let (message_limit, amf_limit) = (self.message_limit, self.limits.amf_bytes);
        let Some(stream) = self.streams.get_mut(index) else { return Err(Error::Chunk) };
        if stream.is_open && header.form != Form::Repeated {
            // Within a message only type 3 is valid; a sender that gave one up begins the next.
            let ChunkStream { kind, stream: of, timestamp, .. } = *stream;
            let (payload, dropped) = (Bytes::new(), Some(Dropped::Truncated));
            self.unfinished = Some(Message { kind, stream: of, timestamp, payload, dropped });
            self.partial -= stream.drop_message();
        }
        let partial = self.partial;
        if !stream.is_open {
            stream.begin(header);
            let limit = match stream.kind {
                DATA_AMF0 | DATA_AMF3 | COMMAND_AMF0 | COMMAND_AMF3 => message_limit.min(amf_limit),
                _ => message_limit,
            };
            stream.is_too_long = stream.length > limit;
            // Memory by declared length, but only of accepted publishes and within one allocation.
            let is_accepted = message_limit > self.limits.message_before_bytes;
            if is_accepted && matches!(stream.kind, AUDIO | VIDEO) && !stream.is_too_long {
                stream.payload = self.slab.take(stream.length);
            }
        }
        let left = (stream.length - stream.received).min(self.chunk_size as usize);
        if !stream.is_too_long && partial + left > self.message_limit + self.message_limit / 2 {
            return Err(Error::PartialLimit);
        }
        Ok((index, left))
    }

    /// The index of a new chunk stream. Beyond the limit it takes the place of one that is between two messages.
    fn new_stream(&mut self, id: u32) -> Result<usize, Error> {
        let stream = ChunkStream { id, ..ChunkStream::default() };
        if self.streams.len() < self.limits.chunk_streams {
            self.streams.push(stream);
            return Ok(self.streams.len() - 1);
        }
        let count = self.streams.len();
        let mut places = (0..count).map(|n| (self.forget_from + n) % count);
        let place = places.find(|place| self.streams.get(*place).is_some_and(|of| !of.is_open));
        let slot = place.and_then(|place| self.streams.get_mut(place));
        let (Some(place), Some(slot)) = (place, slot) else { return Err(Error::ChunkStreamLimit) };
        *slot = stream;
        self.forget_from = place + 1;
        Ok(place)
    }
}

impl ChunkStream {
    /// Begins a message with this header.
    fn begin(&mut self, header: &ChunkHeader) {
        match header.form {
            Form::Whole { time, length, kind, stream } => {
                (self.length, self.kind, self.stream) = (length as usize, kind, stream);
                (self.timestamp, self.delta, self.extended) = (time, time, header.extended);
            }
            Form::SameStream { delta, length, kind } => {
                (self.length, self.kind) = (length as usize, kind);
                (self.delta, self.extended) = (delta, header.extended);
                self.timestamp = self.timestamp.wrapping_add(delta);
            }
            Form::Delta { delta } => {
                (self.delta, self.extended) = (delta, header.extended);
                self.timestamp = self.timestamp.wrapping_add(delta);
            }
            Form::Repeated => self.timestamp = self.timestamp.wrapping_add(self.delta),
        }
        self.is_open = true;
    }

    /// Drops the unfinished message; returns how many of its bytes were kept.
    fn drop_message(&mut self) -> usize {
        (self.is_open, self.received) = (false, 0);
        std::mem::take(&mut self.payload).len()
    }

    /// Takes the next bytes of the message, of `available` that have arrived; returns how many of them it keeps.
    fn keep(&mut self, bytes: &[u8], available: usize) -> usize {
        self.received += bytes.len();
        if self.is_too_long {
            return 0;
        }
        // Capacity grows with what has arrived, not with the declared length.
        let (kept, spare) = (self.payload.len(), self.payload.capacity() - self.payload.len());
        if spare < bytes.len() {
            let arrived = available.max(kept).max(RESERVE_BYTES);
            self.payload.reserve((self.length - kept).min(arrived).max(bytes.len()));
        }
        self.payload.extend_from_slice(bytes);
        bytes.len()
    }
}

/// Position of a piece of a message's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Index of its chunk stream.
    pub(crate) index: usize,
    /// Carried bytes before the input that are still to be read as payload, and how many of them the piece begins with.
    pub(crate) carry: usize,
    pub(crate) carried: usize,
    /// Bytes of the input that were left, and how many of them belong to the piece.
    pub(crate) before: usize,
    pub(crate) taken: usize,
    /// Whether the message is too long to be kept.
    pub(crate) is_too_long: bool,
}

#[path = "chunk_reader_state.rs"]
mod state;
pub use state::ReadingState;

#[cfg(test)]
#[path = "chunk_reader_limit_tests.rs"]
mod limit_tests;
#[cfg(test)]
#[path = "chunk_reader_tests.rs"]
mod tests;
