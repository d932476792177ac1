//! Ticks of the RTP clocks per second.

/// Opus (RFC 7587 4.1).
pub const AUDIO_RATE: u32 = 48_000;
/// H.264 (RFC 6184 8.2.1).
pub const VIDEO_RATE: u32 = 90_000;
/// A millisecond in microseconds.
pub(crate) const MILLI_US: i64 = 1_000;
