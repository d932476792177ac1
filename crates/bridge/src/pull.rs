//! The transfer objects of pulls: streams from other nodes.

use headgate_ingest::UpstreamUrl;
use napi::bindgen_prelude::Result;
use napi::{Error, Status};
use napi_derive::napi;

use crate::address;
use crate::names::PullState;
use crate::transfer::{epoch_ms, number};
use crate::whole::whole;

/// Where a stream is pulled from.
#[napi(object, object_to_js = false)]
pub struct PullSource {
    /// The publish at the source.
    pub client_id: f64,
    /// A complete RTMP(S) URL: it may contain secrets.
    pub url: String,
    /// The IP address to connect to.
    pub address: String,
}

pub(crate) fn pull_source(options: &PullSource) -> Result<headgate_ingest::PullSource> {
    let url = UpstreamUrl::parse(&options.url)
        .ok_or_else(|| Error::new(Status::InvalidArg, "not an RTMP URL"))?;
    let (client_id, address) = (whole(options.client_id)?, address(&options.address)?);
    Ok(headgate_ingest::PullSource { client_id, url, address })
}

/// The state of one pull.
#[napi(object, object_from_js = false)]
pub struct PullStatus {
    /// The publish at the source.
    pub client_id: f64,
    /// Stream name without arguments.
    pub name: String,
    /// `rtmp[s]://host:port/app`: without name and arguments.
    pub url: String,
    /// Players that read it here.
    pub players: f64,
    /// Audio and video payload bytes from the source.
    pub bytes_in: f64,
    /// Audio and video payload bytes sent to the players.
    pub bytes_out: f64,
    /// When it began, epoch ms.
    pub since: f64,
    pub state: PullState,
}

impl From<headgate_ingest::PullStatus> for PullStatus {
    fn from(status: headgate_ingest::PullStatus) -> Self {
        Self {
            client_id: number(status.client_id),
            name: String::from_utf8_lossy(&status.name).into_owned(),
            url: status.url,
            players: number(status.players),
            bytes_in: number(status.bytes_in),
            bytes_out: number(status.bytes_out),
            since: epoch_ms(status.since),
            state: status.state.into(),
        }
    }
}
