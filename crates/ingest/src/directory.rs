//! Which worker holds a live name. Asked when a publish or a player starts, never per packet.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::session::Counters;

/// One live stream, over all workers and for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamId(pub(crate) u64);

/// Where a live stream is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) stream: StreamId,
    pub(crate) worker: usize,
    pub(crate) counters: Arc<Counters>,
}

/// Live names of the process.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    names: Mutex<FxHashMap<Vec<u8>, Place>>,
}

impl Directory {
    /// The name belongs to `place` from now on; who had it before keeps its players until it ends.
    pub(crate) fn enter(&self, name: &[u8], place: Place) {
        self.lock().insert(name.to_vec(), place);
    }

    /// Forgets the name if it still belongs to `stream`.
    pub(crate) fn leave(&self, name: &[u8], stream: StreamId) {
        let mut names = self.lock();
        if names.get(name).is_some_and(|place| place.stream == stream) {
            names.remove(name);
        }
    }

    /// Where the name is live.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Place> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FxHashMap<Vec<u8>, Place>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
