//! Removes the secrets from what a peer sent: chunks and lengths stay, and in commands names, keys and tokens are
//! overwritten.

mod command;

use std::collections::VecDeque;

use crate::allowance::Allowance;
use crate::chunk_reader::{ChunkReader, Message};
use crate::message::{
    ABORT, AGGREGATE, AUDIO, COMMAND_AMF0, COMMAND_AMF3, MediaKind, SET_CHUNK_SIZE, VIDEO,
};
use crate::{Limits, ReadingState};

/// C0, C1 and C2.
const HANDSHAKE_BYTES: usize = 1 + 2 * 1536;
/// Header of a message in an aggregate, and the length after the message (RTMP 7.1.6).
const PART_HEADER: usize = 11;
const PART_TRAILER: usize = 4;

/// Takes a connection's bytes in order, and returns them in order once they contain no secret. Incomplete messages are
/// held back.
#[derive(Debug)]
pub struct Scrubber {
    handshake_left: usize,
    reader: ChunkReader,
    /// Overwrites the media of a tag body; `None` leaves it as it is.
    blank: Option<fn(MediaKind, &mut [u8])>,
    kept: VecDeque<u8>,
    /// Number of bytes returned, and number of bytes read.
    given: usize,
    read: usize,
    /// Offset and length of each piece of payload in the unfinished message of each chunk stream.
    pieces: Vec<Vec<(usize, usize)>>,
    /// The bytes violate the protocol: what follows is not parsed.
    is_broken: bool,
}

impl Scrubber {
    /// A scrubber for a connection from its first byte, or from where another session's reading is continued.
    #[must_use]
    pub fn new(from: Option<&ReadingState>, blank: Option<fn(MediaKind, &mut [u8])>) -> Self {
        let limits = Limits::default();
        let mut reader = ChunkReader::new(limits.clone());
        reader.set_accepted();
        Self {
            handshake_left: if from.is_some() { 0 } else { HANDSHAKE_BYTES },
            reader: from.map_or(reader, |state| ChunkReader::resume(limits, state)),
            blank,
            kept: VecDeque::new(),
            given: 0,
            read: 0,
            pieces: Vec::new(),
            is_broken: false,
        }
    }

    /// Takes the next bytes.
    pub fn handle_input(&mut self, input: &[u8]) {
        self.kept.extend(input);
        let skipped = self.handshake_left.min(input.len());
        self.handshake_left -= skipped;
        self.read += skipped;
        let mut rest = input.get(skipped..).unwrap_or_default();
        let mut allowance = Allowance::new(u32::MAX);
        while !self.is_broken {
            allowance.begin_turn();
            let (end, given) = (self.read + rest.len(), self.given);
            let (pieces, kept) = (&mut self.pieces, &mut self.kept);
            let read = self.reader.read_traced(&mut rest, &mut allowance, |piece| {
                if pieces.len() <= piece.index {
                    pieces.resize(piece.index + 1, Vec::new());
                }
                let from = end - piece.before - piece.carry;
                if piece.is_too_long {
                    // It is never read, and would be held back for long.
                    wipe(kept, from.saturating_sub(given), piece.carried);
                    wipe(kept, (end - piece.before).saturating_sub(given), piece.taken);
                    return;
                }
                let of_stream = &mut pieces[piece.index];
                of_stream.push((from, piece.carried));
                of_stream.push((end - piece.before, piece.taken));
            });
            self.read = end - rest.len();
            match read {
                Ok(Some((index, message))) => self.handle_message(index, &message),
                Ok(None) => return,
                Err(_) => self.is_broken = true,
            }
        }
        // The session ends here, so the rest is wiped.
        self.wipe(self.read, rest.len());
        self.read += rest.len();
    }

    /// Offset in the whole input up to which bytes can be taken.
    #[must_use]
    pub fn clean(&self) -> usize {
        let open = self.pieces.iter().flatten().filter(|(_, length)| *length > 0);
        let first = open.map(|(from, _)| *from).min().unwrap_or(self.read);
        // The last four bytes of a header may turn out to be payload.
        first.min(self.read - self.unsure()).max(self.given)
    }

