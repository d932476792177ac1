//! What happens to a publish's upstreams and players when its publisher is lost, as decided by the gateway.

use std::time::Duration;

use napi::bindgen_prelude::{Either, Null, Result};
use napi_derive::napi;

use crate::whole::whole;

/// What happens to a publish's upstreams and players when its publisher is lost.
#[napi(object, object_to_js = false)]
pub struct Hold {
    /// How long they are held when the publisher is lost, ms; 0: not at all.
    pub window_ms: u32,
    /// How long an RTMP publisher may send nothing before it counts as lost, ms; the default (W19) if missing.
    pub silence_ms: Option<u32>,
    /// The lost publish whose upstreams and players this one takes over, if they are still held; null for none.
    pub continues: Either<f64, Null>,
    /// The other publish of its name, if there is one: while that is on air this one is on standby, and nobody receives
    /// it.
    pub beside: Option<f64>,
}

pub(crate) fn hold_of(options: &Hold) -> Result<headgate_ingest::Hold> {
    let window = Duration::from_millis(options.window_ms.into());
    let silence = options.silence_ms.map(|millis| Duration::from_millis(millis.into()));
    let continues = match options.continues {
        Either::A(lost) => Some(whole(lost)?),
        Either::B(Null) => None,
    };
    let beside = options.beside.map(whole).transpose()?;
    Ok(headgate_ingest::Hold { window, silence, continues, beside })
}
