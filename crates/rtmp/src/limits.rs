//! What a hostile or slow peer can make us hold or wait for.

use std::time::Duration;

/// The bounds of one session; the defaults are the service's.
#[derive(Clone, Debug)]
pub struct Limits {
    /// From accept to a finished handshake.
    pub handshake: Duration,
    /// From accept to `publish` or `play`, the handshake included.
    pub command: Duration,
    /// For an upstream's answer to connect and createStream.
    pub answer: Duration,
    /// For an upstream's `Publish.Start`: it may ask a webhook of its own.
    pub publish_start: Duration,
    /// Largest chunk size a peer may announce; its memory is bounded by the message limit, not by this.
    pub chunk_size: u32,
    /// Messages longer than this may not come in chunks below 128 bytes: each would cost a header's work.
    pub small_chunk_message_bytes: usize,
    /// Message length before a publish or play is accepted.
    pub message_before_bytes: usize,
    /// Message length after it.
    pub message_after_bytes: usize,
    /// Script data message length.
    pub script_bytes: usize,
    /// Chunk streams in use at once.
    pub chunk_streams: usize,
    /// Commands per second, averaged over ten.
    pub commands_per_second: u32,
    /// Answers that wait for a peer which makes us speak and does not read. The media that waits is the driver's to
    /// bound: it can be dropped.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            command: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            publish_start: Duration::from_secs(30),
            chunk_size: 65_536,
            small_chunk_message_bytes: 64 << 10,
            message_before_bytes: 64 << 10,
            message_after_bytes: 8 << 20,
            script_bytes: 64 << 10,
            chunk_streams: 32,
            commands_per_second: 20,
            answer_bytes: 64 << 10,
        }
    }
}
