//! Audio workers: Opus becomes AAC beside the media workers, so that a slow encoder never delays a picture.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_queue::ArrayQueue;
use headgate_media::transcode::{EncoderKind, EncoderPool, Transcoder};
use headgate_media::{Channels, Frame};

use crate::directory::StreamId;
use crate::shared::{Command, Shared};

/// Opus packets that may wait for a transcoder: more than a whole cached GOP. When full, the oldest is dropped and
/// the transcoder conceals it.
const INPUT_LIMIT: usize = 512;
/// AAC frames that may wait for the stream's worker, about 20 s; when full, the oldest is dropped.
const OUTPUT_LIMIT: usize = 1024;
/// Encoders kept ready: making one takes 50 ms.
const IDLE_LIMIT: usize = 8;
/// Of each kind, made ahead as soon as someone publishes Opus.
const WARM: usize = 2;
/// AAC bitrate unless the publish asks for another, bit/s of a stereo sound.
pub(crate) const AUDIO_BITRATE: u32 = 128_000;

/// One stream's way through a transcoder.
pub(crate) struct Lane {
    stream: StreamId,
    /// The worker that the stream lives on.
    owner: usize,
    worker: usize,
    input: ArrayQueue<Frame>,
    output: ArrayQueue<Frame>,
    is_scheduled: AtomicBool,
    is_announced: AtomicBool,
    is_over: AtomicBool,
    /// Only its audio worker takes it, so it is never waited for.
    transcoder: Mutex<Option<Transcoder>>,
}

enum Job {
    Lane(Arc<Lane>),
    Warm,
    Stop,
}

/// The audio workers of the process.
pub(crate) struct AudioWorkers {
    jobs: Vec<Sender<Job>>,
    warmer: Sender<Job>,
    pool: EncoderPool,
    next: AtomicUsize,
    running: Arc<AtomicUsize>,
}

/// What the audio threads wait on, one for each and one for the warmer.
pub(crate) struct AudioInboxes {
    workers: Vec<Receiver<Job>>,
    warmer: Receiver<Job>,
}

impl AudioWorkers {
    /// `count` workers, at least one; they run once [`AudioInboxes::spawn`] is called.
    pub(crate) fn new(count: usize) -> (Self, AudioInboxes) {
        let (jobs, workers) = (0..count.max(1)).map(|_| channel()).unzip();
        let (warmer, warm_inbox) = channel();
        let pool = EncoderPool::new(IDLE_LIMIT);
        let (next, running) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let inboxes = AudioInboxes { workers, warmer: warm_inbox };
        (Self { jobs, warmer, pool, next, running }, inboxes)
    }

    /// Someone is about to publish Opus: encoders are made ahead.
    pub(crate) fn warm(&self) {
        let _ = self.warmer.send(Job::Warm);
    }

    /// A transcoder for a stream of media worker `owner`.
    pub(crate) fn open_lane(&self, stream: StreamId, owner: usize, bitrate: u32) -> Arc<Lane> {
        let worker = self.next.fetch_add(1, Ordering::Relaxed) % self.jobs.len().max(1);
        self.running.fetch_add(1, Ordering::Relaxed);
        Arc::new(Lane {
            stream,
            owner,
            worker,
            input: ArrayQueue::new(INPUT_LIMIT),
            output: ArrayQueue::new(OUTPUT_LIMIT),
            is_scheduled: AtomicBool::new(false),
            is_announced: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            transcoder: Mutex::new(Some(Transcoder::new(&self.pool, bitrate))),
        })
    }

    /// Gives a packet to a stream's transcoder.
    pub(crate) fn push(&self, lane: &Arc<Lane>, packet: Frame) {
        lane.input.force_push(packet);
        self.schedule(lane);
    }

    /// Nobody needs the stream's AAC any more.
    pub(crate) fn close_lane(&self, lane: &Arc<Lane>) {
        if !lane.is_over.swap(true, Ordering::AcqRel) {
            self.running.fetch_sub(1, Ordering::Relaxed);
            self.schedule(lane);
        }
    }

    /// Transcoders that run.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Ends the audio threads.
    pub(crate) fn stop(&self) {
        for inbox in self.jobs.iter().chain([&self.warmer]) {
            let _ = inbox.send(Job::Stop);
        }
    }

    fn schedule(&self, lane: &Arc<Lane>) {
        if !lane.is_scheduled.swap(true, Ordering::AcqRel)
            && let Some(inbox) = self.jobs.get(lane.worker)
        {
            let _ = inbox.send(Job::Lane(lane.clone()));
        }
    }
}

impl AudioInboxes {
    /// Starts the threads.
    pub(crate) fn spawn(self, shared: &Arc<Shared>) -> std::io::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        for (index, inbox) in self.workers.into_iter().enumerate() {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name(format!("audio-{index}"));
            threads.push(thread.spawn(move || serve(&inbox, &shared))?);
        }
        let pool = shared.audio.pool.clone();
        let thread = std::thread::Builder::new().name("audio-warm".to_owned());
        threads.push(thread.spawn(move || warm(&self.warmer, &pool))?);
        Ok(threads)
    }
}

fn serve(inbox: &Receiver<Job>, shared: &Arc<Shared>) {
    while let Ok(Job::Lane(lane)) = inbox.recv() {
        lane.is_scheduled.store(false, Ordering::Release);
        if catch_unwind(AssertUnwindSafe(|| lane.transcode())).is_err() {
            say!("a transcoder panicked: its stream goes on without AAC");
            *lane.lock() = None;
        }
        if !lane.output.is_empty() && !lane.is_announced.swap(true, Ordering::AcqRel) {
            shared.send(lane.owner, Command::Transcoded { stream: lane.stream });
        }
    }
}

fn warm(inbox: &Receiver<Job>, pool: &EncoderPool) {
    while let Ok(Job::Warm) = inbox.recv() {
        for channels in [Channels::Mono, Channels::Stereo] {
            let kind = EncoderKind::new(channels, AUDIO_BITRATE);
            let missing = WARM.saturating_sub(pool.idle(kind));
            // What cannot be made ahead is made when it is needed, and fails there with its reason.
            let _ = pool.warm(kind, missing);
        }
    }
}

impl Lane {
    /// What the transcoder made since the last call.
    pub(crate) fn drain(&self) -> Vec<Frame> {
        self.is_announced.store(false, Ordering::Release);
        std::iter::from_fn(|| self.output.pop()).collect()
    }

    fn transcode(&self) {
        let mut transcoder = self.lock();
        if self.is_over.load(Ordering::Acquire) {
            *transcoder = None;
            return;
        }
        let Some(transcoder) = transcoder.as_mut() else { return };
        let mut made = Vec::new();
        while let Some(packet) = self.input.pop() {
            // A packet that cannot be decoded is concealed and counted; the next one goes on.
            let _ = transcoder.handle_frame(&packet, &mut made);
            for frame in made.drain(..) {
                self.output.force_push(frame);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Transcoder>> {
        self.transcoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
