//! Opus to AAC on audio threads of its own, so that a slow encoder never delays video. Not what becomes of the AAC.
//!
//! Contract: a stream's media worker opens a [`TranscoderRing`], pushes its Opus frames in order of arrival, and closes
//! it. When `notify` names the stream, the worker reads [`TranscoderRing::failure`] and drains the ring until it is
//! empty; `notify` comes again only for what is new after that. One worker uses a ring. Nothing here blocks the caller.
//!
//! Encoders are made on a thread of their own, in the order in which streams asked. Until a stream's encoder is there
//! its packets wait in its ring, and its audio thread serves other streams.

mod encoders;
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

use headgate_media::Frame;
use headgate_media::transcode::{AacBitrate, EncoderPool};

use crate::publish::record::StreamId;
pub(crate) use encoders::AUDIO_BITRATE;
use encoders::Encoders;
pub(crate) use ring::TranscoderRing;

/// Encoders of each kind in demand that are made ahead in production: one for a stream that starts, and one for the
/// next while that one is replaced.
pub const ENCODERS_AHEAD: usize = 2;

/// Called with a media worker and one of its streams whose ring has new output or a new failure.
pub(crate) type Notify = Arc<dyn Fn(usize, StreamId) + Send + Sync>;

/// The handle to the audio threads, shared by the media workers.
pub(crate) struct Transcoders {
    shared: Arc<Shared>,
    next_thread: AtomicUsize,
}

/// What waits to be run on the audio threads.
pub(crate) struct TranscodingThreads {
    shared: Arc<Shared>,
    inboxes: Vec<Receiver<Job>>,
}

/// What the handle and the threads share.
struct Shared {
    // One per audio thread; each ring is in them once at most.
    jobs: Vec<Sender<Job>>,
    encoders: Encoders,
    running: AtomicUsize,
    failed: AtomicU64,
}

/// What an audio thread is asked to do.
enum Job {
    Serve(Arc<TranscoderRing>),
    Stop,
}

impl Transcoders {
    /// `count` audio threads, at least one, and `ahead` encoders of each kind in demand made before they are asked
    /// for. The threads run once [`TranscodingThreads::spawn`] is called.
    pub(crate) fn new(count: usize, ahead: usize) -> (Self, TranscodingThreads) {
        Self::with_pool(count, ahead, EncoderPool::new(encoders::idle_limit(ahead)))
    }

    fn with_pool(count: usize, ahead: usize, pool: EncoderPool) -> (Self, TranscodingThreads) {
        let (jobs, inboxes) = (0..count.max(1)).map(|_| channel()).unzip();
        let (running, failed) = (AtomicUsize::new(0), AtomicU64::new(0));
        let shared =
            Arc::new(Shared { jobs, encoders: Encoders::new(pool, ahead), running, failed });
        let threads = TranscodingThreads { shared: shared.clone(), inboxes };
        (Self { shared, next_thread: AtomicUsize::new(0) }, threads)
    }

    /// A transcoder for a stream of media worker `worker`, with AAC of that bitrate.
    pub(crate) fn open(
        &self,
        stream: StreamId,
        worker: usize,
        bitrate: AacBitrate,
    ) -> Arc<TranscoderRing> {
        let thread =
            self.next_thread.fetch_add(1, Ordering::Relaxed) % self.shared.jobs.len().max(1);
        self.shared.running.fetch_add(1, Ordering::Relaxed);
        Arc::new(TranscoderRing::new(stream, worker, thread, bitrate))
    }

    /// Gives an Opus frame, a packet or a configuration, to a stream's transcoder. When its ring is full the oldest is
    /// dropped, and concealed like a lost packet.
    pub(crate) fn push(&self, ring: &Arc<TranscoderRing>, packet: Frame) {
        ring.push(packet);
        self.shared.schedule(ring);
    }

    /// The stream's AAC is needed no longer. Does nothing the second time.
    pub(crate) fn close(&self, ring: &Arc<TranscoderRing>) {
        if ring.close() {
            self.shared.running.fetch_sub(1, Ordering::Relaxed);
            self.shared.schedule(ring);
        }
    }

    /// Rings that are open.
    pub(crate) fn running(&self) -> usize {
        self.shared.running.load(Ordering::Relaxed)
    }

    /// Rings that have had a [`TranscoderRing::failure`] since the start, each counted once.
    pub(crate) fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// A stream with Opus is about to start: encoders of the usual kinds are made ahead, while its client connects. Not at
    /// the start of the process: four encoders take 0.2 s of a core, and a node that only takes RTMP needs none.
    pub(crate) fn warm(&self) {
        self.shared.encoders.warm();
    }

    /// Ends the threads. What waits in the rings is dropped with them.
    pub(crate) fn stop(&self) {
        for inbox in &self.shared.jobs {
            // It fails only when the thread has ended already.
            let _ = inbox.send(Job::Stop);
        }
        self.shared.encoders.stop();
    }
}

impl TranscodingThreads {
    /// Starts the audio threads and the one that makes encoders, and gives each to `started`.
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
                    shared.serve(&ring, &notify);
                }
            };
            started(Builder::new().name(format!("audio-{index}")).spawn(serve)?);
        }
        let shared = self.shared;
        let make = move || {
            while let Some(work) = shared.encoders.wait() {
                shared.make(work);
            }
        };
        started(Builder::new().name("audio-encoders".to_owned()).spawn(make)?);
        Ok(())
    }
}

impl Shared {
    /// Queues a ring behind the others of its audio thread, unless it waits there already.
    fn schedule(&self, ring: &Arc<TranscoderRing>) {
        if ring.set_scheduled()
            && let Some(inbox) = self.jobs.get(ring.thread())
        {
            // It fails only when the thread has ended, and then nobody needs the AAC.
            let _ = inbox.send(Job::Serve(ring.clone()));
        }
    }

    /// One turn of a ring, on its audio thread.
    fn serve(&self, ring: &Arc<TranscoderRing>, notify: &Notify) {
        let outcome = ring.take_turn(&self.encoders);
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

    /// Makes one encoder, on the thread for that.
    fn make(&self, work: encoders::Work) {
        if let Some(ring) = self.encoders.make(work) {
            self.schedule(&ring);
        }
    }
}
