//! What happens to a publish's upstreams and players when its publisher is lost, as decided by the gateway.

use std::time::Duration;

use headgate_ingest::Hold;
use napi::bindgen_prelude::Result;
use napi_derive::napi;

use crate::whole::whole;

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
}

pub(crate) fn hold_of(options: &HoldOptions) -> Result<Hold> {
    let window = Duration::from_millis(options.window_ms.into());
    let silence = options.silence_ms.map(|millis| Duration::from_millis(millis.into()));
    let [continues, beside] = [options.continues, options.beside];
    let (continues, beside) = (continues.map(whole).transpose()?, beside.map(whole).transpose()?);
    Ok(Hold { window, silence, continues, beside })
}
