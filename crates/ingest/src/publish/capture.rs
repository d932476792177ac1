//! Carries records from a publish's session to its capture file over a bounded queue, without ever blocking. Pure but
//! for its atomics; the reactor writes the file.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headgate_capture::{Ended, FrameDigest, Kind};
use headgate_media::{Frame, TimePolicy};

use super::lock::lock;

/// Records that may wait to be written.
const NOTES_LIMIT: usize = 16_384;
/// Bytes that may wait: several seconds at the highest rate a broadcaster may send.
const QUEUE_BYTES_LIMIT: u64 = 16 << 20;
/// Bytes that the clocks take in the body of [`Kind::State`]; the state of the RTMP session follows them.
pub(crate) const CLOCK_BYTES: usize = 2 + TimePolicy::STATE_BYTES;

/// What to capture, and to which file.
#[derive(Clone, Debug)]
pub struct CaptureSettings {
    /// Path of a file that must not exist yet.
    pub path: PathBuf,
    /// A JSON object for human readers, written to the file's header.
    pub header: String,
    /// Whether audio and video payloads are overwritten.
    pub without_media: bool,
    /// Size limit of the file.
    pub bytes_limit: u64,
    /// Duration limit, counted from the start of the capture.
    pub time_limit: Duration,
}

/// State of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureStatus {
    /// Bytes written to the file so far.
    pub bytes: u64,
    /// Frames that the session has passed on.
    pub frames: u64,
    /// Why the capture ended, once its file is closed.
    pub ended: Option<&'static str>,
}

/// State of a capture, shared by the session, the writing thread and the gateway.
#[derive(Debug, Default)]
pub(crate) struct CaptureState {
    queued: AtomicU64,
    bytes: AtomicU64,
    frames: AtomicU64,
    is_stopped: AtomicBool,
    is_closed: AtomicBool,
    reason: Mutex<Option<&'static str>>,
}

impl CaptureState {
    /// Stops the capture; the first reason counts.
    pub(crate) fn stop(&self, reason: &'static str) {
        lock(&self.reason).get_or_insert(reason);
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Whether nothing more may be written.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Why it ended.
    pub(crate) fn reason(&self) -> &'static str {
        lock(&self.reason).unwrap_or("publish_ended")
    }

    /// Sets the current size of the file.
    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Releases the queue space of a note that was taken.
    pub(crate) fn note_taken(&self, note: &Note) {
        self.queued.fetch_sub(note.body.len() as u64, Ordering::Relaxed);
    }

    /// Marks the file as closed.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub(crate) fn status(&self) -> CaptureStatus {
        CaptureStatus {
            bytes: self.bytes.load(Ordering::Relaxed),
            frames: self.frames.load(Ordering::Relaxed),
            ended: self.is_closed.load(Ordering::Acquire).then(|| self.reason()),
        }
    }
}

/// One record on its way to the file.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) at_ns: u64,
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
}

/// The session's end of a capture. Without a capture every method costs one comparison.
#[derive(Default)]
pub(crate) struct Tap(Option<Box<Running>>);

struct Running {
    notes: SyncSender<Note>,
    state: Arc<CaptureState>,
    time_limit: Duration,
    started: Option<Instant>,
}

/// Creates both ends of a capture and their shared state.
pub(crate) fn capture_pipe(time_limit: Duration) -> (Tap, Receiver<Note>, Arc<CaptureState>) {
    let (notes, taken) = sync_channel(NOTES_LIMIT);
    let state = Arc::new(CaptureState::default());
    let running = Running { notes, state: state.clone(), time_limit, started: None };
    (Tap(Some(Box::new(running))), taken, state)
}

impl Tap {
    /// Whether a capture is running.
    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records an event at `now`. A full queue ends the capture.
    #[inline]
    pub(crate) fn put(&mut self, kind: Kind, now: Instant, body: impl FnOnce() -> Vec<u8>) {
        let Some(running) = &mut self.0 else { return };
        if !running.put(kind, now, body) {
            self.0 = None;
        }
    }

    /// Records a frame that is passed on.
    pub(crate) fn frame(&mut self, frame: &Frame, now: Instant) {
        let Some(running) = &self.0 else { return };
        running.state.frames.fetch_add(1, Ordering::Relaxed);
        self.put(Kind::Frame, now, || FrameDigest::of(frame).to_bytes());
    }

    /// Ends the capture for this reason.
    pub(crate) fn stop(&mut self, reason: &'static str) {
        if let Some(running) = self.0.take() {
            running.state.stop(reason);
        }
    }

    /// Records the end of the publish, and ends the capture.
    pub(crate) fn end(&mut self, reason: &'static str, is_ordered: bool, now: Instant) {
        let ended = || Ended { is_ordered, reason: reason.to_owned() }.to_bytes();
        self.put(Kind::Ended, now, ended);
        self.0 = None;
    }
}

impl Running {
    /// Returns false when the capture is over.
    #[cold]
    fn put(&mut self, kind: Kind, now: Instant, body: impl FnOnce() -> Vec<u8>) -> bool {
        let since = now.saturating_duration_since(*self.started.get_or_insert(now));
        if self.state.is_stopped() {
            return false;
        }
        // An input and the frames it produced are never separated.
        if since >= self.time_limit && kind != Kind::Frame {
            self.state.stop("time_limit");
            return false;
        }
        let at_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let note = Note { at_ns, kind, body: body() };
        let bytes = note.body.len() as u64;
        let waiting = self.state.queued.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if waiting > QUEUE_BYTES_LIMIT || self.notes.try_send(note).is_err() {
            self.state.stop("disk_too_slow");
            return false;
        }
        true
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_on() { "Tap(on)" } else { "Tap(off)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_accepts_nothing_ends_the_capture_but_not_the_session() {
        let (mut tap, taken, state) = capture_pipe(Duration::from_secs(60));
        let now = Instant::now();
        for _ in 0..17 {
            tap.put(Kind::Input, now, || vec![0; 1 << 20]);
        }
        assert!(!tap.is_on());
        assert_eq!(state.reason(), "disk_too_slow");
        assert_eq!(taken.try_iter().count(), 16);
    }

    #[test]
    fn the_time_limit_ends_it_after_a_complete_input() {
        let (mut tap, taken, state) = capture_pipe(Duration::from_secs(2));
        let start = Instant::now();
        tap.put(Kind::Input, start, Vec::new);
        tap.put(Kind::Frame, start + Duration::from_secs(2), Vec::new);
        tap.put(Kind::Input, start + Duration::from_secs(2), Vec::new);
        assert!(!tap.is_on());
        assert_eq!((state.reason(), taken.try_iter().count()), ("time_limit", 2));
    }
}
