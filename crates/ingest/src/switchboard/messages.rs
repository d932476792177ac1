//! Handles messages of the gateway and other workers, and timers.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::message::Message;
use super::timers::TimerOwner;
use super::{SessionKey, Switchboard};
use crate::publish::mailbox::Denial;
use crate::publish::record::StreamId;
use crate::publish::upstreams::UpstreamRecord;
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_push::RtmpPush;
use crate::session::whip_publisher::WhipOrder;

impl Switchboard {
    /// Carries out a message.
    pub(crate) fn handle_message(&mut self, message: Message) {
        let Some(message) = self.arrivals.keep(message) else { return };
        match message {
            Message::Allow { request, opening } => self.allow(request, opening),
            Message::Expect(stream) => self.arrivals.expect(stream, self.now),
            Message::Forgo(stream) => {
                for message in self.arrivals.take(stream) {
                    self.handle_message(message);
                }
            }
            Message::Succeeded { stream, record } => self.handle_succeeded(stream, &record),
            Message::SwitchTo(stream) => self.switch_to(stream),
            Message::Release(stream) => self.release(stream),
            Message::AllowPlay { request, guard, is_counted } => {
                self.allow_play(request, guard, is_counted);
            }
            Message::Pull { request, guard, source } => self.pull(request, guard, source),
            Message::DialPull { pull, source } => self.dial_pull(pull, source),
            Message::Deny { request, denial, description } => {
                self.deny(request, denial, &description);
            }
            Message::Redirect { request, tc_urls, description } => {
                self.redirect(request, &tc_urls, &description);
            }
            Message::Dial { push, addresses } => {
                if let Some(key) = self.take_question(push) {
                    self.turn_push(key, |push, now, effects| {
                        push.handle_addresses(addresses, now, effects);
                    });
                }
            }
            Message::Forbid { push } => self.forbid(push),
            Message::OpenWhip(opening) => self.open_whip(*opening),
            Message::Order { stream, order } => self.handle_order(stream, order),
            Message::End { stream, reason, description } => {
                self.end_publish(stream, reason, &description);
            }
            Message::AddUpstream { stream, record } => self.add_upstream(stream, record),
            Message::RemoveUpstream { stream, serial } => self.remove_upstream(stream, serial),
            Message::OrderPush { stream, serial, order } => self.order_push(stream, serial, order),
            Message::TestUpstream { test, upstream } => self.test_upstream(test, upstream),
            Message::Attach { stream, reader, relay } => self.attach(stream, reader, relay),
            Message::Seed { stream, relay, burst } => self.seed(stream, &relay, burst),
            Message::Detach { stream, relay } => self.detach(stream, &relay),
            Message::WantKeyframe(stream) => {
                if let Some(key) = self.read_stream(stream) {
                    self.want_keyframe(key);
                }
            }
            Message::Transcoded(stream) => self.publish_transcoded(stream),
            Message::OpenPreview { stream, writer } => self.open_preview(stream, writer),
            Message::Capture { stream, tap } => self.capture(stream, tap),
        }
    }

    /// Serves the timers that are due.
    pub(crate) fn handle_timeout(&mut self) {
        while let Some(owner) = self.timers.pop_due(self.now) {
            match owner {
                TimerOwner::Stream(stream) => self.handle_stream_timeout(stream),
                TimerOwner::Session(key) => self.handle_session_timeout(key),
            }
        }
    }

    pub(super) fn deny(&mut self, request: u64, denial: Denial, description: &str) {
        let Some(key) = self.take_question(request) else { return };
        self.turn(key, |session, now, effects| {
            if let Session::Server(server) = session {
                server.deny(denial, description, now, effects);
            }
        });
    }

    fn redirect(&mut self, request: u64, tc_urls: &[String], description: &str) {
        let Some(key) = self.take_question(request) else { return };
        self.turn(key, |session, now, effects| {
            if let Session::Server(server) = session {
                server.redirect(tc_urls, description, now, effects);
            }
        });
    }

    /// Runs a turn of a push.
    pub(super) fn turn_push(
        &mut self,
        key: SessionKey,
        act: impl FnOnce(&mut RtmpPush, Instant, &mut Vec<Effect>),
    ) {
        self.turn(key, |session, now, effects| {
            if let Session::Push(push) = session {
                act(push, now, effects);
            }
        });
    }

    fn handle_session_timeout(&mut self, key: SessionKey) {
        let Some(entry) = self.sessions.get_mut(key) else { return };
        if entry.held_until.is_some_and(|until| self.now >= until) {
            // Its held frames have waited long enough.
            self.woken.readers.push(key);
        }
        let subscriber = entry.reads;
        // The timer may fire too early: see `Timers`.
        let is_due =
            entry.session.as_ref().and_then(Session::deadline).is_some_and(|at| at <= self.now);
        self.touch(key);
        if !is_due {
            return;
        }
        self.turn_with(key, |switchboard, session, now, effects| {
            session.handle_timeout(now, effects);
            if let Session::Server(server) = session
                && server.poll_track_check(now)
                && let Some(codec) = subscriber.and_then(|key| switchboard.hub.only_left_out(key))
            {
                server.fail_play(codec, now, effects);
            }
        });
    }

    /// An order of the gateway to a running WHIP publish.
    fn handle_order(&mut self, stream: StreamId, order: WhipOrder) {
        let publisher = self.running_stream(stream).and_then(|key| self.publisher_of(key));
        let Some(key) = publisher else { return };
        let mut ufrags = None;
        self.turn(key, |session, now, effects| {
            if let Session::Whip(whip) = session {
                whip.handle_order(order, now, effects);
                ufrags = Some(whip.ufrags());
            }
        });
        if let Some(ufrags) = ufrags {
            self.routes.set_ufrags(key, ufrags);
        }
    }

    fn add_upstream(&mut self, stream: StreamId, record: Arc<UpstreamRecord>) {
        // Both publishes of a name have the upstreams of the one on air.
        let Some(key) = self.read_stream(stream) else { return };
        if self.publisher_of(key).is_some() {
            self.open_push(key, record, Bytes::new());
        }
    }

    fn remove_upstream(&mut self, stream: StreamId, serial: u64) {
        let local = self.read_stream(stream).and_then(|key| self.local(key));
        let pushes = local.map(|local| local.pushes.clone());
        for key in pushes.into_iter().flatten() {
            self.turn_push(key, |push, now, effects| {
                if push.record().serial == serial {
                    push.leave(now, effects);
                }
            });
        }
    }
}
