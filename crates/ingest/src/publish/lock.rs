//! Locks of records: held for a few instructions, never over a call that can panic half-way.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Every change under such a lock is whole before anything can panic, so poison says nothing.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
