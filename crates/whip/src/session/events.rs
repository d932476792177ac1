//! What a session reports to its driver besides datagrams and frames: events, the reason it ended, counters.

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

/// Counters since the start of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhipCounters {
    /// RTP packets authenticated and decrypted.
    pub packets: u64,
    /// RTP packets given up as lost.
    pub lost: u64,
    /// RTP packets recovered by retransmission.
    pub recovered: u64,
    /// Retransmission requests.
    pub nacks: u64,
    /// Keyframe requests.
    pub plis: u64,
    /// Access units withheld because of a loss.
    pub withheld: u64,
    /// Packets dropped as forged, replayed, malformed or over a limit.
    pub rejected: u64,
}
