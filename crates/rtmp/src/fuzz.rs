//! Fuzz bodies: any bytes, no panic, no unbounded memory. Shells in `crates/fuzz` and tests run them.

use std::time::Instant;

use bytes::Bytes;

use crate::allowance::Allowance;
use crate::amf0::{Reader, write};
use crate::chunk_reader::{ChunkReader, Message};
use crate::message::{Command, SET_CHUNK_SIZE, normalise_data, split_aggregate};
use crate::{
    ClientConfig, ClientRole, ClientSession, Error, Limits, Output, ServerConfig, ServerEvent,
    ServerSession,
};

/// The longest single answer there is, and the handshake.
const ANSWER_SLACK_BYTES: usize = 8192;

/// The bytes as chunks, long messages allowed, arriving whole and in pieces.
///
/// # Panics
/// Other messages than when they arrive at once are a finding.
pub fn chunk_reader(bytes: &[u8]) {
    let whole = read_chunks([bytes]);
    for size in [1, 1 + bytes.len() % 97, 1460] {
        assert_eq!(read_chunks(bytes.chunks(size)), whole, "in pieces of {size}");
    }
}

/// All messages of these pieces, and what ended them.
fn read_chunks<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Message>, Option<Error>) {
    let (mut reader, mut messages) = (ChunkReader::new(Limits::default()), Vec::new());
    let mut allowance = Allowance::new(u32::MAX);
    reader.set_accepted();
    for mut piece in pieces {
        loop {
            let message = match reader.read(&mut piece, &mut allowance) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            };
            if message.kind == SET_CHUNK_SIZE
                && let Some(size) = message.payload.first_chunk()
                && let Err(error) = reader.set_chunk_size(u32::from_be_bytes(*size))
            {
                return (messages, Some(error));
            }
            messages.push(message);
        }
    }
    (messages, None)
}

/// The bytes as AMF0 values, which are written and read again.
///
/// # Panics
/// A value that changes on its way is a finding.
pub fn amf0(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(value) = reader.value() {
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        write(&mut once, &value);
        let again = Reader::new(&once).value();
        // By its bytes: a number may be one that equals nothing.
        again.iter().for_each(|value| write(&mut twice, value));
        assert_eq!(once, twice, "{value:?}");
    }
}

/// The bytes as the messages that hold others: a command, script data, an aggregate.
///
/// # Panics
/// An aggregate with more in it than it has bytes is a finding.
pub fn message(bytes: &[u8]) {
    let payload = Bytes::copy_from_slice(bytes);
    // Most are no command; those that are say so.
    let _ = Command::parse(bytes);
    for kind in [15, 18] {
        assert!(normalise_data(kind, payload.clone()).len() <= bytes.len());
    }
    let parts = split_aggregate(0, payload).unwrap_or_default();
    assert!(parts.iter().map(|part| part.payload.len()).sum::<usize>() <= bytes.len());
}

/// The first byte splits the rest; a server past its handshake reads it.
///
/// # Panics
/// More answers than allowed are a finding.
pub fn server_session(bytes: &[u8]) {
    let now = Instant::now();
    let mut session = ServerSession::new(ServerConfig::default(), now);
    let mut hello = vec![0; 1 + 2 * 1536];
    hello[0] = 3;
    let Some((split, rest)) = bytes.split_first() else { return };
    let (first, second) = rest.split_at(usize::from(*split).min(rest.len()));
    for part in [&hello[..], first, second] {
        let outcome = session.handle_input(part, now);
        assert_bounded(session.output());
        if outcome.is_err() {
            return;
        }
        while let Some(event) = session.poll_event() {
            match event {
                ServerEvent::PublishRequested(_) => session.allow(),
                ServerEvent::PlayRequested(_) => session.accept_play(),
                ServerEvent::Media(_)
                | ServerEvent::PublishEnded
                | ServerEvent::PlayEnded
                | ServerEvent::Close => {}
            }
        }
    }
}

/// A client past its handshake reads the bytes, publishing and playing.
///
/// # Panics
/// More answers than allowed are a finding.
pub fn client_session(bytes: &[u8]) {
    let now = Instant::now();
    let mut hello = vec![0; 1 + 2 * 1536];
    hello[0] = 3;
    for role in [ClientRole::Publish, ClientRole::Play] {
        let config = ClientConfig {
            app: "live".into(),
            tc_url: "rtmp://h/live".into(),
            name: b"cam".to_vec(),
            seed: [1; 8],
            ..ClientConfig::new(role)
        };
        let mut session = ClientSession::new(config, now);
        if session.handle_input(&hello, now).is_ok() && session.handle_input(bytes, now).is_ok() {
            while session.poll_event().is_some() {}
        }
        assert_bounded(session.output());
    }
}

fn assert_bounded(output: &Output) {
    let most = Limits::default().answer_bytes + ANSWER_SLACK_BYTES;
    assert!(output.pending_bytes() <= most, "{} bytes of answers", output.pending_bytes());
}
