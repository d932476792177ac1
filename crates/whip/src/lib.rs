//! A WebRTC publisher becomes frames: datagrams and time in, datagrams and frames out.
//! No socket, no clock of its own, no policy.

mod audio;
pub mod clock;
pub mod credentials;
pub mod depacketizer;
mod diagnostics;
#[doc(hidden)]
pub mod fuzz;
pub mod jitter;
mod layer;
mod meter;
mod opening;
mod receiver;
mod reception;
pub mod reorder;
mod reporter;
pub mod rtp;
pub mod sdp;
mod session;
pub mod transport;
mod video;

pub use credentials::Credentials;
pub use diagnostics::{AudioDiagnostics, Diagnostics, TrackDiagnostics, VideoDiagnostics};
pub use session::{WhipCounters, WhipEnd, WhipEvent, WhipSession};
pub use transport::dtls::{Identity, IdentityError};
pub use transport::ice_lite::ufrag_of;
pub use transport::path::Path;
