//! Chunks are read back as the messages they were made from, however they arrive.

use crate::chunk_header::EXTENDED;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Output;
use crate::chunk_writer::{ChunkStreamId, ChunkWriter, Head};

const SET_CHUNK_SIZE: u8 = 1;
const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;
/// One-, two- and three-byte basic headers, each with its lowest and highest id (RTMP 5.3.1.1).
const CHUNK_STREAMS: [u32; 8] = [3, 4, 6, 63, 64, 319, 320, 65_599];

/// A message to write, and how short its header may be.
#[derive(Clone, Debug)]
struct Planned {
    chunk_stream: u32,
    format: u8,
    message: Message,
}

/// The contents of the last header on a chunk stream.
#[derive(Clone, Copy)]
struct Last {
    stream: u32,
    kind: u8,
    length: usize,
    timestamp: u32,
    delta: u32,
    extended: Option<u32>,
}

/// An encoder as described in RTMP 5.3.1: every form of header, any interleaving.
struct Sender {
    out: Vec<u8>,
    chunk_size: u32,
    last: Vec<(u32, Last)>,
    /// Type 3 chunks without the extended timestamp, as some peers send them.
    omits_extended: bool,
}

impl Sender {
    const fn new(omits_extended: bool) -> Self {
        Self { out: Vec::new(), chunk_size: DEFAULT_CHUNK_SIZE, last: Vec::new(), omits_extended }
    }

    fn set_chunk_size(&mut self, size: u32) -> Message {
        let payload = Bytes::copy_from_slice(&size.to_be_bytes());
        let message =
            Message { kind: SET_CHUNK_SIZE, stream: 0, timestamp: 0, payload, dropped: None };
        // Written at once: at a chunk size below four this takes several chunks.
        let mut planned = Planned { chunk_stream: 2, format: 0, message: message.clone() };
        let mut at = self.begin(&mut planned);
        while at < planned.message.payload.len() {
            at = self.resume(&planned, at);
        }
        self.chunk_size = size;
        message
    }

    /// The first chunk of a message, whose header may omit what the last one contained; returns how many bytes were
    /// written.
    fn begin(&mut self, planned: &mut Planned) -> usize {
        let last = self.last.iter().position(|(id, _)| *id == planned.chunk_stream);
        let last = last.map(|at| self.last.remove(at).1);
        let format = if last.is_some() { planned.format } else { 0 };
        let message = &mut planned.message;
        if let Some(last) = last {
            message.stream = if format > 0 { last.stream } else { message.stream };
            if format > 1 {
                message.kind = last.kind;
                message.payload = (0..last.length).map(|n| n as u8).collect();
            }
            if format > 2 {
                message.timestamp = last.timestamp.wrapping_add(last.delta);
            }
        }
        let Message { kind, stream, timestamp, ref payload, .. } = planned.message;
        // Type 3 after type 0 adds the timestamp itself (RTMP 5.3.1.2.4).
        let before = last.filter(|_| format > 0).map_or(0, |last| last.timestamp);
        let delta = timestamp.wrapping_sub(before);
        let extended = match (format, last) {
            (3, Some(last)) => last.extended,
            _ => (delta >= EXTENDED).then_some(delta),
        };
        self.basic(format, planned.chunk_stream);
        let [_, t0, t1, t2] = delta.min(EXTENDED).to_be_bytes();
        let [_, l0, l1, l2] = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let fields = [&[t0, t1, t2][..], &[l0, l1, l2, kind], &stream.to_le_bytes()].concat();
        self.out.extend(&fields[..[11, 7, 3, 0][usize::from(format)]]);
        if let Some(extended) = extended
            && !(format == 3 && self.omits_extended)
        {
            self.out.extend(extended.to_be_bytes());
        }
        let last = Last { stream, kind, length: payload.len(), timestamp, delta, extended };
        self.last.push((planned.chunk_stream, last));
        self.payload(payload, 0)
    }

