//! We talk to an upstream, or play from a server. Not who dials: a connection that is to be made anew is the driver's.

mod connect;
mod replies;

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use connect::connect_object;
pub use replies::RefusalKind;
use replies::{Status, stream_id};

use crate::amf0::Value;
use crate::authentication::{ConnectArguments, Credentials, Demand, Known, read_demand};
use crate::four_cc::read_four_cc_list;
use crate::message::{Command, MediaKind, MediaMessage, SET_DATA_FRAME};
use crate::unread::Unread;
use crate::wire::{Incoming, MEDIA_STREAM, Wire};
use crate::{Error, Limits, Output};

/// `onMetaData` as an AMF0 string.
const ON_METADATA: &[u8] = b"\x02\x00\x0aonMetaData";
/// How far a player of ours asks the server to run ahead (RTMP 7.1.7).
const PLAY_BUFFER_MS: u32 = 3000;

/// What we want of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRole {
    /// Send a stream there.
    Publish,
    /// Read a stream from there.
    Play,
}

/// Whom to talk to, and about what.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Publish or play.
    pub role: ClientRole,
    /// App of the connect command.
    pub app: String,
    /// `rtmp://host:port/app`.
    pub tc_url: String,
    /// Stream name with its arguments, verbatim.
    pub name: Vec<u8>,
    /// Makes the handshake's random bytes differ from session to session.
    pub seed: [u8; 8],
    /// Bounds.
    pub limits: Limits,
    /// Codecs beyond plain FLV that we announce; empty announces nothing.
    pub four_cc_list: Vec<String>,
    /// For an upstream that asks who we are.
    pub credentials: Option<Credentials>,
    /// What the connection before this one was told to add by [`ClientEvent::Reconnect`]; else the default.
    pub arguments: ConnectArguments,
    /// An AMF0 object whose properties join the connect command's, where it has no such name itself; empty adds nothing.
    pub connect_info: Bytes,
}

impl ClientConfig {
    /// Nothing filled in but the role; for `..ClientConfig::new(role)`.
    #[must_use]
    pub fn new(role: ClientRole) -> Self {
        Self {
            role,
            app: String::new(),
            tc_url: String::new(),
            name: Vec::new(),
            seed: [0; 8],
            limits: Limits::default(),
            four_cc_list: Vec::new(),
            credentials: None,
            arguments: ConnectArguments::default(),
            connect_info: Bytes::new(),
        }
    }
}

/// What the driver must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Publishing or playing has started.
    Ready,
    /// Media of the stream we play.
    Media(MediaMessage),
    /// The server will not have us.
    Refused {
        /// Its status code.
        code: String,
        /// Its words.
        description: String,
        /// What they mean.
        kind: RefusalKind,
    },
    /// The server asks who we are: dial the same address at once, with these arguments and the same credentials.
    /// Happens on two connections in a row at most.
    Reconnect {
        /// For [`ClientConfig::arguments`].
        arguments: ConnectArguments,
    },
    /// The server sends us elsewhere. Whether to follow, and how often, is the driver's decision.
    Redirected {
        /// The tcUrl to go to (`rtmp://host:port/app`, `rtmps://` likewise); the name stays.
        url: String,
    },
    /// The server ended what had started.
    Ended {
        /// Its status code.
        code: String,
        /// Its words; empty when it has none.
        description: String,
    },
    /// Write the output, then close.
    Close,
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

// Transaction ids, in the order every encoder uses.
const CONNECT: f64 = 1.0;
const RELEASE_STREAM: f64 = 2.0;
const FC_PUBLISH: f64 = 3.0;
const CREATE_STREAM: f64 = 4.0;
const START: f64 = 5.0;
const FC_UNPUBLISH: f64 = 6.0;
const DELETE_STREAM: f64 = 7.0;

/// One connection, seen from the client.
#[derive(Debug)]
pub struct ClientSession {
    wire: Wire,
    config: ClientConfig,
    state: State,
    since: Instant,
    stream: u32,
    four_cc_list: Vec<String>,
    /// What a turn's allowance did not suffice for.
    unread: Unread,
    events: VecDeque<ClientEvent>,
}

