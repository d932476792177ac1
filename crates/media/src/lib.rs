//! Frames, the unit that every protocol converts to and from. No protocol, no codec, no I/O, no clock.

#![forbid(unsafe_code)]

pub mod aac;
mod filler_budget;
pub mod flv;
mod frame;
pub mod h264;
mod irregularity;
pub mod opus;
pub mod repair;
pub mod time_policy;

pub use crate::opus::Channels;
pub use filler_budget::FillerBudget;
pub use frame::{Codec, Frame, FrameKind, SoundFlags, Timestamp, Track};
pub use irregularity::{Irregularity, IrregularityCounts};
pub use time_policy::TimePolicy;
