//! A connection that came to the RTMP port: a broadcaster or a player. The protocol is `headgate_rtmp`'s, the socket
//! the reactor's.

mod capturing;
mod playing;
mod refusing;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_capture::Kind;
use headgate_media::{FrameKind, Track};
use headgate_rtmp::{Error, MediaMessage, Output, ServerConfig, ServerEvent, ServerSession};

use super::captured::Captured;
use super::effect::{Effect, Refused};
use super::publish_session::PublishSession;
use super::receive_mark::ReceiveMark;
use super::rtmp_frames::TrackClocks;
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::Denial;
use crate::publish::record::PublishRecord;

/// The gateway's answer must come within this: its own deadline for the customer is shorter.
const DECISION_LIMIT: Duration = Duration::from_secs(12);
/// A refused or ended peer gets so long to read why.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);
/// A peer that takes no byte for so long is gone.
const STALL_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
enum Role {
    /// Has not said what it wants.
    Undecided,
    /// Waits for the gateway.
    Asking {
        name: Vec<u8>,
        until: Instant,
    },
    /// A player waits for the gateway.
    AskingToPlay {
        name: Vec<u8>,
        until: Instant,
    },
    Publishing(Box<Publishing>),
    /// A player that was allowed waits for the stream's first frame: it comes from another node.
    AwaitingStream {
        until: Instant,
    },
    /// Once the stream's tracks are known, it is checked whether the player takes any.
    Playing {
        tracks_due: Option<Instant>,
    },
    /// Refused, ended or finished; only its output is left.
    Over,
}

#[derive(Debug)]
struct Publishing {
    publish: PublishSession,
    clocks: TrackClocks,
    mark: ReceiveMark,
    /// Payload bytes before a read that the mark's deadline asked for, between two messages.
    overdue_at: Option<u64>,
}

/// One connection with its protocol session.
///
/// The owner, for each batch of input: [`RtmpServer::begin_turn`]; then, while [`RtmpServer::takes_input`], bytes to
/// [`RtmpServer::handle_input`], first none at all if [`RtmpServer::has_unread_input`]; then [`RtmpServer::end_read`].
/// At [`RtmpServer::deadline`]: [`RtmpServer::handle_timeout`]. When the socket took bytes of
/// [`RtmpServer::output_mut`]: [`RtmpServer::handle_written`]; when it is gone: [`RtmpServer::handle_closed`].
/// After each call the effects are carried out in order. It is over once it pushed [`Effect::Close`], and then it is
/// called no more.
#[derive(Debug)]
pub(crate) struct RtmpServer {
    session: ServerSession,
    peer: IpAddr,
    role: Role,
    captured: Captured,
    closing_until: Option<Instant>,
    /// When the peer last took bytes, or had none to take.
    last_progress: Instant,
}

impl RtmpServer {
    /// A connection accepted at `now`; `seed` is random. `keeps_early`: a publish may be captured from its first byte.
    pub(crate) fn new(peer: IpAddr, seed: u64, keeps_early: bool, now: Instant) -> Self {
        let config = ServerConfig { seed: seed.to_ne_bytes(), ..ServerConfig::default() };
        let session = ServerSession::new(config, now);
        let captured = Captured::new(keeps_early);
        let role = Role::Undecided;
        Self { session, peer, role, captured, closing_until: None, last_progress: now }
    }

    /// A new turn of the worker: the session may do a turn's work again.
    pub(crate) fn begin_turn(&mut self) {
        self.session.begin_turn();
    }

    /// Whether the socket may be read: not while a publish waits for its decision, so that the kernel holds the
    /// broadcaster up.
    pub(crate) fn takes_input(&self) -> bool {
        self.session.takes_input()
    }

    /// Bytes that were read can be handled in the next turn: `handle_input` with none does so.
    pub(crate) fn has_unread_input(&self) -> bool {
        self.session.has_unread_input()
    }

    /// Bytes from the peer.
    pub(crate) fn handle_input(&mut self, input: &[u8], now: Instant, effects: &mut Vec<Effect>) {
        if self.closing_until.is_some() {
            // Whoever is refused may still send; reading it keeps our last words from being reset away.
            return;
        }
        if let Role::Publishing(publishing) = &mut self.role {
            publishing.publish.handle_input(input.len(), now);
            publishing.mark.handle_read(now);
        }
        self.captured.input(input, now);
        let outcome = self.session.handle_input(input, now);
        // Events first even when the input ends in an error: what came before it counts.
        self.handle_events(now, effects);
        if let Err(error) = outcome {
            self.fail(error, now, effects);
        }
    }

    /// The socket was read as far as this turn goes.
    pub(crate) fn end_read(&mut self, now: Instant) {
        if let Role::Publishing(publishing) = &mut self.role
            && let Some(before) = publishing.overdue_at.take()
            && publishing.publish.bytes_in() > before
        {
            publishing.mark.handle_late(now);
        }
    }

