//! What the gateway orders for a running push: pause, resume, try again at once.

use std::sync::Arc;
use std::time::Instant;

use super::{Effect, RtmpPush, State};
use crate::publish::upstreams::UpstreamRecord;

impl RtmpPush {
    /// Ends as [`RtmpPush::leave`]. Returns the record for the paused push that takes its place; `None` if this one is
    /// paused already, or leaves.
    pub(crate) fn pause(
        &mut self,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<Arc<UpstreamRecord>> {
        if matches!(self.state, State::Paused | State::Closing { .. }) {
            return None;
        }
        self.record.set_paused(now);
        self.leave(now, effects);
        Some(self.record.clone())
    }

    /// A paused push begins again.
    pub(crate) fn resume(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if matches!(self.state, State::Paused) {
            self.record.set_connecting(now);
            self.start(now, effects);
        }
    }

    /// A push that waits for its next attempt tries at once.
    pub(crate) fn retry_now(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if matches!(self.state, State::Pausing { .. }) {
            self.resolve(now, effects);
        }
    }
}
