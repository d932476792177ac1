//! What a frame is: the one unit every protocol converts to and from, and Opus made AAC for those who need it.
//! No protocol, no I/O, no clock.

pub mod aac;
pub mod flv;
mod frame;
pub mod h264;
pub mod opus;
pub mod transcode;

pub use crate::opus::Channels;
pub use frame::{Codec, Frame, FrameKind, Timestamp, Track};
