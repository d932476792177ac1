//! A session's turn: it runs alone, its effects are carried out in order, and a panic in either ends only that session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::least_rate::LeastRate;
use super::source::Ending;
use super::timers::TimerOwner;
use super::{Action, Entry, SessionKey, Switchboard};
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::{AddressWanted, Denial, Event, PublishRequested};
use crate::session::Session;
use crate::session::effect::Effect;

impl Switchboard {
    pub(super) fn insert(&mut self, session: Session) -> SessionKey {
        let key = self.sessions.insert(Entry {
            session: Some(session),
            publishes: None,
            pushes: None,
            reads: None,
            question: None,
            held_until: None,
            least_rate: LeastRate::default(),
            is_touched: false,
            is_unsettled: false,
        });
        self.touch(key);
        key
    }

    /// Runs one session's turn; its output for the socket then waits to be written.
    pub(super) fn turn(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Session, Instant, &mut Vec<Effect>),
    ) {
        self.turn_with(key, |_, session, now, effects| act(session, now, effects));
    }

    /// The same with access to the switchboard, from which the session is taken out meanwhile.
    pub(super) fn turn_with(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Self, &mut Session, Instant, &mut Vec<Effect>),
    ) {
        self.run(key, |switchboard, session, now, effects| {
            act(switchboard, session, now, effects);
            let has_output = session.output_mut().is_some_and(|output| !output.is_empty());
            if has_output || session.is_closing() {
                switchboard.woken.readers.push(key);
            }
        });
    }

    /// Runs a turn without marking the session's output as waiting, for callers that write it themselves.
    pub(super) fn run(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Self, &mut Session, Instant, &mut Vec<Effect>),
    ) {
        let taken = self.sessions.get_mut(key).and_then(|entry| entry.session.take());
        let Some(mut session) = taken else { return };
        let mut effects = std::mem::take(&mut self.spare_effects);
        let now = self.now;
        let outcome = catch_unwind(AssertUnwindSafe(|| act(self, &mut session, now, &mut effects)));
        let is_sound = outcome.is_ok() && {
            if let Some(entry) = self.sessions.get_mut(key) {
                entry.session = Some(session);
            }
            self.touch(key);
            let carried = catch_unwind(AssertUnwindSafe(|| {
                for effect in effects.drain(..) {
                    self.carry_out(key, effect);
                }
            }));
            carried.is_ok()
        };
        if !is_sound {
            effects.clear();
            self.remove(key, EndReason::InternalError);
        }
        self.spare_effects = effects;
    }

    /// Notes that the session's deadline may have changed.
    pub(super) fn touch(&mut self, key: SessionKey) {
        if let Some(entry) = self.sessions.get_mut(key)
            && !entry.is_touched
        {
            entry.is_touched = true;
            self.touched.push(key);
        }
    }

    fn carry_out(&mut self, key: SessionKey, effect: Effect) {
        match effect {
            Effect::Ask(target) => {
                let Some(Session::Server(server)) = self.session(key) else { return };
                let address = server.peer();
                let request = self.new_question(key);
                let question = PublishRequested {
                    request,
                    app: target.app,
                    name: target.name,
                    arguments: target.arguments,
                    address,
                };
                if !self.context.publishes.mailbox().put_request(question) {
                    self.deny(request, Denial::Denied, "The service is overloaded");
                }
            }
            Effect::WithdrawQuestion => self.drop_question(key),
            Effect::Publish(frame) => self.publish_frame(key, &frame),
            Effect::EndPublish(reason) => {
                self.drop_question(key);
                // Datagrams that a client still sends during close_notify are ignored.
                self.forget_routes(key);
                self.end_stream_of(key, reason);
            }
            Effect::LosePublish(reason) => {
                self.forget_routes(key);
                self.end_stream_of(key, Ending { reason, is_loss: true });
            }
            Effect::AskToPlay(target) => self.ask_to_play(key, target),
            Effect::ReportRefusal(refused) => self.report_refusal(key, refused),
            Effect::Read { form, after } => self.read_own_stream(key, form, after),
            Effect::Accepted(form) => self.accept_push(key, form),
            Effect::StopReading => self.stop_reading(key),
            Effect::Resolve { host, port } => self.resolve(key, host, port),
            Effect::Locate => self.locate(key),
            Effect::Connect { address, tls_host } => {
                self.actions.push(Action::Connect { session: key, address, tls_host });
            }
            Effect::Disconnect => self.actions.push(Action::Disconnect(key)),
            Effect::ReadSocket => self.actions.push(Action::Read(key)),
            Effect::Report(changed) => {
                self.context.publishes.mailbox().put(Event::UpstreamChanged(changed));
            }
            Effect::ReportTest(tested) => {
                self.context.publishes.mailbox().put(Event::UpstreamTested(tested));
            }
            Effect::RefusePublish => self.refuse_publish(key),
            Effect::Send(path, datagram) => self.actions.push(Action::Send(path, datagram)),
            Effect::Route(path) => self.routes.add(key, path),
            Effect::RouteSource(ssrc) => self.routes.add_source(key, ssrc),
            Effect::Unroute(path) => {
                if self.routes.remove(key, path) {
                    self.actions.push(Action::ClosePath(path));
                }
            }
            Effect::Revoke(consent) => self.revoked.insert(self.now, consent),
            Effect::Close(reason) => self.remove(key, reason),
        }
    }

    /// Removes a session with its publish, subscription, pending question and routes.
    pub(super) fn remove(&mut self, key: SessionKey, reason: EndReason) {
        self.stop_reading(key);
        self.drop_question(key);
        let Some(entry) = self.sessions.remove(key) else { return };
        self.timers.disarm(TimerOwner::Session(key));
        self.actions.push(Action::Disconnect(key));
        self.forget_routes(key);
        if let Some(stream) = entry.pushes {
            self.forget_push(stream, key);
        }
        if let Some(stream) = entry.publishes {
            self.end_stream(stream, reason.into());
        }
    }

    fn forget_routes(&mut self, key: SessionKey) {
        let paths = self.routes.remove_session(key);
        self.actions.extend(paths.into_iter().map(Action::ClosePath));
    }

    /// A handle for a question to the gateway; it identifies this worker.
    pub(super) fn new_question(&mut self, key: SessionKey) -> u64 {
        self.drop_question(key);
        self.drawn += 1;
        let handle = self.drawn * self.context.workers as u64 + self.context.worker as u64;
        if let Some(entry) = self.sessions.get_mut(key) {
            entry.question = Some(handle);
            self.questions.insert(handle, key);
        }
        handle
    }

    fn drop_question(&mut self, key: SessionKey) {
        let question = self.sessions.get_mut(key).and_then(|entry| entry.question.take());
        if let Some(handle) = question {
            self.questions.remove(&handle);
        }
    }

    /// The session whose question this is; a second call finds nothing.
    pub(super) fn take_question(&mut self, handle: u64) -> Option<SessionKey> {
        let key = self.questions.remove(&handle)?;
        self.sessions.get_mut(key)?.question = None;
        Some(key)
    }

    fn resolve(&mut self, key: SessionKey, host: String, port: u16) {
        let Some(Session::Push(push)) = self.session(key) else { return };
        let (client_id, source) = (push.client_id(), push.record().upstream.source);
        let push = self.new_question(key);
        let wanted = AddressWanted { push, client_id, host, port, source };
        self.context.publishes.mailbox().put(Event::AddressWanted(wanted));
    }
}
