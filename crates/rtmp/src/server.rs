//! The server side: a broadcaster or a player connects to us.

mod boundary;
mod commands;
mod ends;
mod event;
mod receiving;
mod redirect;

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use commands::publish_started;
pub use event::{Refusal, ServerEvent};
use redirect::Redirection;

use crate::message::{MediaKind, PING_REQUEST, STREAM_BEGIN, STREAM_EOF, status};
use crate::rate::Rate;
use crate::unread::Unread;
use crate::wire::{MEDIA_STREAM, Wire};
use crate::{Error, Framed, Limits, Output, Target};

/// Settings for serving one connection.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The limits of the session.
    pub limits: Limits,
    /// Makes the handshake's random bytes differ from session to session.
    pub seed: [u8; 8],
    /// The only app that is served.
    pub app: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { limits: Limits::default(), seed: [0; 8], app: "live".into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Handshake or connect is not complete.
    Opening,
    /// Connected, without a publish or play command yet.
    Connected,
    PublishAsked,
    Publishing,
    PlayAsked,
    Playing,
    /// Only the output remains to be written.
    Over,
}

/// One connection as a server: handshake, `connect`, and then one publish or one play.
///
/// It performs no I/O and reads no clock. In each turn of its event loop the driver:
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
/// [`ServerEvent::PublishRequested`] must be answered with [`allow`](Self::allow), [`deny`](Self::deny) or
/// [`redirect`](Self::redirect). The session waits for the answer without a time limit, reads nothing meanwhile, and
/// has unread input afterwards if the peer did not wait. [`ServerEvent::PlayRequested`] must be answered with
/// [`accept_play`](Self::accept_play) or [`refuse_play`](Self::refuse_play); until then media for the player is
/// dropped.
///
/// The session ends with [`ServerEvent::Close`] when the peer or the driver ends it: the output is still to be written,
/// input is ignored. It also ends with an error from `handle_input` or `handle_timeout`; after that only `poll_event`
/// and the output methods may be called. The driver need not report a closed socket.
#[derive(Debug)]
pub struct ServerSession {
    wire: Wire,
    limits: Limits,
    app: String,
    state: State,
    accepted_at: Instant,
    connect_app: Vec<u8>,
    /// Message stream of the publish or play, its target, and the type of the publish.
    stream: u32,
    asked: Option<(Target, Vec<u8>)>,
    /// Message streams created: they are numbered from 1 on.
    streams: u32,
    commands: Rate,
    scripts: Rate,
    sent_fc_publish: bool,
    four_cc_list: Vec<String>,
    redirection: Redirection,
    /// Input that arrived after `publish` and before the decision, since relays do not wait for the answer; and input
    /// left over when a turn's allowance was spent.
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
            commands: Rate::new(limits.commands_per_second, now),
            scripts: Rate::new(limits.scripts_per_second, now),
            limits,
            app,
            state: State::Opening,
            accepted_at: now,
            connect_app: Vec::new(),
            stream: MEDIA_STREAM,
            asked: None,
            streams: 0,
            sent_fc_publish: false,
            four_cc_list: Vec::new(),
            redirection: Redirection::default(),
            unread: Unread::default(),
            seeks_boundary: false,
            events: VecDeque::new(),
        }
    }

    /// Starts a new turn of the driver, with the work allowed in one turn ([`Limits::turn_work`]).
    pub fn begin_turn(&mut self) {
        self.wire.begin_turn();
    }

    /// Takes bytes from the peer, split anywhere, while [`ServerSession::takes_input`]. Reading stops when the
    /// turn's allowance is spent or a publish waits for its decision; the rest is kept. Events from before an error can
    /// still be polled. After the end nothing is read.
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

    /// Whether the driver may read the socket now. False while there is unread input, and while a publish waits for its
    /// decision, so that the peer's buffers fill up instead of ours.
    #[must_use]
    pub fn takes_input(&self) -> bool {
        self.state != State::PublishAsked && !self.has_unread_input()
    }

    /// Whether there is input that can be read now: in its next turn the driver calls [`ServerSession::handle_input`]
    /// with an empty slice. The input was left over when a turn's allowance was spent, or arrived before a publish was
    /// allowed.
    #[must_use]
    pub fn has_unread_input(&self) -> bool {
        !matches!(self.state, State::PublishAsked | State::Over)
            && (!self.unread.is_empty() || self.wire.has_waiting())
    }

    /// Total bytes received, metadata and commands included; used for bitrate limits.
    #[must_use]
    pub const fn input_bytes(&self) -> u64 {
        self.wire.received()
    }

    /// Least number of bytes that complete another message; 0 between two messages.
    #[must_use]
    pub fn missing_bytes(&self) -> usize {
        self.wire.missing_bytes()
    }

    /// Checks the time limits.
    ///
    /// # Errors
    /// The peer was too slow; the connection must be closed.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return Ok(());
        }
        Err(if self.wire.is_open() { Error::CommandLimit } else { Error::HandshakeLimit })
    }

    /// When [`ServerSession::handle_timeout`] is to be called.
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

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Allows the publish; input that arrived before is read with the next `handle_input`.
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

    /// Denies the publish; [`ServerEvent::Close`] follows.
    pub fn deny(&mut self, refusal: Refusal, description: &str) {
        if self.state == State::PublishAsked {
            self.close_with(refusal.code(), description);
        }
    }

    /// Starts the play.
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

    /// Ends a play because the player supports none of the stream's tracks (E-RTMP, "NetStream onStatus");
    /// [`ServerEvent::Close`] follows.
    pub fn fail_play(&mut self, description: &str) {
        if self.state == State::Playing {
            self.close_with("NetStream.Play.NoSupportedTrackFound", description);
        }
    }

    /// Refuses the play; [`ServerEvent::Close`] follows.
    pub fn refuse_play(&mut self, refusal: Refusal, description: &str) {
        if self.state == State::PlayAsked {
            self.close_with(refusal.play_code(), description);
        }
    }

    /// Sends media to a player; `header` precedes `payload` in the tag body.
    pub fn send_media(&mut self, kind: MediaKind, timestamp: u32, header: &[u8], payload: &Bytes) {
        if self.state == State::Playing {
            self.wire.send_media(self.stream, kind, timestamp, header, payload);
        }
    }

    /// The same for media framed once for many players; writes the same bytes as [`ServerSession::send_media`].
    pub fn send_framed(&mut self, framed: &Framed) {
        if self.state == State::Playing {
            self.wire.send_framed(self.stream, framed);
        }
    }

    /// Shows a player that the connection is alive while there is no media for it (PingRequest with our time in
    /// milliseconds, RTMP 7.1.7). Its answer is ignored.
    pub fn ping(&mut self, now: Instant) {
        if self.state == State::Playing {
            let millis = now.saturating_duration_since(self.accepted_at).as_millis();
            #[allow(clippy::cast_possible_truncation, reason = "the wire's clock wraps")]
            let time = millis as u32;
            self.wire.send_user_control(PING_REQUEST, &time.to_be_bytes());
        }
    }

    /// Ends a play because its stream has ended; [`ServerEvent::Close`] follows.
    pub fn end_play(&mut self) {
        if self.state == State::Playing {
            let ended = status("status", "NetStream.Play.UnpublishNotify", "The stream has ended");
            self.send_status(ended);
            self.wire.send_user_control(STREAM_EOF, &self.stream.to_be_bytes());
            self.close();
        }
    }

    /// Ends a running publish with an error that the encoder may show; [`ServerEvent::Close`] follows.
    pub fn end_publish(&mut self, code: &str, description: &str) {
        if self.state == State::Publishing {
            self.close_with(code, description);
        }
    }

    /// Tells the encoder of a running publish that something is wrong with it, which does not end it.
    pub fn warn_publisher(&mut self, code: &str, description: &str) {
        if self.state == State::Publishing {
            self.send_status(status("warning", code, description));
        }
    }

    /// Codecs the peer declares beyond those of plain FLV.
    #[must_use]
    pub fn four_cc_list(&self) -> &[String] {
        &self.four_cc_list
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
}
