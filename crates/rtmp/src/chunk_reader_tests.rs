//! Chunks read back as the messages they were made of, however they arrive; and each limit, met and passed by one.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Output;
use crate::chunk_writer::{ChunkStreamId, ChunkWriter, Head};

const SET_CHUNK_SIZE: u8 = 1;
const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;
/// One-, two- and three-byte basic headers, each at both ends (RTMP 5.3.1.1).
const CHUNK_STREAMS: [u32; 8] = [3, 4, 6, 63, 64, 319, 320, 65_599];

/// A message to write, and how short its header may be.
#[derive(Clone, Debug)]
struct Planned {
    chunk_stream: u32,
    format: u8,
    message: Message,
}

/// What the last header of a chunk stream said.
#[derive(Clone, Copy)]
struct Last {
    stream: u32,
    kind: u8,
    length: usize,
    timestamp: u32,
    delta: u32,
    extended: Option<u32>,
}

/// An encoder as RTMP 5.3.1 describes it: every header form, any interleaving.
struct Sender {
    out: Vec<u8>,
    chunk_size: u32,
    last: Vec<(u32, Last)>,
    /// Type 3 chunks without the extended time, as some peers send them.
    omits_extended: bool,
}

impl Sender {
    const fn new(omits_extended: bool) -> Self {
        Self { out: Vec::new(), chunk_size: DEFAULT_CHUNK_SIZE, last: Vec::new(), omits_extended }
    }

    fn set_chunk_size(&mut self, size: u32) -> Message {
        let payload = Bytes::copy_from_slice(&size.to_be_bytes());
        let message = Message { kind: SET_CHUNK_SIZE, stream: 0, timestamp: 0, payload };
        // Written whole: at a chunk size below four this takes several chunks.
        let mut planned = Planned { chunk_stream: 2, format: 0, message: message.clone() };
        let mut at = self.begin(&mut planned);
        while at < planned.message.payload.len() {
            at = self.resume(&planned, at);
        }
        self.chunk_size = size;
        message
    }

