//! What a hostile RTMP publisher sends, batch by batch. Sans-I/O.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use headgate_rtmp::MediaKind;

use crate::chunks::{AUDIO, COMMAND_AMF0, Chunks, DATA_AMF0, USER_CONTROL, VIDEO};
use crate::load::{HEADERS, Stamp, due, unit};

/// Bytes of one batch of short messages.
const BATCH_BYTES: usize = 64 << 10;
/// Below the 64 KiB that script data may have.
const METADATA_BYTES: usize = 60_000;
/// A message of 8 MiB.
const HUGE_BYTES: usize = 8 << 20;
/// The largest chunk that the service takes, and OBS's.
const LARGE_CHUNK: u32 = 65_536;
const USUAL_CHUNK: u32 = 4_096;
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
    /// Media as it should be, in real time: the attack is elsewhere.
    Nothing,
}

/// A flood under way.
pub(super) struct Source {
    flood: Flood,
    chunks: Chunks,
    count: u32,
    huge: Vec<u8>,
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
    /// Writes what precedes the flood: the chunk size, both headers and one frame of each track.
    pub(super) fn begin(flood: Flood, out: &mut BytesMut) -> Self {
        let size = match flood {
            Flood::OneByteChunks => 1,
            Flood::HugeFrames => LARGE_CHUNK,
            _ => USUAL_CHUNK,
        };
        let chunks = Chunks::announce(size, out);
        for (kind, body) in HEADERS {
            chunks.write(crate::chunks::message_type(kind), 0, body, out);
        }
        let mut huge = Vec::new();
        if flood == Flood::HugeFrames {
            huge.extend_from_slice(&[0x17, 1, 0, 0, 0]);
            huge.extend_from_slice(&u32::try_from(HUGE_BYTES - 9).unwrap_or(0).to_be_bytes());
            huge.push(0x65);
            huge.resize(HUGE_BYTES, 0x55);
        }
        let source = Self { flood, chunks, count: 0, huge };
        for kind in [MediaKind::Video, MediaKind::Audio] {
            source.write_unit(kind, 0, 0, out);
        }
        source
    }

    /// Appends the next batch; how many messages it holds, or `None` when nothing is due yet.
    pub(super) fn next(&mut self, elapsed: Duration, out: &mut BytesMut) -> Option<u64> {
        let timestamp = u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX);
        let before = self.count;
        match self.flood {
            Flood::OneByteChunks => {
                self.count += 1;
                self.write_unit(MediaKind::Video, self.count, timestamp, out);
            }
            Flood::Metadata => {
                let body = metadata(self.count);
                self.chunks.write(DATA_AMF0, timestamp, &body, out);
                self.count += 1;
            }
            Flood::Configurations => {
                while out.len() < BATCH_BYTES {
                    let body = configuration(self.count);
                    self.chunks.write(VIDEO, timestamp, &body, out);
                    self.count += 1;
                }
            }
            // MP3 in name, one byte in all.
            Flood::TinyMessages => self.repeat(AUDIO_ID, AUDIO, timestamp, &[0x2f], out),
            Flood::HugeFrames => {
                self.chunks.write(VIDEO, timestamp, &self.huge, out);
                self.count += 1;
            }
            // PingRequest (RTMP 7.1.7).
            Flood::Controls => {
                self.repeat(CONTROL_ID, USER_CONTROL, timestamp, &[0, 6, 1, 2, 3, 4], out);
            }
            Flood::Commands => {
                while out.len() < BATCH_BYTES {
                    self.count += 1;
                    self.chunks.write(COMMAND_AMF0, 0, &command(self.count), out);
                }
            }
            Flood::Nothing => {
                if elapsed < due(MediaKind::Video, self.count + 1) {
                    return None;
                }
                self.count += 1;
                self.write_unit(MediaKind::Video, self.count, timestamp, out);
                self.write_unit(MediaKind::Audio, self.count, timestamp, out);
            }
        }
        Some(u64::from(self.count - before))
    }

    fn write_unit(&self, kind: MediaKind, number: u32, timestamp: u32, out: &mut BytesMut) {
        let body = unit(kind, Stamp { publisher: u32::MAX, number, sent: Duration::ZERO });
        self.chunks.write(crate::chunks::message_type(kind), timestamp, &body, out);
    }

    /// A batch of one message over and over, with one-byte headers.
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

/// `@setDataFrame` with thousands of numbers (AMF0 2.10), other ones each time.
fn metadata(count: u32) -> BytesMut {
    let mut body = BytesMut::with_capacity(METADATA_BYTES + 64);
    body.put_slice(b"\x02\0\x0d@setDataFrame\x02\0\x0aonMetaData\x08\0\0\0\0");
    let mut at = 0;
    while body.len() < METADATA_BYTES {
        body.put_slice(format!("\0\x06k{at:05}\0").as_bytes());
        body.put_f64(f64::from(count) + f64::from(at));
        at += 1;
    }
    body.put_slice(&[0, 0, 9]);
    body
}

/// The bench's own decoder configuration with a PPS that never came before.
fn configuration(count: u32) -> BytesMut {
    let mut body = BytesMut::from(HEADERS[0].1);
    // The PPS is the last: its length is in the two bytes before its four.
    let length = body.len() - 6;
    if let Some(bytes) = body.get_mut(length..length + 2) {
        bytes.copy_from_slice(&8_u16.to_be_bytes());
    }
    body.put_u32(count);
    body
}

/// `releaseStream`, which every server answers or passes over.
fn command(transaction: u32) -> BytesMut {
    let mut body = BytesMut::from(&b"\x02\0\x0dreleaseStream\0"[..]);
    body.put_f64(f64::from(transaction));
    body.put_slice(b"\x05\x02\0\x04name");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_60_kb_and_readable() {
        let body = metadata(1);
        assert!((METADATA_BYTES..METADATA_BYTES + 64).contains(&body.len()), "{}", body.len());
        // What follows the name of the command.
        assert!(headgate_rtmp::read_metadata(&body[16..]).is_some());
    }

    #[test]
    fn no_configuration_comes_twice() {
        let (first, second) = (configuration(1), configuration(2));
        assert_eq!(first.len(), HEADERS[0].1.len() + 4);
        assert_ne!(first, second);
    }

    #[test]
    fn a_batch_of_tiny_messages_is_two_bytes_each() {
        let mut out = BytesMut::new();
        let mut source = Source::begin(Flood::TinyMessages, &mut out);
        out.clear();
        let messages = source.next(Duration::ZERO, &mut out).expect("always due");
        assert!(messages > 30_000 && out.len() < BATCH_BYTES + 64);
    }
}
