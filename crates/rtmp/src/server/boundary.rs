//! The point where another session can continue reading: between two messages of a running publish.

use std::time::Instant;

use super::{ServerConfig, ServerEvent, ServerSession, State};
use crate::ReadingState;
use crate::wire::Wire;

impl ServerSession {
    /// Requests [`ServerEvent::Boundary`] at the next point between two messages of the publish.
    pub const fn find_boundary(&mut self) {
        self.seeks_boundary = true;
    }

    /// A session in a publish that was allowed earlier; it continues reading from `state`.
    #[must_use]
    pub fn resume(config: ServerConfig, state: &ReadingState, now: Instant) -> Self {
        let wire = Wire::resume(config.limits.clone(), state, now);
        Self { wire, state: State::Publishing, ..Self::new(config, now) }
    }

    pub(super) fn note_boundary(&mut self, rest: &[u8]) {
        if self.state != State::Publishing {
            return;
        }
        if let Some(state) = self.wire.reading_state() {
            self.seeks_boundary = false;
            let (state, rest) = (Box::new(state), rest.to_vec());
            self.events.push_back(ServerEvent::Boundary { state, rest });
        }
    }
}
