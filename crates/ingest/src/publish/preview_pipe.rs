//! Carries one preview to the gateway: FLV in batches, written by the stream's worker, read by any thread. A bounded
//! lock-free ring. Pure but for its atomics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

/// Bytes that may wait for the gateway, exceeded by at most one frame. Beyond that, frames wait in the queue, where
/// they can be dropped.
const PIPE_BYTES_LIMIT: usize = 512 << 10;
/// Batches that may wait: for all but the thinnest streams the byte limit is reached first.
const PIPE_BATCHES_LIMIT: usize = 64;

/// Why a preview ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewEnd {
    /// The publish has ended, or had ended before the preview began.
    PublishEnded,
    /// Nothing was read from it for too long.
    Stalled,
    /// The gateway closed it.
    Closed,
    /// A bug in the service; the publish is not affected.
    InternalError,
}

impl PreviewEnd {
    /// 0 means that the preview is running.
    const fn to_number(self) -> u8 {
        match self {
            Self::PublishEnded => 1,
            Self::Stalled => 2,
            Self::Closed => 3,
            Self::InternalError => 4,
        }
    }

    const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => None,
            1 => Some(Self::PublishEnded),
            2 => Some(Self::Stalled),
            3 => Some(Self::Closed),
            _ => Some(Self::InternalError),
        }
    }
}

/// Result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreviewRead {
    /// The next bytes of the FLV.
    Batch(Vec<u8>),
    /// No data at present: the reader is woken when there is some.
    Waiting,
    /// No more data will come.
    Ended(PreviewEnd),
}

struct Pipe {
    batches: ArrayQueue<Vec<u8>>,
    bytes: AtomicUsize,
    /// Batches taken so far.
    taken: AtomicU64,
    /// See [`PreviewEnd::to_number`].
    end: AtomicU8,
    is_left: AtomicBool,
    was_woken: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// Creates both ends of a preview. `wake` is called from any thread when there is data to read after a
/// [`PreviewRead::Waiting`]; it must not block.
pub(crate) fn preview_pipe(wake: Box<dyn Fn() + Send + Sync>) -> (PreviewWriter, PreviewReader) {
    let pipe = Arc::new(Pipe {
        batches: ArrayQueue::new(PIPE_BATCHES_LIMIT),
        bytes: AtomicUsize::new(0),
        taken: AtomicU64::new(0),
        end: AtomicU8::new(0),
        is_left: AtomicBool::new(false),
        was_woken: AtomicBool::new(false),
        wake,
    });
    let end = PreviewEnd::InternalError;
    (PreviewWriter { pipe: pipe.clone(), end }, PreviewReader { pipe })
}

/// The worker's end. Dropping it ends the preview with the reason that was set, by default
/// [`PreviewEnd::InternalError`].
pub(crate) struct PreviewWriter {
    pipe: Arc<Pipe>,
    end: PreviewEnd,
}

impl PreviewWriter {
    /// Whether another batch may be put.
    pub(crate) fn has_room(&self) -> bool {
        self.pipe.bytes.load(Ordering::Relaxed) < PIPE_BYTES_LIMIT && !self.pipe.batches.is_full()
    }

    /// Adds a batch. Returns false, and the batch is lost, if there was no [`PreviewWriter::has_room`].
    pub(crate) fn put(&self, batch: Vec<u8>) -> bool {
        // Count the bytes before the reader can take them out again.
        let bytes = batch.len();
        self.pipe.bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_put = self.pipe.batches.push(batch).is_ok();
        if !is_put {
            self.pipe.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.pipe.wake();
        is_put
    }

    /// Whether no batch is waiting to be read.
    pub(crate) fn is_drained(&self) -> bool {
        self.pipe.batches.is_empty()
    }

    /// Batches that the reader has taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.pipe.taken.load(Ordering::Relaxed)
    }

    /// Whether the reader has been dropped.
    pub(crate) fn is_left(&self) -> bool {
        self.pipe.is_left.load(Ordering::Relaxed)
    }

