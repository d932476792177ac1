//! Limits on what a hostile or slow peer can make us hold or wait for.

use std::time::Duration;

/// The limits of one session; the defaults are the service's.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time from accept to the end of the handshake.
    pub handshake: Duration,
    /// Time from accept to `publish` or `play`, the handshake included.
    pub command: Duration,
    /// Time for an upstream's answer to connect and to createStream.
    pub answer: Duration,
    /// Time for an upstream's `Publish.Start`: it may have to call its own webhook.
    pub publish_start: Duration,
    /// A larger chunk size means the same: no message is longer (RTMP 5.3.1.2). Memory is bounded by the limits of
    /// messages.
    pub chunk_size: u32,
    /// Longest message before a publish or play is accepted.
    pub message_before_bytes: usize,
    /// Longest message after that.
    pub message_after_bytes: usize,
    /// Longest command or script data message. A longer message of any kind is read and dropped.
    pub amf_bytes: usize,
    /// Chunk streams whose last header is remembered.
    pub chunk_streams: usize,
    /// Commands per second, averaged over ten seconds: an encoder sends about ten in total, and each costs an answer.
    /// Beyond that only those that end a publish or a play are heard.
    pub commands_per_second: u32,
    /// Script data messages per second, averaged over ten seconds: captions and timecodes accompany every video frame,
    /// and each is sent to all subscribers. Those beyond that are dropped.
    pub scripts_per_second: u32,
    /// Pings answered per second, averaged over ten seconds.
    pub pings_per_second: u32,
    /// Work of one turn, in units of reading a chunk header (see `begin_turn`): about 0.2 ms, so that a driver with a
    /// hundred busy connections returns to each within 20 ms. At 500 turns a second, a stream of 10 Mbit/s in chunks of
    /// 128 bytes is read more than a hundred times faster than it is produced.
    pub turn_work: u32,
    /// Answers queued for a peer that provokes them and does not read. Queued media is bounded by the driver, which can
    /// drop it.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            command: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            publish_start: Duration::from_secs(30),
            chunk_size: 0x00ff_ffff,
            message_before_bytes: 64 << 10,
            message_after_bytes: 8 << 20,
            amf_bytes: 64 << 10,
            chunk_streams: 256,
            commands_per_second: 20,
            scripts_per_second: 250,
            pings_per_second: 50,
            turn_work: 6000,
            answer_bytes: 64 << 10,
        }
    }
}