    /// The first chunk of a message, which takes over what its header leaves out; returns how much of it is out.
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
        let Message { kind, stream, timestamp, ref payload } = planned.message;
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

/// Writes all, the chunk streams taking turns as `turns` says, its zeros being chunk size changes. Returns the messages
/// in the order they end.
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

/// All messages of `bytes`, arriving in pieces of these sizes in turn.
fn read_pieces(bytes: &[u8], pieces: &[usize]) -> Result<Vec<Message>, Error> {
    let mut reader = ChunkReader::new(Limits::default());
    let mut allowance = Allowance::new(u32::MAX);
    let (mut left, mut messages) = (bytes, Vec::new());
    for size in pieces.iter().cycle() {
        let (mut now, rest) = left.split_at((*size).min(left.len()));
        while let Some(message) = reader.read(&mut now, &mut allowance)? {
            if message.kind == SET_CHUNK_SIZE {
                let size = message.payload[..].try_into().expect("four bytes");
                reader.set_chunk_size(u32::from_be_bytes(size))?;
            }
            messages.push(message);
        }
        left = rest;
        if left.is_empty() {
            break;
        }
    }
    assert_eq!(reader.partial, 0, "finished messages leave nothing behind");
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
            let message = Message { kind, stream, timestamp, payload };
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
    fn a_peer_that_omits_extended_times_on_type_3_is_understood(
        mut planned in vec(any_planned(), 1..10),
        pieces in vec(1_usize..400, 1..12),
    ) {
        // A full header on 319 begins like the time 0xffffff: nobody can tell that from a time that is there.
        planned.iter_mut().filter(|next| next.chunk_stream == 319).for_each(|next| next.chunk_stream = 318);
        let mut sender = Sender::new(true);
        let mut want = interleave(&mut sender, planned, &[0, 1, 2, 3], &[]);
        // What follows shows that bytes taken for a time find their way back into the next header.
        want.push(sender.set_chunk_size(4096));
        prop_assert_eq!(&read_pieces(&sender.out, &[usize::MAX]), &Ok(want.clone()));
        prop_assert_eq!(&read_pieces(&sender.out, &pieces), &Ok(want));
    }

    #[test]
    fn what_our_own_writer_writes_reads_back(
        messages in vec((any_timestamp(), any_payload(), 0_u32..2), 1..8),
        size in prop_oneof![128_u32..200, 128_u32..=65_536],
        pieces in vec(1_usize..400, 1..12),
    ) {
        let (mut writer, mut output, mut want) = (ChunkWriter::new(), Output::default(), Vec::new());
        let mut write = |writer: &ChunkWriter, kind, stream, timestamp, payload: &Bytes| {
            let head = Head { chunk_stream: ChunkStreamId::Video, kind, stream, timestamp };
            let (prefix, rest) = payload.split_at(payload.len().min(5));
            writer.write(&mut output, head, prefix, &Bytes::copy_from_slice(rest));
            want.push(Message { kind, stream, timestamp, payload: payload.clone() });
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

/// A full header on a chunk stream below 64 that declares `length` bytes, none of which follow.
fn header(id: u8, kind: u8, length: usize) -> Vec<u8> {
    let [.., l0, l1, l2] = length.to_be_bytes();
    vec![id, 0, 0, 0, l0, l1, l2, kind, 1, 0, 0, 0]
}

fn reader(chunk_size: u32) -> ChunkReader {
    let mut reader = ChunkReader::new(Limits::default());
    reader.set_chunk_size(chunk_size).expect("within the limit");
    reader
}

fn feed(reader: &mut ChunkReader, bytes: &[u8]) -> Result<Option<usize>, Error> {
    let mut allowance = Allowance::new(u32::MAX);
    Ok(reader.read(&mut &bytes[..], &mut allowance)?.map(|message| message.payload.len()))
}

/// A whole message of `length` bytes in one chunk.
fn whole(reader: &mut ChunkReader, kind: u8, length: usize) -> Result<Option<usize>, Error> {
    reader.chunk_size = u32::try_from(length).expect("short").max(128);
    let mut bytes = header(3, kind, length);
    bytes.resize(bytes.len() + length, 7);
    feed(reader, &bytes)
}

#[test]
fn a_chunk_size_is_from_1_to_65536() {
    let mut reader = ChunkReader::new(Limits::default());
    assert_eq!(reader.set_chunk_size(1), Ok(()));
    assert_eq!(reader.set_chunk_size(65_536), Ok(()));
    assert_eq!(reader.set_chunk_size(0), Err(Error::ChunkSizeLimit));
    assert_eq!(reader.set_chunk_size(65_537), Err(Error::ChunkSizeLimit));
    assert_eq!(reader.set_chunk_size(u32::MAX), Err(Error::ChunkSizeLimit));
}

#[test]
fn chunk_streams_end_at_32() {
    let mut reader = reader(128);
    for id in 2..34 {
        assert_eq!(feed(&mut reader, &header(id, VIDEO, 0)), Ok(Some(0)));
    }
    assert_eq!(feed(&mut reader, &header(33, VIDEO, 0)), Ok(Some(0)), "a known one stays welcome");
    assert_eq!(feed(&mut reader, &header(34, VIDEO, 0)), Err(Error::ChunkStreamLimit));
}

#[test]
fn a_message_before_acceptance_is_at_most_64_kib() {
    assert_eq!(whole(&mut reader(128), VIDEO, 65_536), Ok(Some(65_536)));
    assert_eq!(whole(&mut reader(128), VIDEO, 65_537), Err(Error::MessageLimit));
}

#[test]
fn a_message_after_acceptance_is_at_most_8_mib() {
    let accepted = || {
        let mut reader = reader(65_536);
        reader.set_accepted();
        reader
    };
    assert_eq!(whole(&mut accepted(), VIDEO, 8 << 20), Ok(Some(8 << 20)));
    assert_eq!(feed(&mut accepted(), &header(3, VIDEO, (8 << 20) + 1)), Err(Error::MessageLimit));
}

#[test]
fn metadata_after_acceptance_is_still_at_most_64_kib() {
    let mut reader = reader(65_536);
    reader.set_accepted();
    assert_eq!(whole(&mut reader, SCRIPT, 65_536), Ok(Some(65_536)));
    assert_eq!(whole(&mut reader, 15, 65_537), Err(Error::MessageLimit));
}

#[test]
fn metadata_is_bounded_when_a_shorter_header_turns_media_into_it() {
    let mut reader = reader(65_536);
    reader.set_accepted();
    assert_eq!(whole(&mut reader, VIDEO, 70_000), Ok(Some(70_000)));
    let [.., l0, l1, l2] = 70_000_u32.to_be_bytes();
    let short = [0x43, 0, 0, 0, l0, l1, l2, SCRIPT];
    assert_eq!(feed(&mut reader, &short), Err(Error::MessageLimit));
}

#[test]
fn unfinished_bytes_are_at_most_one_and_a_half_messages() {
    // Two messages of 64 KiB, of the second all but half is missing: 96 KiB wait.
    let mut reader = reader(32_768);
    let half = |id| [header(id, VIDEO, 65_536), vec![7; 32_768]].concat();
    for id in [3, 4, 5] {
        assert_eq!(feed(&mut reader, &half(id)), Ok(None));
    }
    assert_eq!(reader.partial, 98_304);
    assert_eq!(feed(&mut reader, &header(6, VIDEO, 1)), Err(Error::PartialLimit));
}

#[test]
fn unfinished_bytes_are_free_again_once_their_message_ends() {
    let mut reader = reader(32_768);
    let half = |id| [header(id, VIDEO, 65_536), vec![7; 32_768]].concat();
    assert_eq!(feed(&mut reader, &half(3)), Ok(None));
    assert_eq!(feed(&mut reader, &half(4)), Ok(None));
    let second_half = [vec![0xc3], vec![7; 32_768]].concat();
    assert_eq!(feed(&mut reader, &second_half), Ok(Some(65_536)));
    assert_eq!(reader.partial, 32_768);
    reader.abort(4);
    assert_eq!(reader.partial, 0);
}

#[test]
fn an_aborted_message_makes_room_for_another_on_its_chunk_stream() {
    let mut reader = reader(128);
    assert_eq!(feed(&mut reader, &[header(3, VIDEO, 200), vec![7; 128]].concat()), Ok(None));
    reader.abort(3);
    assert_eq!(feed(&mut reader, &[header(3, VIDEO, 2), vec![8; 2]].concat()), Ok(Some(2)));
}

#[test]
fn tiny_chunks_carry_messages_of_at_most_64_kib() {
    let tiny = |chunk_size, length| {
        let mut reader = reader(chunk_size);
        reader.set_accepted();
        feed(&mut reader, &header(3, VIDEO, length))
    };
    assert_eq!(tiny(127, 65_536), Ok(None));
    assert_eq!(tiny(127, 65_537), Err(Error::ChunkSizeLimit));
    assert_eq!(tiny(128, 65_537), Ok(None));
}

#[test]
fn chunks_cannot_become_tiny_within_a_large_message() {
    let mut reader = reader(128);
    reader.set_accepted();
    let begun = [header(3, VIDEO, 65_537), vec![7; 128]].concat();
    assert_eq!(feed(&mut reader, &begun), Ok(None));
    assert_eq!(reader.set_chunk_size(128), Ok(()));
    assert_eq!(reader.set_chunk_size(127), Err(Error::ChunkSizeLimit));
}

#[test]
fn a_declared_length_reserves_nothing() {
    let mut reader = reader(65_536);
    reader.set_accepted();
    assert_eq!(feed(&mut reader, &[header(3, VIDEO, 8 << 20), vec![7]].concat()), Ok(None));
    let reserved: usize = reader.streams.iter().map(|stream| stream.payload.capacity()).sum();
    assert!(reserved <= 1024, "{reserved} bytes for one that arrived");
}

#[test]
fn a_chunk_that_continues_nothing_is_refused() {
    assert_eq!(feed(&mut reader(128), &[0xc3]), Err(Error::Chunk));
    assert_eq!(feed(&mut reader(128), &[0x83, 0, 0, 0]), Err(Error::Chunk));
    let inside = [header(3, VIDEO, 200), vec![7; 128], header(3, VIDEO, 200)].concat();
    assert_eq!(feed(&mut reader(128), &inside), Err(Error::Chunk));
}
