//! How streams and publishes end: named once, drained for a moment, reported once.

use std::time::Duration;

use super::message::Message;
use super::revoked::RevokedSessions;
use super::routes::Routes;
use super::source::Source;
use super::timers::{TimerOwner, Timers};
use super::{Action, Session, SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::pull_record::PullEnd;
use crate::publish::record::StreamId;
use crate::session::effect::Effect;

/// After the end, readers get so long to take what waits for them before the publish counts as over (W19: 1 s).
const DRAIN_LIMIT: Duration = Duration::from_millis(900);

impl Switchboard {
    /// The publish of `publisher` is over, whatever becomes of its connection.
    pub(super) fn end_stream_of(&mut self, publisher: SessionKey, reason: EndReason) {
        let Some(entry) = self.sessions.get_mut(publisher) else { return };
        if let Some(stream) = entry.publishes.take() {
            self.end_stream(stream, reason);
        }
    }

    pub(super) fn end_stream(&mut self, key: StreamKey, reason: EndReason) {
        let until = self.now + DRAIN_LIMIT;
        let Some(live) = self.hub.stream_mut(key) else { return };
        let id = live.record.stream;
        let Some(local) = live.source.local_mut() else { return };
        if local.draining_until.is_some() {
            return;
        }
        local.guard.set_reason(reason);
        local.draining_until = Some(until);
        self.context.publishes.leave_name(&local.name, id);
        if let Some(transcoder) = local.transcoder.take() {
            self.context.transcoders.close(&transcoder);
        }
        let pushes = local.pushes.clone();
        self.hub.end(key, &mut self.woken);
        for push in pushes {
            let subscriber = self.sessions.get(push).and_then(|entry| entry.reads);
            let has_backlog = subscriber.is_some_and(|subscriber| self.hub.has_frames(subscriber));
            self.turn_push(push, |push, _, effects| push.handle_stream_ended(has_backlog, effects));
        }
        self.timers.arm(TimerOwner::Stream(key), until);
        self.close_if_done(key);
    }

    /// Closes a stream that nobody needs any more: an ended one that is read by nobody or has drained long enough,
    /// which reports the publish's end; and one of another worker that has no player here. A pull is told of its readers.
    pub(super) fn close_if_done(&mut self, key: StreamKey) {
        self.note_readers(key);
        let Some(live) = self.hub.stream(key) else { return };
        let is_unread = self.hub.is_unread(key);
        let is_done = match &live.source {
            Source::Local(local) => {
                local.draining_until.is_some_and(|until| is_unread || self.now >= until)
            }
            Source::Remote { .. } => is_unread,
        };
        if !is_done {
            return;
        }
        let Some(closed) = self.hub.close(key, &mut self.woken) else { return };
        self.timers.disarm(TimerOwner::Stream(key));
        let (stream, worker) = (closed.record.stream, closed.record.worker);
        self.by_id.remove(&stream);
        match closed.source {
            Source::Local(local) => {
                for push in local.pushes {
                    self.turn_push(push, |push, now, effects| {
                        push.handle_stream_closed(now, effects);
                    });
                }
            }
            Source::Remote { relay, .. } => {
                self.actions.push(Action::Tell(worker, Message::Detach { stream, relay }));
            }
        }
    }

    /// The gateway, or a newer publish, ends a running one.
    pub(super) fn end_publish(&mut self, stream: StreamId, reason: EndReason, description: &str) {
        let live = self.stream(stream).and_then(|key| self.hub.stream(key));
        if let Some(publisher) = live.and_then(|live| live.source.live()).map(|of| of.publisher) {
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

    /// The publish's own upstream refused it.
    pub(super) fn refuse_publish(&mut self, push: SessionKey) {
        let stream = self.sessions.get(push).and_then(|entry| entry.pushes);
        let live = stream.and_then(|stream| self.hub.stream(stream));
        if let Some(publisher) = live.and_then(|live| live.source.live()).map(|of| of.publisher) {
            self.end_publisher(publisher, EndReason::UpstreamRefused, None);
        }
    }

    /// The service stops: publishers are told and their streams end; whoever does neither publish nor read is closed.
    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        for key in self.sessions.keys().collect::<Vec<_>>() {
            let Some(entry) = self.sessions.get(key) else { continue };
            if entry.publishes.is_some() {
                self.end_publisher(key, EndReason::Shutdown, None);
            } else if entry.reads.is_none() && entry.pushes.is_none() {
                self.remove(key, EndReason::Shutdown);
            }
        }
    }

    /// Something of ours failed outside any session's turn: everything that lives here ends, and the worker begins
    /// anew.
    pub(crate) fn give_up(&mut self) {
        // Sockets go with their links; what other workers were to be told still holds.
        self.actions.retain(|action| matches!(action, Action::Tell(..)));
        let streams: Vec<_> = self.hub.streams().map(|(key, _)| key).collect();
        for key in streams {
            self.hub.end(key, &mut self.woken);
            let Some(closed) = self.hub.close(key, &mut self.woken) else { continue };
            let (stream, worker) = (closed.record.stream, closed.record.worker);
            match closed.source {
                Source::Local(local) => {
                    self.context.publishes.leave_name(&local.name, stream);
                    if let Some(transcoder) = &local.transcoder {
                        self.context.transcoders.close(transcoder);
                    }
                }
                Source::Remote { relay, .. } => {
                    self.actions.push(Action::Tell(worker, Message::Detach { stream, relay }));
                }
            }
        }
        // Keys and handles go on where they are: what still names something of before leads nowhere.
        self.sessions.clear();
        self.by_id.clear();
        self.questions.clear();
        self.routes = Routes::default();
        self.revoked = RevokedSessions::default();
        self.timers = Timers::default();
        self.woken.readers.clear();
        self.touched.clear();
        self.unsettled.clear();
    }
}
