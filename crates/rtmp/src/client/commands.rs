//! The exchange up to a running publish or play, and the server's messages after that.

use std::time::{Duration, Instant};

use super::connect::connect_object;
use super::replies::{Status, stream_id};
use super::{ClientConfig, ClientEvent, ClientRole, ClientSession, RefusalKind, State};
use crate::amf_value::Value;
use crate::authentication::{Demand, Known, read_demand};
use crate::four_cc::read_four_cc_list;
use crate::message::Command;
use crate::wire::MEDIA_STREAM;

/// The buffer length that our player requests from the server (RTMP 7.1.7).
const PLAY_BUFFER_MS: u32 = 3000;

// Transaction ids, in the order every encoder uses.
const CONNECT: f64 = 1.0;
const RELEASE_STREAM: f64 = 2.0;
const FC_PUBLISH: f64 = 3.0;
const CREATE_STREAM: f64 = 4.0;
const START: f64 = 5.0;
pub(super) const FC_UNPUBLISH: f64 = 6.0;
pub(super) const DELETE_STREAM: f64 = 7.0;

/// How long an onFCPublish that comes after publish may be followed by the actual answer; some servers send no other.
const FC_PUBLISH_GRACE: Duration = Duration::from_secs(5);

/// An onFCPublish.
#[derive(Debug)]
pub(super) struct FcPublish {
    status: Status,
    /// When it counts as the answer to publish; `None` if it came before that: only once the time limit has passed.
    due: Option<Instant>,
}

impl ClientSession {
    pub(super) fn connect(&mut self, now: Instant) {
        self.wire.announce_chunk_size();
        let object = connect_object(&self.config);
        self.send(0, "connect", CONNECT, &[object]);
        self.enter(State::Connecting, now);
    }

    pub(super) fn handle_command(&mut self, command: &Command, now: Instant) {
        let status = Status::read(command);
        match (command.name.to_ascii_lowercase().as_str(), self.state) {
            // There is no other request outstanding, whatever the transaction id.
            ("_result", State::Connecting) if !status.fails() => {
                self.handle_connected(command, now)
            }
            ("_result", State::Creating) if is_stream_created(command) && !status.fails() => {
                self.stream = stream_id(command).unwrap_or(MEDIA_STREAM);
                self.begin(now);
            }
            // Some servers answer publish as a call.
            ("_result", State::Starting)
                if is_for(command, START) && !status.fails()
                    || status.is_start(self.config.role) =>
            {
                self.start();
            }
            ("_result" | "_error", State::Connecting) => self.refuse(status),
            ("_result", State::Creating) if is_for(command, CREATE_STREAM) => self.refuse(status),
            ("_result", State::Starting) if is_for(command, START) => self.refuse(status),
            ("_error", State::Creating) if concerns_us(command) => self.refuse(status),
            // createStream has been answered before.
            ("_error", State::Starting)
                if concerns_us(command) && !is_for(command, CREATE_STREAM) =>
            {
                self.refuse(status);
            }
            ("onstatus", State::Connecting) if status.connects() => {
                self.handle_connected(command, now);
            }
            ("onstatus", _) => self.handle_status(status),
            ("onfcpublish", State::Creating | State::Starting) => {
                let is_answer = self.state == State::Starting;
                self.fc_publish =
                    Some(FcPublish { status, due: is_answer.then(|| now + FC_PUBLISH_GRACE) });
            }
            ("close", State::Connecting | State::Creating | State::Starting | State::Ready) => {
                let (code, description) = ("close".into(), String::new());
                self.events.push_back(ClientEvent::Ended { code, description });
                self.close();
            }
            // onBWDone, answers to releaseStream and FCPublish: nothing depends on them.
            _ => {}
        }
    }

    /// When an onFCPublish counts as the answer to publish, if no other comes.
    pub(super) fn fc_publish_due(&self) -> Option<Instant> {
        let limit = self.since + self.config.limits.publish_start;
        self.fc_publish.as_ref().map(|answer| answer.due.map_or(limit, |due| due.min(limit)))
    }

    /// No other answer to publish has come.
    pub(super) fn accept_fc_publish(&mut self) {
        match self.fc_publish.take() {
            Some(FcPublish { status, .. }) if status.fails() => self.refuse(status),
            Some(_) => self.start(),
            None => {}
        }
    }

    /// The server has accepted the connect.
    fn handle_connected(&mut self, command: &Command, now: Instant) {
        // Some servers put it into the properties, some into the information object.
        self.four_cc_list = read_four_cc_list(&command.object);
        if let Some(information) = command.arguments.first() {
            self.four_cc_list.extend(read_four_cc_list(information));
        }
        self.create(now);
    }

    /// Handles a StreamEOF for the stream we play: some servers send nothing else at its end.
    pub(super) fn handle_stream_eof(&mut self, stream: u32) {
        let plays = self.config.role == ClientRole::Play && self.state == State::Ready;
        if plays && stream == self.stream {
            let (code, description) = ("StreamEOF".into(), String::new());
            self.events.push_back(ClientEvent::Ended { code, description });
            self.close();
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
                // Live only. -1 would do; -2 falls back to recordings and is what every player sends.
                let start = Value::Number(-2000.0);
                self.send(self.stream, "play", START, &[Value::Null, name, start]);
                let [a, b, c, d] = self.stream.to_be_bytes();
                let [e, f, g, h] = PLAY_BUFFER_MS.to_be_bytes();
                self.wire.send_user_control(SET_BUFFER_LENGTH, &[a, b, c, d, e, f, g, h]);
                // Only a player receives long messages.
                self.wire.set_accepted();
            }
        }
        self.enter(State::Starting, now);
    }

    fn handle_status(&mut self, status: Status) {
        match self.state {
            State::Starting if status.starts(self.config.role) => self.start(),
            // It does not concern what we requested, whatever it reports.
            _ if status.is_aside() => {}
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

    fn start(&mut self) {
        self.state = State::Ready;
        self.events.push_back(ClientEvent::Ready);
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

    /// Servers request authentication only in response to connect.
    fn demand(&self, description: &str) -> Demand {
        if self.state != State::Connecting {
            return Demand::Nothing;
        }
        let ClientConfig { credentials, arguments, app, seed, .. } = &self.config;
        let known = Known { credentials: credentials.as_ref(), arguments, app, seed: *seed };
        read_demand(description, known)
    }
}

/// Whether this answers createStream: by its transaction id or, if that belongs to no other command of ours, by
/// containing a stream id.
fn is_stream_created(command: &Command) -> bool {
    is_for(command, CREATE_STREAM) || (concerns_us(command) && stream_id(command).is_some())
}

/// False for commands whose failure is irrelevant: servers refuse releaseStream for names that never existed.
fn concerns_us(command: &Command) -> bool {
    ![CONNECT, RELEASE_STREAM, FC_PUBLISH].iter().any(|transaction| is_for(command, *transaction))
}

#[allow(clippy::float_cmp, reason = "transaction ids are whole numbers that come back as sent")]
fn is_for(command: &Command, transaction: f64) -> bool {
    command.transaction == transaction
}
