//! A TCP connection that came to the RTMP port: a broadcaster or a player. The protocol is `headgate_rtmp`'s.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_media::{FrameKind, Track};
use headgate_rtmp::{
    Error, MediaMessage, Refusal, ServerConfig, ServerEvent, ServerSession, Target,
};
use mio::net::TcpStream;
use rustls::Connection;

use crate::Denial;
use crate::gathering::Gathering;
use crate::link::{Link, Received};
use crate::mailbox::PublishRequested;
use crate::pump::{Pumped, pump};
use crate::rtmp_frames::{TrackClocks, foreign_pictures, sound_form};
use crate::seat::{After, Ready};
use crate::session::{Counters, EndReason, PublishSession};
use crate::worker::Worker;

/// The gateway's answer must come within this: its own deadline for the customer is shorter.
const DECISION_LIMIT: Duration = Duration::from_secs(12);
/// A refused or ended peer gets so long to read why.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);
/// A live stream's headers are all there after this.
const TRACKS_LIMIT: Duration = Duration::from_secs(2);
/// A player that takes no byte for so long is gone.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// Reads in one turn, so that a fast peer does not keep its neighbours waiting.
const READS_PER_TURN: usize = 4;

enum Role {
    /// Has not said what it wants.
    Undecided,
    /// Waits for the gateway.
    Asking {
        request: u64,
        name: Vec<u8>,
        until: Instant,
    },
    Publishing {
        publish: PublishSession,
        clocks: TrackClocks,
        gathering: Gathering,
        name: Vec<u8>,
    },
    /// Once the stream's tracks are known, it is seen whether the player takes any.
    Playing {
        judged_at: Option<Instant>,
    },
    /// Refused, ended or finished; only its output is left.
    Over,
}

/// One connection with its protocol session.
pub(crate) struct ServerConnection {
    link: Link,
    session: ServerSession,
    peer: IpAddr,
    role: Role,
    closing_until: Option<Instant>,
}

impl ServerConnection {
    pub(crate) fn new(
        socket: TcpStream,
        tls: Option<Box<Connection>>,
        peer: IpAddr,
        seed: u64,
        now: Instant,
    ) -> Self {
        let config = ServerConfig { seed: seed.to_ne_bytes(), ..ServerConfig::default() };
        let session = ServerSession::new(config, now);
        let (role, closing_until) = (Role::Undecided, None);
        Self { link: Link::new(socket, tls, now), session, peer, role, closing_until }
    }

    pub(crate) fn start(&mut self, worker: &mut Worker, key: usize) -> After {
        // Small control messages go at once; media is gathered by us, not by the kernel.
        let is_watched = self.link.socket.set_nodelay(true).is_ok()
            && worker.watch(key, &mut self.link.socket).is_ok();
        if is_watched { After::Stay } else { After::Gone(EndReason::BroadcasterLeft) }
    }

    /// Whether this request still waits for its answer here.
    pub(crate) fn awaits(&self, request: u64) -> bool {
        matches!(self.role, Role::Asking { request: asked, .. } if asked == request)
    }

    /// Stream name of the publish, without arguments.
    pub(crate) fn name(&self) -> &[u8] {
        match &self.role {
            Role::Asking { name, .. } | Role::Publishing { name, .. } => name,
            Role::Undecided | Role::Playing { .. } | Role::Over => &[],
        }
    }

    /// The publish goes live.
    pub(crate) fn allow(&mut self, counters: Arc<Counters>, now: Instant) {
        let name = self.name().to_vec();
        let (publish, clocks) = (PublishSession::new(counters, now), TrackClocks::default());
        self.role = Role::Publishing { publish, clocks, gathering: Gathering::new(now), name };
        self.session.allow();
    }

    /// The publish is refused.
    pub(crate) fn deny(&mut self, denial: Denial, description: &str) {
        let refusal = match denial {
            Denial::Denied => Refusal::Denied,
            Denial::BadName => Refusal::BadName,
        };
        self.session.deny(refusal, description);
        self.role = Role::Over;
    }

