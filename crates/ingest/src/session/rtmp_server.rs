//! A connection to the RTMP port: a broadcaster or a player. `headgate_rtmp` implements the protocol, the reactor the
//! socket.

mod capturing;
mod playing;
mod refusing;
mod repairing;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_capture::Kind;
use headgate_media::repair::Repair;
use headgate_rtmp::{Error, MediaMessage, Output, ServerConfig, ServerEvent, ServerSession};

use super::captured::Captured;
use super::effect::Effect;
use super::publish_session::PublishSession;
use super::receive_mark::ReceiveMark;
use super::rtmp_frames::TrackClocks;
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::{ConnectionRefused, Denial};
use crate::publish::record::PublishRecord;

/// Limit for the gateway's answer; the gateway's own deadline for the customer is shorter.
const DECISION_LIMIT: Duration = Duration::from_secs(12);
/// How long a refused or ended peer has to read the reason.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);
/// A peer that accepts no bytes for this long is considered gone.
const STALL_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
enum Role {
    /// It has requested neither a publish nor a play.
    Undecided,
    /// A broadcaster waits for the gateway's decision.
    Asking {
        name: Vec<u8>,
        until: Instant,
    },
    /// A player waits for the gateway's decision.
    AskingToPlay {
        name: Vec<u8>,
        until: Instant,
    },
    Publishing(Box<Publishing>),
    /// An allowed player waits for the first frame of a stream that comes from another node.
    AwaitingStream {
        until: Instant,
    },
    /// Once the stream's tracks are known, at `tracks_due`, check whether the player supports any of them. `pinged_at`:
    /// when another node, which pulls the stream, was last pinged, or its play began; `None` for a player.
    Playing {
        tracks_due: Option<Instant>,
        pinged_at: Option<Instant>,
    },
    /// Refused, ended or finished; only its output is left to write.
    Over,
}

#[derive(Debug)]
struct Publishing {
    publish: PublishSession,
    clocks: TrackClocks,
    repair: Repair,
    mark: ReceiveMark,
    /// Payload bytes before a read that the mark's deadline caused between two messages.
    overdue_at: Option<u64>,
}

/// One connection with its protocol session.
///
/// For each batch of input the owner calls [`RtmpServer::begin_turn`]; then, while [`RtmpServer::takes_input`],
/// [`RtmpServer::handle_input`] with the bytes, first with none if [`RtmpServer::has_unread_input`]; then
/// [`RtmpServer::end_read`]. At [`RtmpServer::deadline`] it calls [`RtmpServer::handle_timeout`]; when the socket
/// accepted bytes of [`RtmpServer::output_mut`], [`RtmpServer::handle_written`]; when it is closed,
/// [`RtmpServer::handle_closed`]. After each call the owner carries out the effects in order. The session is over once
/// it has pushed [`Effect::Close`]; it must not be called after that.
#[derive(Debug)]
pub(crate) struct RtmpServer {
    session: ServerSession,
    peer: IpAddr,
    role: Role,
    captured: Captured,
    closing_until: Option<Instant>,
    /// When the peer last accepted bytes, or there were none to write.
    last_progress: Instant,
}

impl RtmpServer {
    /// A connection accepted at `now`; `seed` is random. `keeps_early`: whether a publish may be captured from its
    /// first byte.
    pub(crate) fn new(peer: IpAddr, seed: u64, keeps_early: bool, now: Instant) -> Self {
        let config = ServerConfig { seed: seed.to_ne_bytes(), ..ServerConfig::default() };
        let session = ServerSession::new(config, now);
        let captured = Captured::new(keeps_early);
        let role = Role::Undecided;
        Self { session, peer, role, captured, closing_until: None, last_progress: now }
    }

    /// Begins a new turn of the worker, with a full turn's allowance of work.
    pub(crate) fn begin_turn(&mut self) {
        self.session.begin_turn();
    }

    /// Whether the socket may be read. False while a publish waits for its decision, so that the kernel's flow control
    /// stops the broadcaster.
    pub(crate) fn takes_input(&self) -> bool {
        self.session.takes_input()
    }

    /// Whether bytes that were read can be handled in the next turn, by `handle_input` with no bytes.
    pub(crate) fn has_unread_input(&self) -> bool {
        self.session.has_unread_input()
    }

    /// Handles bytes from the peer.
    pub(crate) fn handle_input(&mut self, input: &[u8], now: Instant, effects: &mut Vec<Effect>) {
        if self.closing_until.is_some() {
            // A refused peer may still send: reading and dropping that keeps the kernel from resetting the connection
            // before the peer has read our last messages.
            return;
        }
        if let Role::Publishing(publishing) = &mut self.role {
            publishing.publish.handle_input(input.len(), now);
            publishing.mark.handle_read(now);
        }
        self.captured.input(input, now);
        let outcome = self.session.handle_input(input, now);
        // Handle events even if the input ends in an error: what came before it counts.
        self.handle_events(now, effects);
        if let Err(error) = outcome {
            self.fail(error, now, effects);
        }
    }

