//! How broadcasts and publishes end: with one reason, after a short drain, reported once.

use super::action::Action;
use super::moved_publish::ExpectedPublishes;
use super::revoked::RevokedSessions;
use super::routes::Routes;
use super::{Session, SessionKey, StreamKey, Switchboard};
use crate::publish::end_reason::{EndReason, Ending};
use crate::publish::pull_record::PullEnd;
use crate::publish::record::StreamId;
use crate::session::effect::Effect;

impl Switchboard {
    /// The publish of `publisher` ends, whether or not its connection stays.
    pub(super) fn end_stream_of(&mut self, publisher: SessionKey, ending: Ending) {
        let stream = self.sessions.get_mut(publisher).and_then(|entry| entry.publishes.take());
        if let Some(stream) = stream {
            self.end_stream(stream, publisher, ending);
        }
    }

    /// A broadcast has lost this publisher: its subscribers are kept if another one takes over, or may.
    pub(super) fn end_stream(&mut self, key: StreamKey, publisher: SessionKey, ending: Ending) {
        let live = self.broadcasts.get_mut(key).filter(|live| !live.stage.is_draining());
        let Some(live) = live else { return };
        if let Some(publisher) = live.publisher_mut(publisher) {
            publisher.guard.set_reason(ending.reason);
        }
        if live.stands_by(publisher) {
            let own = self.part_standby(key);
            self.drain(own);
        } else if !live.outlasts(ending, &mut self.sessions) {
            self.drain(key);
        }
    }

    /// Handles a broadcast's timer: silence between two publishers, or the end of a hold or of the drain time.
    pub(super) fn handle_stream_timeout(&mut self, key: StreamKey) {
        let Some(live) = self.broadcasts.get_mut(key) else { return };
        if live.handle_timeout(&mut self.sessions) {
            self.close_if_done(key);
        } else {
            self.drain(key);
        }
    }

    /// The gateway ends a held stream: it will have no successor.
    pub(super) fn release(&mut self, stream: StreamId) {
        let live = self.sessions.by_id.get(&stream).and_then(|key| self.broadcasts.get(*key));
        if let Some(live) = live.filter(|live| live.stage.is_held()) {
            self.drain(live.key);
        }
    }

    /// Drains a broadcast to which no more frames will come. One that stands by runs on without it.
    fn drain(&mut self, key: StreamKey) {
        self.part_standby(key);
        if let Some(live) = self.broadcasts.get_mut(key) {
            live.drain(&mut self.sessions);
        }
        self.carry_out_deferred();
        self.close_if_done(key);
    }

    /// Closes a broadcast that is no longer needed. Also updates a pull on whether it has subscribers.
    pub(super) fn close_if_done(&mut self, key: StreamKey) {
        let Some(live) = self.broadcasts.get(key) else { return };
        live.note_readers(&mut self.sessions);
        if live.is_done(self.sessions.now)
            && let Some(mut closed) = self.broadcasts.remove(key)
        {
            closed.close(&mut self.sessions);
            // What happens to its pushes is reported before its end.
            self.carry_out_deferred();
        }
    }

    /// Ends a running publish, for the gateway or a newer publish.
    pub(super) fn end_publish(&mut self, stream: StreamId, reason: EndReason, description: &str) {
        if let Some(publisher) = self.publisher_of(stream) {
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
        let live = stream.and_then(|stream| self.broadcasts.get(stream));
        let publisher = live.and_then(|live| live.stage.running()).map(|of| of.session);
        if let Some(publisher) = publisher {
            self.end_publisher(publisher, EndReason::UpstreamRefused, None);
        }
    }

    /// The service stops: publishers are notified and their streams end; sessions that neither publish nor read are
    /// closed.
    pub(crate) fn stop(&mut self) {
        self.sessions.is_stopping = true;
        let held = self.broadcasts.values().filter(|live| live.stage.is_held());
        for key in held.map(|live| live.key).collect::<Vec<_>>() {
            self.drain(key);
        }
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
        self.sessions
            .actions
            .retain(|action| matches!(action, Action::Tell(..) | Action::Move { .. }));
        self.sessions.clear();
        for (_, mut live) in self.broadcasts.drain() {
            live.give_up(&mut self.sessions);
        }
        self.questions.clear();
        self.expected = ExpectedPublishes::default();
        self.routes = Routes::default();
        self.revoked = RevokedSessions::default();
        self.unsettled.clear();
    }
}
