//! What a session tells its driver besides datagrams and frames: events, how it ended, counters.

use crate::transport::path::Path;

/// Why the session is over, as far as its wire shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhipEnd {
    /// ICE or DTLS did not come about in time, or the certificate is not the one of the offer.
    HandshakeFailed,
    /// The client closed DTLS.
    Closed,
    /// The client vanished.
    Lost,
    /// It is connected and sends nothing we could use.
    NoMedia,
}

/// What the driver must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhipEvent {
    /// An authenticated ICE check came from this path: its datagrams belong to this session.
    Proven(Path),
    /// Too many other paths were proven since: datagrams from there belong to no session.
    Forgotten(Path),
    /// Media may come.
    Connected,
    /// Nothing more will come.
    Ended(WhipEnd),
}

/// What happened in a session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WhipCounters {
    /// RTP packets that were opened.
    pub packets: u64,
    /// RTP packets given up.
    pub lost: u64,
    /// RTP packets that a request brought.
    pub recovered: u64,
    /// Requests for packets.
    pub nacks: u64,
    /// Requests for a keyframe.
    pub plis: u64,
    /// Access units held back behind a hole.
    pub withheld: u64,
    /// Packets that were forged, replayed, malformed or too many.
    pub rejected: u64,
}
