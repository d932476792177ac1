//! Which stream gets the next AAC encoder, and which encoders are made ahead. Never runs on an audio thread for longer
//! than a lock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use headgate_media::Channels;
use headgate_media::transcode::{AacBitrate, Encoder, EncoderKind, EncoderPool};

use super::ring::TranscoderRing;

/// AAC bitrate unless the publish asks for another.
pub(crate) const AUDIO_BITRATE: AacBitrate = AacBitrate::PerChannel(64_000);
/// Kinds of encoder that count as in demand, the ones asked for last: the usual bitrate and one more, in mono and stereo.
const KINDS_LIMIT: usize = 4;
/// Idle encoders kept at least, some hundred KiB each: those of streams that ended, for the next ones.
const LEAST_IDLE: usize = 8;

/// Encoders a pool keeps for `ahead` of each kind in demand. Never fewer than are made ahead, which would be freed and
/// made again without end.
pub(super) fn idle_limit(ahead: usize) -> usize {
    LEAST_IDLE.max(KINDS_LIMIT * ahead)
}

/// Idle encoders and the streams that wait for one.
pub(super) struct Encoders {
    pool: EncoderPool,
    ahead: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    // In the order in which they asked; a ring waits here once at most.
    waiting: VecDeque<(EncoderKind, Arc<TranscoderRing>)>,
    // In demand, the newest first.
    kinds: Vec<EncoderKind>,
    is_stopping: bool,
}

/// What the thread that makes encoders does next.
pub(super) enum Work {
    /// An encoder for a stream that waits.
    Serve(EncoderKind, Arc<TranscoderRing>),
    /// One for a stream to come.
    Ahead(EncoderKind),
}

impl Encoders {
    pub(super) fn new(pool: EncoderPool, ahead: usize) -> Self {
        Self { pool, ahead, state: Mutex::default(), changed: Condvar::new() }
    }

    /// An idle encoder for `ring`. If there is none, or others wait for that kind, the ring waits behind them and
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

    /// Makes the usual kinds ahead.
    pub(super) fn warm(&self) {
        let mut state = self.lock();
        for channels in [Channels::Mono, Channels::Stereo] {
            state.note(EncoderKind::new(channels, AUDIO_BITRATE));
        }
        self.changed.notify_one();
    }

    /// What to do next; waits for it. `None` after [`Encoders::stop`].
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

    /// Ends the thread that waits.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopping = true;
        state.waiting.clear();
        self.changed.notify_all();
    }

    /// Does one piece of work, which blocks while an encoder is made. Returns the ring that was served.
    pub(super) fn make(&self, work: Work) -> Option<Arc<TranscoderRing>> {
        match work {
            Work::Serve(kind, ring) => {
                // One may have come back from a stream that ended.
                ring.deliver(self.pool.take(kind).map_or_else(|| self.create(kind), Ok));
                Some(ring)
            }
            Work::Ahead(kind) => {
                // Dropping an encoder puts it into the pool.
                if self.create(kind).is_err() {
                    // Not again until a stream asks, whose ring then has the reason.
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

    /// Streams that wait come first.
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
        // The state is whole between any two operations, so a panic elsewhere cannot have broken it.
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
