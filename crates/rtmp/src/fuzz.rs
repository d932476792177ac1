//! Fuzz bodies: whatever the bytes, no panic and no unbounded memory. Run by the shells in `crates/fuzz` and by tests.

use std::time::Instant;

use bytes::Bytes;

use crate::aggregate::{Aggregate, Part};
use crate::allowance::Allowance;
use crate::amf0::{Reader, write};
use crate::chunk_reader::{ChunkReader, Message};
use crate::message::{Command, SET_CHUNK_SIZE, normalise_data};
use crate::script_data::{ScriptData, read_script_data};
use crate::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, Error, Limits, Output,
    PROXY_HEADER_SHOWN_BYTES, ProxyHeader, ServerConfig, ServerEvent, ServerSession, Target,
};

/// The longest single answer, plus the handshake.
const ANSWER_SLACK_BYTES: usize = 8192;

/// Reads the bytes as chunks, with long messages allowed, at once and in pieces.
///
/// # Panics
/// When pieces yield other messages than the whole.
pub fn chunk_reader(bytes: &[u8]) {
    let whole = read_chunks([bytes]);
    for size in [1, 1 + bytes.len() % 97, 1460] {
        assert_eq!(read_chunks(bytes.chunks(size)), whole, "in pieces of {size}");
    }
}

/// All messages in these pieces, and the error that ended the reading.
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
            {
                reader.set_chunk_size(u32::from_be_bytes(*size));
            }
            messages.push(message);
        }
    }
    (messages, None)
}

/// Reads the bytes as a PROXY protocol header, as they arrive.
///
/// # Panics
/// When what is known of a header changes with the bytes that follow.
pub fn proxy_header(bytes: &[u8]) {
    let shown = &bytes[..bytes.len().min(PROXY_HEADER_SHOWN_BYTES)];
    let whole = ProxyHeader::read(shown);
    for end in 0..shown.len() {
        match ProxyHeader::read(&shown[..end]) {
            Ok(None) => {}
            known => assert_eq!(known, whole, "at {end} bytes"),
        }
    }
    if shown.len() == PROXY_HEADER_SHOWN_BYTES {
        assert_ne!(whole, Ok(None), "it never waits for more than it may be shown");
    }
}

/// Reads the bytes up to the first zero as an app, and those after it as a name.
///
/// # Panics
/// When the parts are longer than the whole.
pub fn target(bytes: &[u8]) {
    let (app, name) =
        bytes.iter().position(|byte| *byte == 0).map_or((bytes, &[][..]), |at| bytes.split_at(at));
    let target = Target::parse("live", app, name);
    let arguments = target.arguments.map_or(0, |arguments| arguments.len());
    assert!(target.name.len() + arguments <= bytes.len() + 1, "longer than the address");
    let _ = Target::is_app("live", app);
}

/// Reads the bytes as AMF0 values, which are written and read again.
///
/// # Panics
/// When a value changes on the way.
pub fn amf0(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(value) = reader.value() {
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        write(&mut once, &value);
        let again = Reader::new(&once).value();
        // Compared by its bytes: a number may be NaN.
        again.iter().for_each(|value| write(&mut twice, value));
        assert_eq!(once, twice, "{value:?}");
    }
}

/// Reads the bytes as the messages that contain others: a command, script data, an aggregate.
///
/// # Panics
/// When an aggregate yields more than it has bytes for.
pub fn message(bytes: &[u8]) {
    let payload = Bytes::copy_from_slice(bytes);
    // Most inputs are not a command.
    let _ = Command::parse(bytes);
    let data = normalise_data(payload.clone());
    assert!(data.len() <= bytes.len());
    if let ScriptData::Repaired(repaired) = read_script_data(&data) {
        assert_eq!(read_script_data(&repaired), ScriptData::Sound, "what leaves is sound");
    }
    let mut aggregate = Aggregate::new(0, payload);
    let length = |part| if let Part::Media(media) = part { media.payload.len() } else { 0 };
    let parts = std::iter::from_fn(|| aggregate.next());
    assert!(parts.map(length).sum::<usize>() <= bytes.len());
}

