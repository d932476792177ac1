//! The AAC encoders that are ready, so that no media worker waits for one to be made.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::encoder::{AacEncoder, EncoderError, EncoderKind};
use super::xaac::Xaac;

type Factory = fn(EncoderKind) -> Result<Box<dyn AacEncoder>, EncoderError>;

/// Encoders that are ready, shared by all streams of the process; a handle, cheap to clone.
#[derive(Clone)]
pub struct EncoderPool(Arc<Shared>);

struct Shared {
    idle: Mutex<Vec<(EncoderKind, Box<dyn AacEncoder>)>>,
    idle_limit: usize,
    create: Factory,
}

impl EncoderPool {
    /// Keeps at most `idle_limit` encoders that nobody uses; what comes back beyond that is freed.
    #[must_use]
    pub fn new(idle_limit: usize) -> Self {
        Self::with_factory(idle_limit, Xaac::create)
    }

    pub(super) fn with_factory(idle_limit: usize, create: Factory) -> Self {
        Self(Arc::new(Shared { idle: Mutex::default(), idle_limit, create }))
    }

    /// Makes encoders until `count` of that kind are idle or the limit is reached. Each costs some 40 ms: call it
    /// from a background thread.
    ///
    /// # Errors
    /// The first encoder that could not be made.
    pub fn warm(&self, kind: EncoderKind, count: usize) -> Result<(), EncoderError> {
        while self.idle(kind) < count && self.lock().len() < self.0.idle_limit {
            let encoder = (self.0.create)(kind)?;
            self.put(kind, encoder);
        }
        Ok(())
    }

    /// How many encoders of that kind are ready.
    #[must_use]
    pub fn idle(&self, kind: EncoderKind) -> usize {
        self.lock().iter().filter(|(idle, _)| *idle == kind).count()
    }

    /// A ready encoder, or else a new one, for which the caller waits.
    pub(super) fn take(&self, kind: EncoderKind) -> Result<PooledEncoder, EncoderError> {
        let ready = {
            let mut idle = self.lock();
            let found = idle.iter().rposition(|(idle, _)| *idle == kind);
            found.map(|index| idle.swap_remove(index).1)
        };
        let encoder = match ready {
            Some(encoder) => encoder,
            None => (self.0.create)(kind)?,
        };
        Ok(PooledEncoder { pool: self.clone(), kind, encoder: Some(encoder) })
    }

    fn put(&self, kind: EncoderKind, encoder: Box<dyn AacEncoder>) {
        let surplus = {
            let mut idle = self.lock();
            if idle.len() < self.0.idle_limit {
                idle.push((kind, encoder));
                None
            } else {
                Some(encoder)
            }
        };
        // Freed without the lock.
        drop(surplus);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(EncoderKind, Box<dyn AacEncoder>)>> {
        // The list is whole between any two of its operations, so a panic elsewhere leaves nothing to mistrust.
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

/// An encoder on loan; goes back when dropped.
pub(super) struct PooledEncoder {
    pool: EncoderPool,
    kind: EncoderKind,
    // `None` only while being dropped.
    encoder: Option<Box<dyn AacEncoder>>,
}

impl PooledEncoder {
    /// One frame in, one frame out.
    pub(super) fn encode(&mut self, pcm: &[i16]) -> Result<&[u8], EncoderError> {
        self.encoder.as_mut().ok_or(EncoderError::Length)?.encode(pcm)
    }

    /// Frees the encoder instead of giving it back: it has failed.
    pub(super) fn discard(mut self) {
        self.encoder = None;
    }

    pub(super) fn delay_samples(&self) -> usize {
        self.encoder.as_ref().map_or(0, |encoder| encoder.delay_samples() as usize)
    }
}

impl Drop for PooledEncoder {
    fn drop(&mut self) {
        let Some(mut encoder) = self.encoder.take() else { return };
        if encoder.reset().is_ok() {
            self.pool.put(self.kind, encoder);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]
mod tests {
    use super::*;
    use crate::Channels;

    #[test]
    fn encoders_come_back_to_the_pool_up_to_its_limit() {
        let (mono, stereo) =
            (EncoderKind::new(Channels::Mono, 0), EncoderKind::new(Channels::Stereo, 0));
        let pool = EncoderPool::new(2);
        pool.warm(mono, 1).unwrap();
        pool.warm(stereo, 9).unwrap();
        assert_eq!((pool.idle(mono), pool.idle(stereo)), (1, 1));
        let loans: Vec<_> = (0..3).map(|_| pool.take(mono).unwrap()).collect();
        assert_eq!((pool.idle(mono), pool.idle(stereo)), (0, 1));
        drop(loans);
        assert_eq!((pool.idle(mono), pool.idle(stereo)), (1, 1));
        pool.take(mono).unwrap().discard();
        assert_eq!(pool.idle(mono), 0);
    }
}
