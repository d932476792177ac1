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
    /// Commands per second, averaged over ten: an encoder sends about ten in all, and each costs an answer.
    pub commands_per_second: u32,
    /// Script data messages per second, averaged over ten: captions and timecodes come with every video frame, and each
    /// is handed to all who watch.
    pub scripts_per_second: u32,
    /// Control messages per second (types 1 to 6: chunk sizes, aborts, acknowledgements, pings, windows), averaged over
    /// ten: a fast player with a small window acknowledges some ten times a second.
    pub controls_per_second: u32,
    /// Work of one turn, in chunk headers read (see `begin_turn`): about 0.2 ms, so that a driver with a hundred busy
    /// connections is back at each within 20 ms. At 500 turns a second, 10 Mbit/s in chunks of 128 bytes are read at
    /// more than a hundred times the speed they are made.
    pub turn_work: u32,
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
            scripts_per_second: 60,
            controls_per_second: 50,
            turn_work: 6000,
            answer_bytes: 64 << 10,
        }
    }
}