/// A server past its handshake reads the bytes after the first one, which selects how: at once, in pieces, or a little
/// in each turn.
///
/// # Panics
/// When more answers than allowed are queued, or the events differ from those of reading everything at once.
pub fn server_session(bytes: &[u8]) {
    let now = Instant::now();
    let Some((first, bytes)) = bytes.split_first() else { return };
    let first = usize::from(*first);
    assert_bounded(serve(bytes, bytes.len().max(1), Limits::default(), now).1.output());
    if bytes.len() > Limits::default().message_before_bytes {
        // How much input waits for a decision is limited, however it arrives.
        return;
    }
    let (whole, _) = serve(bytes, usize::MAX, unbounded(u32::MAX), now);
    for (piece, turn_work) in [(1, 1), (1 + first % 97, 40), (1460, 1 + first as u32)] {
        let (pieces, _) = serve(bytes, piece, unbounded(turn_work), now);
        assert_eq!(pieces, whole, "in pieces of {piece}, {turn_work} a turn");
    }
}

/// The events of a session, and the error that ended it.
type Outcome<Event> = (Vec<Event>, Option<Error>);

/// The outcome of a server that receives the bytes in pieces and grants every request.
fn serve(
    bytes: &[u8],
    piece: usize,
    limits: Limits,
    now: Instant,
) -> (Outcome<ServerEvent>, ServerSession) {
    let config = ServerConfig { limits, ..ServerConfig::default() };
    let (mut session, mut events) = (ServerSession::new(config, now), Vec::new());
    let hello = hello();
    for input in [&hello[..]].into_iter().chain(bytes.chunks(piece)) {
        let mut input = input;
        loop {
            session.begin_turn();
            let outcome = session.handle_input(input, now);
            while let Some(event) = session.poll_event() {
                match event {
                    ServerEvent::PublishRequested(_) => session.allow(),
                    ServerEvent::PlayRequested(_) => session.accept_play(),
                    ServerEvent::Media(_)
                    | ServerEvent::Dropped(_)
                    | ServerEvent::Boundary { .. }
                    | ServerEvent::PublishEnded
                    | ServerEvent::PlayEnded
                    | ServerEvent::AppRefused
                    | ServerEvent::Close => {}
                }
                events.push(event);
            }
            if let Err(error) = outcome {
                return ((events, Some(error)), session);
            }
            if session.takes_input() {
                break;
            }
            assert!(session.has_unread_input(), "neither the socket nor the input is to be read");
            input = &[];
        }
    }
    ((events, None), session)
}

/// A client past its handshake reads the bytes, both publishing and playing: at once, in pieces, and a little in each
/// turn.
///
/// # Panics
/// When more answers than allowed are queued, or the events differ from those of reading everything at once.
pub fn client_session(bytes: &[u8]) {
    let now = Instant::now();
    for role in [ClientRole::Publish, ClientRole::Play] {
        assert_bounded(dial(bytes, usize::MAX, role, Limits::default(), now).1.output());
        let (whole, _) = dial(bytes, usize::MAX, role, unbounded(u32::MAX), now);
        let first = bytes.first().copied().map_or(0, usize::from);
        for (piece, turn_work) in [(1, 1), (1 + first % 97, 40), (1460, 1 + first as u32)] {
            let (pieces, _) = dial(bytes, piece, role, unbounded(turn_work), now);
            assert_eq!(pieces, whole, "in pieces of {piece}, {turn_work} a turn");
        }
    }
}

/// The outcome of a client that receives the bytes in pieces.
fn dial(
    bytes: &[u8],
    piece: usize,
    role: ClientRole,
    limits: Limits,
    now: Instant,
) -> (Outcome<ClientEvent>, ClientSession) {
    let config = ClientConfig {
        app: "live".into(),
        tc_url: "rtmp://h/live".into(),
        name: b"cam".to_vec(),
        seed: [1; 8],
        limits,
        ..ClientConfig::new(role)
    };
    let (mut session, mut events) = (ClientSession::new(config, now), Vec::new());
    let hello = hello();
    for input in [&hello[..]].into_iter().chain(bytes.chunks(piece)) {
        let mut input = input;
        loop {
            session.begin_turn();
            let outcome = session.handle_input(input, now);
            events.extend(std::iter::from_fn(|| session.poll_event()));
            if let Err(error) = outcome {
                return ((events, Some(error)), session);
            }
            if session.takes_input() {
                break;
            }
            input = &[];
        }
    }
    ((events, None), session)
}

/// The peer's half of a plain handshake.
fn hello() -> Vec<u8> {
    let mut hello = vec![0; 1 + 2 * 1536];
    hello[0] = 3;
    hello
}

/// Acknowledgements depend on how the input is split, so they are not limited here.
fn unbounded(turn_work: u32) -> Limits {
    Limits { turn_work, answer_bytes: usize::MAX, ..Limits::default() }
}

fn assert_bounded(output: &Output) {
    let most = Limits::default().answer_bytes + ANSWER_SLACK_BYTES;
    assert!(output.pending_bytes() <= most, "{} bytes of answers", output.pending_bytes());
}
