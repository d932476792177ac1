//! The file of a captured publish: what arrived of it and when, and which frames it became. Pure: bytes in, bytes out; who
//! captures and who replays is `headgate-ingest`. The format is described in docs/capture.md.
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
