//! A broadcaster or a player talks to us.

mod boundary;
mod commands;
mod event;
mod redirect;

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use commands::publish_started;
pub use event::{Refusal, ServerEvent};
use redirect::Redirection;

use crate::message::{MediaKind, STREAM_BEGIN, STREAM_EOF, status};
use crate::unread::Unread;
use crate::wire::{Incoming, MEDIA_STREAM, Wire};
use crate::{Error, Framed, Limits, Output};

/// How to serve one connection.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Bounds.
    pub limits: Limits,
    /// Makes the handshake's random bytes differ from session to session.
    pub seed: [u8; 8],
    /// The one app that is served.
    pub app: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { limits: Limits::default(), seed: [0; 8], app: "live".into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Handshake or connect is not done.
    Opening,
    /// Connected, wants nothing yet.
    Connected,
    PublishAsked,
    Publishing,
    PlayAsked,
    Playing,
    /// Only the output is left.
    Over,
}

/// One connection, seen from the server: handshake, `connect`, and then one publish or one play.
///
/// Performs no I/O and reads no clock. Its driver, in each turn of its event loop:
///
/// 1. calls [`begin_turn`](Self::begin_turn);
/// 2. when [`has_unread_input`](Self::has_unread_input), calls [`handle_input`](Self::handle_input) with nothing; else,
///    as long as [`takes_input`](Self::takes_input), reads the socket and hands in what came;
/// 3. after each of these calls polls [`poll_event`](Self::poll_event) until it is `None`, also when the call failed;
/// 4. writes [`output_mut`](Self::output_mut) until it is empty or the socket is full;
/// 5. when there is unread input (again), takes its next turn without waiting for the socket; else waits for the socket
///    or [`poll_timeout`](Self::poll_timeout), at which it calls [`handle_timeout`](Self::handle_timeout).
///
/// [`ServerEvent::PublishRequested`] is to be answered by [`allow`](Self::allow), [`deny`](Self::deny) or
/// [`redirect`](Self::redirect); the session
/// waits for that without a limit of its own, reads nothing meanwhile, and has unread input afterwards if the peer did
/// not wait. [`ServerEvent::PlayRequested`] is to be answered by [`accept_play`](Self::accept_play) or
/// [`refuse_play`](Self::refuse_play), before which media for the player is dropped.
///
/// It ends with [`ServerEvent::Close`], after the peer or the driver ended it: the output is still to be written, input is
/// ignored. It ends with an error of `handle_input` or `handle_timeout`, after which no other method but `poll_event` and
/// those of the output may be called. A closed socket it need not hear of.
#[derive(Debug)]
pub struct ServerSession {
    wire: Wire,
    limits: Limits,
    app: String,
    state: State,
    accepted_at: Instant,
    connect_app: Vec<u8>,
    stream: u32,
    sent_fc_publish: bool,
    four_cc_list: Vec<String>,
    redirection: Redirection,
    /// What came behind `publish` before it was decided, as relays do not wait for the answer; and what a turn's
    /// allowance did not suffice for.
    unread: Unread,
    /// See [`ServerSession::find_boundary`].
    seeks_boundary: bool,
    events: VecDeque<ServerEvent>,
}

impl ServerSession {
    /// A connection accepted at `now`.
    #[must_use]
    pub fn new(config: ServerConfig, now: Instant) -> Self {
        let ServerConfig { limits, seed, app } = config;
        Self {
            wire: Wire::server(limits.clone(), seed, now),
            limits,
            app,
            state: State::Opening,
            accepted_at: now,
            connect_app: Vec::new(),
            stream: MEDIA_STREAM,
            sent_fc_publish: false,
            four_cc_list: Vec::new(),
            redirection: Redirection::default(),
            unread: Unread::default(),
            seeks_boundary: false,
            events: VecDeque::new(),
        }
    }

    /// A new turn of the driver: as much work as one turn allows ([`Limits::turn_work`]) may be done from here on.
    pub fn begin_turn(&mut self) {
        self.wire.begin_turn();
    }

