//! Handles the commands of encoders and players. The state machine does not depend on their order, since no two clients
//! use the same one.

use super::redirect::Redirection;
use super::{ServerEvent, ServerSession, State};
use crate::Target;
use crate::amf_value::Value;
use crate::four_cc::{answer_capabilities, read_four_cc_list};
use crate::message::{Command, status};
use crate::unread::Unread;
use crate::wire::MEDIA_STREAM;

impl ServerSession {
    pub(super) fn handle_command(&mut self, stream: u32, command: &Command) {
        let transaction = command.transaction;
        match (command.name.as_str(), self.state) {
            ("connect", State::Opening) => self.connect(command),
            (_, State::Opening | State::Over) => {}
            ("createStream", _) => {
                self.streams = self.streams.saturating_add(1);
                let stream = Value::Number(self.streams.into());
                self.answer(transaction, &[Value::Null, stream]);
            }
            ("FCPublish", _) => {
                self.sent_fc_publish = true;
                self.answer(transaction, &[Value::Null, Value::Undefined]);
                if self.state == State::Publishing {
                    self.announce_fc_publish();
                }
            }
            ("releaseStream", _) => self.answer(transaction, &[Value::Null, Value::Undefined]),
            ("publish", State::Connected) => {
                let target = self.ask(stream, command);
                self.state = State::PublishAsked;
                self.events.push_back(ServerEvent::PublishRequested(target));
            }
            // An encoder that repeats its request has missed the answer.
            ("publish", State::Publishing) if self.asked == Some(self.read_request(command)) => {
                self.use_stream(stream);
                self.send_status(publish_started());
            }
            ("publish", _) => {
                let text = "One publish per connection";
                self.refuse_another(stream, "NetStream.Publish.BadName", text);
            }
            ("play", State::Connected) => {
                let target = self.ask(stream, command);
                self.state = State::PlayAsked;
                self.events.push_back(ServerEvent::PlayRequested(target));
            }
            // The same of a player; one that waits for the decision will have it.
            ("play", State::Playing | State::PlayAsked)
                if self.asked == Some(self.read_request(command)) =>
            {
                if self.state == State::Playing {
                    self.send_status(status("status", "NetStream.Play.Start", "Playing"));
                }
            }
            ("play", _) => {
                let text = "One play per connection";
                self.refuse_another(stream, "NetStream.Play.Failed", text);
            }
            ("FCSubscribe", _) => {
                let started = status("status", "NetStream.Play.Start", "Subscribed");
                self.send(0, "onFCSubscribe", 0.0, &[Value::Null, started]);
            }
            ("FCUnpublish" | "deleteStream" | "closeStream", _) => {
                self.answer(transaction, &[Value::Null, Value::Undefined]);
            }
            ("getStreamLength", _) => self.answer(transaction, &[Value::Null, Value::Number(0.0)]),
            // Replies to us need no answer; any other unknown command is answered with success.
            ("_result" | "_error" | "onStatus", _) => {}
            _ => self.answer(transaction, &[Value::Null, Value::Null]),
        }
    }

    fn connect(&mut self, command: &Command) {
        let app = command.object.property("app").and_then(Value::as_bytes).unwrap_or_default();
        self.connect_app = app.to_vec();
        self.wire.announce_chunk_size();
        self.wire.announce_window();
        if !Target::is_app(&self.app, &self.connect_app) {
            let code = "NetConnection.Connect.InvalidApp";
            let app = &self.app;
            let text = format!("There is no such app: the server address is rtmp://host/{app}");
            let refused = status("error", code, &text);
            self.send(0, "_error", command.transaction, &[Value::Null, refused]);
            self.events.push_back(ServerEvent::AppRefused);
            self.close();
            return;
        }
        self.four_cc_list = read_four_cc_list(&command.object);
        self.redirection = Redirection::read(&command.object);
        let encoding = command.object.property("objectEncoding").and_then(Value::as_number);
        let mut properties = vec![
            (b"fmsVer".to_vec(), Value::string("FMS/3,0,1,123")),
            (b"capabilities".to_vec(), Value::Number(31.0)),
        ];
        properties.extend(answer_capabilities(&command.object));
        let information = Value::object([
            ("level", Value::string("status")),
            ("code", Value::string("NetConnection.Connect.Success")),
            ("description", Value::string("Connection succeeded")),
            ("objectEncoding", Value::Number(encoding.unwrap_or(0.0))),
        ]);
        self.send(0, "_result", command.transaction, &[Value::Object(properties), information]);
        self.state = State::Connected;
    }

    fn ask(&mut self, stream: u32, command: &Command) -> Target {
        self.use_stream(stream);
        let request = self.read_request(command);
        self.asked.insert(request).0.clone()
    }

    /// Some encoders publish on stream 0; our messages must use the stream they were given.
    const fn use_stream(&mut self, stream: u32) {
        self.stream = if stream == 0 { MEDIA_STREAM } else { stream };
    }

    fn read_request(&self, command: &Command) -> (Target, Vec<u8>) {
        let text = |n| command.arguments.get(n).and_then(Value::as_bytes).unwrap_or_default();
        (Target::parse(&self.app, &self.connect_app, text(0)), text(1).to_vec())
    }

    /// Refuses a request on the stream that it was made on: the other's goes on.
    fn refuse_another(&mut self, stream: u32, code: &str, description: &str) {
        let stream = if stream == 0 { self.stream } else { stream };
        let refused = status("error", code, description);
        self.send(stream, "onStatus", 0.0, &[Value::Null, refused]);
    }

    pub(super) fn close_with(&mut self, code: &str, description: &str) {
        self.send_status(status("error", code, description));
        self.close();
    }

    pub(super) fn close(&mut self) {
        self.state = State::Over;
        self.unread = Unread::default();
        self.events.push_back(ServerEvent::Close);
    }

    pub(super) fn announce_fc_publish(&mut self) {
        self.send(0, "onFCPublish", 0.0, &[Value::Null, publish_started()]);
    }

    pub(super) fn send_status(&mut self, information: Value) {
        self.send(self.stream, "onStatus", 0.0, &[Value::Null, information]);
    }

    /// Sends a status of the connection, not of a stream.
    pub(super) fn send_connection_status(&mut self, information: Value) {
        self.send(0, "onStatus", 0.0, &[Value::Null, information]);
    }

    /// Sends a `_result`; transaction id 0 requests none (RTMP 7.2.1).
    fn answer(&mut self, transaction: f64, values: &[Value]) {
        if transaction != 0.0 {
            self.send(0, "_result", transaction, values);
        }
    }

    fn send(&mut self, stream: u32, name: &str, transaction: f64, values: &[Value]) {
        self.wire.send_command(stream, &Command::encode(name, transaction, values));
    }
}

pub(super) fn publish_started() -> Value {
    status("status", "NetStream.Publish.Start", "Publishing")
}
