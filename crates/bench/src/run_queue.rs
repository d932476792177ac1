//! How long this thread ran, and how long it was ready to run while other programs had its core (the kernel's
//! `schedstat`). Zero where the kernel does not count it.

use std::fs;
use std::time::Duration;

/// Time on a processor so far.
pub(crate) fn ran() -> Duration {
    read(0)
}

/// Waiting time so far.
pub(crate) fn waited() -> Duration {
    read(1)
}

/// Documentation/scheduler/sched-stats.rst: time on the processor, time waiting for it, slices; nanoseconds.
fn read(field: usize) -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').nth(field).and_then(|text| text.parse().ok()).unwrap_or(0))
}
