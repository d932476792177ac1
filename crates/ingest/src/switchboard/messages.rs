//! Handles messages of the gateway and other workers, and timers.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::broadcast::Broadcast;
use super::message::Message;
use super::relay::Relay;
use super::sessions::Sessions;
use super::timers::TimerOwner;
use super::{SessionKey, Switchboard};
use crate::publish::capture::Tap;
use crate::publish::mailbox::Denial;
use crate::publish::pull_record::PullSource;
use crate::publish::record::StreamId;
use crate::publish::upstreams::{Upstream, UpstreamRecord};
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_push::RtmpPush;
use crate::session::whip_publisher::WhipOrder;

impl Switchboard {
    /// Carries out a message.
    pub(crate) fn handle_message(&mut self, message: Message) {
        let Some(message) = self.expected.keep(message) else { return };
        match message {
            Message::Allow { request, opening } => self.allow(request, opening),
            Message::Expect(stream) => self.expected.expect(stream, self.sessions.now),
            Message::Forgo(stream) => {
                for message in self.expected.take(stream) {
                    self.handle_message(message);
                }
            }
            Message::SwitchTo(stream) => {
                self.with_stream(stream, |live, sessions| live.switch_to(stream, sessions));
            }
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
                self.turn_asker(push, |session, now, effects| {
                    if let Session::Push(push) = session {
                        push.handle_addresses(addresses, now, effects);
                    }
                });
            }
            Message::Forbid { push } => self.turn_asker(push, |session, now, effects| {
                if let Session::Push(push) = session {
                    push.handle_forbidden(now, effects);
                }
            }),
            Message::OpenWhip { whip, name, opening } => self.open_whip(whip, name, opening),
            Message::Order { stream, order } => self.handle_order(stream, order),
            Message::End { stream, reason, description } => {
                self.end_publish(stream, reason, &description);
            }
            Message::AddUpstream { stream, record } => {
                self.with_stream(stream, |live, sessions| {
                    // Both publishes of a name have the upstreams of the one on air.
                    if live.stage.running().is_some() {
                        live.open_push(record, Bytes::new(), sessions);
                    }
                })
            }
            Message::RemoveUpstream { stream, serial } => {
                self.with_stream(stream, |live, sessions| {
                    live.turn_pushes(sessions, |push, now, effects| {
                        if push.record().serial == serial {
                            push.leave(now, effects);
                        }
                    });
                });
            }
            Message::OrderPush { stream, serial, order } => {
                self.with_stream(stream, |live, sessions| live.order_push(serial, order, sessions));
            }
            Message::TestUpstream { test, upstream } => self.test_upstream(test, upstream),
            Message::Attach { stream, reader, relay } => self.attach(stream, reader, relay),
            Message::Transcoded(stream) => {
                self.with_stream(stream, |live, sessions| live.publish_transcoded(sessions));
            }
            Message::OpenPreview { stream, writer } => self.open_preview(stream, writer),
            Message::Capture { stream, tap } => self.capture(stream, tap),
        }
        self.carry_out_deferred();
    }

    /// Serves the timers that are due.
    pub(crate) fn handle_timeout(&mut self) {
        while let Some(owner) = self.sessions.timers.pop_due(self.sessions.now) {
            match owner {
                TimerOwner::Stream(stream) => self.handle_stream_timeout(stream),
                TimerOwner::Session(key) => self.handle_session_timeout(key),
            }
            self.carry_out_deferred();
        }
    }

    pub(super) fn deny(&mut self, request: u64, denial: Denial, description: &str) {
        self.turn_asker(request, |session, now, effects| {
            if let Session::Server(server) = session {
                server.deny(denial, description, now, effects);
            }
        });
    }

    fn redirect(&mut self, request: u64, tc_urls: &[String], description: &str) {
        self.turn_asker(request, |session, now, effects| {
            if let Session::Server(server) = session {
                server.redirect(tc_urls, description, now, effects);
            }
        });
    }

    /// The gateway's answer to a pull that asked where its stream is.
    fn dial_pull(&mut self, pull: u64, source: Option<PullSource>) {
        self.turn_asker(pull, |session, now, effects| {
            if let Session::Pull(pull) = session {
                pull.handle_source(source, now, effects);
            }
        });
    }

    /// Tests an upstream: a push without a stream.
    fn test_upstream(&mut self, test: u64, upstream: Upstream) {
        if self.sessions.is_stopping {
            return;
        }
        let now = self.sessions.now;
        let record = Arc::new(UpstreamRecord::new(0, upstream, now));
        let push = RtmpPush::of_test(test, record, self.sessions.random(), now);
        let key = self.sessions.insert(Session::Push(Box::new(push)));
        self.sessions.turn_push(key, RtmpPush::start);
    }

    /// Runs a turn of the session whose question is answered.
    fn turn_asker(
        &mut self,
        question: u64,
        act: impl FnOnce(&mut Session, Instant, &mut Vec<Effect>),
    ) {
        if let Some(key) = self.take_question(question) {
            self.turn(key, act);
        }
    }

    /// Lets the broadcast of a publish act.
    pub(super) fn with_stream(
        &mut self,
        id: StreamId,
        act: impl FnOnce(&mut Broadcast, &mut Sessions),
    ) {
        let key = self.sessions.by_id.get(&id);
        if let Some(live) = key.and_then(|key| self.broadcasts.get_mut(*key)) {
            act(live, &mut self.sessions);
        }
    }

    fn handle_session_timeout(&mut self, key: SessionKey) {
        let now = self.sessions.now;
        let Some(entry) = self.sessions.get_mut(key) else { return };
        let reads = entry.reads;
        // Its held frames have waited long enough.
        let is_awake = entry.held_until.is_some_and(|until| now >= until);
        // The timer may fire too early: see `Timers`.
        let is_due = entry.session.as_ref().and_then(Session::deadline).is_some_and(|at| at <= now);
        self.sessions.woken.readers.extend(is_awake.then_some(key));
        self.sessions.touch(key);
        if !is_due {
            return;
        }
        let live = reads.and_then(|reads| self.broadcasts.get(reads.stream)).zip(reads);
        let left_out = live.and_then(|(live, reads)| live.only_left_out(reads.subscriber));
        self.turn(key, |session, now, effects| {
            session.handle_timeout(now, effects);
            if let Session::Server(server) = session
                && server.poll_track_check(now)
                && let Some(codec) = left_out
            {
                server.fail_play(codec, now, effects);
            }
        });
    }

    /// The session of a running publish.
    pub(super) fn publisher_of(&self, id: StreamId) -> Option<SessionKey> {
        let live = self.broadcasts.get(*self.sessions.by_id.get(&id)?)?;
        live.publisher(id).map(|publisher| publisher.session)
    }

    /// An order of the gateway to a running WHIP publish.
    fn handle_order(&mut self, stream: StreamId, order: WhipOrder) {
        let Some(key) = self.publisher_of(stream) else { return };
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

    /// Captures a running publish. If it is already being captured, the tap is dropped.
    fn capture(&mut self, stream: StreamId, tap: Tap) {
        let Some(key) = self.publisher_of(stream) else { return };
        self.turn(key, |session, now, _| match session {
            Session::Server(server) => {
                server.capture(tap);
            }
            Session::Whip(whip) => {
                whip.capture(tap, now);
            }
            Session::Push(_) | Session::Pull(_) | Session::Preview(_) => {}
        });
    }

    /// Another worker has its first players of a stream that lives here.
    fn attach(&mut self, stream: StreamId, reader: usize, relay: Arc<Relay>) {
        let key = self.sessions.by_id.get(&stream);
        let live = key.and_then(|key| self.broadcasts.get_mut(*key));
        match live.filter(|live| !live.stage.is_vacant()) {
            Some(live) => {
                live.want_keyframe(&mut self.sessions);
                live.attach(reader, relay);
                live.note_readers(&mut self.sessions);
            }
            None => relay.end(),
        }
        self.sessions.woken.workers.push(reader);
    }

    /// Handles what other workers have put into the relays: frames for players here, and what readers there ask for.
    pub(crate) fn drain_relays(&mut self) {
        let mut left = Vec::new();
        for live in self.broadcasts.values_mut() {
            live.drain_relay(&mut self.sessions);
            if live.hear_readers(&mut self.sessions) {
                left.push(live.key);
            }
        }
        for key in left {
            self.close_if_done(key);
        }
        self.carry_out_deferred();
    }
}
