//! How much one turn of the driver reads from an encoder that sends at full speed, and that nothing is lost or
//! reordered.

use std::time::Instant;

use headgate_rtmp::{Limits, ServerConfig, ServerEvent, ServerSession};

use crate::support::{AGGREGATE, Encoder, command, null, object, string};

const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
/// Bytes a driver reads from a socket at once.
const READ_BYTES: usize = 64 << 10;

/// A full header on chunk stream 6, message stream 1.
fn header(kind: u8, length: usize) -> Vec<u8> {
    let [.., l0, l1, l2] = length.to_be_bytes();
    vec![6, 0, 0, 0, l0, l1, l2, kind, 1, 0, 0, 0]
}

/// A video message of `length` bytes in chunks of `size`.
fn video(length: usize, size: usize) -> Vec<u8> {
    let mut bytes = header(VIDEO, length);
    for (n, chunk) in vec![0x17; length].chunks(size).enumerate() {
        bytes.extend((n > 0).then_some(0xc6));
        bytes.extend(chunk);
    }
    bytes
}

/// Takes turns until nothing is unread, the first with these bytes; returns the number of turns and the most events in
/// one.
fn turns(encoder: &mut Encoder, bytes: &[u8]) -> (usize, usize) {
    encoder.turn(bytes).expect("within all limits");
    let (mut turns, mut most) = (1, encoder.events().len());
    while encoder.session().has_unread_input() {
        encoder.turn(&[]).expect("within all limits");
        turns += 1;
        most = most.max(encoder.events().len());
    }
    (turns, most)
}

#[test]
fn chunks_of_one_byte_cost_turns_by_their_headers() {
    let mut encoder = Encoder::publishing();
    encoder.set_chunk_size(1);
    let work = Limits::default().turn_work as usize;
    let (turns, most) = turns(&mut encoder, &video(3 * work, 1));
    assert_eq!((turns, most), (4, 1), "three turns of headers, and one for the bytes");
}

#[test]
fn tiny_messages_are_bounded_in_every_turn() {
    let mut encoder = Encoder::publishing();
    encoder.chunks(&video(1, 128));
    encoder.events();
    let (turns, most) = turns(&mut encoder, &[0xc6, 0x27].repeat(READ_BYTES / 2));
    // A message and its header cost 33 units.
    let work = Limits::default().turn_work as usize;
    assert_eq!(most, work.div_ceil(33));
    assert_eq!(turns, (READ_BYTES / 2 * 33).div_ceil(work));
}

#[test]
fn long_commands_and_long_metadata_cost_by_their_bytes() {
    let long = "x".repeat(9000);
    let keys: Vec<String> = (0..6).map(|n| n.to_string()).collect();
    let values: Vec<_> = keys.iter().map(|key| (&key[..], string(&long))).collect();
    let metadata = [string("onMetaData"), object(&values)].concat();
    let call = command("x", 0.0, &[null(), object(&values)]);
    for (kind, payload) in [(18, metadata), (20, call)] {
        let mut encoder = Encoder::publishing();
        encoder.set_chunk_size(65_536);
        let message = [header(kind, payload.len()), payload].concat();
        let (turns, most) = turns(&mut encoder, &message.repeat(20));
        let work = Limits::default().turn_work as usize;
        assert!(turns >= 19 * 54_000 / 2 / work && most <= 1, "{turns} turns, {most} at once");
    }
}

#[test]
fn an_aggregate_is_handed_out_over_several_turns_in_its_order() {
    let part = |n: u16| {
        let [high, low] = n.to_be_bytes();
        [&[AUDIO, 0, 0, 2, 0, high, low, 0, 0, 0, 0][..], &[high, low, 0, 0, 0, 13]].concat()
    };
    let parts: Vec<u8> = (0..1000).flat_map(part).collect();
    let mut encoder = Encoder::publishing();
    encoder.set_chunk_size(65_536);
    encoder.turn(&[header(AGGREGATE, parts.len()), parts].concat()).expect("an aggregate");
    assert!(encoder.session().has_unread_input() && !encoder.session().takes_input());
    let mut times: Vec<_> = encoder.media().iter().map(|media| media.timestamp).collect();
    assert!(times.len() < 200, "{}", times.len());
    while encoder.session().has_unread_input() {
        encoder.turn(&[]).expect("the rest");
        times.extend(encoder.media().iter().map(|media| media.timestamp));
    }
    assert!(encoder.session().takes_input());
    assert_eq!(times, (0..1000).collect::<Vec<_>>());
}

#[test]
fn an_honest_backlog_is_read_many_times_faster_than_real_time() {
    const SECONDS: usize = 10;
    const TURNS_PER_SECOND: usize = 500;
    // 10 Mbit/s at 30 frames a second, in chunks of 128 bytes, with 47 audio frames a second.
    let frame = video(10_000_000 / 8 / 30, 128);
    let audio = [header(AUDIO, 340), vec![0xaf; 128], vec![0xc6], vec![1; 128]].concat();
    let audio = [audio, vec![0xc6], vec![1; 84]].concat();
    let second: Vec<u8> = [frame.repeat(30), audio.repeat(47)].concat();
    let mut encoder = Encoder::publishing();
    let mut count = 0;
    for read in second.repeat(SECONDS).chunks(READ_BYTES) {
        count += turns(&mut encoder, read).0;
    }
    assert!(count < TURNS_PER_SECOND * SECONDS / 10, "{count} turns");
}

