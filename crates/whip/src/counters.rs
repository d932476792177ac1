//! What a session counts.

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
