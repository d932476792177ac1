//! Locks of records: held for a few instructions, never across a call that can panic midway.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Every change under such a lock is complete before anything can panic, so poisoning can be ignored.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
