//! Transcodes Opus to AAC on dedicated audio threads, so that a slow encoder never delays video. What is done with the
//! AAC is up to the stream's worker.
//!
//! Contract: a stream's media worker opens a [`TranscoderRing`], pushes its Opus frames in order of arrival, and closes
//! it. When `notify` names the stream, the worker reads [`TranscoderRing::failure`] and drains the ring; `notify` is
//! called again only for what is added after that. Only one worker uses a ring. Nothing here blocks the caller.

mod ring;
mod serve;
#[cfg(test)]
mod tests;
mod turn;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use headgate_media::Frame;
use headgate_transcode::{AacBitrate, Encoders};

use crate::publish::record::StreamId;
pub(crate) use ring::TranscoderRing;

/// Default AAC bitrate, unless the publish requests another.
pub(crate) const AUDIO_BITRATE: AacBitrate = AacBitrate::PerChannel(64_000);

/// Called with a media worker and one of its streams whose ring has new output or a new failure.
pub(crate) type Notify = Arc<dyn Fn(usize, StreamId) + Send + Sync>;

/// The handle to the audio threads, shared by the media workers.
pub(crate) struct Transcoders {
    shared: Arc<Shared>,
    next_thread: AtomicUsize,
}

/// The audio threads before they are started.
pub(crate) struct TranscodingThreads {
    shared: Arc<Shared>,
    inboxes: Vec<Receiver<Job>>,
}

/// State shared by the handle and the threads.
struct Shared {
    // One per audio thread; a ring is queued at most once.
    jobs: Vec<Sender<Job>>,
    encoders: Encoders,
    running: AtomicUsize,
    failed: AtomicU64,
}

/// A request to an audio thread.
enum Job {
    Serve(Arc<TranscoderRing>),
    Stop,
}

impl Transcoders {
    /// `count` audio threads, at least one. They run once [`TranscodingThreads::spawn`] is called.
    pub(crate) fn new(count: usize, encoders: Encoders) -> (Self, TranscodingThreads) {
        let (jobs, inboxes) = (0..count.max(1)).map(|_| channel()).unzip();
        let (running, failed) = (AtomicUsize::new(0), AtomicU64::new(0));
        let shared = Arc::new(Shared { jobs, encoders, running, failed });
        let threads = TranscodingThreads { shared: shared.clone(), inboxes };
        (Self { shared, next_thread: AtomicUsize::new(0) }, threads)
    }

    /// Opens a transcoder for a stream of media worker `worker` that produces AAC of this bitrate.
    pub(crate) fn open(
        &self,
        stream: StreamId,
        worker: usize,
        bitrate: AacBitrate,
    ) -> Arc<TranscoderRing> {
        let thread =
            self.next_thread.fetch_add(1, Ordering::Relaxed) % self.shared.jobs.len().max(1);
        self.shared.running.fetch_add(1, Ordering::Relaxed);
        let encoders = self.shared.encoders.clone();
        Arc::new(TranscoderRing::new(stream, worker, thread, bitrate, encoders))
    }

    /// Passes an Opus frame, a packet or a configuration, to a stream's transcoder. If its ring is full, the oldest
    /// frame is dropped and concealed like a lost packet.
    pub(crate) fn push(&self, ring: &Arc<TranscoderRing>, packet: Frame) {
        ring.push(packet);
        self.shared.schedule(ring);
    }

    /// Closes a ring whose AAC is no longer needed. A second call does nothing.
    pub(crate) fn close(&self, ring: &Arc<TranscoderRing>) {
        if ring.close() {
            self.shared.running.fetch_sub(1, Ordering::Relaxed);
            self.shared.schedule(ring);
        }
    }

    /// Number of open rings.
    pub(crate) fn running(&self) -> usize {
        self.shared.running.load(Ordering::Relaxed)
    }

    /// Number of rings that have had a [`TranscoderRing::failure`] since the start, each counted once.
    pub(crate) fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Ends the threads. Frames that wait in the rings are dropped.
    pub(crate) fn stop(&self) {
        for inbox in &self.shared.jobs {
            // Fails only if the thread has already ended.
            let _ = inbox.send(Job::Stop);
        }
    }
}

impl TranscodingThreads {
    /// Starts the audio threads and passes each to `started`.
    ///
    /// # Errors
    /// The system refused a thread; those already started end with [`Transcoders::stop`].
    pub(crate) fn spawn(
        self,
        notify: Notify,
        mut started: impl FnMut(JoinHandle<()>),
    ) -> io::Result<()> {
        for (index, inbox) in self.inboxes.into_iter().enumerate() {
            let (shared, notify) = (self.shared.clone(), notify.clone());
            let serve = move || {
                while let Ok(Job::Serve(ring)) = inbox.recv() {
                    shared.serve(&ring, &notify, Instant::now());
                }
            };
            started(Builder::new().name(format!("audio-{index}")).spawn(serve)?);
        }
        Ok(())
    }
}

impl Shared {
    /// Queues a ring for its audio thread, unless it is queued already.
    fn schedule(&self, ring: &Arc<TranscoderRing>) {
        if ring.set_scheduled()
            && let Some(inbox) = self.jobs.get(ring.thread())
        {
            // Fails only if the thread has ended, and then the AAC is not needed.
            let _ = inbox.send(Job::Serve(ring.clone()));
        }
    }

    /// Runs one turn of a ring on its audio thread.
    fn serve(&self, ring: &Arc<TranscoderRing>, notify: &Notify, now: Instant) {
        let outcome = ring.take_turn(now);
        if outcome.is_first_failure {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        if outcome.must_notify {
            notify(ring.worker(), ring.stream());
        }
        if outcome.has_more {
            self.schedule(ring);
        }
    }
}
