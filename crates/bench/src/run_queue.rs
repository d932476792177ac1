//! How long this thread was ready to run while other programs had its core (the kernel's `schedstat`).

use std::fs;
use std::time::Duration;

/// Waiting time so far; zero where the kernel does not count it.
pub(crate) fn waited() -> Duration {
    // Documentation/scheduler/sched-stats.rst: time on the processor, time waiting for it, slices; nanoseconds.
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split(' ').nth(1).and_then(|text| text.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}
