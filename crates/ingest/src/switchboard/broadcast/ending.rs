//! How a broadcast ends: its readers take what waits, and then it is closed.

use std::time::{Duration, Instant};

use super::super::sessions::{Sessions, Woken};
use super::super::timers::TimerOwner;
use super::{Broadcast, Stage};

/// How long subscribers have after the end to take waiting frames, before the publish counts as ended (W19: 1 s).
const DRAIN_LIMIT: Duration = Duration::from_millis(900);

impl Broadcast {
    /// No more frames will come: subscribers take those that wait.
    pub(in crate::switchboard) fn drain(&mut self, sessions: &mut Sessions) {
        let until = sessions.now + DRAIN_LIMIT;
        let standby = self.standby.take().map(|standby| standby.publisher);
        self.stage.drain(until, standby);
        sessions.context.publishes.leave_name(&self.name, self.record.stream);
        self.close_transcoder(&sessions.context.transcoders);
        self.end(&mut sessions.woken);
        for push in &self.pushes {
            let subscriber = sessions.get(*push).and_then(|entry| entry.reads);
            let has_backlog = subscriber.is_some_and(|of| self.has_frames(of.subscriber));
            sessions.turn_push(*push, |push, _, effects| {
                push.handle_stream_ended(has_backlog, effects);
            });
        }
        // Otherwise a held stream would keep the earlier timer of its next silence, which arms no other once it fires.
        sessions.timers.disarm(TimerOwner::Stream(self.key));
        sessions.timers.arm(TimerOwner::Stream(self.key), until);
    }

    /// The frames have ended: subscribers get those that wait and then the end.
    pub(super) fn end(&mut self, woken: &mut Woken) {
        if let Stage::Elsewhere { is_ended, .. } = &mut self.stage {
            *is_ended = true;
        }
        for (worker, relay) in &self.relays {
            relay.end();
            woken.workers.push(*worker);
        }
        for subscriber in self.subscribers.values_mut() {
            subscriber.queue.end();
            woken.readers.push(subscriber.reader);
        }
    }

    /// Whether it is no longer needed: it has ended and has no subscribers or no time left; or it lives on another
    /// worker and has no players here.
    pub(in crate::switchboard) fn is_done(&self, now: Instant) -> bool {
        match self.stage {
            Stage::Draining { until, .. } => self.is_unread() || now >= until,
            Stage::Elsewhere { .. } => self.is_unread(),
            Stage::Vacant | Stage::OnAir(_) | Stage::Held { .. } | Stage::Awaited { .. } => false,
        }
    }

    /// It has been removed: ends everything that still belongs to it. Dropping it reports its publish's end.
    pub(in crate::switchboard) fn close(&mut self, sessions: &mut Sessions) {
        sessions.timers.disarm(TimerOwner::Stream(self.key));
        for id in [Some(self.record.stream), self.former].into_iter().flatten() {
            if sessions.by_id.get(&id) == Some(&self.key) {
                sessions.by_id.remove(&id);
            }
        }
        for subscriber in self.subscribers.values() {
            self.record.add_subscribers(-i64::from(subscriber.is_counted()));
            sessions.woken.readers.push(subscriber.reader);
        }
        self.turn_pushes(sessions, |push, now, effects| push.handle_stream_closed(now, effects));
        self.close_transcoder(&sessions.context.transcoders);
        if let Stage::Elsewhere { relay, home, .. } = &self.stage {
            relay.leave();
            sessions.woken.workers.push(*home);
        }
    }

    /// The worker starts afresh without it.
    pub(in crate::switchboard) fn give_up(&mut self, sessions: &mut Sessions) {
        self.end(&mut sessions.woken);
        sessions.context.publishes.leave_name(&self.name, self.record.stream);
        self.close(sessions);
        sessions.woken.readers.clear();
    }
}
