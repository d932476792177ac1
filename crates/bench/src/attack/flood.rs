//! What a hostile RTMP publisher sends, batch by batch. Sans-I/O.

use std::time::Duration;

use bytes::BytesMut;
use headgate_rtmp::MediaKind;

use super::messages::{command, configuration, huge_frame, metadata};
use crate::chunks::{AUDIO, COMMAND_AMF0, Chunks, DATA_AMF0, USER_CONTROL, VIDEO, message_type};
use crate::load::{HEADERS, Stamp, due, unit};

/// Bytes prepared once and then repeated, so that building messages does not slow the flood down.
const BATCH_BYTES: usize = 1 << 20;
/// The oldest a batch's timestamps may be.
const BATCH_AGE: Duration = Duration::from_secs(1);
/// The largest chunk size that the service accepts, and OBS's chunk size.
const LARGE_CHUNK: u32 = 65_536;
const USUAL_CHUNK: u32 = 4_096;
/// The default chunk size (RTMP 5.4.1): most headers for each message.
const SMALL_CHUNK: u32 = 128;
/// Chunk stream ids of `Chunks::write`.
const CONTROL_ID: u8 = 2;
const AUDIO_ID: u8 = 6;

/// One way to flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flood {
    OneByteChunks,
    Metadata,
    Configurations,
    TinyMessages,
    HugeFrames,
    Controls,
    Commands,
    /// Valid media in real time: the attack is elsewhere.
    Nothing,
}

/// A flood in progress.
pub(super) struct Source {
    flood: Flood,
    chunks: Chunks,
    /// Messages made so far.
    count: u32,
    batch: BytesMut,
    batch_messages: u32,
    batch_made: Option<Duration>,
}

impl Flood {
    pub(super) fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "one-byte-chunks" => Self::OneByteChunks,
            "metadata" => Self::Metadata,
            "configurations" => Self::Configurations,
            "tiny-messages" => Self::TinyMessages,
            "huge-frames" => Self::HugeFrames,
            "controls" => Self::Controls,
            "commands" => Self::Commands,
            "flooding-upstream" => Self::Nothing,
            _ => return None,
        })
    }
}

impl Source {
    /// Writes what precedes the flood: chunk size, both sequence headers and one frame of each track.
    pub(super) fn begin(flood: Flood, out: &mut BytesMut) -> Self {
        let size = match flood {
            Flood::OneByteChunks => 1,
            Flood::Metadata => SMALL_CHUNK,
            Flood::HugeFrames => LARGE_CHUNK,
            _ => USUAL_CHUNK,
        };
        let chunks = Chunks::announce(size, out);
        for (kind, body) in HEADERS {
            chunks.write(message_type(kind), 0, body, out);
        }
        let (batch, batch_messages, batch_made) = (BytesMut::new(), 0, None);
        let source = Self { flood, chunks, count: 0, batch, batch_messages, batch_made };
        for kind in [MediaKind::Video, MediaKind::Audio] {
            source.write_unit(kind, 0, 0, out);
        }
        source
    }

    /// The next batch and how many messages it contains; empty when nothing is due yet.
    pub(super) fn next(&mut self, elapsed: Duration) -> (&[u8], u32) {
        if self.flood == Flood::Nothing && elapsed < due(MediaKind::Video, self.count + 1) {
            return (&[], 0);
        }
        let is_old = self.batch_made.is_none_or(|made| elapsed > made + BATCH_AGE);
        if is_old || self.flood == Flood::Nothing {
            let mut batch = std::mem::take(&mut self.batch);
            batch.clear();
            let before = self.count;
            self.fill(u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX), &mut batch);
            self.batch_messages = self.count - before;
            self.batch = batch;
            self.batch_made = Some(elapsed);
        }
        (&self.batch, self.batch_messages)
    }

    fn fill(&mut self, timestamp: u32, out: &mut BytesMut) {
        match self.flood {
            // An MP3 tag body of one byte.
            Flood::TinyMessages => return self.repeat(AUDIO_ID, AUDIO, timestamp, &[0x2f], out),
            // PingRequest (RTMP 7.1.7).
            Flood::Controls => {
                let ping = [0, 6, 1, 2, 3, 4];
                return self.repeat(CONTROL_ID, USER_CONTROL, timestamp, &ping, out);
            }
            Flood::Nothing => {
                self.count += 1;
                self.write_unit(MediaKind::Video, self.count, timestamp, out);
                return self.write_unit(MediaKind::Audio, self.count, timestamp, out);
            }
            _ => {}
        }
        while out.len() < BATCH_BYTES {
            self.count += 1;
            let count = self.count;
            match self.flood {
                Flood::OneByteChunks => self.write_unit(MediaKind::Video, count, timestamp, out),
                Flood::Metadata => self.chunks.write(DATA_AMF0, timestamp, &metadata(count), out),
                Flood::Configurations => {
                    self.chunks.write(VIDEO, timestamp, &configuration(count), out);
                }
                Flood::HugeFrames => self.chunks.write(VIDEO, timestamp, &huge_frame(), out),
                _ => self.chunks.write(COMMAND_AMF0, 0, &command(count), out),
            }
        }
    }

    fn write_unit(&self, kind: MediaKind, number: u32, timestamp: u32, out: &mut BytesMut) {
        let body = unit(kind, Stamp { publisher: u32::MAX, number, sent: Duration::ZERO });
        self.chunks.write(message_type(kind), timestamp, &body, out);
    }

    /// A batch that repeats one message with one-byte headers.
    fn repeat(&mut self, id: u8, kind: u8, timestamp: u32, body: &[u8], out: &mut BytesMut) {
        self.chunks.write(kind, timestamp, body, out);
        Chunks::repeat_at_once(id, kind, body, out);
        self.count += 2;
        while out.len() < BATCH_BYTES {
            Chunks::repeat(id, body, out);
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tiny_message_of_a_batch_takes_two_bytes() {
        let mut source = Source::begin(Flood::TinyMessages, &mut BytesMut::new());
        let (batch, messages) = source.next(Duration::ZERO);
        assert!(messages > 500_000 && batch.len() < BATCH_BYTES + 64);
    }
}
