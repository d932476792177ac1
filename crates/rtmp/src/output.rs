//! Outgoing bytes, collected for vectored writes: small protocol bytes are copied together, payloads are shared.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Smaller payloads are copied after the preceding bytes: a separate slice would cost more.
const COPY_LIMIT: usize = 1024;

/// A queue of bytes to write, filled by the session and emptied by the driver.
#[derive(Debug, Default)]
pub struct Output {
    ready: VecDeque<Bytes>,
    /// Small bytes that follow `ready`.
    tail: BytesMut,
    pending: usize,
    /// Total bytes ever queued.
    put: u64,
    /// The queued answers, oldest first.
    answers: VecDeque<Answer>,
    answer_bytes: usize,
}

/// A reply that the peer provoked, as opposed to media it requested.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Its end, counted in bytes ever queued.
    end: u64,
    bytes: usize,
}

impl Output {
    /// Whether there is nothing to write.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Number of bytes to write.
    #[must_use]
    pub const fn pending_bytes(&self) -> usize {
        self.pending
    }

    /// Size of the queued answers; a partly written one counts in full.
    pub(crate) const fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// Fills `slices` with what to write next, in order; returns how many were filled.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let tail = (!self.tail.is_empty()).then_some(&self.tail[..]);
        let all = self.ready.iter().map(|bytes| &bytes[..]).chain(tail);
        let mut count = 0;
        for (slot, bytes) in slices.iter_mut().zip(all) {
            *slot = IoSlice::new(bytes);
            count += 1;
        }
        count
    }

    /// Removes `written` bytes from the queue; an excess is ignored.
    pub fn consume(&mut self, written: usize) {
        let mut left = written.min(self.pending);
        self.pending -= left;
        let out = self.put - self.pending as u64;
        while let Some(answer) = self.answers.front().filter(|answer| answer.end <= out) {
            self.answer_bytes -= answer.bytes;
            self.answers.pop_front();
        }
        while let Some(front) = self.ready.front_mut() {
            if left < front.len() {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.ready.pop_front();
        }
        self.tail.advance(left.min(self.tail.len()));
    }

    /// Appends small bytes by copying.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        self.add(bytes.len());
    }

    /// Appends a payload, shared unless it is small.
    pub(crate) fn put_shared(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_LIMIT {
            self.put(&bytes);
            return;
        }
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.split().freeze());
        }
        self.add(bytes.len());
        self.ready.push_back(bytes);
    }

    /// Appends parts shared with other outputs, `bytes` in total; they are copied only if all of them together are
    /// small.
    pub(crate) fn put_parts(&mut self, parts: &[Bytes], bytes: usize) {
        if bytes < COPY_LIMIT {
            parts.iter().for_each(|part| self.put(part));
            return;
        }
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.split().freeze());
        }
        self.add(bytes);
        self.ready.extend(parts.iter().cloned());
    }

    /// All queued bytes, in order.
    pub(crate) fn into_parts(mut self) -> Vec<Bytes> {
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.freeze());
        }
        self.ready.into()
    }

    /// Counts everything queued since `before` bytes were pending as an answer.
    pub(crate) fn count_answer(&mut self, before: usize) {
        let bytes = self.pending - before;
        self.answer_bytes += bytes;
        self.answers.push_back(Answer { end: self.put, bytes });
    }

    const fn add(&mut self, bytes: usize) {
        self.pending += bytes;
        self.put += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(output: &mut Output, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 2];
            let count = output.io_slices(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|s| s.iter().copied()).collect();
            let taken = step.min(all.len());
            out.extend(&all[..taken]);
            output.consume(taken);
        }
        out
    }

    #[test]
    fn bytes_leave_in_order_however_much_a_write_accepts() {
        for step in [1, 7, 300, 10_000] {
            let mut output = Output::default();
            let mut want = Vec::new();
            for (n, size) in [3_usize, 1000, 4, 5, 255, 256, 2000, 1].into_iter().enumerate() {
                let bytes = vec![n as u8; size];
                want.extend(&bytes);
                if n % 2 == 0 { output.put(&bytes) } else { output.put_shared(bytes.into()) }
            }
            assert_eq!(output.pending_bytes(), want.len());
            assert_eq!(drain(&mut output, step), want);
        }
    }

    #[test]
    fn answers_count_until_they_are_written_whatever_is_between_them() {
        let mut output = Output::default();
        let answer = |output: &mut Output, bytes: &[u8]| {
            let before = output.pending_bytes();
            output.put(bytes);
            output.count_answer(before);
        };
        answer(&mut output, &[1; 10]);
        output.put_shared(vec![2; 1000].into());
        answer(&mut output, &[3; 20]);
        output.put_shared(vec![4; 1000].into());
        for (written, left) in [(0, 30), (9, 30), (1, 20), (1019, 20), (1, 0), (1000, 0)] {
            output.consume(written);
            assert_eq!(output.answer_bytes(), left);
        }
        assert!(output.is_empty() && output.answers.is_empty());
    }
}