    /// Sets the reason that dropping the writer reports.
    pub(crate) const fn set_end(&mut self, end: PreviewEnd) {
        self.end = end;
    }
}

impl Drop for PreviewWriter {
    fn drop(&mut self) {
        self.pipe.end.store(self.end.to_number(), Ordering::Release);
        self.pipe.wake();
    }
}

/// The gateway's end. Dropping it ends the preview.
#[derive(Debug)]
pub struct PreviewReader {
    pipe: Arc<Pipe>,
}

impl PreviewReader {
    /// The next bytes, oldest first.
    #[must_use]
    pub fn read(&self) -> PreviewRead {
        loop {
            // Load the end first: if it is set, the batches found afterwards are the last ones.
            let end = self.pipe.ended();
            if let Some(batch) = self.take() {
                return PreviewRead::Batch(batch);
            }
            if let Some(end) = end {
                return PreviewRead::Ended(end);
            }
            self.pipe.was_woken.swap(false, Ordering::AcqRel);
            // Check again: a batch that arrived before the flag was reset did not wake the reader.
            if self.pipe.batches.is_empty() && self.pipe.ended().is_none() {
                return PreviewRead::Waiting;
            }
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        let batch = self.pipe.batches.pop()?;
        self.pipe.bytes.fetch_sub(batch.len(), Ordering::Relaxed);
        self.pipe.taken.fetch_add(1, Ordering::Relaxed);
        Some(batch)
    }
}

impl Drop for PreviewReader {
    fn drop(&mut self) {
        self.pipe.is_left.store(true, Ordering::Relaxed);
    }
}

impl Pipe {
    fn ended(&self) -> Option<PreviewEnd> {
        PreviewEnd::from_number(self.end.load(Ordering::Acquire))
    }

    fn wake(&self) {
        if !self.was_woken.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pipe")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> (PreviewWriter, PreviewReader, Arc<AtomicUsize>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counter = wakes.clone();
        let (writer, reader) = preview_pipe(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        (writer, reader, wakes)
    }

    #[test]
    fn a_reader_is_woken_once_until_it_finds_nothing_and_reads_everything_before_the_end() {
        let (mut writer, reader, wakes) = counted();
        assert_eq!(reader.read(), PreviewRead::Waiting);
        assert!(writer.put(vec![1]) && writer.put(vec![2]));
        assert_eq!(wakes.load(Ordering::Relaxed), 1);
        assert_eq!(reader.read(), PreviewRead::Batch(vec![1]));
        writer.set_end(PreviewEnd::PublishEnded);
        drop(writer);
        assert_eq!(reader.read(), PreviewRead::Batch(vec![2]));
        assert_eq!(reader.read(), PreviewRead::Ended(PreviewEnd::PublishEnded));
        assert_eq!(wakes.load(Ordering::Relaxed), 1, "it was still reading");
    }

    #[test]
    fn every_end_is_reported_by_its_name_and_an_unset_one_as_an_internal_error() {
        use PreviewEnd::{Closed, InternalError, PublishEnded, Stalled};
        for end in [PublishEnded, Stalled, Closed, InternalError] {
            let (mut writer, reader, wakes) = counted();
            writer.set_end(end);
            drop(writer);
            assert_eq!(reader.read(), PreviewRead::Ended(end));
            assert_eq!(wakes.load(Ordering::Relaxed), 1);
        }
        let (writer, reader, _) = counted();
        drop(writer);
        assert_eq!(reader.read(), PreviewRead::Ended(InternalError));
    }

    #[test]
    fn bytes_and_batches_are_both_bounded() {
        let (writer, reader, _) = counted();
        assert!(writer.put(vec![0; PIPE_BYTES_LIMIT - 1]) && writer.has_room());
        assert!(writer.put(vec![0; 1]) && !writer.has_room());
        assert!(matches!(reader.read(), PreviewRead::Batch(_)) && writer.has_room());
        let (writer, reader, _) = counted();
        for _ in 0..PIPE_BATCHES_LIMIT {
            assert!(writer.has_room() && writer.put(Vec::new()));
        }
        assert!(!writer.has_room() && !writer.put(Vec::new()));
        assert!(matches!(reader.read(), PreviewRead::Batch(_)) && writer.has_room());
        assert_eq!((writer.taken(), writer.is_drained()), (1, false));
        drop(reader);
        assert!(writer.is_left());
    }
}
