//! Decides which DTLS records pass, before and after the handshake. Pure.
//!
//! The DTLS library queues early records without bound, recurses per fragment and fails on a plaintext alert; the gate
//! lets none of these through. Sources: RFC 6347 4.1, 4.2.2; `reliability.md` §1.

use bytes::BytesMut;

use super::client_hello::{HANDSHAKE, MESSAGE_HEADER, RECORD_HEADER};

/// Datagrams accepted from one session before its handshake is complete.
const HANDSHAKE_DATAGRAM_LIMIT: u32 = 64;
/// Bytes accepted from one session before its handshake is complete.
const HANDSHAKE_BYTES_LIMIT: usize = 64 * 1024;
/// Handshake datagrams accepted afterwards: a lost final flight is answered, an endless repetition is not.
const LATE_DATAGRAM_LIMIT: u32 = 8;
/// Most bytes of one handshake message.
const MESSAGE_LIMIT: usize = 16 * 1024;
/// A shorter fragment must be the last of its message: the reassembler works per fragment.
const FRAGMENT_LEAST: usize = 64;
/// Records of the next epoch accepted before the handshake is complete: the peer's Finished, a few times over.
const EARLY_RECORD_LIMIT: u32 = 16;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;

/// Filters the DTLS datagrams of one session. The caller has checked the source: it is a path that passed an ICE check.
#[derive(Debug, Default)]
pub struct Gate {
    is_complete: bool,
    datagrams: u32,
    bytes: usize,
    late: u32,
    early: u32,
    dropped: u64,
}

impl Gate {
    /// The records in `datagram` that may pass; `None` if there are none.
    pub fn admit(&mut self, datagram: &[u8]) -> Option<BytesMut> {
        let admitted = self.filter(datagram);
        if admitted.is_none() {
            self.dropped += 1;
        }
        admitted
    }

    /// The handshake is complete: from here on only protected records pass.
    pub const fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Datagrams that were dropped entirely.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn filter(&mut self, datagram: &[u8]) -> Option<BytesMut> {
        if !self.is_complete {
            self.datagrams += 1;
            self.bytes += datagram.len();
            if self.datagrams > HANDSHAKE_DATAGRAM_LIMIT || self.bytes > HANDSHAKE_BYTES_LIMIT {
                return None;
            }
        }
        let mut admitted = BytesMut::new();
        let mut has_handshake = false;
        let mut rest = datagram;
        while !rest.is_empty() {
            let header = rest.get(..RECORD_HEADER)?;
            let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
            let record = rest.get(..RECORD_HEADER + length)?;
            let epoch = u16::from_be_bytes([header[3], header[4]]);
            if self.passes(header[0], epoch, record.get(RECORD_HEADER..).unwrap_or_default()) {
                has_handshake |= header[0] == HANDSHAKE;
                admitted.extend_from_slice(record);
            }
            rest = rest.get(RECORD_HEADER + length..).unwrap_or_default();
        }
        if self.is_complete && has_handshake {
            self.late += 1;
            if self.late > LATE_DATAGRAM_LIMIT {
                return None;
            }
        }
        (!admitted.is_empty()).then_some(admitted)
    }

    fn passes(&mut self, kind: u8, epoch: u16, body: &[u8]) -> bool {
        match (epoch, kind) {
            (0, HANDSHAKE) => !self.is_complete && has_sound_fragments(body),
            (0, CHANGE_CIPHER_SPEC) => !self.is_complete && body.len() == 1,
            (1, HANDSHAKE | ALERT | APPLICATION_DATA) if self.is_complete => true,
            (1, HANDSHAKE) => {
                self.early += 1;
                self.early <= EARLY_RECORD_LIMIT
            }
            _ => false,
        }
    }
}

/// Whether every handshake fragment in a plaintext record is complete, bounded and not one of many tiny ones.
fn has_sound_fragments(mut body: &[u8]) -> bool {
    if body.is_empty() {
        return false;
    }
    while !body.is_empty() {
        let Some(header) = body.get(..MESSAGE_HEADER) else { return false };
        let length = be24(header, 1);
        let (offset, fragment) = (be24(header, 6), be24(header, 9));
        let is_last = offset + fragment == length;
        let is_sound = length <= MESSAGE_LIMIT
            && offset + fragment <= length
            && (is_last || fragment >= FRAGMENT_LEAST)
            && (fragment > 0 || length == 0);
        if !is_sound {
            return false;
        }
        let Some(after) = body.get(MESSAGE_HEADER + fragment..) else { return false };
        body = after;
    }
    true
}

