//! The client side: we push to an upstream, or play from a server. The driver dials, and decides about reconnecting.

mod commands;
mod config;
mod connect;
mod event;
mod replies;

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use commands::{DELETE_STREAM, FC_UNPUBLISH, FcPublish};
pub use config::{ClientConfig, ClientRole};
pub use event::ClientEvent;
pub use replies::RefusalKind;

use crate::amf_value::Value;
use crate::message::{Command, MediaKind, SET_DATA_FRAME};
use crate::unread::Unread;
use crate::wire::{Incoming, MEDIA_STREAM, Wire};
use crate::{Error, Framed, Output};

/// `onMetaData` as an AMF0 string.
const ON_METADATA: &[u8] = b"\x02\x00\x0aonMetaData";

/// How far a connection as a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStage {
    /// The handshake.
    Handshake,
    /// The command connect is to be answered.
    Connect,
    /// createStream, and then publish or play, is to be answered.
    Start,
    /// Media flows.
    Media,
    /// It has ended.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Handshaking,
    Connecting,
    Creating,
    Starting,
    Ready,
    Over,
}

/// One connection as a client: handshake, `connect`, `createStream`, and then one publish or one play.
///
/// It performs no I/O and reads no clock. C0 and C1 are in the output from the start. In each turn of its event loop
/// the driver:
///
/// 1. calls [`begin_turn`](Self::begin_turn);
/// 2. when [`has_unread_input`](Self::has_unread_input), calls [`handle_input`](Self::handle_input) with an empty
///    slice; otherwise, as long as [`takes_input`](Self::takes_input), reads the socket and passes the bytes to
///    `handle_input`;
/// 3. after each of these calls, even a failed one, polls [`poll_event`](Self::poll_event) until it returns `None`;
/// 4. writes [`output_mut`](Self::output_mut) until it is empty or the socket is full;
/// 5. if there is unread input again, takes its next turn without waiting for the socket; otherwise waits for the
///    socket or for [`poll_timeout`](Self::poll_timeout), at which it calls [`handle_timeout`](Self::handle_timeout).
///
/// Media can be sent after [`ClientEvent::Ready`]; before that it is dropped. The server's response to the request is
/// reported as one of [`ClientEvent::Refused`], [`ClientEvent::Reconnect`], [`ClientEvent::Redirected`] or `Ready`.
/// After `Ready` the session ends with [`ClientEvent::Ended`], or by [`end`](Self::end).
///
/// Every ending is followed by [`ClientEvent::Close`]: the output is still to be written, input is ignored. The session
/// also ends with an error from `handle_input` or `handle_timeout`; after that only `poll_event` and the output methods
/// may be called. The driver need not report a closed socket.
#[derive(Debug)]
pub struct ClientSession {
    wire: Wire,
    config: ClientConfig,
    state: State,
    since: Instant,
    stream: u32,
    four_cc_list: Vec<String>,
    fc_publish: Option<FcPublish>,
    /// Input left over when a turn's allowance was spent.
    unread: Unread,
    events: VecDeque<ClientEvent>,
}

impl ClientSession {
    /// A newly established connection; C0 and C1 are in the output.
    #[must_use]
    pub fn new(config: ClientConfig, now: Instant) -> Self {
        Self {
            wire: Wire::client(config.limits.clone(), config.seed, now),
            config,
            state: State::Handshaking,
            since: now,
            stream: MEDIA_STREAM,
            unread: Unread::default(),
            events: VecDeque::new(),
            four_cc_list: Vec::new(),
            fc_publish: None,
        }
    }

    /// Starts a new turn of the driver, with the work allowed in one turn ([`Limits::turn_work`]).
    pub fn begin_turn(&mut self) {
        self.wire.begin_turn();
    }

