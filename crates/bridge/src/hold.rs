//! What happens to a publish's upstreams and players when its publisher is lost, as decided by the gateway.

use std::time::Duration;

use headgate_ingest::{Beside, Hold};
use napi::bindgen_prelude::{Buffer, Result};
use napi_derive::napi;

use crate::transfer::whole;

/// What happens to a publish's upstreams and players when its publisher is lost.
#[napi(object)]
pub struct HoldOptions {
    /// How long they are kept; 0: not at all.
    pub window_ms: u32,
    /// How long an RTMP publisher may send nothing before it counts as lost; the default if missing.
    pub silence_ms: Option<u32>,
    /// The lost publish whose upstreams and players this one takes over, if they are still held.
    pub continues: Option<f64>,
    /// The other publish with the same name: while that one is on air, this one stands by.
    pub beside: Option<f64>,
    /// Set together with `beside`: the stream name of both, without arguments.
    pub name: Option<Buffer>,
}

pub(crate) fn hold_of(options: &HoldOptions) -> Result<Hold> {
    let window = Duration::from_millis(options.window_ms.into());
    let name = options.name.as_ref().map(|name| name.to_vec());
    let beside = options.beside.map(whole).transpose()?.zip(name);
    let beside = beside.map(|(client_id, name)| Beside { client_id, name });
    let silence = options.silence_ms.map(|millis| Duration::from_millis(millis.into()));
    Ok(Hold { window, silence, continues: options.continues.map(whole).transpose()?, beside })
}