    /// The socket was read as far as this turn allows.
    pub(crate) fn end_read(&mut self, now: Instant) {
        if let Role::Publishing(publishing) = &mut self.role
            && let Some(before) = publishing.overdue_at.take()
            && publishing.publish.bytes_in() > before
        {
            publishing.mark.handle_late(now);
        }
    }

    /// The peer closed the connection, or it broke.
    pub(crate) fn handle_closed(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.captured.mark(Kind::Closed, now);
        self.captured.end(EndReason::BroadcasterLeft, false, now);
        effects.push(Effect::Close(EndReason::BroadcasterLeft));
    }

    /// The socket accepted bytes, or there were none to write.
    pub(crate) const fn handle_written(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Stream name, without arguments, of the publish or play that waits for its decision.
    pub(crate) fn name(&self) -> &[u8] {
        match &self.role {
            Role::Asking { name, .. } | Role::AskingToPlay { name, .. } => name,
            Role::Undecided
            | Role::Publishing(_)
            | Role::AwaitingStream { .. }
            | Role::Playing { .. }
            | Role::Over => &[],
        }
    }

    /// The publish goes live.
    pub(crate) fn allow(
        &mut self,
        record: Arc<PublishRecord>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        self.captured.allow(&record, now);
        self.role = Role::Publishing(Box::new(Publishing {
            publish: PublishSession::new(record, now),
            clocks: TrackClocks::of_broadcaster(),
            repair: Repair::default(),
            mark: ReceiveMark::new(now),
            overdue_at: None,
        }));
        self.session.allow();
        // Read what arrived while the decision was pending.
        effects.push(Effect::ReadSocket);
    }

    /// Ends a running publish according to the table of endings; the caller ends its stream.
    pub(crate) fn end_publish(
        &mut self,
        reason: EndReason,
        description: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        self.captured.end(reason, true, now);
        if let Some((code, words)) = reason.effect().status {
            let description = description.filter(|given| !given.is_empty()).unwrap_or(words);
            self.session.end_publish(code, description);
        } else {
            // This ending sends no status.
            effects.push(Effect::Close(reason));
        }
        self.role = Role::Over;
        self.handle_events(now, effects);
    }

    /// When [`RtmpServer::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let of_role = match &self.role {
            Role::Asking { until, .. }
            | Role::AskingToPlay { until, .. }
            | Role::AwaitingStream { until } => Some(*until),
            Role::Publishing(publishing) => {
                let silence = publishing.publish.silence_deadline();
                let mark = publishing.mark.deadline().filter(|_| publishing.overdue_at.is_none());
                Some(mark.map_or(silence, |at| at.min(silence)))
            }
            Role::Playing { tracks_due, .. } => *tracks_due,
            Role::Undecided | Role::Over => None,
        };
        let (of_session, stall) = (self.session.poll_timeout(), self.stall_deadline());
        [of_session, of_role, self.closing_until, stall, self.ping_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Performs what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| now >= at);
        self.captured.mark(Kind::Timeout, now);
        if is_due(self.closing_until) || is_due(self.stall_deadline()) {
            effects.push(Effect::Close(EndReason::BroadcasterLeft));
            return;
        }
        if let Err(error) = self.session.handle_timeout(now) {
            self.fail(error, now, effects);
            return;
        }
        let is_ping_due = is_due(self.ping_deadline());
        match &mut self.role {
            Role::Playing { pinged_at, .. } if is_ping_due => {
                *pinged_at = Some(now);
                self.session.ping(now);
            }
            Role::Asking { until, .. } | Role::AskingToPlay { until, .. } if now >= *until => {
                effects.push(Effect::WithdrawQuestion);
                self.deny(Denial::Denied, "No decision in time", now, effects);
            }
            Role::AwaitingStream { until } if now >= *until => self.refuse_stream(now, effects),
            Role::Publishing(publishing) => {
                if now >= publishing.publish.silence_deadline() {
                    self.captured.end(EndReason::Silent, false, now);
                    effects.push(Effect::EndPublish(EndReason::Silent));
                    self.end_publish(EndReason::Silent, None, now, effects);
                } else if is_due(publishing.mark.deadline()) && publishing.overdue_at.is_none() {
                    publishing.mark.handle_read(now);
                    let is_between = self.session.missing_bytes() == 0;
                    publishing.overdue_at = is_between.then(|| publishing.publish.bytes_in());
                    effects.push(Effect::ReadSocket);
                }
            }
            Role::Asking { .. }
            | Role::AskingToPlay { .. }
            | Role::AwaitingStream { .. }
            | Role::Playing { .. }
            | Role::Undecided
            | Role::Over => {}
        }
    }

    /// Number of bytes that must wait in the socket before it is read.
    pub(crate) fn receive_mark(&self) -> usize {
        let Role::Publishing(publishing) = &self.role else { return 1 };
        publishing.mark.bytes(self.session.missing_bytes())
    }

    /// Bytes to write.
    pub(crate) const fn output_mut(&mut self) -> &mut Output {
        self.session.output_mut()
    }

    /// Whether the write side of the socket shuts down once the remaining output is written.
    pub(crate) const fn is_closing(&self) -> bool {
        self.closing_until.is_some()
    }

    /// Address of the peer.
    pub(crate) const fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Why the connection failed, as it is reported.
    pub(crate) const fn refused(&self, code: &'static str, detail: String) -> ConnectionRefused {
        ConnectionRefused { address: self.peer, code, detail }
    }

    /// Closes the connection after an error.
    fn fail(&mut self, error: Error, now: Instant, effects: &mut Vec<Effect>) {
        if matches!(self.role, Role::Undecided) {
            let (code, detail) = (error.code(), error.to_string());
            effects.push(Effect::ReportRefusal(self.refused(code, detail)));
        }
        self.captured.end(reason_of(error), false, now);
        effects.push(Effect::Close(reason_of(error)));
    }

    /// A broadcaster shows by what it sends that it is there; some read nothing.
    fn stall_deadline(&self) -> Option<Instant> {
        let needs_answers = !matches!(self.role, Role::Publishing(_));
        let waits = needs_answers && !self.session.output().is_empty();
        waits.then(|| self.last_progress + STALL_LIMIT)
    }

    fn handle_events(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while let Some(event) = self.session.poll_event() {
            match event {
                ServerEvent::PublishRequested(target) => {
                    let (name, until) = (target.name.clone(), now + DECISION_LIMIT);
                    self.role = Role::Asking { name, until };
                    effects.push(Effect::Ask(target, self.peer));
                }
                ServerEvent::PlayRequested(target) => {
                    let (name, until) = (target.name.clone(), now + DECISION_LIMIT);
                    self.role = Role::AskingToPlay { name, until };
                    self.captured.forget();
                    effects.push(Effect::AskToPlay(target, self.peer));
                }
                ServerEvent::Media(message) => self.handle_media(message, now, effects),
                ServerEvent::Dropped(dropped) => {
                    if let Role::Publishing(publishing) = &self.role {
                        publishing.publish.note_dropped(dropped);
                    }
                }
                ServerEvent::Boundary { state, rest } => self.begin_capture(&state, &rest, now),
                ServerEvent::PublishEnded => {
                    self.role = Role::Over;
                    self.captured.end(EndReason::Unpublished, false, now);
                    effects.push(Effect::EndPublish(EndReason::Unpublished));
                }
                ServerEvent::PlayEnded => {
                    self.role = Role::Over;
                    effects.push(Effect::WithdrawQuestion);
                    effects.push(Effect::StopReading);
                }
                ServerEvent::AppRefused => {
                    let refused = self.refused("app", "it asked for another app".to_owned());
                    effects.push(Effect::ReportRefusal(refused));
                }
                ServerEvent::Close => {
                    self.closing_until.get_or_insert(now + CLOSING_LIMIT);
                }
            }
        }
    }

    fn handle_media(&mut self, message: MediaMessage, now: Instant, effects: &mut Vec<Effect>) {
        let Role::Publishing(publishing) = &mut self.role else { return };
        let kind = message.kind;
        let read = publishing.clocks.read(message, now);
        if let Some(counts) = publishing.clocks.take_irregularities() {
            publishing.publish.record().note_irregularities(&counts);
        }
        match read {
            Ok(Some(frame)) => self.handle_frame(frame, now, effects),
            Ok(None) => {}
            Err(error) if !publishing.publish.handle_unread(kind, error, now) => {}
            Err(error) => {
                self.session.end_publish("NetStream.Failed", &error.to_string());
                self.role = Role::Over;
                self.captured.end(EndReason::ProtocolError, false, now);
                effects.push(Effect::EndPublish(EndReason::ProtocolError));
            }
        }
    }
}

/// Classifies an error of the peer: a limit exceeded, or a protocol violation.
const fn reason_of(error: Error) -> EndReason {
    if error.is_limit() { EndReason::LimitExceeded } else { EndReason::ProtocolError }
}
