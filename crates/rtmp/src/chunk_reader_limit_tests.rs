//! Each limit of the chunk reader, reached exactly and exceeded by one.

use super::*;

const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;

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

/// A complete message of `length` bytes in one chunk.
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
fn at_most_32_chunk_streams_are_accepted() {
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
    // Two messages of 64 KiB; half of the second is missing, so 96 KiB are buffered.
    let mut reader = reader(32_768);
    let half = |id| [header(id, VIDEO, 65_536), vec![7; 32_768]].concat();
    for id in [3, 4, 5] {
        assert_eq!(feed(&mut reader, &half(id)), Ok(None));
    }
    assert_eq!(reader.partial, 98_304);
    assert_eq!(feed(&mut reader, &header(6, VIDEO, 1)), Err(Error::PartialLimit));
}

#[test]
fn unfinished_bytes_are_released_when_their_message_ends() {
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
fn a_continuation_chunk_without_a_message_is_rejected() {
    assert_eq!(feed(&mut reader(128), &[0xc3]), Err(Error::Chunk));
    assert_eq!(feed(&mut reader(128), &[0x83, 0, 0, 0]), Err(Error::Chunk));
    let inside = [header(3, VIDEO, 200), vec![7; 128], header(3, VIDEO, 200)].concat();
    assert_eq!(feed(&mut reader(128), &inside), Err(Error::Chunk));
}
