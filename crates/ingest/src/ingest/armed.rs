//! Captures that wait for their publish to begin.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::publish::capture::{CaptureSettings, CaptureState, Note, Tap};

/// Captures that wait for their publish.
pub(super) struct Captures {
    /// Whether captures are enabled; if so, the SDP that they need is kept.
    pub(super) is_on: bool,
    armed: Mutex<FxHashMap<u64, Armed>>,
}

/// A capture that waits for its publish.
pub(super) struct Armed {
    pub(super) settings: CaptureSettings,
    pub(super) tap: Tap,
    pub(super) notes: Receiver<Note>,
    pub(super) state: Arc<CaptureState>,
}

impl Captures {
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, armed: Mutex::default() }
    }

    /// Captures the publish that will begin under this client id.
    pub(super) fn arm(&self, client_id: u64, armed: Armed) {
        self.lock().insert(client_id, armed);
    }

    /// Takes the capture that waits for a publish, once it begins.
    pub(super) fn take(&self, client_id: u64) -> Option<Armed> {
        self.lock().remove(&client_id)
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<u64, Armed>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
