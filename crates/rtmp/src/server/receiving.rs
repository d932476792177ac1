//! What a broadcaster or player sends, message by message. What is not as it should be costs at most its own message.

use std::time::Instant;

use bytes::Bytes;

use super::{ServerEvent, ServerSession, State};
use crate::message::{MediaKind, MediaMessage};
use crate::script_data::{ScriptData, read_script_data};
use crate::wire::Incoming;
use crate::{Dropped, Error};

impl ServerSession {
    pub(super) fn read(&mut self, input: &mut &[u8], now: Instant) -> Result<(), Error> {
        while !matches!(self.state, State::PublishAsked | State::Over) {
            if self.seeks_boundary {
                self.note_boundary(input);
            }
            match self.wire.next(input, now)? {
                None => break,
                Some(Incoming::Media(message)) => self.handle_media(message, now),
                Some(Incoming::Command { stream, command }) => {
                    if command.is_odd {
                        self.note_dropped(Dropped::Unreadable);
                    }
                    let is_excess = !self.commands.take(now);
                    if self.is_end(stream, &command) {
                        self.end(stream, &command);
                    } else if is_excess {
                        self.note_dropped(Dropped::Excess);
                    } else {
                        self.handle_command(stream, &command);
                    }
                }
                // An event of servers (RTMP 7.1.7): it says nothing about what the peer sends.
                Some(Incoming::StreamEof { .. }) => {}
                Some(Incoming::Dropped(dropped)) => self.note_dropped(dropped),
            }
        }
        Ok(())
    }

    fn handle_media(&mut self, mut message: MediaMessage, now: Instant) {
        if self.state != State::Publishing {
            return;
        }
        if message.kind == MediaKind::Script {
            match self.read_script(&message.payload, now) {
                Ok(None) => {}
                Ok(Some(repaired)) => {
                    self.note_dropped(Dropped::Unreadable);
                    message.payload = repaired;
                }
                Err(dropped) => return self.note_dropped(dropped),
            }
        }
        self.events.push_back(ServerEvent::Media(message));
    }

    /// What is passed on instead of script data that not every reader could read.
    fn read_script(&mut self, payload: &[u8], now: Instant) -> Result<Option<Bytes>, Dropped> {
        if !self.scripts.take(now) {
            return Err(Dropped::Excess);
        }
        match read_script_data(payload) {
            ScriptData::Sound => Ok(None),
            ScriptData::Repaired(repaired) => Ok(Some(repaired)),
            ScriptData::Unreadable => Err(Dropped::Unreadable),
        }
    }

    fn note_dropped(&mut self, dropped: Dropped) {
        if self.state == State::Publishing {
            self.events.push_back(ServerEvent::Dropped(dropped));
        }
    }
}
