//! Input that was received and not read yet.

use crate::Error;

/// A buffer with an offset: the rest of an input is copied once, however many turns it takes to read it.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    bytes: Vec<u8>,
    at: usize,
}

impl Unread {
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) const fn length(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Calls `read` with the unread bytes followed by `input`, and keeps what it does not take.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        read: impl FnOnce(&mut &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.is_empty() {
            let mut rest = input;
            let outcome = read(&mut rest);
            self.bytes.extend_from_slice(rest);
            return outcome;
        }
        if !input.is_empty() {
            self.bytes.drain(..self.at);
            self.at = 0;
            self.bytes.extend_from_slice(input);
        }
        let mut rest = self.bytes.get(self.at..).unwrap_or_default();
        let outcome = read(&mut rest);
        self.at = self.bytes.len() - rest.len();
        if self.length() == 0 {
            *self = Self::default();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads at most `count` bytes.
    fn take(unread: &mut Unread, input: &[u8], count: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        let outcome = unread.read(input, |rest| {
            let (now, later) = rest.split_at(count.min(rest.len()));
            taken.extend_from_slice(now);
            *rest = later;
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
        taken
    }

    #[test]
    fn bytes_are_read_in_order_of_arrival_and_moved_once() {
        let mut unread = Unread::default();
        assert_eq!(take(&mut unread, b"abcdef", 2), b"ab");
        let kept = unread.bytes.as_ptr();
        assert_eq!(take(&mut unread, b"", 1), b"c");
        assert_eq!((unread.bytes.as_ptr(), unread.length()), (kept, 3));
        assert_eq!(take(&mut unread, b"gh", 4), b"defg");
        assert_eq!(take(&mut unread, b"", 9), b"h");
        assert!(unread.is_empty() && unread.bytes.capacity() == 0, "the memory is free again");
    }
}
