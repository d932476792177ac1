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
    /// Largest chunk size a peer may announce; memory is bounded by the message limit, not by this.
    pub chunk_size: u32,
    /// Longer messages may not arrive in chunks below 128 bytes, since each chunk costs the work of a header.
    pub small_chunk_message_bytes: usize,
    /// Longest message before a publish or play is accepted.
    pub message_before_bytes: usize,
    /// Longest message after that.
    pub message_after_bytes: usize,
    /// Longest script data message.
    pub script_bytes: usize,
    /// Chunk streams in use at the same time.
    pub chunk_streams: usize,
    /// Commands per second, averaged over ten seconds: an encoder sends about ten in total, and each costs an answer.
    pub commands_per_second: u32,
    /// Script data messages per second, averaged over ten seconds: captions and timecodes accompany every video frame,
    /// and each is sent to all subscribers.
    pub scripts_per_second: u32,
    /// Control messages per second (types 1 to 6: chunk sizes, aborts, acknowledgements, pings, windows), averaged over
    /// ten seconds: a fast player with a small window acknowledges some ten times a second.
    pub controls_per_second: u32,
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
            chunk_size: 65_536,
            small_chunk_message_bytes: 64 << 10,
            message_before_bytes: 64 << 10,
            message_after_bytes: 8 << 20,
            script_bytes: 64 << 10,
            chunk_streams: 32,
            commands_per_second: 20,
            scripts_per_second: 60,
            controls_per_second: 50,
            turn_work: 6000,
            answer_bytes: 64 << 10,
        }
    }
}