    /// Tells a running broadcaster that it is over, as the table of endings says.
    pub(crate) fn end_publish(&mut self, reason: EndReason, description: Option<&str>) {
        if let Some((code, words)) = reason.effect().status {
            let description = description.filter(|given| !given.is_empty()).unwrap_or(words);
            self.session.end_publish(code, description);
        }
        self.role = Role::Over;
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let of_role = match &self.role {
            Role::Asking { until, .. } => Some(*until),
            Role::Publishing { publish, gathering, .. } => {
                let silence = publish.silence_deadline();
                Some(gathering.deadline().map_or(silence, |look| look.min(silence)))
            }
            Role::Playing { judged_at } => *judged_at,
            Role::Undecided | Role::Over => None,
        };
        let stall =
            (!self.session.output().is_empty()).then(|| self.link.last_progress() + STALL_LIMIT);
        [self.session.poll_timeout(), of_role, self.closing_until, stall]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn handle_ready(&mut self, worker: &mut Worker, key: usize, ready: Ready) -> After {
        self.link.handle_ready(ready);
        if ready.readable
            && let Some(reason) = self.receive(worker, key)
        {
            return After::Gone(reason);
        }
        self.transmit(worker, key)
    }

    pub(crate) fn handle_timeout(&mut self, worker: &mut Worker, key: usize) -> After {
        let now = worker.now;
        if self.closing_until.is_some_and(|until| now >= until) {
            return After::Gone(EndReason::BroadcasterLeft);
        }
        if !self.session.output().is_empty() && now >= self.link.last_progress() + STALL_LIMIT {
            return After::Gone(EndReason::BroadcasterLeft);
        }
        if let Err(error) = self.session.handle_timeout(now) {
            return After::Gone(reason_of(&error));
        }
        if let Some(reason) = self.look(worker, key) {
            return After::Gone(reason);
        }
        match &self.role {
            Role::Asking { until, .. } if now >= *until => {
                self.deny(Denial::Denied, "No decision in time");
            }
            Role::Publishing { publish, .. } if now >= publish.silence_deadline() => {
                self.end_publish(EndReason::Silent, None);
                worker.end_stream_of(key, EndReason::Silent);
            }
            Role::Playing { judged_at: Some(at) } if now >= *at => self.judge_tracks(worker, key),
            Role::Asking { .. } | Role::Publishing { .. } | Role::Playing { .. } => {}
            Role::Undecided | Role::Over => {}
        }
        self.handle_events(worker, key);
        self.transmit(worker, key)
    }

    /// Reads what has waited for its picture long enough; `Some` when the connection is over.
    fn look(&mut self, worker: &mut Worker, key: usize) -> Option<EndReason> {
        let now = worker.now;
        let Role::Publishing { publish, gathering, .. } = &mut self.role else { return None };
        if gathering.deadline().is_none_or(|at| now < at) {
            return None;
        }
        gathering.handle_read(now);
        let (is_between, before) = (self.session.missing_bytes() == 0, publish.bytes_in());
        let ending = self.receive(worker, key);
        if let Role::Publishing { publish, gathering, .. } = &mut self.role
            && is_between
            && publish.bytes_in() > before
        {
            gathering.handle_late(now);
            self.link.set_mark(1);
        }
        ending
    }

    /// Reads what is there; `Some` when the connection is over.
    fn receive(&mut self, worker: &mut Worker, key: usize) -> Option<EndReason> {
        self.session.begin_turn();
        if !self.session.takes_input() && !self.session.has_unread_input() {
            // A publish that waits for its decision is not read: what its encoder sends already stays with the kernel,
            // which stops the encoder. Whoever has gone does not wait.
            return self.link.is_read_closed().then_some(EndReason::BroadcasterLeft);
        }
        if self.session.has_unread_input() {
            if let Some(reason) = self.take_input(worker, key, &[]) {
                return Some(reason);
            }
            if self.session.has_unread_input() {
                worker.again.push(key);
                return None;
            }
        }
        let now = worker.now;
        let mut buffer = std::mem::take(&mut worker.buffer);
        let mut ending = None;
        let mut has_more = true;
        for _ in 0..READS_PER_TURN {
            let length = match self.link.read(&mut buffer) {
                Received::Bytes(length) => length,
                Received::Blocked => {
                    has_more = false;
                    break;
                }
                Received::Closed => {
                    ending = Some(EndReason::BroadcasterLeft);
                    break;
                }
            };
            if self.closing_until.is_some() {
                // Whoever is refused may still send; reading it keeps our last words from being reset away.
                has_more = self.link.has_more(length, buffer.len());
                continue;
            }
            if let Role::Publishing { publish, gathering, .. } = &mut self.role {
                publish.handle_input(now);
                gathering.handle_read(now);
            }
            ending = self.take_input(worker, key, buffer.get(..length).unwrap_or_default());
            has_more = self.session.has_unread_input()
                || self.link.has_more(length, buffer.len()) && self.session.takes_input();
            if !self.session.takes_input() {
                break;
            }
            if ending.is_some() || !has_more {
                break;
            }
        }
        worker.buffer = buffer;
        self.link.set_mark(match &self.role {
            Role::Publishing { gathering, .. } => gathering.mark(self.session.missing_bytes()),
            Role::Undecided | Role::Asking { .. } | Role::Playing { .. } | Role::Over => 1,
        });
        if ending.is_none() && has_more {
            worker.again.push(key);
        }
        ending
    }

    /// Events first even when the input ends in an error: what came before it counts.
    fn take_input(&mut self, worker: &mut Worker, key: usize, input: &[u8]) -> Option<EndReason> {
        let outcome = self.session.handle_input(input, worker.now);
        self.handle_events(worker, key);
        outcome.err().as_ref().map(reason_of)
    }

    fn handle_events(&mut self, worker: &mut Worker, key: usize) {
        while let Some(event) = self.session.poll_event() {
            match event {
                ServerEvent::PublishRequested(target) => self.ask(worker, key, target),
                ServerEvent::PlayRequested(target) => self.play(worker, key, &target),
                ServerEvent::Media(message) => self.handle_media(worker, key, message),
                ServerEvent::PublishEnded => {
                    worker.end_stream_of(key, EndReason::Unpublished);
                    if let Role::Asking { request, .. } = &self.role {
                        worker.questions.remove(request);
                    }
                    self.role = Role::Over;
                }
                ServerEvent::PlayEnded => {
                    worker.stop_reading(key);
                    self.role = Role::Over;
                }
                ServerEvent::Close => {
                    self.closing_until.get_or_insert(worker.now + CLOSING_LIMIT);
                }
            }
        }
    }

    fn play(&mut self, worker: &mut Worker, key: usize, target: &Target) {
        let four_ccs = self.session.four_cc_list();
        if worker.join(key, &target.name, sound_form(four_ccs), self.peer) {
            worker.leave_out(key, foreign_pictures(four_ccs));
            self.session.accept_play();
            self.role = Role::Playing { judged_at: Some(worker.now + TRACKS_LIMIT) };
        } else {
            self.session.refuse_play("No such stream");
            self.role = Role::Over;
        }
    }

    /// A player that takes none of the stream's tracks would wait for ever.
    fn judge_tracks(&mut self, worker: &mut Worker, key: usize) {
        self.role = Role::Playing { judged_at: None };
        if let Some(codec) = worker.only_foreign(key) {
            let codec = codec.name();
            let words = format!("The stream is {codec} alone, which the player does not list");
            self.session.fail_play(&words);
            self.role = Role::Over;
            worker.stop_reading(key);
        }
    }

    fn ask(&mut self, worker: &mut Worker, key: usize, target: Target) {
        let request = worker.new_question(key);
        let name = target.name.clone();
        let question = PublishRequested {
            request,
            app: target.app,
            name: target.name,
            arguments: target.arguments,
            address: self.peer,
        };
        self.role = Role::Asking { request, name, until: worker.now + DECISION_LIMIT };
        if !worker.shared.mailbox.put_request(question) {
            self.deny(Denial::Denied, "The service is overloaded");
        }
    }

    fn handle_media(&mut self, worker: &mut Worker, key: usize, message: MediaMessage) {
        let Role::Publishing { publish, clocks, gathering, .. } = &mut self.role else { return };
        match clocks.read(message) {
            Ok(Some(frame)) => {
                #[cfg(test)]
                assert!(!frame.data.ends_with(crate::tests::FORCED_PANIC), "forced by a test");
                publish.handle_frame(&frame);
                if frame.track() == Track::Video && frame.kind != FrameKind::Configuration {
                    gathering.handle_picture(frame.data.len(), worker.now);
                }
                if let Some(configuration) = clocks.missing_configuration(&frame) {
                    worker.publish_frame(key, &configuration);
                }
                worker.publish_frame(key, &frame);
            }
            Ok(None) => {}
            Err(error) => {
                self.session.end_publish("NetStream.Failed", &error.to_string());
                self.role = Role::Over;
                worker.end_stream_of(key, EndReason::ProtocolError);
            }
        }
    }

    fn transmit(&mut self, worker: &mut Worker, key: usize) -> After {
        let now = worker.now;
        match &self.role {
            Role::Playing { .. } => match pump(worker, key, &mut self.link, &mut self.session, now)
            {
                Pumped::Waiting => {}
                Pumped::Finished => {
                    self.session.end_play();
                    self.role = Role::Over;
                    worker.stop_reading(key);
                }
                Pumped::Broken => return After::Gone(EndReason::BroadcasterLeft),
            },
            Role::Undecided | Role::Asking { .. } | Role::Publishing { .. } | Role::Over => {}
        }
        self.handle_events(worker, key);
        if self.link.flush(self.session.output_mut(), now).is_err() {
            return After::Gone(EndReason::BroadcasterLeft);
        }
        if self.closing_until.is_some() && self.session.output().is_empty() {
            self.link.shut_writing();
        }
        After::Stay
    }
}

/// The peer's fault by its kind: past a limit, or against the protocol.
fn reason_of(error: &Error) -> EndReason {
    if error.is_limit() { EndReason::LimitExceeded } else { EndReason::ProtocolError }
}
