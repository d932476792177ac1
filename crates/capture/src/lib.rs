//! The file of a captured publish: its input with arrival times, and the frames that were produced. Pure: it takes
//! bytes and returns bytes; `headgate-ingest` captures and replays. The format is described in docs/capture.md.
#![forbid(unsafe_code)]

mod digest;
mod file;
#[doc(hidden)]
pub mod fuzz;
mod kind;
mod varint;

pub use digest::{FrameDigest, Hash};
pub use file::{FileError, Head, Reader, Record, Writer};
pub use kind::{Ended, Kind};
