//! What a frame is: the one unit every protocol converts to and from.
//! No protocol, no I/O, no clock.

pub mod flv;
mod frame;

pub use frame::{Codec, Frame, FrameKind, Timestamp, Track};
