//! Each limit of the chunk reader, reached exactly and exceeded by one.

use super::*;

const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;
const COMMAND: u8 = 20;
/// Instead of the length of a message that was too long.
const DROPPED: usize = usize::MAX;

/// A full header on a chunk stream below 64 that declares `length` bytes, none of which follow.
fn header(id: u8, kind: u8, length: usize) -> Vec<u8> {
    let [.., l0, l1, l2] = length.to_be_bytes();
    vec![id, 0, 0, 0, l0, l1, l2, kind, 1, 0, 0, 0]
}

fn reader(chunk_size: u32) -> ChunkReader {
    let mut reader = ChunkReader::new(Limits::default());
    assert!(reader.set_chunk_size(chunk_size));
    reader
}

fn feed(reader: &mut ChunkReader, bytes: &[u8]) -> Result<Option<usize>, Error> {
    let mut allowance = Allowance::new(u32::MAX);
    let message = reader.read(&mut &bytes[..], &mut allowance)?;
    Ok(message
        .map(|message| if message.dropped.is_some() { DROPPED } else { message.payload.len() }))
}

/// A complete message of `length` bytes in one chunk.
fn whole(reader: &mut ChunkReader, kind: u8, length: usize) -> Result<Option<usize>, Error> {
    reader.chunk_size = u32::try_from(length).expect("short").max(128);
    let mut bytes = header(3, kind, length);
    bytes.resize(bytes.len() + length, 7);
    feed(reader, &bytes)
}

#[test]
fn every_chunk_size_but_0_is_taken_and_means_at_most_the_longest_message() {
    let mut reader = ChunkReader::new(Limits::default());
    for (announced, size) in [
        (1, 1),
        (65_537, 65_537),
        (134_217_728, 0x00ff_ffff),
        (0x7fff_ffff, 0x00ff_ffff),
        (0x8000_0080, 128),
        (u32::MAX, 0x00ff_ffff),
    ] {
        assert!(reader.set_chunk_size(announced));
        assert_eq!(reader.chunk_size, size, "{announced}");
    }
    for nothing in [0, 0x8000_0000] {
        assert!(!reader.set_chunk_size(nothing));
        assert_eq!(reader.chunk_size, 0x00ff_ffff);
    }
}

#[test]
fn beyond_256_chunk_streams_an_idle_one_is_forgotten() {
    let on = |id: u32, length: usize| {
        let [low, high] = u16::try_from(id - 64).expect("an id").to_le_bytes();
        [&[1, low, high][..], &header(0, VIDEO, length)[1..]].concat()
    };
    let mut reader = reader(128);
    // Each of 1,000 with its message, while one is within a message all the time.
    let begun = [on(5_000, 200), vec![7; 128]].concat();
    assert_eq!(feed(&mut reader, &begun), Ok(None));
    for id in 64..1_064 {
        assert_eq!(feed(&mut reader, &on(id, 0)), Ok(Some(0)), "{id}");
    }
    assert_eq!(reader.streams.len(), 256);
    let [low, high] = 4_936_u16.to_le_bytes();
    let rest = [&[0xc1, low, high][..], &[7; 72]].concat();
    assert_eq!(feed(&mut reader, &rest), Ok(Some(200)));
    for id in 64..320 {
        let begun = [on(id, 200), vec![7; 128]].concat();
        assert_eq!(feed(&mut reader, &begun), Ok(None), "{id}");
    }
    assert_eq!(feed(&mut reader, &on(320, 0)), Err(Error::ChunkStreamLimit), "all within messages");
}

#[test]
fn a_message_before_acceptance_is_at_most_64_kib() {
    assert_eq!(whole(&mut reader(128), VIDEO, 65_536), Ok(Some(65_536)));
    assert_eq!(whole(&mut reader(128), VIDEO, 65_537), Ok(Some(DROPPED)));
}

