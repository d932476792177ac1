//! How encoders and players say that they are done. Each ends the publish or play at once, whatever its arguments,
//! unless it is about another stream that the peer has created.

use super::{ServerEvent, ServerSession, State};
use crate::amf_value::Value;
use crate::message::{Command, status};

impl ServerSession {
    /// Whether a command ends the publish or play.
    pub(super) fn is_end(&self, stream: u32, command: &Command) -> bool {
        let is_active = match self.state {
            State::Publishing | State::PublishAsked | State::PlayAsked | State::Playing => true,
            State::Opening | State::Connected | State::Over => false,
        };
        is_active
            && match command.name.as_str() {
                // By name, which may be written otherwise than in publish.
                "FCUnpublish" | "unpublish" => true,
                // Of the connection.
                "close" => true,
                "closeStream" => !self.is_another(stream),
                // With a number, with the name, with nothing.
                "deleteStream" => {
                    let number = command.arguments.first().and_then(Value::as_number);
                    !number.is_some_and(|number| self.is_another(whole(number)))
                }
                // NetStream.publish(false), and an empty name.
                "publish" => {
                    let is_ours = self.state == State::Publishing && !self.is_another(stream);
                    is_ours && has_no_name(command)
                }
                _ => false,
            }
    }

    /// Ends the publish or play by a command of the peer.
    pub(super) fn end(&mut self, stream: u32, command: &Command) {
        if command.name == "publish" {
            // Where it waits for the answer, this is the one (RTMP 7.2.2.6; the code is Flash Media Server's).
            let code = "NetStream.Unpublish.Success";
            self.send_status(status("status", code, "The publish has ended"));
        } else {
            self.handle_command(stream, command);
        }
        let event = match self.state {
            State::PublishAsked | State::Publishing => ServerEvent::PublishEnded,
            State::PlayAsked | State::Playing => ServerEvent::PlayEnded,
            State::Opening | State::Connected | State::Over => return,
        };
        self.events.push_back(event);
        self.close();
    }

    /// Whether the peer has created this stream besides the one that it publishes on or plays. A number that we never
    /// gave out, and one of a peer that does not use ours, can only mean its one stream.
    fn is_another(&self, stream: u32) -> bool {
        let is_created = |stream| (1..=self.streams).contains(&stream);
        stream != self.stream && is_created(stream) && is_created(self.stream)
    }
}

/// A name that is empty, absent or not a name; a command that was cut may have had one.
fn has_no_name(command: &Command) -> bool {
    match command.arguments.first() {
        None => !command.is_odd,
        Some(Value::String(name)) => name.is_empty(),
        Some(Value::Null | Value::Undefined) => true,
        Some(Value::Boolean(publishes)) => !publishes,
        Some(
            Value::Number(_)
            | Value::Object(_)
            | Value::EcmaArray(_)
            | Value::StrictArray(_)
            | Value::Date(_),
        ) => false,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
const fn whole(number: f64) -> u32 {
    number as u32
}