fn be24(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 3).map_or(usize::MAX >> 1, |three| {
        usize::from(three[0]) << 16 | usize::from(three[1]) << 8 | usize::from(three[2])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, epoch: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, 0xfe, 0xfd];
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn fragment(length: usize, offset: usize, body: &[u8]) -> Vec<u8> {
        let three = |value: usize| [(value >> 16) as u8, (value >> 8) as u8, value as u8];
        [&[1][..], &three(length), &[0, 0], &three(offset), &three(body.len()), body].concat()
    }

    #[test]
    fn a_handshake_flight_passes_unchanged() {
        let mut gate = Gate::default();
        let flight = [
            record(HANDSHAKE, 0, &fragment(100, 0, &[7; 100])),
            record(CHANGE_CIPHER_SPEC, 0, &[1]),
            record(HANDSHAKE, 1, &[9; 40]),
        ]
        .concat();
        assert_eq!(gate.admit(&flight).as_deref(), Some(&flight[..]));
    }

    #[test]
    fn records_that_break_the_library_do_not_pass() {
        let table = [
            record(ALERT, 0, &[2, 40]),
            record(APPLICATION_DATA, 0, &[1]),
            record(24, 0, &[1]),
            record(HANDSHAKE, 0, &[]),
            record(HANDSHAKE, 0, &fragment(100, 0, &[])),
            record(HANDSHAKE, 0, &fragment(100, 5, &[1])),
            record(HANDSHAKE, 0, &fragment(100, 100, &[])),
            record(HANDSHAKE, 0, &fragment(20_000, 0, &[1; 200])),
            record(HANDSHAKE, 0, &fragment(0x1_0064, 0, &[1; 100])),
            record(HANDSHAKE, 0, &fragment(100, 0x1_0000, &[1; 100])),
            record(HANDSHAKE, 0, &fragment(100, 90, &[1; 20])),
            record(HANDSHAKE, 0, &fragment(100, 0, &[1; 100])[..50]),
            record(APPLICATION_DATA, 1, &[1; 30]),
            record(HANDSHAKE, 2, &[1; 30]),
            vec![22, 0xfe],
        ];
        for datagram in table {
            assert_eq!(Gate::default().admit(&datagram), None, "{datagram:02x?}");
        }
    }

    #[test]
    fn a_bad_record_beside_a_good_one_is_removed() {
        let good = record(HANDSHAKE, 0, &fragment(10, 0, &[1; 10]));
        let both = [record(ALERT, 0, &[2, 40]), good.clone()].concat();
        assert_eq!(Gate::default().admit(&both).as_deref(), Some(&good[..]));
    }

    #[test]
    fn records_before_completion_are_bounded_in_number_and_bytes() {
        let mut gate = Gate::default();
        let early = record(HANDSHAKE, 1, &[1; 30]);
        let passed = (0..20_000).filter(|_| gate.admit(&early).is_some()).count();
        assert_eq!(passed, EARLY_RECORD_LIMIT as usize);
        let mut gate = Gate::default();
        let big = record(HANDSHAKE, 0, &fragment(8000, 0, &[1; 8000]));
        assert_eq!((0..100).filter(|_| gate.admit(&big).is_some()).count(), 8);
    }

    #[test]
    fn every_limit_of_a_handshake_may_be_reached() {
        let whole = record(HANDSHAKE, 0, &fragment(1, 0, &[1]));
        let admitted = |datagram: &[u8]| {
            let mut gate = Gate::default();
            (0..100).filter(|_| gate.admit(datagram).is_some()).count()
        };
        assert_eq!(admitted(&whole), 64);
        let [longest, longer] = [MESSAGE_LIMIT, MESSAGE_LIMIT + 1]
            .map(|length| record(HANDSHAKE, 0, &fragment(length, 0, &[1; 64])));
        assert_eq!((admitted(&longest), admitted(&longer)), (64, 0));
        let short = record(HANDSHAKE, 0, &fragment(MESSAGE_LIMIT, 0, &[1; 63]));
        assert_eq!(admitted(&short), 0, "many of them would make up a message");
        let empty = record(HANDSHAKE, 0, &fragment(0, 0, &[]));
        assert_eq!(admitted(&empty), 64, "as a ServerHelloDone is");
        // 64 datagrams of exactly 1 KiB.
        let body = 1_024 - RECORD_HEADER - MESSAGE_HEADER;
        assert_eq!(admitted(&record(HANDSHAKE, 0, &fragment(body, 0, &vec![1; body]))), 64);
    }

    #[test]
    fn after_completion_only_protected_records_pass_and_few_handshakes() {
        let mut gate = Gate::default();
        gate.complete();
        assert_eq!(gate.admit(&record(HANDSHAKE, 0, &fragment(9, 0, &[1; 9]))), None);
        assert_eq!(gate.admit(&record(CHANGE_CIPHER_SPEC, 0, &[1])), None);
        let finished = record(HANDSHAKE, 1, &[1; 40]);
        assert_eq!((0..100).filter(|_| gate.admit(&finished).is_some()).count(), 8);
        assert!(gate.admit(&record(ALERT, 1, &[1; 30])).is_some());
    }
}
