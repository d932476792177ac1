//! Decides which stream gets the next AAC encoder and which encoders are created in advance. Never occupies an audio
//! thread for longer than a lock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use headgate_media::Channels;
use headgate_transcode::{AacBitrate, Encoder, EncoderKind, EncoderPool};

use super::ring::TranscoderRing;

/// Default AAC bitrate, unless the publish requests another.
pub(crate) const AUDIO_BITRATE: AacBitrate = AacBitrate::PerChannel(64_000);
/// Number of most recently requested encoder kinds that count as in demand: the usual bitrate and one more, in mono and
/// stereo.
const KINDS_LIMIT: usize = 4;
/// Minimum number of idle encoders that are kept, some hundred KiB each, from streams that ended for the next ones.
const LEAST_IDLE: usize = 8;

/// Idle encoders that the pool keeps, for `ahead` of each kind in demand. Never fewer than are created in advance:
/// those would be freed and created again endlessly.
pub(super) fn idle_limit(ahead: usize) -> usize {
    LEAST_IDLE.max(KINDS_LIMIT * ahead)
}

/// Idle encoders, and the streams that wait for one.
pub(super) struct Encoders {
    pool: EncoderPool,
    ahead: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    // In the order of their requests; a ring waits at most once.
    waiting: VecDeque<(EncoderKind, Arc<TranscoderRing>)>,
    // Kinds in demand, the newest first.
    kinds: Vec<EncoderKind>,
    is_stopping: bool,
}

/// The next task of the thread that creates encoders.
pub(super) enum Work {
    /// Create an encoder for a waiting stream.
    Serve(EncoderKind, Arc<TranscoderRing>),
    /// Create an encoder in advance.
    Ahead(EncoderKind),
}

impl Encoders {
    pub(super) fn new(pool: EncoderPool, ahead: usize) -> Self {
        Self { pool, ahead, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes an idle encoder for `ring`. If there is none, or other rings wait for that kind, the ring is queued and
    /// [`TranscoderRing::deliver`] is called later.
    pub(super) fn request(&self, kind: EncoderKind, ring: &Arc<TranscoderRing>) -> Option<Encoder> {
        let mut state = self.lock();
        state.note(kind);
        let has_others = state.waiting.iter().any(|(waiting, _)| *waiting == kind);
        let idle = if has_others { None } else { self.pool.take(kind) };
        if idle.is_none() {
            state.waiting.push_back((kind, ring.clone()));
        }
        self.changed.notify_one();
        idle
    }

    /// Creates the usual kinds in advance.
    pub(super) fn warm(&self) {
        let mut state = self.lock();
        for channels in [Channels::Mono, Channels::Stereo] {
            state.note(EncoderKind::new(channels, AUDIO_BITRATE));
        }
        self.changed.notify_one();
    }

    /// Waits for the next task. `None` after [`Encoders::stop`].
    pub(super) fn wait(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            if let Some(work) = self.next_work(&mut state) {
                return Some(work);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the thread that calls [`Encoders::wait`].
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopping = true;
        state.waiting.clear();
        self.changed.notify_all();
    }

    /// Performs one task, which blocks while an encoder is created. Returns the ring that was served.
    pub(super) fn make(&self, work: Work) -> Option<Arc<TranscoderRing>> {
        match work {
            Work::Serve(kind, ring) => {
                // One may have been returned by a stream that ended.
                ring.deliver(self.pool.take(kind).map_or_else(|| self.create(kind), Ok));
                Some(ring)
            }
            Work::Ahead(kind) => {
                // Dropping an encoder returns it to the pool.
                if self.create(kind).is_err() {
                    // Do not retry until a stream requests one; its ring then reports the reason.
                    self.lock().kinds.retain(|other| *other != kind);
                }
                None
            }
        }
    }

    fn create(&self, kind: EncoderKind) -> Result<Encoder, String> {
        match catch_unwind(AssertUnwindSafe(|| self.pool.make(kind))) {
            Ok(made) => made.map_err(|error| error.to_string()),
            Err(panic) => Err(format!("no AAC encoder could be made: {}", panic_words(&*panic))),
        }
    }

    /// Waiting streams come first.
    fn next_work(&self, state: &mut State) -> Option<Work> {
        while let Some((kind, ring)) = state.waiting.pop_front() {
            if !ring.is_closed() {
                return Some(Work::Serve(kind, ring));
            }
        }
        let is_short = |kind: &&EncoderKind| self.pool.idle(**kind) < self.ahead;
        state.kinds.iter().find(is_short).copied().map(Work::Ahead)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two operations, so a panic elsewhere cannot have broken it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Encoders {
    /// [`Encoders::wait`] without waiting.
    pub(super) fn poll(&self) -> Option<Work> {
        self.next_work(&mut self.lock())
    }
}

impl State {
    fn note(&mut self, kind: EncoderKind) {
        self.kinds.retain(|other| *other != kind);
        self.kinds.insert(0, kind);
        self.kinds.truncate(KINDS_LIMIT);
    }
}

/// The message of a panic.
pub(super) fn panic_words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panicked")
}
