//! Decides which DTLS records pass, before and after the handshake, and hands on handshake messages whole. Pure.
//!
//! The DTLS library queues early records without bound, recurses per fragment, cannot put together fragments that
//! overlap, and fails on a plaintext alert; the gate lets none of these through. Sources: RFC 6347 4.1, 4.2.2, 4.2.3;
//! docs/security-model.md.

use bytes::BytesMut;

use super::reassembly::{FragmentHeader, Reassembler};

/// Datagrams accepted from one session before its handshake is complete: enough for fragments of 16 bytes, a few times
/// over. What they make the DTLS library do is bounded by the messages they complete.
const HANDSHAKE_DATAGRAM_LIMIT: u32 = 1_024;
/// Bytes accepted from one session before its handshake is complete.
const HANDSHAKE_BYTES_LIMIT: usize = 64 * 1024;
/// Handshake datagrams accepted afterwards: a lost final flight is answered, an endless repetition is not.
const LATE_DATAGRAM_LIMIT: u32 = 8;
/// Records of the next epoch accepted before the handshake is complete: the peer's Finished, a few times over.
const EARLY_RECORD_LIMIT: u32 = 16;

/// Bytes before the content of a DTLS record (RFC 6347 4.1).
pub(super) const RECORD_HEADER: usize = 13;
/// Content type of a record of handshake messages.
pub(super) const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;
/// DTLS 1.2 in the header of a record.
const VERSION: [u8; 2] = [0xfe, 0xfd];
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const HELLO_VERIFY_REQUEST: u8 = 3;

/// Filters the DTLS datagrams of one association. The caller has checked the source: it is a path that passed an ICE
/// check.
#[derive(Debug)]
pub(super) struct Gate {
    messages: Reassembler,
    is_complete: bool,
    /// The peer's ChangeCipherSpec has passed.
    has_changed_cipher: bool,
    /// Records of the next epoch that came before it: the library forgets them.
    early: BytesMut,
    /// Sequence number of the next plaintext record handed on. Several records make up a message, so theirs are not
    /// kept.
    next_record: u64,
    datagrams: u32,
    bytes: usize,
    late: u32,
    early_records: u32,
    dropped: u64,
    alert: Option<u8>,
}

impl Gate {
    /// `is_client`: we are the client, so the peer's first message is that of a server.
    #[must_use]
    pub(super) fn new(is_client: bool) -> Self {
        let first: &[u8] =
            if is_client { &[SERVER_HELLO, HELLO_VERIFY_REQUEST] } else { &[CLIENT_HELLO] };
        Self {
            messages: Reassembler::new(first),
            is_complete: false,
            has_changed_cipher: false,
            early: BytesMut::new(),
            next_record: 0,
            datagrams: 0,
            bytes: 0,
            late: 0,
            early_records: 0,
            dropped: 0,
            alert: None,
        }
    }

    /// The records that `datagram` completes: plaintext handshake messages in one record each, in order and once;
    /// `None` if there are none yet.
    pub(super) fn admit(&mut self, datagram: &[u8]) -> Option<BytesMut> {
        let mut admitted = BytesMut::new();
        if !self.filter(datagram, &mut admitted) {
            self.dropped += 1;
        }
        (!admitted.is_empty()).then_some(admitted)
    }

    /// The handshake is complete: from here on only protected records pass.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        self.early = BytesMut::new();
    }

    /// Datagrams of which nothing could be used.
    #[must_use]
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The description of the last plaintext alert. Nothing protects it, so it explains a failure but causes none.
    #[must_use]
    pub(super) const fn alert(&self) -> Option<u8> {
        self.alert
    }

    /// False when nothing in the datagram could be used.
    fn filter(&mut self, datagram: &[u8], admitted: &mut BytesMut) -> bool {
        if !self.is_complete {
            self.datagrams += 1;
            self.bytes += datagram.len();
            if self.datagrams > HANDSHAKE_DATAGRAM_LIMIT || self.bytes > HANDSHAKE_BYTES_LIMIT {
                return false;
            }
        } else if records(datagram).any(|record| record[0] == HANDSHAKE && epoch(record) == 1) {
            self.late += 1;
            if self.late > LATE_DATAGRAM_LIMIT {
                return false;
            }
        }
        let mut is_used = false;
        for record in records(datagram) {
            is_used |= self.handle_record(record, admitted);
        }
        is_used
    }

    fn handle_record(&mut self, record: &[u8], admitted: &mut BytesMut) -> bool {
        let content = record.get(RECORD_HEADER..).unwrap_or_default();
        match (epoch(record), record[0]) {
            (0, HANDSHAKE) if !self.is_complete => {
                let is_used = self.messages.handle_record(content);
                while let Some(message) = self.messages.poll() {
                    self.hand_on(HANDSHAKE, &message.to_fragment(), admitted);
                }
                is_used
            }
            (0, CHANGE_CIPHER_SPEC) if !self.is_complete && content.len() == 1 => {
                if !self.has_changed_cipher {
                    self.has_changed_cipher = true;
                    self.hand_on(CHANGE_CIPHER_SPEC, content, admitted);
                    admitted.extend_from_slice(&std::mem::take(&mut self.early));
                }
                true
            }
            (0, ALERT) if !self.is_complete => {
                if let &[_, description] = content {
                    self.alert = Some(description);
                }
                false
            }
            (1, HANDSHAKE | ALERT | APPLICATION_DATA) if self.is_complete => {
                admitted.extend_from_slice(record);
                true
            }
            (1, HANDSHAKE) => {
                self.early_records += 1;
                if self.early_records > EARLY_RECORD_LIMIT {
                    return false;
                }
                let to = if self.has_changed_cipher { admitted } else { &mut self.early };
                to.extend_from_slice(record);
                true
            }
            _ => false,
        }
    }

    /// Adds a plaintext record with the next sequence number.
    fn hand_on(&mut self, kind: u8, content: &[u8], admitted: &mut BytesMut) {
        let sequence = self.next_record.to_be_bytes();
        self.next_record += 1;
        admitted.extend_from_slice(&[kind, VERSION[0], VERSION[1], 0, 0]);
        admitted.extend_from_slice(&sequence[2..]);
        admitted.extend_from_slice(&(content.len() as u16).to_be_bytes());
        admitted.extend_from_slice(content);
    }
}

/// Whether a datagram holds a part of the first message of a client: it asks for a new association.
pub(super) fn is_first_flight(datagram: &[u8]) -> bool {
    records(datagram).any(|record| {
        let fragment = record.get(RECORD_HEADER..).and_then(FragmentHeader::read);
        let is_first = fragment.is_some_and(|part| part.kind == CLIENT_HELLO && part.sequence == 0);
        record[0] == HANDSHAKE && epoch(record) == 0 && is_first
    })
}

/// The records of a datagram, headers included, up to one that is truncated (RFC 6347 4.1.2.7).
fn records(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let header = rest.get(..RECORD_HEADER)?;
        let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
        let (record, after) = rest.split_at_checked(RECORD_HEADER + length)?;
        rest = after;
        Some(record)
    })
}

/// The epoch of a record that [`records`] returned.
fn epoch(record: &[u8]) -> u16 {
    record.get(3..5).map_or(u16::MAX, |two| u16::from_be_bytes([two[0], two[1]]))
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
