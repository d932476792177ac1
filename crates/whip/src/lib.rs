//! A WebRTC publisher becomes frames: datagrams and time in, datagrams and frames out.
//! No socket, no clock of its own, no policy.

pub mod clock;
pub mod credentials;
pub mod depacketizer;
pub mod jitter;
mod opening;
mod reception;
mod reporter;
pub mod rtp;
pub mod sdp;
mod session;
mod tracks;
pub mod transport;

pub use credentials::Credentials;
pub use session::{WhipCounters, WhipEnd, WhipEvent, WhipSession};
pub use transport::dtls::{Identity, IdentityError};
pub use transport::ice_lite::ufrag_of;
pub use transport::path::Path;