    /// How many bytes have been taken.
    #[must_use]
    pub const fn given(&self) -> usize {
        self.given
    }

    /// Takes `count` bytes, which must be clean.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let count = count.min(self.kept.len());
        self.given += count;
        self.kept.drain(..count).collect()
    }

    /// Ends the input: held-back parts of unfinished messages are overwritten, and everything can be taken.
    pub fn finish(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        self.wipe_all(pieces.into_iter().flatten());
        let unsure = self.unsure();
        self.wipe(self.read - unsure, unsure);
        self.is_broken = true;
    }

    fn handle_message(&mut self, index: usize, message: &Message) {
        let pieces = self.pieces.get_mut(index).map(std::mem::take).unwrap_or_default();
        if message.dropped.is_some() {
            return self.wipe_all(pieces);
        }
        let mut payload = message.payload.to_vec();
        match (message.kind, message.payload.first_chunk()) {
            (SET_CHUNK_SIZE, Some(size)) => {
                self.reader.set_chunk_size(u32::from_be_bytes(*size));
            }
            (ABORT, Some(id)) => self.abort(u32::from_be_bytes(*id)),
            (COMMAND_AMF0 | COMMAND_AMF3, first) => {
                // The format byte may be missing, or present where it does not belong.
                let prefix = usize::from(first.is_some_and(|bytes| bytes[0] == 0));
                command::wipe(payload.get_mut(prefix..).unwrap_or_default());
            }
            (AUDIO, _) => self.blank(MediaKind::Audio, &mut payload),
            (VIDEO, _) => self.blank(MediaKind::Video, &mut payload),
            (AGGREGATE, _) => self.blank_parts(&mut payload),
            _ => return,
        }
        let mut rest = &payload[..];
        for (from, length) in pieces {
            let (now, later) = rest.split_at(length.min(rest.len()));
            for (to, byte) in self.kept.iter_mut().skip(from.saturating_sub(self.given)).zip(now) {
                *to = *byte;
            }
            rest = later;
        }
    }

    /// The peer aborts an unfinished message: it is never read.
    fn abort(&mut self, id: u32) {
        self.reader.abort(id);
        if let Some(index) = self.reader.index_of(id)
            && let Some(pieces) = self.pieces.get_mut(index)
        {
            let pieces = std::mem::take(pieces);
            self.wipe_all(pieces);
        }
    }

    fn blank(&self, kind: MediaKind, body: &mut [u8]) {
        if let Some(blank) = self.blank {
            blank(kind, body);
        }
    }

    /// Overwrites the tag bodies in an aggregate.
    fn blank_parts(&self, mut rest: &mut [u8]) {
        while let Some((header, behind)) = rest.split_at_mut_checked(PART_HEADER) {
            let [kind, a, b, c, ..] = *header else { return };
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let (body, behind) = behind.split_at_mut(length.min(behind.len()));
            match kind {
                AUDIO => self.blank(MediaKind::Audio, body),
                VIDEO => self.blank(MediaKind::Video, body),
                _ => {}
            }
            let skipped = PART_TRAILER.min(behind.len());
            rest = behind.split_at_mut(skipped).1;
        }
    }

    /// Bytes at the end that cannot be classified yet.
    fn unsure(&self) -> usize {
        if self.is_broken { 0 } else { self.reader.unsure_bytes() }
    }

    /// Overwrites these pieces, given by offset and length: they are never read.
    fn wipe_all(&mut self, pieces: impl IntoIterator<Item = (usize, usize)>) {
        for (from, length) in pieces {
            self.wipe(from, length);
        }
    }

    fn wipe(&mut self, from: usize, length: usize) {
        wipe(&mut self.kept, from.saturating_sub(self.given), length);
    }
}

fn wipe(kept: &mut VecDeque<u8>, from: usize, length: usize) {
    kept.iter_mut().skip(from).take(length).for_each(|byte| *byte = 0);
}

#[cfg(test)]
#[path = "scrub/tests.rs"]
mod tests;