    /// A further chunk of a message.
    fn resume(&mut self, planned: &Planned, at: usize) -> usize {
        self.basic(3, planned.chunk_stream);
        let last = self.last.iter().find(|(id, _)| *id == planned.chunk_stream);
        if let Some(extended) = last.and_then(|(_, last)| last.extended)
            && !self.omits_extended
        {
            self.out.extend(extended.to_be_bytes());
        }
        self.payload(&planned.message.payload, at)
    }

    fn payload(&mut self, payload: &Bytes, at: usize) -> usize {
        let end = (at + self.chunk_size as usize).min(payload.len());
        self.out.extend(&payload[at..end]);
        end
    }

    fn basic(&mut self, format: u8, id: u32) {
        let format = format << 6;
        let [_, _, high, low] = id.wrapping_sub(64).to_be_bytes();
        match id {
            0..64 => self.out.push(format | u8::try_from(id).expect("below 64")),
            64..320 => self.out.extend([format, low]),
            _ => self.out.extend([format | 1, low, high]),
        }
    }
}

/// Writes all messages, choosing chunk streams as `turns` specifies; a zero in it changes the chunk size. Returns the
/// messages in the order in which they are completed.
fn interleave(
    sender: &mut Sender,
    mut waiting: Vec<Planned>,
    turns: &[u8],
    sizes: &[u32],
) -> Vec<Message> {
    let mut ended = Vec::new();
    let mut open: Vec<(Planned, usize)> = Vec::new();
    let (mut turns, mut sizes) = (turns.iter().cycle(), sizes.iter());
    while !waiting.is_empty() || !open.is_empty() {
        let turn = usize::from(*turns.next().expect("cycles"));
        if turn == 0
            && let Some(size) = sizes.next()
        {
            ended.push(sender.set_chunk_size(*size));
        }
        let is_open =
            |planned: &Planned| open.iter().any(|(o, _)| o.chunk_stream == planned.chunk_stream);
        let startable = waiting.first().is_some_and(|next| !is_open(next));
        let at = if startable && (turn.is_multiple_of(3) || open.is_empty()) {
            let mut next = waiting.remove(0);
            let at = sender.begin(&mut next);
            open.push((next, at));
            open.len() - 1
        } else {
            let index = turn % open.len();
            let (planned, at) = &mut open[index];
            *at = sender.resume(planned, *at);
            index
        };
        if open[at].1 == open[at].0.message.payload.len() {
            ended.push(open.swap_remove(at).0.message);
        }
    }
    ended
}

/// Reads all messages in `bytes`, arriving in pieces of these sizes in turn.
fn read_pieces(bytes: &[u8], pieces: &[usize]) -> Result<Vec<Message>, Error> {
    let mut reader = ChunkReader::new(Limits::default());
    let mut allowance = Allowance::new(u32::MAX);
    let (mut left, mut messages) = (bytes, Vec::new());
    for size in pieces.iter().cycle() {
        let (mut now, rest) = left.split_at((*size).min(left.len()));
        while let Some(message) = reader.read(&mut now, &mut allowance)? {
            if message.kind == SET_CHUNK_SIZE {
                let size = message.payload[..].try_into().expect("four bytes");
                reader.set_chunk_size(u32::from_be_bytes(size));
            }
            messages.push(message);
        }
        left = rest;
        if left.is_empty() {
            break;
        }
    }
    assert_eq!(reader.partial, 0, "finished messages leave no unfinished bytes");
    Ok(messages)
}

fn any_timestamp() -> impl Strategy<Value = u32> {
    let around = EXTENDED - 2..EXTENDED + 3;
    prop_oneof![0_u32..5000, around, any::<u32>(), u32::MAX - 2..=u32::MAX, Just(40)]
}

fn any_length() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0_usize), 1..8_usize, 120..140_usize, 0..3000_usize]
}

fn any_payload() -> impl Strategy<Value = Bytes> {
    (any_length(), any::<u8>())
        .prop_map(|(length, first)| (0..length).map(|n| (n as u8).wrapping_add(first)).collect())
}

