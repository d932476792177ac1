//! How the media workers do and how full the RTMP ports are, as JavaScript reads it.

use napi_derive::napi;

use crate::MediaCore;
use crate::transfer::number;

/// How busy and how late one media worker was over the last second; all zero for one that slept.
#[napi(object)]
pub struct WorkerStatus {
    /// Share of a core that its thread took, 0 to 1.
    pub load: f64,
    /// Share of the time in which it was at work, or would have been had it got a processor, 0 to 1.
    pub busy: f64,
    /// How long what comes to it waits for its turn on average, beyond the turn that is meant, ms.
    pub late_ms: f64,
}

impl From<headgate_ingest::WorkerStatus> for WorkerStatus {
    fn from(status: headgate_ingest::WorkerStatus) -> Self {
        let micros = u64::try_from(status.late.as_micros()).unwrap_or(u64::MAX);
        Self { load: status.load, busy: status.busy, late_ms: number(micros) / 1_000.0 }
    }
}

/// How many connections the RTMP ports have, and may have.
#[napi(object)]
pub struct ConnectionCount {
    pub held: f64,
    /// None where neither the configuration nor the system sets one.
    pub limit: Option<f64>,
}

#[napi]
impl MediaCore {
    /// How busy and how late each media worker was over the last second.
    #[napi(catch_unwind)]
    pub fn worker_status(&self) -> Vec<WorkerStatus> {
        let status = self.ingest.as_ref().map(|ingest| ingest.worker_status());
        status.into_iter().flatten().map(WorkerStatus::from).collect()
    }

    /// Connections to the RTMP ports now.
    #[napi(catch_unwind)]
    pub fn connections(&self) -> ConnectionCount {
        let count = self.ingest.as_ref().map(|ingest| ingest.connections());
        ConnectionCount {
            held: count.map_or(0.0, |count| number(count.held as u64)),
            limit: count.and_then(|count| count.limit).map(|limit| number(limit as u64)),
        }
    }
}
