//! Reassembles the plaintext handshake messages of one DTLS association (RFC 6347 4.2.3): fragments may overlap, repeat
//! with another split, arrive in any order and have any size. Pure.
//!
//! The DTLS library can only put together fragments that follow each other exactly, so it is handed whole messages, in
//! order and once each.

use std::collections::VecDeque;

/// Bytes before the body of a handshake message (RFC 6347 4.2.2).
pub(super) const MESSAGE_HEADER: usize = 12;
/// Most bytes of one handshake message.
pub(super) const MESSAGE_LIMIT: usize = 16 * 1024;
/// Messages of a flight that may be incomplete at the same time; the longest flight before a Finished has six.
const WINDOW: usize = 8;
/// Bytes held for all incomplete messages together.
const HELD_LIMIT: usize = 64 * 1024;

/// The header of one fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentHeader {
    pub(super) kind: u8,
    /// Length of the whole message.
    length: usize,
    pub(super) sequence: u16,
    offset: usize,
    fragment: usize,
}

impl FragmentHeader {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; MESSAGE_HEADER] = bytes.first_chunk()?;
        let be24 = |high, middle, low| {
            usize::from(header[high]) << 16
                | usize::from(header[middle]) << 8
                | usize::from(header[low])
        };
        Some(Self {
            kind: header[0],
            length: be24(1, 2, 3),
            sequence: u16::from_be_bytes([header[4], header[5]]),
            offset: be24(6, 7, 8),
            fragment: be24(9, 10, 11),
        })
    }
}

/// A whole handshake message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    kind: u8,
    sequence: u16,
    body: Vec<u8>,
}

impl Message {
    /// The message in a single fragment.
    pub(super) fn to_fragment(&self) -> Vec<u8> {
        let length = (self.body.len() as u32).to_be_bytes();
        let length = &length[1..];
        let sequence = self.sequence.to_be_bytes();
        [&[self.kind], length, &sequence, &[0; 3], length, &self.body].concat()
    }
}

/// A message of which some bytes are missing. What arrived last counts, so that an honest repetition replaces whatever
/// else came from the same address.
#[derive(Debug)]
struct Partial {
    kind: u8,
    length: usize,
    /// Up to the end of the last fragment: the announced length alone reserves nothing.
    body: Vec<u8>,
    /// One bit for each byte of `body` that has arrived.
    arrived: Vec<u64>,
    missing: usize,
}

/// The incomplete messages of one association.
#[derive(Debug)]
pub(super) struct Reassembler {
    /// Kinds that the first message may have: a hello.
    first: &'static [u8],
    /// Sequence number of the first message in `partials`.
    next: u16,
    partials: VecDeque<Option<Partial>>,
    held: usize,
}

impl Reassembler {
    /// `first`: the kinds with which the peer may begin.
    pub(super) fn new(first: &'static [u8]) -> Self {
        let partials = std::iter::repeat_with(|| None).take(WINDOW).collect();
        Self { first, next: 0, partials, held: 0 }
    }

    /// Takes the content of a handshake record: one fragment or several. False when none of them could be used;
    /// repetitions of what is complete are no fault.
    pub(super) fn handle_record(&mut self, mut content: &[u8]) -> bool {
        let mut is_used = false;
        while let Some(header) = FragmentHeader::read(content) {
            let end = MESSAGE_HEADER + header.fragment;
            let Some(body) = content.get(MESSAGE_HEADER..end) else { break };
            is_used |= self.handle_fragment(header, body);
            content = content.get(end..).unwrap_or_default();
        }
        is_used
    }

    /// The next message, once it is complete.
    pub(super) fn poll(&mut self) -> Option<Message> {
        let is_whole = matches!(self.partials.front(), Some(Some(first)) if first.missing == 0);
        let whole = is_whole.then(|| self.partials.pop_front().flatten())??;
        self.partials.push_back(None);
        self.held -= whole.body.len();
        let sequence = self.next;
        self.next = self.next.saturating_add(1);
        Some(Message { kind: whole.kind, sequence, body: whole.body })
    }

    fn handle_fragment(&mut self, header: FragmentHeader, body: &[u8]) -> bool {
        let FragmentHeader { kind, length, sequence, offset, .. } = header;
        let end = offset + body.len();
        let is_empty = body.is_empty() && length > 0;
        if length > MESSAGE_LIMIT || end > length || is_empty {
            return false;
        }
        let Some(ahead) = sequence.checked_sub(self.next) else { return true };
        if sequence == 0 && !self.first.contains(&kind) {
            return false;
        }
        let Some(slot) = self.partials.get_mut(usize::from(ahead)) else { return false };
        if let Some(other) = slot.take_if(|part| part.kind != kind || part.length != length) {
            self.held -= other.body.len();
        }
        let partial = slot.get_or_insert_with(|| Partial::new(kind, length));
        let growth = end.saturating_sub(partial.body.len());
        if self.held + growth > HELD_LIMIT {
            return false;
        }
        self.held += growth;
        partial.put(offset, body);
        true
    }
}

impl Partial {
    const fn new(kind: u8, length: usize) -> Self {
        Self { kind, length, body: Vec::new(), arrived: Vec::new(), missing: length }
    }

    fn put(&mut self, offset: usize, body: &[u8]) {
        let end = offset + body.len();
        if end > self.body.len() {
            self.body.resize(end, 0);
            self.arrived.resize(end.div_ceil(64), 0);
        }
        self.body[offset..end].copy_from_slice(body);
        for at in offset..end {
            let (word, bit) = (&mut self.arrived[at / 64], 1 << (at % 64));
            self.missing -= usize::from(*word & bit == 0);
            *word |= bit;
        }
    }
}

#[cfg(test)]
#[path = "reassembly_tests.rs"]
mod tests;