fn any_planned() -> impl Strategy<Value = Planned> {
    let kind = proptest::sample::select(&[8_u8, VIDEO, SCRIPT, 20][..]);
    let id = proptest::sample::select(&CHUNK_STREAMS[..]);
    (id, 0_u8..4, kind, 0_u32..2, any_timestamp(), any_payload()).prop_map(
        |(chunk_stream, format, kind, stream, timestamp, payload)| {
            let message = Message { kind, stream, timestamp, payload, dropped: None };
            Planned { chunk_stream, format, message }
        },
    )
}

fn any_chunk_size() -> impl Strategy<Value = u32> {
    prop_oneof![1_u32..8, 100_u32..200, 1_u32..=65_536, Just(65_536)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn interleaved_messages_read_back_however_the_bytes_arrive(
        planned in vec(any_planned(), 1..16),
        turns in vec(any::<u8>().prop_map(|turn| turn % 7), 1..32),
        sizes in vec(any_chunk_size(), 0..6),
        pieces in vec(1_usize..400, 1..12),
    ) {
        let mut sender = Sender::new(false);
        let want = interleave(&mut sender, planned, &turns, &sizes);
        prop_assert_eq!(&read_pieces(&sender.out, &[usize::MAX]), &Ok(want.clone()));
        prop_assert_eq!(&read_pieces(&sender.out, &[1]), &Ok(want.clone()));
        prop_assert_eq!(&read_pieces(&sender.out, &pieces), &Ok(want));
    }

    #[test]
    fn a_peer_that_omits_extended_timestamps_on_type_3_is_understood(
        mut planned in vec(any_planned(), 1..10),
        pieces in vec(1_usize..400, 1..12),
    ) {
        // A full header on 319 begins like the time 0xffffff and cannot be told from an extended timestamp.
        planned.iter_mut().filter(|next| next.chunk_stream == 319).for_each(|next| next.chunk_stream = 318);
        let mut sender = Sender::new(true);
        let mut want = interleave(&mut sender, planned, &[0, 1, 2, 3], &[]);
        // The next header proves that bytes mistaken for a timestamp are put back.
        want.push(sender.set_chunk_size(4096));
        prop_assert_eq!(&read_pieces(&sender.out, &[usize::MAX]), &Ok(want.clone()));
        prop_assert_eq!(&read_pieces(&sender.out, &pieces), &Ok(want));
    }

    #[test]
    fn the_output_of_our_writer_reads_back(
        messages in vec((any_timestamp(), any_payload(), 0_u32..2), 1..8),
        size in prop_oneof![128_u32..200, 128_u32..=65_536],
        pieces in vec(1_usize..400, 1..12),
    ) {
        let (mut writer, mut output, mut want) = (ChunkWriter::new(), Output::default(), Vec::new());
        let mut write = |writer: &ChunkWriter, kind, stream, timestamp, payload: &Bytes| {
            let head = Head { chunk_stream: ChunkStreamId::Video, kind, stream, timestamp };
            let (prefix, rest) = payload.split_at(payload.len().min(5));
            writer.write(&mut output, head, prefix, &Bytes::copy_from_slice(rest));
            want.push(Message { kind, stream, timestamp, payload: payload.clone(), dropped: None });
        };
        for (n, (timestamp, payload, stream)) in messages.iter().enumerate() {
            if n == messages.len() / 2 {
                let announced = Bytes::copy_from_slice(&size.to_be_bytes());
                write(&writer, SET_CHUNK_SIZE, 0, 0, &announced);
                writer.set_chunk_size(size);
            }
            write(&writer, VIDEO, *stream, *timestamp, payload);
        }
        let mut bytes = Vec::new();
        while !output.is_empty() {
            let mut slice = [std::io::IoSlice::new(&[])];
            output.io_slices(&mut slice);
            bytes.extend_from_slice(&slice[0]);
            output.consume(slice[0].len());
        }
        prop_assert_eq!(&read_pieces(&bytes, &pieces), &Ok(want));
    }
}
