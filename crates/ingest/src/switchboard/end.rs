//! How streams and publishes end: with one reason, after a short drain, reported once.

use std::time::Duration;

use super::arrivals::Arrivals;
use super::message::Message;
use super::revoked::RevokedSessions;
use super::routes::Routes;
use super::source::{Ending, Source};
use super::stage::Stage;
use super::timers::{TimerOwner, Timers};
use super::{Action, Session, SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::pull_record::PullEnd;
use crate::publish::record::StreamId;
use crate::session::effect::Effect;

/// How long subscribers have after the end to take waiting frames, before the publish counts as ended (W19: 1 s).
const DRAIN_LIMIT: Duration = Duration::from_millis(900);

impl Switchboard {
    /// The publish of `publisher` ends, whether or not its connection stays.
    pub(super) fn end_stream_of(&mut self, publisher: SessionKey, ending: impl Into<Ending>) {
        let Some(entry) = self.sessions.get_mut(publisher) else { return };
        if let Some(stream) = entry.publishes.take() {
            self.end_stream(stream, ending.into());
        }
    }

    /// The stream's publisher has ended: its subscribers are kept if it may come back.
    pub(super) fn end_stream(&mut self, key: StreamKey, ending: Ending) {
        let local = self.local_mut(key).filter(|local| !local.stage.is_draining());
        let Some(local) = local else { return };
        if let Some(running) = local.stage.running_mut() {
            running.guard.set_reason(ending.reason);
        }
        if !self.hand_over_at_end(key, ending) && !self.hold_stream(key, ending) {
            self.drain(key);
        }
    }

    /// Drains a stream to which no more frames will come: subscribers take those that wait.
    pub(super) fn drain(&mut self, key: StreamKey) {
        let until = self.now + DRAIN_LIMIT;
        let Some(live) = self.hub.stream_mut(key) else { return };
        let id = live.record.stream;
        let Some(local) = live.source.local_mut() else { return };
        if local.stage.is_draining() {
            return;
        }
        local.stage.drain(until);
        let name = local.name.clone();
        self.context.publishes.leave_name(&name, id);
        self.unpair(key);
        self.close_transcoder(key);
        let local = self.local(key);
        let Some(local) = local else { return };
        let pushes = local.pushes.clone();
        self.hub.end(key, &mut self.woken);
        for push in pushes {
            let subscriber = self.sessions.get(push).and_then(|entry| entry.reads);
            let has_backlog = subscriber.is_some_and(|subscriber| self.hub.has_frames(subscriber));
            self.turn_push(push, |push, _, effects| push.handle_stream_ended(has_backlog, effects));
        }
        // Otherwise a held stream would keep the earlier timer of its next silence, which arms no other once it fires.
        self.timers.disarm(TimerOwner::Stream(key));
        self.timers.arm(TimerOwner::Stream(key), until);
        self.close_if_done(key);
    }

    /// Closes a stream that is no longer needed: an ended one without subscribers or after its drain time, which
    /// reports the publish's end; or one of another worker without players here. Also updates a pull on whether it has
    /// subscribers.
    pub(super) fn close_if_done(&mut self, key: StreamKey) {
        self.note_readers(key);
        let Some(live) = self.hub.stream(key) else { return };
        let is_unread = self.hub.is_unread(key);
        let is_done = match &live.source {
            Source::Local(local) => {
                matches!(local.stage, Stage::Draining { until, .. } if is_unread || self.now >= until)
            }
            Source::Remote { .. } => is_unread,
        };
        if !is_done {
            return;
        }
        let Some(closed) = self.hub.close(key, &mut self.woken) else { return };
        self.timers.disarm(TimerOwner::Stream(key));
        let stream = closed.record.stream;
        for id in [Some(stream), closed.former()].into_iter().flatten() {
            if self.by_id.get(&id) == Some(&key) {
                self.by_id.remove(&id);
            }
        }
        match closed.source {
            Source::Local(local) => {
                for push in local.pushes {
                    self.turn_push(push, |push, now, effects| {
                        push.handle_stream_closed(now, effects);
                    });
                }
            }
            Source::Remote { relay, home, .. } => {
                self.actions.push(Action::Tell(home, Message::Detach { stream, relay }));
            }
        }
    }

    /// Ends a running publish, for the gateway or a newer publish.
    pub(super) fn end_publish(&mut self, stream: StreamId, reason: EndReason, description: &str) {
        let publisher = self.running_stream(stream).and_then(|key| self.publisher_of(key));
        if let Some(publisher) = publisher {
            self.end_publisher(publisher, reason, Some(description));
        }
    }

    fn end_publisher(&mut self, key: SessionKey, reason: EndReason, description: Option<&str>) {
        self.turn(key, |session, now, effects| match session {
            Session::Server(server) => {
                effects.push(Effect::EndPublish(reason));
                server.end_publish(reason, description, now, effects);
            }
            Session::Whip(whip) => {
                effects.push(Effect::EndPublish(reason));
                whip.end(reason, now, effects);
            }
            Session::Pull(pull) => pull.end(PullEnd::of(reason), "", now, effects),
            Session::Push(_) | Session::Preview(_) => {}
        });
    }

    /// The publish's own upstream refused it: ends the publish.
    pub(super) fn refuse_publish(&mut self, push: SessionKey) {
        let stream = self.sessions.get(push).and_then(|entry| entry.pushes);
        if let Some(publisher) = stream.and_then(|stream| self.publisher_of(stream)) {
            self.end_publisher(publisher, EndReason::UpstreamRefused, None);
        }
    }

    /// The service stops: publishers are notified and their streams end; sessions that neither publish nor read are
    /// closed.
    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        self.release_all();
        for key in self.sessions.keys().collect::<Vec<_>>() {
            let Some(entry) = self.sessions.get(key) else { continue };
            if entry.publishes.is_some() {
                self.end_publisher(key, EndReason::Shutdown, None);
            } else if entry.reads.is_none() && entry.pushes.is_none() {
                self.remove(key, EndReason::Shutdown);
            }
        }
    }

    /// After an internal failure outside any session's turn: ends everything that lives here, so that the worker starts
    /// afresh.
    pub(crate) fn give_up(&mut self) {
        // Sockets close with their links; messages to other workers are still valid.
        self.actions.retain(|action| matches!(action, Action::Tell(..) | Action::Move { .. }));
        let streams: Vec<_> = self.hub.streams().map(|(key, _)| key).collect();
        for key in streams {
            self.hub.end(key, &mut self.woken);
            let Some(closed) = self.hub.close(key, &mut self.woken) else { continue };
            let stream = closed.record.stream;
            match closed.source {
                Source::Local(local) => {
                    self.context.publishes.leave_name(&local.name, stream);
                    if let Some(transcoder) = &local.transcoder {
                        self.context.transcoders.close(transcoder);
                    }
                }
                Source::Remote { relay, home, .. } => {
                    self.actions.push(Action::Tell(home, Message::Detach { stream, relay }));
                }
            }
        }
        // The generations of keys and the numbers of handles continue: old ones refer to nothing.
        self.sessions.clear();
        self.by_id.clear();
        self.questions.clear();
        self.arrivals = Arrivals::default();
        self.routes = Routes::default();
        self.revoked = RevokedSessions::default();
        self.timers = Timers::default();
        self.woken.readers.clear();
        self.touched.clear();
        self.unsettled.clear();
    }
}
