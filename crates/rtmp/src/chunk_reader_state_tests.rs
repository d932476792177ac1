use super::*;
use crate::allowance::Allowance;
use crate::chunk_header::EXTENDED;

fn read(reader: &mut ChunkReader, bytes: &[u8]) -> Option<(u32, usize)> {
    let message = reader.read(&mut &bytes[..], &mut Allowance::new(u32::MAX)).expect("welcome");
    message.map(|message| (message.timestamp, message.payload.len()))
}

/// A reader that has read a message with a plain timestamp on chunk stream 3, and one with an extended timestamp on 4.
fn reader() -> ChunkReader {
    let mut reader = ChunkReader::new(Limits::default());
    assert_eq!(read(&mut reader, &[3, 0, 0, 5, 0, 0, 1, 9, 1, 0, 0, 0, 7]), Some((5, 1)));
    let extended = [4, 0xff, 0xff, 0xff, 0, 0, 1, 9, 1, 0, 0, 0, 1, 0, 0, 0, 7];
    assert_eq!(read(&mut reader, &extended), Some((0x0100_0000, 1)));
    reader
}

#[test]
fn a_reader_continues_from_the_saved_state_of_another_one() {
    let limits = Limits::default();
    let state = reader().state().expect("between two messages");
    let kept = ReadingState::read(&state.to_bytes(), &limits).expect("possible");
    assert_eq!(kept, state);
    let mut other = ChunkReader::resume(limits, &kept);
    assert_eq!(read(&mut other, &[0xc3, 7]), Some((10, 1)), "the same delta again");
    // If a timestamp is extended, that of every following type 3 header is too.
    assert_eq!(read(&mut other, &[0xc4, 1, 0, 0, 0, 7]), Some((0x0200_0000, 1)));
}

#[test]
fn there_is_no_state_within_a_message_or_a_header() {
    for begun in [&[3, 0, 0, 0, 0, 0, 2, 9, 1, 0, 0, 0, 7][..], &[0xc3], &[0x43, 0]] {
        let mut reader = reader();
        assert_eq!(read(&mut reader, begun), None);
        assert_eq!(reader.state(), None, "{begun:x?}");
    }
}

#[test]
fn an_impossible_state_is_rejected() {
    let limits = Limits::default();
    let read = |bytes: &[u8]| ReadingState::read(bytes, &limits);
    let state = reader().state().expect("between two messages").to_bytes();
    let sized = |size: u32| [&size.to_be_bytes()[..], &state[4..]].concat();
    assert!(read(&sized(1)).is_some() && read(&sized(limits.chunk_size)).is_some());
    assert_eq!(read(&sized(0)), None);
    assert_eq!(read(&sized(limits.chunk_size + 1)), None);
    for length in (0..state.len()).filter(|length| *length < 4 || (length - 4) % STREAM_BYTES > 0) {
        assert_eq!(read(&state[..length]), None, "{length} bytes");
    }
    let streams = |count| [&state[..4], &state[4..4 + STREAM_BYTES].repeat(count)].concat();
    assert!(read(&streams(limits.chunk_streams)).is_some());
    assert_eq!(read(&streams(limits.chunk_streams + 1)), None);
}

#[test]
fn an_extended_timestamp_is_distinguished_from_none() {
    let state = reader().state().expect("between two messages");
    let extended: Vec<_> = state.streams.iter().map(|of| of.extended).collect();
    assert_eq!(extended, [None, Some(EXTENDED + 1)]);
}
