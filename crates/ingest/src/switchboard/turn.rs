//! A session's turn: it runs alone, its effects are carried out in order, and a panic in either ends only that session.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use headgate_rtmp::Target;

use super::action::Action;
use super::{SessionKey, Switchboard};
use crate::publish::end_reason::{EndReason, Ending};
use crate::publish::mailbox::{
    AddressWanted, ConnectionRefused, Denial, Event, PlayRequested, PublishRequested, SourceWanted,
};
use crate::session::Session;
use crate::session::effect::Effect;

impl Switchboard {
    /// Runs one session's turn; its output for the socket then waits to be written.
    pub(super) fn turn(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut Session, Instant, &mut Vec<Effect>),
    ) {
        let mut effects = std::mem::take(&mut self.spare_effects);
        let is_sound = self.sessions.run_awake(key, &mut effects, act);
        self.finish_turn(key, is_sound, effects);
    }

    /// Carries out the effects of a turn, and then those of the turns that broadcasts ran because of them.
    pub(super) fn finish_turn(
        &mut self,
        key: SessionKey,
        is_sound: bool,
        mut effects: Vec<Effect>,
    ) {
        if is_sound && effects.is_empty() && !self.sessions.has_deferred() {
            self.spare_effects = effects;
            return;
        }
        let is_sound = is_sound && {
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
        self.carry_out_deferred();
    }

    /// Carries out what broadcasts have left.
    pub(super) fn carry_out_deferred(&mut self) {
        while let Some((key, effect)) = self.sessions.poll_deferred() {
            if catch_unwind(AssertUnwindSafe(|| self.carry_out(key, effect))).is_err() {
                self.remove(key, EndReason::InternalError);
            }
        }
        while let Some(pull) = self.sessions.poll_replaced() {
            self.end_pull(&pull);
        }
    }

    fn carry_out(&mut self, key: SessionKey, effect: Effect) {
        match effect {
            Effect::Ask(target, address) => self.ask(key, target, address),
            Effect::WithdrawQuestion => self.drop_question(key),
            Effect::Publish(frame) => {
                let stream = self.sessions.get(key).and_then(|entry| entry.publishes);
                if let Some(live) = stream.and_then(|stream| self.broadcasts.get_mut(stream)) {
                    live.handle_frame(key, &frame, &mut self.sessions);
                }
            }
            Effect::EndPublish(reason) => {
                self.drop_question(key);
                // Datagrams that a client still sends during close_notify are ignored.
                self.forget_routes(key);
                self.end_stream_of(key, reason.into());
            }
            Effect::LosePublish(reason) => {
                self.forget_routes(key);
                self.end_stream_of(key, Ending { reason, is_loss: true });
            }
            Effect::AskToPlay(target, address) => self.ask_to_play(key, target, address),
            Effect::ReportRefusal(refused) => self.report_connection(refused),
            Effect::Read { form, after } => self.read_own_stream(key, form, after),
            Effect::Accepted(form) => self.accept_push(key, form),
            Effect::StopReading => self.stop_reading(key),
            Effect::Resolve { client_id, source, host, port } => {
                let push = self.new_question(key);
                let wanted = AddressWanted { push, client_id, host, port, source };
                self.report(Event::AddressWanted(wanted));
            }
            Effect::Locate { client_id, name } => {
                let pull = self.new_question(key);
                self.report(Event::SourceWanted(SourceWanted { pull, name, client_id }));
            }
            Effect::Connect { address, tls_host } => {
                self.sessions.actions.push(Action::Connect { session: key, address, tls_host });
            }
            Effect::Disconnect => self.sessions.actions.push(Action::Disconnect(key)),
            Effect::ReadSocket => self.sessions.actions.push(Action::Read(key)),
            Effect::Report(changed) => self.report(Event::UpstreamChanged(changed)),
            Effect::ReportTest(tested) => self.report(Event::UpstreamTested(tested)),
            Effect::RefusePublish => self.refuse_publish(key),
            Effect::Send(path, datagram) => {
                self.sessions.actions.push(Action::Send(path, datagram))
            }
            Effect::Route(path) => self.routes.add(key, path),
            Effect::RouteSource(ssrc) => self.routes.add_source(key, ssrc),
            Effect::Unroute(path) => {
                if self.routes.remove(key, path) {
                    self.sessions.actions.push(Action::ClosePath(path));
                }
            }
            Effect::Revoke(consent) => self.revoked.insert(self.sessions.now, consent),
            Effect::Close(reason) => self.remove(key, reason),
        }
    }

    /// Removes a session with its publish, subscription, pending question and routes.
    pub(super) fn remove(&mut self, key: SessionKey, reason: EndReason) {
        self.stop_reading(key);
        self.drop_question(key);
        let Some(entry) = self.sessions.remove(key) else { return };
        self.sessions.actions.push(Action::Disconnect(key));
        self.forget_routes(key);
        if let Some(live) = entry.pushes.and_then(|stream| self.broadcasts.get_mut(stream)) {
            live.forget_push(key);
        }
        if let Some(stream) = entry.publishes {
            self.end_stream(stream, key, reason.into());
        }
    }

    fn forget_routes(&mut self, key: SessionKey) {
        let paths = self.routes.remove_session(key);
        self.sessions.actions.extend(paths.into_iter().map(Action::ClosePath));
    }

    /// A handle for a question to the gateway; it identifies this worker.
    pub(super) fn new_question(&mut self, key: SessionKey) -> u64 {
        self.drop_question(key);
        let handle = self.sessions.new_handle();
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

    /// A broadcaster requests to publish: the gateway decides.
    fn ask(&mut self, key: SessionKey, target: Target, address: IpAddr) {
        let request = self.new_question(key);
        let Target { app, name, arguments } = target;
        let question = PublishRequested { request, app, name, arguments, address };
        if !self.sessions.context.publishes.mailbox().put_request(question) {
            self.deny(request, Denial::Denied, "The service is overloaded");
        }
    }

    /// A player requests a name: the gateway decides whether it may play it and, if it is not live here, where it is.
    fn ask_to_play(&mut self, key: SessionKey, target: Target, address: IpAddr) {
        let live = self.sessions.context.publishes.find_name(&target.name);
        let (client_id, request) = (live.map(|live| live.client_id), self.new_question(key));
        let Target { name, arguments, .. } = target;
        let question = PlayRequested { request, name, client_id, arguments, address };
        if !self.sessions.context.publishes.mailbox().put_play_request(question) {
            self.deny(request, Denial::Denied, "The service is overloaded");
        }
    }

    fn report(&self, event: Event) {
        self.sessions.context.publishes.mailbox().put(event);
    }

    /// Reports that a connection to us failed before it requested anything.
    pub(crate) fn report_connection(&self, refused: ConnectionRefused) {
        self.sessions.context.publishes.mailbox().put_refusal(refused);
    }

    /// The same for the handshake of TLS on a session's connection.
    pub(crate) fn report_tls_fault(&self, key: SessionKey, code: &'static str, detail: &str) {
        if let Some(Session::Server(server)) = self.sessions.session(key) {
            self.report_connection(server.refused(code, detail.to_owned()));
        }
    }
}