    /// The peer closed, or the connection broke.
    pub(crate) fn handle_closed(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.captured.mark(Kind::Closed, now);
        self.captured.end(EndReason::BroadcasterLeft, false, now);
        effects.push(Effect::Close(EndReason::BroadcasterLeft));
    }

    /// The socket took bytes, or there were none to take.
    pub(crate) const fn handle_written(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// Stream name of the publish or play that waits for its decision, without arguments.
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
            clocks: TrackClocks::default(),
            mark: ReceiveMark::new(now),
            overdue_at: None,
        }));
        self.session.allow();
        // What came while the question was open is read now.
        effects.push(Effect::ReadSocket);
    }

    /// Ends a running publish as the table of endings says; the stream is ended by the caller.
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
            // There is nothing to say.
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
            Role::Playing { tracks_due } => *tracks_due,
            Role::Undecided | Role::Over => None,
        };
        [self.session.poll_timeout(), of_role, self.closing_until, self.stall_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Time has passed.
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
        match &mut self.role {
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

    /// Bytes that must wait in the socket before they are worth a read.
    pub(crate) fn receive_mark(&self) -> usize {
        let Role::Publishing(publishing) = &self.role else { return 1 };
        publishing.mark.bytes(self.session.missing_bytes())
    }

    /// Bytes to write.
    pub(crate) const fn output_mut(&mut self) -> &mut Output {
        self.session.output_mut()
    }

    /// Everything is said: the socket's sending side closes once the output is written.
    pub(crate) const fn is_closing(&self) -> bool {
        self.closing_until.is_some()
    }

    /// Where the peer is.
    pub(crate) const fn peer(&self) -> IpAddr {
        self.peer
    }

    /// The connection cannot go on.
    fn fail(&mut self, error: Error, now: Instant, effects: &mut Vec<Effect>) {
        if matches!(self.role, Role::Undecided) {
            effects.push(Effect::ReportRefusal(Refused::Error(error)));
        }
        self.captured.end(reason_of(error), false, now);
        effects.push(Effect::Close(reason_of(error)));
    }

    fn stall_deadline(&self) -> Option<Instant> {
        (!self.session.output().is_empty()).then(|| self.last_progress + STALL_LIMIT)
    }

    fn handle_events(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        while let Some(event) = self.session.poll_event() {
            match event {
                ServerEvent::PublishRequested(target) => {
                    let (name, until) = (target.name.clone(), now + DECISION_LIMIT);
                    self.role = Role::Asking { name, until };
                    effects.push(Effect::Ask(target));
                }
                ServerEvent::PlayRequested(target) => {
                    let (name, until) = (target.name.clone(), now + DECISION_LIMIT);
                    self.role = Role::AskingToPlay { name, until };
                    self.captured.forget();
                    effects.push(Effect::AskToPlay(target));
                }
                ServerEvent::Media(message) => self.handle_media(message, now, effects),
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
                ServerEvent::AppRefused => effects.push(Effect::ReportRefusal(Refused::App)),
                ServerEvent::Close => {
                    self.closing_until.get_or_insert(now + CLOSING_LIMIT);
                }
            }
        }
    }

    fn handle_media(&mut self, message: MediaMessage, now: Instant, effects: &mut Vec<Effect>) {
        let Role::Publishing(publishing) = &mut self.role else { return };
        let Publishing { publish, clocks, mark, .. } = &mut **publishing;
        match clocks.read(message) {
            Ok(Some(frame)) => {
                if publish.handle_frame(&frame, now).is_err() {
                    effects.push(Effect::EndPublish(EndReason::LimitExceeded));
                    self.captured.end(EndReason::LimitExceeded, false, now);
                    self.end_publish(EndReason::LimitExceeded, None, now, effects);
                    return;
                }
                let is_picture =
                    !matches!(frame.kind, FrameKind::Configuration | FrameKind::ColorInfo);
                if frame.track() == Track::Video && is_picture {
                    mark.handle_video_frame(frame.data.len(), now);
                }
                if let Some(configuration) = clocks.missing_configuration(&frame) {
                    self.captured.frame(&configuration, now);
                    effects.push(Effect::Publish(configuration));
                }
                self.captured.frame(&frame, now);
                effects.push(Effect::Publish(frame));
            }
            Ok(None) => {}
            Err(error) => {
                self.session.end_publish("NetStream.Failed", &error.to_string());
                self.role = Role::Over;
                self.captured.end(EndReason::ProtocolError, false, now);
                effects.push(Effect::EndPublish(EndReason::ProtocolError));
            }
        }
    }
}

/// The peer's fault by its kind: past a limit, or against the protocol.
const fn reason_of(error: Error) -> EndReason {
    if error.is_limit() { EndReason::LimitExceeded } else { EndReason::ProtocolError }
}
