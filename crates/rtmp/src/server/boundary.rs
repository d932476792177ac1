//! Where one session's reading may be taken up by another: between two messages of a running publish.

use std::time::Instant;

use super::{ServerConfig, ServerSession, State};
use crate::ReadingState;
use crate::wire::Wire;

/// A place between two messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Boundary {
    /// Nobody needs one.
    #[default]
    Unwanted,
    /// The next one is.
    Sought,
    /// What was known there, and what of the input came behind it.
    Found(ReadingState, Vec<u8>),
}

impl ServerSession {
    /// The next place between two messages of the publish is wanted: [`ServerSession::take_boundary`].
    pub fn find_boundary(&mut self) {
        self.boundary = Boundary::Sought;
    }

    /// After [`ServerSession::handle_input`]: the state at the place that was wanted, and the bytes that were handed in
    /// and stood behind it. Once.
    pub fn take_boundary(&mut self) -> Option<(ReadingState, Vec<u8>)> {
        match std::mem::take(&mut self.boundary) {
            Boundary::Found(state, rest) => Some((state, rest)),
            other => {
                self.boundary = other;
                None
            }
        }
    }

    /// A session in a publish that was allowed long ago, which reads on from `state`.
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
            self.boundary = Boundary::Found(state, rest.to_vec());
        }
    }
}
