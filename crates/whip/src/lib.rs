//! Turns a WebRTC publisher into frames: takes datagrams and time, returns datagrams and frames.
//! It has no socket, no clock of its own and no policy.

mod answers;
mod audio;
pub mod clock;
mod clock_rates;
mod counters;
pub mod credentials;
pub mod depacketizer;
mod diagnostics;
mod frame_numbers;
#[doc(hidden)]
pub mod fuzz;
mod holes;
pub mod jitter;
mod lateness;
mod layer;
mod markers;
mod media;
mod meter;
mod opening;
mod payload;
mod rate;
mod receiver;
mod reception;
pub mod reorder;
mod reporter;
pub mod rtp;
mod scrub;
pub mod sdp;
mod sender_reports;
mod session;
mod source;
mod track_clock;
pub mod transport;
mod video;

pub use counters::WhipCounters;
pub use credentials::Credentials;
pub use diagnostics::{AudioDiagnostics, Diagnostics, TrackDiagnostics, VideoDiagnostics};
pub use media::ssrc_of;
pub use scrub::{MediaBlanker, scrub_sdp};
pub use session::{WhipEnd, WhipEvent, WhipSession};
pub use transport::handshake_fault::HandshakeFault;
pub use transport::identity::{Identity, IdentityError};
pub use transport::path::Path;
pub use transport::revoked::RevokedConsent;
pub use transport::user_name::ufrag_of;
