//! An encoder written by hand: it assembles chunks and AMF0 independently of the crate's own writers.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use headgate_rtmp::{
    Error, Limits, MediaMessage, Refusal, ServerConfig, ServerEvent, ServerSession,
};

pub(crate) const SET_CHUNK_SIZE: u8 = 1;
pub(crate) const ABORT: u8 = 2;
pub(crate) const ACKNOWLEDGEMENT: u8 = 3;
pub(crate) const USER_CONTROL: u8 = 4;
pub(crate) const WINDOW_ACK_SIZE: u8 = 5;
pub(crate) const SET_PEER_BANDWIDTH: u8 = 6;
pub(crate) const DATA: u8 = 18;
pub(crate) const DATA_AMF3: u8 = 15;
pub(crate) const COMMAND_AMF3: u8 = 17;
pub(crate) const COMMAND: u8 = 20;
pub(crate) const AGGREGATE: u8 = 22;

/// A message the server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A command as expected from the server.
pub(crate) fn reply(stream: u32, name: &str, transaction: f64, values: &[Vec<u8>]) -> Reply {
    Reply { kind: COMMAND, stream, payload: command(name, transaction, values) }
}

/// A server, and an encoder that has completed its handshake.
pub(crate) struct Encoder {
    session: ServerSession,
    now: Instant,
    chunk_size: usize,
    /// The chunk size the server announced.
    server_chunk_size: usize,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let now = Instant::now();
        let session = ServerSession::new(ServerConfig { limits, ..ServerConfig::default() }, now);
        let mut encoder = Self { session, now, chunk_size: 128, server_chunk_size: 128 };
        let mut hello = vec![0; 1 + 2 * 1536];
        hello[0] = 3;
        encoder.session.handle_input(&hello, now).expect("a plain hello");
        let answer = encoder.output();
        assert_eq!(answer.len(), 1 + 2 * 1536);
        encoder
    }

    /// An encoder whose plain connect has been answered.
    pub(crate) fn connected() -> Self {
        Self::new().and_connected()
    }

    /// An encoder whose publish of `cam` has been allowed.
    pub(crate) fn publishing() -> Self {
        Self::new().and_connected().and_publishing()
    }

    pub(crate) fn and_connected(mut self) -> Self {
        self.connect(&[("app", string("live"))]);
        assert!(!self.replies().is_empty());
        self
    }

    pub(crate) fn and_publishing(mut self) -> Self {
        self.command(1, "publish", 5.0, &[null(), string("cam"), string("live")]);
        self.allow();
        self.events();
        self
    }

    pub(crate) fn connect(&mut self, properties: &[(&str, Vec<u8>)]) {
        self.command(0, "connect", 1.0, &[object(properties)]);
    }

    pub(crate) fn command(
        &mut self,
        stream: u32,
        name: &str,
        transaction: f64,
        values: &[Vec<u8>],
    ) {
        self.try_command(stream, name, transaction, values).expect("commands are welcome");
    }

    pub(crate) fn try_command(
        &mut self,
        stream: u32,
        name: &str,
        transaction: f64,
        values: &[Vec<u8>],
    ) -> Result<(), Error> {
        self.try_message(3, COMMAND, stream, &command(name, transaction, values))
    }

    pub(crate) fn message(&mut self, chunk_stream: u8, kind: u8, stream: u32, payload: &[u8]) {
        self.try_message(chunk_stream, kind, stream, payload).expect("the message is welcome");
    }

    pub(crate) fn try_message(
        &mut self,
        chunk_stream: u8,
        kind: u8,
        stream: u32,
        payload: &[u8],
    ) -> Result<(), Error> {
        let [.., l0, l1, l2] = payload.len().to_be_bytes();
        let mut bytes = vec![chunk_stream, 0, 0, 0, l0, l1, l2, kind];
        bytes.extend(stream.to_le_bytes());
        for (n, chunk) in payload.chunks(self.chunk_size).enumerate() {
            if n > 0 {
                bytes.push(0xc0 | chunk_stream);
            }
            bytes.extend(chunk);
        }
        self.try_chunks(&bytes)
    }

    /// Sends chunks assembled by the test itself.
    pub(crate) fn chunks(&mut self, bytes: &[u8]) {
        self.try_chunks(bytes).expect("the chunks are welcome");
    }

    pub(crate) fn try_chunks(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.turn(bytes)?;
        while self.session.has_unread_input() {
            self.turn(&[])?;
        }
        Ok(())
    }

    /// One turn of a driver that has read `bytes`.
    pub(crate) fn turn(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.session.begin_turn();
        self.session.handle_input(bytes, self.now)
    }

    /// More bytes within the same turn.
    pub(crate) fn more(&mut self, bytes: &[u8]) {
        self.session.handle_input(bytes, self.now).expect("more is welcome");
    }

    pub(crate) fn session(&mut self) -> &mut ServerSession {
        &mut self.session
    }

    pub(crate) fn set_chunk_size(&mut self, size: u32) {
        self.message(2, SET_CHUNK_SIZE, 0, &size.to_be_bytes());
        self.chunk_size = size as usize;
    }

    /// Sends chunks of this size from now on, which was announced.
    pub(crate) const fn expect_chunk_size(&mut self, size: u32) {
        self.chunk_size = size as usize;
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    pub(crate) fn events(&mut self) -> Vec<ServerEvent> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    /// The media messages among the events.
    pub(crate) fn media(&mut self) -> Vec<MediaMessage> {
        let media = |event| if let ServerEvent::Media(media) = event { Some(media) } else { None };
        self.events().into_iter().filter_map(media).collect()
    }

    /// Bytes the server has queued for the encoder.
    pub(crate) fn unread_bytes(&self) -> usize {
        self.session.output().pending_bytes()
    }

    /// The codecs the server believes this encoder supports.
    pub(crate) fn four_cc_list(&self) -> &[String] {
        self.session.four_cc_list()
    }

    /// Name and arguments of the publish or play just requested.
    pub(crate) fn asked(&mut self) -> (String, Option<String>) {
        let events = self.events();
        let [ServerEvent::PublishRequested(target) | ServerEvent::PlayRequested(target)] =
            &events[..]
        else {
            panic!("{events:?}")
        };
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).expect("text");
        (text(&target.name), target.arguments.as_ref().map(text))
    }

    pub(crate) fn allow(&mut self) -> Vec<Reply> {
        self.session.allow();
        self.try_chunks(&[]).expect("early input is accepted");
        self.replies()
    }

    pub(crate) fn deny(&mut self, description: &str) -> Vec<Reply> {
        self.session.deny(Refusal::Denied, description);
        self.replies()
    }

    pub(crate) fn redirect(&mut self, tc_urls: &[&str], description: &str) -> Vec<Reply> {
        let tc_urls: Vec<String> = tc_urls.iter().map(|&url| url.to_owned()).collect();
        self.session.redirect(&tc_urls, description);
        self.replies()
    }

    pub(crate) fn accept_play(&mut self) -> Vec<Reply> {
        self.session.accept_play();
        self.replies()
    }

    pub(crate) fn ping(&mut self) -> Vec<Reply> {
        self.session.ping(self.now);
        self.replies()
    }

    pub(crate) fn end_play(&mut self) -> Vec<Reply> {
        self.session.end_play();
        self.replies()
    }

    pub(crate) fn refuse_play(&mut self) -> Vec<Reply> {
        self.session.refuse_play(Refusal::BadName, "No such stream");
        self.replies()
    }

    /// The server's replies since the last call.
    pub(crate) fn replies(&mut self) -> Vec<Reply> {
        let bytes = self.output();
        let (mut left, mut replies) = (&bytes[..], Vec::new());
        while let Some((header, rest)) = left.split_first_chunk::<12>() {
            let [first, _, _, _, l0, l1, l2, kind, s0, s1, s2, s3] = *header;
            assert!((2..=8).contains(&first), "a full header on a chunk stream every peer takes");
            let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
            let mut payload = Vec::new();
            left = rest;
            while payload.len() < length {
                if !payload.is_empty() {
                    assert_eq!(left[0], 0xc0 | first);
                    left = &left[1..];
                }
                let size = (length - payload.len()).min(self.server_chunk_size);
                payload.extend(&left[..size]);
                left = &left[size..];
            }
            if kind == SET_CHUNK_SIZE {
                let size = payload[..].try_into().expect("four bytes");
                self.server_chunk_size = u32::from_be_bytes(size) as usize;
            }
            let stream = u32::from_le_bytes([s0, s1, s2, s3]);
            replies.push(Reply { kind, stream, payload });
        }
        assert!(left.is_empty(), "whole messages only");
        replies
    }

    pub(crate) fn output(&mut self) -> Vec<u8> {
        let (output, mut bytes) = (self.session.output_mut(), Vec::new());
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[])];
            output.io_slices(&mut slices);
            bytes.extend_from_slice(&slices[0]);
            output.consume(slices[0].len());
        }
        bytes
    }
}