#[test]
fn the_socket_is_not_read_while_input_is_unread() {
    let mut encoder = Encoder::publishing();
    assert!(encoder.session().takes_input() && !encoder.session().has_unread_input());
    encoder.set_chunk_size(1);
    encoder.turn(&video(10_000, 1)).expect("media");
    assert!(!encoder.session().takes_input() && encoder.session().has_unread_input());
    encoder.turn(&[]).expect("the rest");
    assert!(encoder.session().takes_input() && !encoder.session().has_unread_input());
    assert_eq!(encoder.media().len(), 1);
}

#[test]
fn nothing_more_is_read_without_a_new_turn() {
    let mut encoder = Encoder::publishing();
    encoder.set_chunk_size(1);
    encoder.turn(&video(20_000, 1)).expect("media");
    let missing = encoder.session().missing_bytes();
    encoder.more(&[]);
    assert_eq!(encoder.session().missing_bytes(), missing);
    encoder.turn(&[]).expect("the rest");
    assert!(encoder.session().missing_bytes() < missing);
}

#[test]
fn input_that_waited_for_a_decision_is_unread_input_once_allowed() {
    let mut encoder = Encoder::connected();
    let publish = command("publish", 5.0, &[null(), string("cam"), string("live")]);
    let publish = [header(20, publish.len()), publish].concat();
    encoder.turn(&[publish, video(100, 128)].concat()).expect("a publish");
    assert!(!encoder.session().takes_input() && !encoder.session().has_unread_input());
    encoder.events();
    encoder.session().allow();
    assert!(!encoder.session().takes_input() && encoder.session().has_unread_input());
    encoder.turn(&[]).expect("what came before");
    assert!(matches!(encoder.events()[..], [ServerEvent::Media(_)]));
    assert!(encoder.session().takes_input() && !encoder.session().has_unread_input());
}

#[test]
fn another_session_continues_from_a_boundary_wherever_the_input_was_cut() {
    let bytes = [100, 300, 200].map(|length| video(length, 128)).concat();
    for cut in 0..bytes.len() {
        let mut encoder = Encoder::publishing();
        encoder.chunks(&bytes[..cut]);
        let early = encoder.media().len();
        encoder.session().find_boundary();
        encoder.chunks(&bytes[cut..]);
        let events = encoder.events();
        let is_boundary = |event: &ServerEvent| matches!(event, ServerEvent::Boundary { .. });
        let at = events.iter().position(is_boundary).expect("a boundary");
        let ServerEvent::Boundary { state, rest } = &events[at] else { unreachable!() };
        let (before, behind) = (&events[..at], &events[at + 1..]);
        assert_eq!(early + before.len() + behind.len(), 3, "cut at {cut}");
        let now = Instant::now();
        let mut other = ServerSession::resume(ServerConfig::default(), state, now);
        other.handle_input(rest, now).expect("whole messages");
        let read: Vec<_> = std::iter::from_fn(|| other.poll_event()).collect();
        assert_eq!(read, behind, "cut at {cut}");
    }
}

#[test]
fn an_ended_session_has_nothing_left_to_read() {
    let mut encoder = Encoder::publishing();
    encoder.set_chunk_size(1);
    encoder.turn(&video(10_000, 1)).expect("media");
    encoder.session().end_publish("NetStream.Failed", "over");
    assert!(encoder.session().takes_input() && !encoder.session().has_unread_input());
}

#[test]
fn every_input_byte_is_counted_including_metadata_and_unread_input() {
    let mut encoder = Encoder::publishing();
    let before = encoder.session().input_bytes();
    let metadata = [string("onMetaData"), object(&[])].concat();
    encoder.message(5, 18, 1, &metadata);
    let mut bytes = 12 + metadata.len() as u64;
    encoder.set_chunk_size(1);
    bytes += 16;
    let media = video(10_000, 1);
    encoder.turn(&media).expect("media");
    assert_eq!(encoder.session().input_bytes() - before, bytes + media.len() as u64);
}

#[test]
fn bytes_mistaken_for_an_extended_timestamp_are_read_in_the_next_turn_too() {
    // An empty message at 0x01000000; then type 3 headers without that timestamp, in single bytes, and the next full
    // header.
    let first = [6, 0xff, 0xff, 0xff, 0, 0, 0, VIDEO, 1, 0, 0, 0, 1, 0, 0, 0];
    let other = [4, 0, 0, 7, 0, 0, 0, AUDIO, 1, 0, 0, 0];
    let bytes = [&first[..], &[0xc6], &other, &[0xc4; 3]].concat();
    let times = |turn_work| {
        let limits = Limits { turn_work, ..Limits::default() };
        let mut encoder = Encoder::with_limits(limits).and_connected().and_publishing();
        bytes.chunks(1).for_each(|byte| encoder.chunks(byte));
        encoder.media().iter().map(|media| media.timestamp).collect::<Vec<_>>()
    };
    assert_eq!(times(1), [0x0100_0000, 0x0200_0000, 7, 14, 21, 28]);
    assert_eq!(times(u32::MAX), times(1));
}

#[test]
fn bytes_mistaken_for_an_extended_timestamp_are_unread_input() {
    let first = [6, 0xff, 0xff, 0xff, 0, 0, 0, VIDEO, 1, 0, 0, 0, 1, 0, 0, 0];
    let empty = [4, 0, 0, 7, 0, 0, 0, AUDIO, 1, 0, 0, 0];
    let limits = Limits { turn_work: 1, ..Limits::default() };
    let mut encoder = Encoder::with_limits(limits).and_connected().and_publishing();
    encoder.chunks(&[&empty[..], &first].concat());
    encoder.events();
    // The four bytes after the type 3 header are four complete messages.
    encoder.chunks(&[0xc6, 0xc4, 0xc4, 0xc4, 0xc4]);
    assert_eq!(encoder.media().len(), 5);
}
