//! A pool of AAC encoders ready for use. Creating one blocks for some 40 ms, so it happens on a separate thread and
//! never on one that transcodes audio.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::encoder::{AacEncoder, EncoderError, EncoderKind};
use super::xaac::Xaac;

/// Creates an encoder of a kind; may block.
type Factory = dyn Fn(EncoderKind) -> Result<Box<dyn AacEncoder>, EncoderError> + Send + Sync;

/// Idle encoders, shared by all streams of the process; a handle that is cheap to clone.
#[derive(Clone)]
pub struct EncoderPool(Arc<Shared>);

struct Shared {
    // Longest idle first.
    idle: Mutex<VecDeque<(EncoderKind, Box<dyn AacEncoder>)>>,
    idle_limit: usize,
    factory: Box<Factory>,
}

impl EncoderPool {
    /// Keeps at most `idle_limit` idle encoders; beyond that the longest idle one is freed.
    #[must_use]
    pub fn new(idle_limit: usize) -> Self {
        Self::with_factory(idle_limit, Xaac::create)
    }

    /// A pool with encoders created by `factory`.
    #[must_use]
    pub fn with_factory(
        idle_limit: usize,
        factory: impl Fn(EncoderKind) -> Result<Box<dyn AacEncoder>, EncoderError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let (idle, factory) = (Mutex::default(), Box::new(factory));
        Self(Arc::new(Shared { idle, idle_limit, factory }))
    }

    /// An idle encoder of that kind, if there is one. Never waits for a new one.
    #[must_use]
    pub fn take(&self, kind: EncoderKind) -> Option<Encoder> {
        let mut idle = self.lock();
        let found = idle.iter().rposition(|(idle, _)| *idle == kind)?;
        let encoder = idle.swap_remove_back(found).map(|(_, encoder)| encoder)?;
        Some(self.lend(kind, encoder))
    }

    /// Creates an encoder. Blocks for some 40 ms: call it from a background thread.
    ///
    /// # Errors
    /// When it could not be created.
    pub fn make(&self, kind: EncoderKind) -> Result<Encoder, EncoderError> {
        let encoder = (self.0.factory)(kind)?;
        Ok(self.lend(kind, encoder))
    }

    /// Creates encoders until `count` of that kind are idle, limited by the pool's size. Blocks like
    /// [`EncoderPool::make`].
    ///
    /// # Errors
    /// The first encoder that could not be created.
    pub fn warm(&self, kind: EncoderKind, count: usize) -> Result<(), EncoderError> {
        while self.idle(kind) < count.min(self.0.idle_limit) {
            let encoder = (self.0.factory)(kind)?;
            self.put(kind, encoder);
        }
        Ok(())
    }

    /// How many encoders of that kind are idle.
    #[must_use]
    pub fn idle(&self, kind: EncoderKind) -> usize {
        self.lock().iter().filter(|(idle, _)| *idle == kind).count()
    }

    fn lend(&self, kind: EncoderKind, encoder: Box<dyn AacEncoder>) -> Encoder {
        Encoder { pool: self.clone(), kind, encoder: Some(encoder), is_encoding: false }
    }

    fn put(&self, kind: EncoderKind, encoder: Box<dyn AacEncoder>) {
        let surplus = {
            let mut idle = self.lock();
            idle.push_back((kind, encoder));
            if idle.len() > self.0.idle_limit { idle.pop_front() } else { None }
        };
        // Freed outside the lock.
        drop(surplus);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(EncoderKind, Box<dyn AacEncoder>)>> {
        // The list is consistent between operations, so a panic elsewhere cannot have corrupted it.
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for EncoderPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EncoderPool")
            .field("idle", &self.lock().len())
            .finish_non_exhaustive()
    }
}

/// An encoder in use; returns to its pool when dropped, unless it has failed.
pub struct Encoder {
    pool: EncoderPool,
    kind: EncoderKind,
    // `None` only while being dropped.
    encoder: Option<Box<dyn AacEncoder>>,
    // Still set after a call if the encoder failed or panicked in it.
    is_encoding: bool,
}

impl Encoder {
    /// The kind of encoder.
    #[must_use]
    pub const fn kind(&self) -> EncoderKind {
        self.kind
    }

    /// Encodes one frame. After an error the encoder is not used again.
    ///
    /// # Errors
    /// The wrong number of samples, or a frame that the encoder rejects.
    pub fn encode(&mut self, pcm: &[i16]) -> Result<&[u8], EncoderError> {
        self.is_encoding = true;
        let data = self.encoder.as_mut().ok_or(EncoderError::Length)?.encode(pcm)?;
        self.is_encoding = false;
        Ok(data)
    }

    /// Samples by which the decoded output lags behind the input.
    #[must_use]
    pub fn delay_samples(&self) -> usize {
        self.encoder.as_ref().map_or(0, |encoder| encoder.delay_samples() as usize)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Encoder").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        let Some(mut encoder) = self.encoder.take() else { return };
        if !self.is_encoding && encoder.reset().is_ok() {
            self.pool.put(self.kind, encoder);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]
mod tests {
    use super::*;
    use crate::AacBitrate;
    use headgate_media::Channels;

    #[test]
    fn encoders_return_to_the_pool_and_the_one_idle_longest_makes_room() {
        let (mono, stereo) = (
            EncoderKind::new(Channels::Mono, AacBitrate::PerChannel(0)),
            EncoderKind::new(Channels::Stereo, AacBitrate::PerChannel(0)),
        );
        let pool = EncoderPool::new(2);
        pool.warm(mono, 1).unwrap();
        pool.warm(stereo, 1).unwrap();
        assert_eq!((pool.idle(mono), pool.idle(stereo)), (1, 1));
        drop(pool.make(mono).unwrap());
        assert_eq!((pool.idle(mono), pool.idle(stereo)), (1, 1), "the oldest was the mono one");
        drop(pool.make(mono).unwrap());
        assert_eq!((pool.idle(mono), pool.idle(stereo)), (2, 0));
        assert!(pool.take(stereo).is_none());
        let used = pool.take(mono).unwrap();
        assert_eq!((pool.idle(mono), used.kind()), (1, mono));
        drop(used);
        assert_eq!(pool.idle(mono), 2);
    }

    #[test]
    fn an_encoder_that_failed_is_freed() {
        let mono = EncoderKind::new(Channels::Mono, AacBitrate::PerChannel(0));
        let pool = EncoderPool::new(2);
        let mut encoder = pool.make(mono).unwrap();
        assert_eq!(encoder.encode(&[0; 7]), Err(EncoderError::Length));
        drop(encoder);
        assert_eq!(pool.idle(mono), 0);
    }
}