/// AMF0 of a command (RTMP 7.1.1).
pub(crate) fn command(name: &str, transaction: f64, values: &[Vec<u8>]) -> Vec<u8> {
    [string(name), number(transaction), values.concat()].concat()
}

pub(crate) fn string(text: &str) -> Vec<u8> {
    [&[2][..], &key(text)].concat()
}

pub(crate) fn number(value: f64) -> Vec<u8> {
    [&[0][..], &value.to_be_bytes()].concat()
}

pub(crate) fn null() -> Vec<u8> {
    vec![5]
}

pub(crate) fn undefined() -> Vec<u8> {
    vec![6]
}

pub(crate) fn boolean(value: bool) -> Vec<u8> {
    vec![1, u8::from(value)]
}

pub(crate) fn object(properties: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let properties = properties.iter().flat_map(|(name, value)| [key(name), value.clone()]);
    [vec![3], properties.collect::<Vec<_>>().concat(), vec![0, 0, 9]].concat()
}

/// The information object of an onStatus (RTMP 7.2.2).
pub(crate) fn status(level: &str, code: &str, description: &str) -> Vec<u8> {
    let (level, code) = (string(level), string(code));
    object(&[("level", level), ("code", code), ("description", string(description))])
}

fn key(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("short");
    [&length.to_be_bytes(), text.as_bytes()].concat()
}
