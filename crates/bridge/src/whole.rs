//! Numbers from JavaScript.

use napi::bindgen_prelude::{Error, Result, Status};

/// Checks a non-negative whole number from JavaScript.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked first")]
pub(crate) fn whole(value: f64) -> Result<u64> {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    if (0.0..=EXACT).contains(&value) && value.fract() == 0.0 {
        Ok(value as u64)
    } else {
        Err(Error::new(Status::InvalidArg, "not a whole number"))
    }
}
