//! The transfer objects of pulls: streams from other nodes. Same names and order as in `ts/media/pulls.ts`.

use headgate_ingest::{PullSource, PullStatus, UpstreamUrl};
use napi::bindgen_prelude::{Buffer, Result};
use napi::{Error, Status};
use napi_derive::napi;

use crate::address;
use crate::transfer::{epoch_ms, number};
use crate::whole::whole;

/// The source of a pull.
#[napi(object)]
pub struct PullOptions {
    /// Client id of the publish at the source.
    pub client_id: f64,
    /// A complete RTMP URL.
    pub url: String,
    /// The IP address to connect to.
    pub address: String,
}

pub(crate) fn pull_source(options: &PullOptions) -> Result<PullSource> {
    let url = UpstreamUrl::parse(&options.url)
        .ok_or_else(|| Error::new(Status::InvalidArg, "not an RTMP URL"))?;
    let (client_id, address) = (whole(options.client_id)?, address(&options.address)?);
    Ok(PullSource { client_id, url, address })
}

/// Counters of one pull.
#[napi(object)]
pub struct PullCounters {
    /// Client id of the publish at the source.
    pub client_id: f64,
    /// Stream name without arguments.
    pub name: Buffer,
    /// Scheme, host, port and app.
    pub url: String,
    pub players: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    /// When the pull began, epoch ms.
    pub since: f64,
    /// connecting, playing or reconnecting.
    pub state: String,
}

impl From<PullStatus> for PullCounters {
    fn from(status: PullStatus) -> Self {
        Self {
            client_id: number(status.client_id),
            name: status.name.into(),
            url: status.url,
            players: number(status.players),
            bytes_in: number(status.bytes_in),
            bytes_out: number(status.bytes_out),
            since: epoch_ms(status.since),
            state: status.state.code().into(),
        }
    }
}
