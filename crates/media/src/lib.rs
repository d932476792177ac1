//! Frames, the unit that every protocol converts to and from, and the transcoding of Opus to AAC for subscribers that
//! need it.
//! No protocol, no I/O, no clock.

pub mod aac;
mod filler_budget;
pub mod flv;
mod frame;
pub mod h264;
mod irregularity;
pub mod opus;
pub mod repair;
pub mod time_policy;
pub mod transcode;

pub use crate::opus::Channels;
pub use filler_budget::FillerBudget;
pub use frame::{Codec, Frame, FrameKind, SoundFlags, Timestamp, Track};
pub use irregularity::{Irregularity, IrregularityCounts};
pub use time_policy::TimePolicy;
