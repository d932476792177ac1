//! What a session reports to its driver besides datagrams and frames: events and the reason it ended.

use crate::transport::handshake_fault::HandshakeFault;
use crate::transport::path::Path;

/// Why the session ended, as seen on its own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhipEnd {
    /// ICE or DTLS did not complete in time.
    HandshakeFailed(HandshakeFault),
    /// The client closed DTLS.
    Closed,
    /// The client stopped sending.
    Lost,
    /// The client is connected but sent no usable media.
    NoMedia,
}

/// What the driver has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhipEvent {
    /// An authenticated ICE check or packet of media arrived on this path: its datagrams belong to this session.
    Proven(Path),
    /// Too many other paths have passed a check since: datagrams on this path belong to no session.
    Forgotten(Path),
    /// Authenticated RTP packets have this SSRC.
    Source(u32),
    /// DTLS is complete; media may arrive.
    Connected,
    /// The session has ended. No further event follows.
    Ended(WhipEnd),
}
