//! Load of the media workers and of the RTMP ports, for JavaScript.

use napi_derive::napi;

use crate::MediaCore;
use crate::transfer::number;

/// Load and lateness of one media worker over the last second; all zero for a worker that was asleep.
#[napi(object, object_from_js = false)]
pub struct WorkerStatus {
    /// Share of a core that its thread used, 0 to 1.
    pub load: f64,
    /// Share of the time in which it was working, or would have been if it had been given a processor, 0 to 1.
    pub busy: f64,
    /// How long an arrival waits for its turn on average, in addition to the intended wait, ms.
    pub late_ms: f64,
}

impl From<headgate_ingest::WorkerStatus> for WorkerStatus {
    fn from(status: headgate_ingest::WorkerStatus) -> Self {
        let micros = u64::try_from(status.late.as_micros()).unwrap_or(u64::MAX);
        Self { load: status.load, busy: status.busy, late_ms: number(micros) / 1_000.0 }
    }
}

/// The number of connections to the RTMP ports, and its limit.
#[napi(object, object_from_js = false)]
pub struct ConnectionCount {
    pub held: f64,
    /// Beyond this, new connections are closed immediately; missing if neither the configuration nor the system sets a limit.
    pub limit: Option<f64>,
}

#[napi]
impl MediaCore {
    /// Load and lateness of each media worker over the last second.
    #[napi(catch_unwind)]
    pub fn worker_status(&self) -> Vec<WorkerStatus> {
        let status = self.ingest.worker_status();
        status.into_iter().map(WorkerStatus::from).collect()
    }

    /// The current connections to the RTMP ports.
    #[napi(catch_unwind)]
    pub fn connections(&self) -> ConnectionCount {
        let count = self.ingest.connections();
        ConnectionCount {
            held: number(count.held as u64),
            limit: count.limit.map(|limit| number(limit as u64)),
        }
    }
}