impl ClientSession {
    /// A connection that was just made; C0 and C1 are in the output.
    #[must_use]
    pub fn new(config: ClientConfig, now: Instant) -> Self {
        Self {
            wire: Wire::client(config.limits.clone(), config.seed, now),
            config,
            state: State::Handshaking,
            since: now,
            stream: MEDIA_STREAM,
            four_cc_list: Vec::new(),
            unread: Unread::default(),
            events: VecDeque::new(),
        }
    }

    /// A new turn of the driver: as much work as one turn allows ([`Limits::turn_work`]) may be done from here on.
    pub fn begin_turn(&mut self) {
        self.wire.begin_turn();
    }

    /// Bytes from the server, split anywhere. Reading stops when the turn's allowance is spent; the rest is kept. Media
    /// sent to a client that publishes is dropped. Nothing is read behind the end.
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

    /// The turn's allowance did not suffice for all input: in its next turn the driver calls
    /// [`ClientSession::handle_input`] with nothing.
    #[must_use]
    pub fn has_unread_input(&self) -> bool {
        self.state != State::Over && (!self.unread.is_empty() || self.wire.has_waiting())
    }

    /// All bytes ever handed in.
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
            }
        }
        Ok(())
    }

    /// Time has passed.
    ///
    /// # Errors
    /// The server was too slow; the connection must be closed.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return Ok(());
        }
        let is_open = self.wire.is_open();
        Err(if is_open { Error::AnswerLimit } else { Error::HandshakeLimit })
    }

    /// When [`ClientSession::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let limits = &self.config.limits;
        match self.state {
            State::Handshaking => Some(self.since + limits.handshake),
            State::Connecting | State::Creating => Some(self.since + limits.answer),
            State::Starting => Some(self.since + limits.publish_start),
            State::Ready | State::Over => None,
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Media for the upstream; `header` is what precedes `payload` in the tag body. Metadata is sent as the frame the
    /// server is to keep.
    pub fn send_media(&mut self, kind: MediaKind, timestamp: u32, header: &[u8], payload: &Bytes) {
        if self.state != State::Ready {
            return;
        }
        let keeps = kind == MediaKind::Script && payload.starts_with(ON_METADATA);
        let header = if keeps { SET_DATA_FRAME } else { header };
        self.wire.send_media(self.stream, kind, timestamp, header, payload);
    }

    /// Codecs the server said it takes by Enhanced RTMP; empty for one that knows nothing of it.
    #[must_use]
    pub fn four_cc_list(&self) -> &[String] {
        &self.four_cc_list
    }

    /// We are done: says goodbye, then [`ClientEvent::Close`].
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

    /// Bytes to write.
    #[must_use]
    pub const fn output(&self) -> &Output {
        &self.wire.output
    }

    /// Bytes to write, to be consumed as they are written.
    pub const fn output_mut(&mut self) -> &mut Output {
        &mut self.wire.output
    }

    fn connect(&mut self, now: Instant) {
        self.wire.announce_chunk_size();
        let object = connect_object(&self.config);
        self.send(0, "connect", CONNECT, &[object]);
        self.enter(State::Connecting, now);
    }

    fn handle_command(&mut self, command: &Command, now: Instant) {
        match (command.name.as_str(), self.state) {
            // Nothing else was asked, whatever number the answer has.
            ("_result", State::Connecting) => {
                // Some put it into the properties, some into the information object.
                self.four_cc_list = read_four_cc_list(&command.object);
                if let Some(information) = command.arguments.first() {
                    self.four_cc_list.extend(read_four_cc_list(information));
                }
                self.create(now);
            }
            ("_result", State::Creating) if is_stream_created(command) => {
                self.stream = stream_id(command).unwrap_or(MEDIA_STREAM);
                self.begin(now);
            }
            ("_error", State::Connecting) => self.refuse(Status::read(command)),
            ("_error", State::Creating | State::Starting) if concerns_us(command) => {
                self.refuse(Status::read(command));
            }
            ("onStatus", _) => self.handle_status(Status::read(command)),
            ("close", State::Connecting | State::Creating | State::Starting | State::Ready) => {
                let (code, description) = ("close".into(), String::new());
                self.events.push_back(ClientEvent::Ended { code, description });
                self.close();
            }
            // onBWDone, onFCPublish, answers to releaseStream and FCPublish: nothing waits for them.
            _ => {}
        }
    }

    fn create(&mut self, now: Instant) {
        if self.config.role == ClientRole::Publish {
            let name = Value::String(self.config.name.clone());
            self.send(0, "releaseStream", RELEASE_STREAM, &[Value::Null, name.clone()]);
            self.send(0, "FCPublish", FC_PUBLISH, &[Value::Null, name]);
        } else {
            self.wire.announce_window();
        }
        self.send(0, "createStream", CREATE_STREAM, &[Value::Null]);
        self.enter(State::Creating, now);
    }

    fn begin(&mut self, now: Instant) {
        /// SetBufferLength (RTMP 7.1.7).
        const SET_BUFFER_LENGTH: u16 = 3;
        let name = Value::String(self.config.name.clone());
        match self.config.role {
            ClientRole::Publish => {
                let kind = Value::string("live");
                self.send(self.stream, "publish", START, &[Value::Null, name, kind]);
            }
            ClientRole::Play => {
                // Live only: -1 would do, -2 falls back to recordings and is what everyone sends.
                let start = Value::Number(-2000.0);
                self.send(self.stream, "play", START, &[Value::Null, name, start]);
                let [a, b, c, d] = self.stream.to_be_bytes();
                let [e, f, g, h] = PLAY_BUFFER_MS.to_be_bytes();
                self.wire.send_user_control(SET_BUFFER_LENGTH, &[a, b, c, d, e, f, g, h]);
                // Only a player is sent anything long.
                self.wire.set_accepted();
            }
        }
        self.enter(State::Starting, now);
    }

    fn handle_status(&mut self, status: Status) {
        match self.state {
            State::Starting if status.starts() => {
                self.state = State::Ready;
                self.events.push_back(ClientEvent::Ready);
            }
            State::Connecting | State::Creating | State::Starting if status.fails() => {
                self.refuse(status);
            }
            State::Ready if status.ends() || status.fails() => {
                let Status { code, description, .. } = status;
                self.events.push_back(ClientEvent::Ended { code, description });
                self.close();
            }
            State::Handshaking
            | State::Connecting
            | State::Creating
            | State::Starting
            | State::Ready
            | State::Over => {}
        }
    }

    fn refuse(&mut self, status: Status) {
        let kind = status.kind();
        let Status { code, description, redirect, .. } = status;
        let refused = |kind| ClientEvent::Refused { code, description: description.clone(), kind };
        let event = match (self.demand(&description), redirect) {
            (_, Some(url)) => ClientEvent::Redirected { url },
            (Demand::Nothing, None) => refused(kind),
            (Demand::Arguments(arguments), None) => ClientEvent::Reconnect { arguments },
            (Demand::Failed, None) => refused(RefusalKind::Credentials),
        };
        self.events.push_back(event);
        self.close();
    }

    /// Only connect is where servers ask who we are.
    fn demand(&self, description: &str) -> Demand {
        if self.state != State::Connecting {
            return Demand::Nothing;
        }
        let ClientConfig { credentials, arguments, app, seed, .. } = &self.config;
        let known = Known { credentials: credentials.as_ref(), arguments, app, seed: *seed };
        read_demand(description, known)
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

/// An answer to createStream: by its number, or by naming a stream when the number is none that we gave.
fn is_stream_created(command: &Command) -> bool {
    is_for(command, CREATE_STREAM) || (concerns_us(command) && stream_id(command).is_some())
}

/// Not to a command whose failure means nothing: servers refuse releaseStream for names that were never there.
fn concerns_us(command: &Command) -> bool {
    ![CONNECT, RELEASE_STREAM, FC_PUBLISH].iter().any(|transaction| is_for(command, *transaction))
}

#[allow(clippy::float_cmp, reason = "transaction ids are whole numbers that come back as sent")]
fn is_for(command: &Command, transaction: f64) -> bool {
    command.transaction == transaction
}