#[test]
fn a_message_after_acceptance_is_at_most_8_mib() {
    let accepted = || {
        let mut reader = reader(65_536);
        reader.set_accepted();
        reader
    };
    assert_eq!(whole(&mut accepted(), VIDEO, 8 << 20), Ok(Some(8 << 20)));
    assert_eq!(whole(&mut accepted(), VIDEO, (8 << 20) + 1), Ok(Some(DROPPED)));
}

#[test]
fn commands_and_metadata_after_acceptance_are_still_at_most_64_kib() {
    let mut reader = reader(65_536);
    reader.set_accepted();
    assert_eq!(whole(&mut reader, SCRIPT, 65_536), Ok(Some(65_536)));
    for kind in [15, 17, SCRIPT, COMMAND] {
        assert_eq!(whole(&mut reader, kind, 65_537), Ok(Some(DROPPED)), "{kind}");
    }
}

#[test]
fn metadata_is_bounded_when_a_shorter_header_turns_media_into_it() {
    let mut reader = reader(65_536);
    reader.set_accepted();
    assert_eq!(whole(&mut reader, VIDEO, 70_000), Ok(Some(70_000)));
    let [.., l0, l1, l2] = 70_000_u32.to_be_bytes();
    let short = [&[0x43, 0, 0, 0, l0, l1, l2, SCRIPT][..], &[7; 70_000]].concat();
    assert_eq!(feed(&mut reader, &short), Ok(Some(DROPPED)));
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
fn a_message_that_is_too_long_is_read_without_being_kept_and_the_next_one_arrives() {
    let mut reader = reader(65_536);
    reader.set_accepted();
    let piece = |first: &[u8]| [first, &[7; 65_536]].concat();
    assert_eq!(feed(&mut reader, &piece(&header(3, VIDEO, 0x00ff_ffff))), Ok(None));
    for _ in 1..255 {
        assert_eq!(feed(&mut reader, &piece(&[0xc3])), Ok(None));
        assert_eq!((reader.partial, reader.streams[0].payload.capacity()), (0, 0));
    }
    let end = [vec![0xc3], vec![7; 65_535]].concat();
    assert_eq!(feed(&mut reader, &end), Ok(Some(DROPPED)));
    assert_eq!(feed(&mut reader, &[header(3, VIDEO, 2), vec![8; 2]].concat()), Ok(Some(2)));
}

#[test]
fn chunks_of_one_byte_carry_messages_of_any_length_and_their_size_may_change_within() {
    let mut reader = reader(1);
    reader.set_accepted();
    let begun = [header(3, VIDEO, 70_000), vec![7]].concat();
    assert_eq!(feed(&mut reader, &begun), Ok(None));
    for _ in 1..69_000 {
        assert_eq!(feed(&mut reader, &[0xc3, 7]), Ok(None));
    }
    assert!(reader.set_chunk_size(0x7fff_ffff));
    assert_eq!(feed(&mut reader, &[vec![0xc3], vec![7; 1000]].concat()), Ok(Some(70_000)));
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
}

#[test]
fn a_message_that_another_replaces_costs_itself_alone() {
    let begun = [header(3, VIDEO, 200), vec![7; 128]].concat();
    let whole = [header(3, VIDEO, 5), vec![8; 5]].concat();
    let same_stream = [vec![0x43, 0, 0, 1, 0, 0, 5, VIDEO], vec![8; 5]].concat();
    let like_the_last = [vec![0x83, 0, 0, 1], vec![8; 128], vec![0xc3], vec![8; 72]].concat();
    for (next, length) in [(whole, 5), (same_stream, 5), (like_the_last, 200)] {
        let (mut reader, mut allowance) = (reader(128), Allowance::new(u32::MAX));
        let input = [&begun[..], &next].concat();
        let mut input = &input[..];
        let mut read =
            || reader.read(&mut input, &mut allowance).expect("sound").expect("complete");
        assert_eq!(read().dropped, Some(Dropped::Truncated));
        let message = read();
        assert_eq!((message.payload.len(), message.dropped), (length, None));
        assert_eq!(reader.partial, 0);
    }
}