    /// Bytes from the peer, split anywhere; see [`ServerSession::takes_input`] for when there may be any. Reading stops
    /// when the turn's allowance is spent or a publish waits for its decision; the rest is kept. Events of what came
    /// before an error are still there. Nothing is read behind the end.
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
        if self.state == State::PublishAsked && unread.length() > self.limits.message_before_bytes {
            return Err(Error::PartialLimit);
        }
        if self.state != State::Over {
            self.unread = unread;
        }
        Ok(())
    }

    /// Whether the driver may read the socket now. False while a publish waits for its decision, so that the peer's own
    /// buffers fill and not ours, and while there is unread input.
    #[must_use]
    pub fn takes_input(&self) -> bool {
        self.state != State::PublishAsked && !self.has_unread_input()
    }

    /// There is input that can be read now: in its next turn the driver calls [`ServerSession::handle_input`] with
    /// nothing. It is what a turn's allowance did not suffice for, or what came before a publish was allowed.
    #[must_use]
    pub fn has_unread_input(&self) -> bool {
        !matches!(self.state, State::PublishAsked | State::Over)
            && (!self.unread.is_empty() || self.wire.has_waiting())
    }

    /// All bytes ever handed in, metadata and commands included: for limits of bitrate.
    #[must_use]
    pub const fn input_bytes(&self) -> u64 {
        self.wire.received()
    }

    /// Bytes that must come at least before another message is whole; 0 between two messages.
    #[must_use]
    pub fn missing_bytes(&self) -> usize {
        self.wire.missing_bytes()
    }

    fn read(&mut self, input: &mut &[u8], now: Instant) -> Result<(), Error> {
        while !matches!(self.state, State::PublishAsked | State::Over) {
            if self.seeks_boundary {
                self.note_boundary(input);
            }
            match self.wire.next(input, now)? {
                None => break,
                Some(Incoming::Media(message)) => {
                    if self.state == State::Publishing {
                        self.events.push_back(ServerEvent::Media(message));
                    }
                }
                Some(Incoming::Command { stream, command }) => {
                    self.handle_command(stream, &command);
                }
                // Only a player is told so.
                Some(Incoming::StreamEof { .. }) => {}
            }
        }
        Ok(())
    }

    /// Time has passed.
    ///
    /// # Errors
    /// The peer was too slow; the connection must be closed.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return Ok(());
        }
        Err(if self.wire.is_open() { Error::CommandLimit } else { Error::HandshakeLimit })
    }

    /// When [`ServerSession::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Opening if !self.wire.is_open() => {
                Some(self.accepted_at + self.limits.handshake)
            }
            State::Opening | State::Connected => Some(self.accepted_at + self.limits.command),
            State::PublishAsked
            | State::Publishing
            | State::PlayAsked
            | State::Playing
            | State::Over => None,
        }
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// The publish proceeds; what came before that is read with the next input.
    pub fn allow(&mut self) {
        if self.state != State::PublishAsked {
            return;
        }
        self.state = State::Publishing;
        self.wire.set_accepted();
        if self.sent_fc_publish {
            self.announce_fc_publish();
        }
        self.wire.send_user_control(STREAM_BEGIN, &self.stream.to_be_bytes());
        self.send_status(publish_started());
    }

    /// The publish is refused; [`ServerEvent::Close`] follows.
    pub fn deny(&mut self, refusal: Refusal, description: &str) {
        if self.state == State::PublishAsked {
            self.close_with(refusal.code(), description);
        }
    }

    /// The player gets its stream.
    pub fn accept_play(&mut self) {
        if self.state != State::PlayAsked {
            return;
        }
        self.state = State::Playing;
        self.wire.send_user_control(STREAM_BEGIN, &self.stream.to_be_bytes());
        for (code, description) in
            [("NetStream.Play.Reset", "Playing"), ("NetStream.Play.Start", "Playing")]
        {
            self.send_status(status("status", code, description));
        }
    }

    /// None of the stream's tracks is for this player (E-RTMP, "NetStream onStatus"); [`ServerEvent::Close`] follows.
    pub fn fail_play(&mut self, description: &str) {
        if self.state == State::Playing {
            self.close_with("NetStream.Play.NoSupportedTrackFound", description);
        }
    }

    /// The player does not get the stream; [`ServerEvent::Close`] follows.
    pub fn refuse_play(&mut self, refusal: Refusal, description: &str) {
        if self.state == State::PlayAsked {
            self.close_with(refusal.play_code(), description);
        }
    }

    /// Media for a player; `header` is what precedes `payload` in the tag body.
    pub fn send_media(&mut self, kind: MediaKind, timestamp: u32, header: &[u8], payload: &Bytes) {
        if self.state == State::Playing {
            self.wire.send_media(self.stream, kind, timestamp, header, payload);
        }
    }

    /// The same, written once for many players: byte for byte what [`ServerSession::send_media`] writes.
    pub fn send_framed(&mut self, framed: &Framed) {
        if self.state == State::Playing {
            self.wire.send_framed(self.stream, framed);
        }
    }

    /// The stream a player reads has ended; [`ServerEvent::Close`] follows.
    pub fn end_play(&mut self) {
        if self.state == State::Playing {
            let ended = status("status", "NetStream.Play.UnpublishNotify", "The stream has ended");
            self.send_status(ended);
            self.wire.send_user_control(STREAM_EOF, &self.stream.to_be_bytes());
            self.close();
        }
    }

    /// Ends a running publish with an error the broadcaster may show; [`ServerEvent::Close`] follows.
    pub fn end_publish(&mut self, code: &str, description: &str) {
        if self.state == State::Publishing {
            self.close_with(code, description);
        }
    }

    /// Codecs the peer says it takes besides those of plain FLV.
    #[must_use]
    pub fn four_cc_list(&self) -> &[String] {
        &self.four_cc_list
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
}