    /// Takes bytes from the server, split anywhere. Reading stops when the turn's allowance is spent; the rest is kept.
    /// Media sent to a publishing client is dropped. After the end nothing is read.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn handle_input(&mut self, input: &[u8], now: Instant) -> Result<(), Error> {
        if self.state == State::Over {
            return Ok(());
        }
        self.wire.count(input.len());
        let mut unread = std::mem::take(&mut self.unread);
        unread.read(input, |rest| self.read(rest, now))?;
        if self.state != State::Over {
            self.unread = unread;
        }
        Ok(())
    }

    /// Whether the driver may read the socket now: not while there is unread input.
    #[must_use]
    pub fn takes_input(&self) -> bool {
        !self.has_unread_input()
    }

    /// Whether input is left because the turn's allowance was spent: in its next turn the driver calls
    /// [`ClientSession::handle_input`] with an empty slice.
    #[must_use]
    pub fn has_unread_input(&self) -> bool {
        self.state != State::Over && (!self.unread.is_empty() || self.wire.has_waiting())
    }

    /// Total bytes received.
    #[must_use]
    pub const fn input_bytes(&self) -> u64 {
        self.wire.received()
    }

    fn read(&mut self, input: &mut &[u8], now: Instant) -> Result<(), Error> {
        while self.state != State::Over {
            let incoming = self.wire.next(input, now)?;
            if self.state == State::Handshaking && self.wire.is_open() {
                self.connect(now);
            }
            match incoming {
                None => break,
                Some(Incoming::Media(message)) => {
                    if self.config.role == ClientRole::Play {
                        self.events.push_back(ClientEvent::Media(message));
                    }
                }
                Some(Incoming::Command { command, .. }) => self.handle_command(&command, now),
                Some(Incoming::StreamEof { stream }) => self.handle_stream_eof(stream),
                Some(Incoming::Dropped(_)) => {}
            }
        }
        Ok(())
    }

    /// Checks the time limits.
    ///
    /// # Errors
    /// The server was too slow; the connection must be closed.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return Ok(());
        }
        if self.state == State::Starting && self.fc_publish.is_some() {
            self.accept_fc_publish();
            return Ok(());
        }
        let is_open = self.wire.is_open();
        Err(if is_open { Error::AnswerLimit } else { Error::HandshakeLimit })
    }

    /// When [`ClientSession::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let limits = &self.config.limits;
        match self.state {
            State::Handshaking => Some(self.since + limits.handshake),
            State::Connecting | State::Creating => Some(self.since + limits.answer),
            State::Starting => {
                self.fc_publish_due().or_else(|| Some(self.since + limits.publish_start))
            }
            State::Ready | State::Over => None,
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Sends media to the upstream; `header` precedes `payload` in the tag body. Metadata is sent with `@setDataFrame`,
    /// so that the server keeps it.
    pub fn send_media(&mut self, kind: MediaKind, timestamp: u32, header: &[u8], payload: &Bytes) {
        if self.state != State::Ready {
            return;
        }
        let keeps = kind == MediaKind::Script && payload.starts_with(ON_METADATA);
        let header = if keeps { SET_DATA_FRAME } else { header };
        self.wire.send_media(self.stream, kind, timestamp, header, payload);
    }

    /// The same for media framed once for many upstreams; writes the same bytes as [`ClientSession::send_media`].
    pub fn send_framed(&mut self, framed: &Framed) {
        if framed.kind() == MediaKind::Script {
            // Metadata has a different header here.
            let timestamp = framed.timestamp();
            self.send_media(MediaKind::Script, timestamp, framed.header(), framed.payload());
        } else if self.state == State::Ready {
            self.wire.send_framed(self.stream, framed);
        }
    }

    /// How far it has come.
    #[must_use]
    pub const fn stage(&self) -> ClientStage {
        match self.state {
            State::Handshaking => ClientStage::Handshake,
            State::Connecting => ClientStage::Connect,
            State::Creating | State::Starting => ClientStage::Start,
            State::Ready => ClientStage::Media,
            State::Over => ClientStage::Over,
        }
    }

    /// Codecs the server accepts by Enhanced RTMP; empty for a server without Enhanced RTMP.
    #[must_use]
    pub fn four_cc_list(&self) -> &[String] {
        &self.four_cc_list
    }

    /// Ends the publish or play: queues the closing commands, then [`ClientEvent::Close`].
    pub fn end(&mut self) {
        let name = Value::String(self.config.name.clone());
        if self.state == State::Ready {
            if self.config.role == ClientRole::Publish {
                self.send(0, "FCUnpublish", FC_UNPUBLISH, &[Value::Null, name]);
            }
            let stream = Value::Number(self.stream.into());
            self.send(0, "deleteStream", DELETE_STREAM, &[Value::Null, stream]);
        }
        self.close();
    }

    /// The output to write.
    #[must_use]
    pub const fn output(&self) -> &Output {
        &self.wire.output
    }

    /// The output to write; written bytes are consumed from it.
    pub const fn output_mut(&mut self) -> &mut Output {
        &mut self.wire.output
    }

    const fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.since = now;
    }

    fn close(&mut self) {
        if self.state != State::Over {
            self.state = State::Over;
            self.events.push_back(ClientEvent::Close);
        }
    }

    fn send(&mut self, stream: u32, name: &str, transaction: f64, values: &[Value]) {
        self.wire.send_command(stream, &Command::encode(name, transaction, values));
    }
}
