//! One media worker's state without its I/O: sessions, live streams, subscribers, routes, pending questions and timers.
//! Pure: it is given bytes and time, and produces actions. Its tests run whole workers in virtual time.

mod action;
mod broadcast;
mod end;
mod join_point;
mod keys;
mod least_rate;
pub(crate) mod message;
mod messages;
pub(crate) mod moved_publish;
mod publishing;
mod queue;
mod reading;
pub(crate) mod relay;
mod revoked;
mod routes;
mod sessions;
mod timeline;
mod timers;
mod turn;

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use headgate_rtmp::Output;
use headgate_whip::Path;
use rustc_hash::FxHashMap;
use slotmap::SlotMap;

use crate::publish::end_reason::EndReason;
use crate::publish::record::PublishRecord;
use crate::publish::upstream_cause::UpstreamCause;
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_server::RtmpServer;
pub(crate) use action::{Action, Context};
use broadcast::Broadcast;
pub(crate) use keys::SessionKey;
use keys::{StreamKey, SubscriberKey};
use moved_publish::ExpectedPublishes;
pub(crate) use reading::Filled;
use revoked::RevokedSessions;
use routes::Routes;
use sessions::{Entry, Sessions};

/// The state of one worker.
///
/// When the reactor wakes, it calls [`Switchboard::begin`] with the time and then any of the `handle_*` methods; then
/// [`Switchboard::settle`], which carries out the effects of the batch; then it serves every session of
/// [`Switchboard::poll_ready`] by [`Switchboard::fill`] and its socket, and drains [`Switchboard::poll_actions`] and
/// [`Switchboard::poll_wakes`]. It sleeps until [`Switchboard::poll_timeout`] at most and then calls
/// [`Switchboard::handle_timeout`].
pub(crate) struct Switchboard {
    sessions: Sessions,
    broadcasts: SlotMap<StreamKey, Broadcast>,
    /// Pending questions to the gateway: publish and play requests, pushes that need an address, pulls that lost their
    /// source.
    questions: FxHashMap<u64, SessionKey>,
    expected: ExpectedPublishes,
    routes: Routes,
    revoked: RevokedSessions,
    unsettled: Vec<SessionKey>,
    spare_effects: Vec<Effect>,
}

impl Switchboard {
    /// A worker without sessions.
    pub(crate) fn new(context: Context, now: Instant) -> Self {
        Self {
            sessions: Sessions::new(context, now),
            broadcasts: SlotMap::with_key(),
            questions: FxHashMap::default(),
            expected: ExpectedPublishes::default(),
            routes: Routes::default(),
            revoked: RevokedSessions::default(),
            unsettled: Vec::new(),
            spare_effects: Vec::new(),
        }
    }

    /// Sets the time of all calls that follow.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.sessions.now = now;
        self.revoked.handle_time(now);
    }

    /// A connection to the RTMP port was accepted. `None` while the worker stops.
    pub(crate) fn accept(&mut self, peer: IpAddr) -> Option<SessionKey> {
        if self.sessions.is_stopping {
            return None;
        }
        let keeps_early = self.sessions.context.captures;
        let server = RtmpServer::new(peer, self.sessions.random(), keeps_early, self.sessions.now);
        Some(self.sessions.insert(Session::Server(Box::new(server))))
    }

    /// Begins a new turn of a session, with a full turn's allowance of work. Returns whether its socket may be read.
    pub(crate) fn begin_turn(&mut self, key: SessionKey) -> bool {
        if let Some(session) = self.sessions.session_mut(key) {
            session.begin_turn();
        }
        if self.sessions.session(key).is_some_and(Session::has_unread_input) {
            self.handle_input(key, &[]);
        }
        self.takes_input(key)
    }

    /// Whether the session's socket may be read.
    pub(crate) fn takes_input(&self, key: SessionKey) -> bool {
        self.sessions.session(key).is_some_and(Session::takes_input)
    }

    /// Handles bytes from the session's socket.
    pub(crate) fn handle_input(&mut self, key: SessionKey, input: &[u8]) {
        self.turn(key, |session, now, effects| session.handle_input(input, now, effects));
    }

    /// The socket was read as far as this turn allows; `read_closed`: it will deliver nothing more. Returns true if
    /// bytes that were read are still to be handled in the next turn.
    pub(crate) fn end_read(&mut self, key: SessionKey, read_closed: bool) -> bool {
        let now = self.sessions.now;
        let Some(session) = self.sessions.session_mut(key) else { return false };
        if let Session::Server(server) = session {
            server.end_read(now);
        }
        let (has_unread, takes_input) = (session.has_unread_input(), session.takes_input());
        self.sessions.touch(key);
        if read_closed && !has_unread && !takes_input {
            // A socket is not read while its publish waits for the decision; but a peer that has left must not keep
            // waiting.
            self.handle_closed(key, None);
        }
        has_unread
    }

    /// Number of bytes that must wait in the session's socket before it is read.
    pub(crate) fn receive_mark(&self, key: SessionKey) -> usize {
        self.sessions.session(key).map_or(1, Session::receive_mark)
    }

    /// The peer closed, or the connection broke; `fault` is why TLS failed.
    pub(crate) fn handle_closed(&mut self, key: SessionKey, fault: Option<&str>) {
        self.turn(key, |session, now, effects| session.handle_closed(fault, now, effects));
    }

    /// The connection that a push or a pull requested is established.
    pub(crate) fn handle_connected(&mut self, key: SessionKey) {
        self.turn(key, |session, now, effects| match session {
            Session::Push(push) => push.handle_connected(now, effects),
            Session::Pull(pull) => pull.handle_connected(now),
            Session::Server(_) | Session::Whip(_) | Session::Preview(_) => {}
        });
        self.sessions.woken.readers.push(key);
    }

    /// The handshake of TLS with an upstream is complete.
    pub(crate) fn handle_secured(&mut self, key: SessionKey) {
        self.turn(key, |session, now, effects| {
            if let Session::Push(push) = session {
                push.handle_secured(now, effects);
            }
        });
    }

    /// The connection could not be established; `fault` is set if no other address would help, and says why.
    pub(crate) fn handle_connect_failed(
        &mut self,
        key: SessionKey,
        cause: UpstreamCause,
        fault: Option<&str>,
    ) {
        self.turn(key, |session, now, effects| match session {
            Session::Push(push) => push.handle_connect_failed(cause, fault, now, effects),
            Session::Pull(pull) => pull.handle_connect_failed(fault, now, effects),
            Session::Server(_) | Session::Whip(_) | Session::Preview(_) => {}
        });
    }

    /// Handles a datagram from a WHIP client, or from an unknown sender.
    pub(crate) fn handle_datagram(&mut self, source: Path, datagram: &mut [u8]) {
        let Some(key) = self.routes.find(source, datagram) else {
            let answer = self.revoked.handle_datagram(datagram);
            self.sessions.actions.extend(answer.map(|answer| Action::Send(source, answer)));
            return;
        };
        let now = self.sessions.now;
        let Some(Entry { session: Some(Session::Whip(whip)), is_unsettled, .. }) =
            self.sessions.get_mut(key)
        else {
            return;
        };
        let outcome =
            catch_unwind(AssertUnwindSafe(|| whip.handle_datagram(source, datagram, now)));
        if outcome.is_err() {
            self.remove(key, EndReason::InternalError);
        } else if !std::mem::replace(is_unsettled, true) {
            self.unsettled.push(key);
        }
    }

    /// Whether datagrams from this path belong to a session.
    pub(crate) fn has_route(&self, path: Path) -> bool {
        self.routes.has(path)
    }

    /// The TCP connection of a path is closed: the client has to authenticate on a new one.
    pub(crate) fn handle_path_closed(&mut self, path: Path) {
        self.routes.remove_path(path);
    }

    /// Carries out the effects of a batch of datagrams, once for each session.
    pub(crate) fn settle(&mut self) {
        for key in std::mem::take(&mut self.unsettled) {
            if let Some(entry) = self.sessions.get_mut(key) {
                entry.is_unsettled = false;
            }
            self.turn(key, |session, now, effects| {
                if let Session::Whip(whip) = session {
                    whip.settle(now, effects);
                }
            });
        }
    }

    /// When [`Switchboard::handle_timeout`] has something to do.
    pub(crate) fn poll_timeout(&mut self) -> Option<Instant> {
        self.sessions.poll_timeout()
    }

    /// Actions for the reactor, oldest first.
    pub(crate) fn poll_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.sessions.actions)
    }

    /// Other workers for which a relay has something new.
    pub(crate) fn poll_wakes(&mut self) -> Vec<usize> {
        let mut workers = std::mem::take(&mut self.sessions.woken.workers);
        workers.sort_unstable();
        workers.dedup();
        workers
    }

    /// Bytes to write to a session's socket.
    pub(crate) fn output_mut(&mut self, key: SessionKey) -> Option<&mut Output> {
        self.sessions.session_mut(key)?.output_mut()
    }

    /// Whether the write side of a session's socket shuts down once its remaining output is written.
    pub(crate) fn is_closing(&self, key: SessionKey) -> bool {
        self.sessions.session(key).is_some_and(Session::is_closing)
    }

    /// Whether no session and no publish is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.sessions.by_id.is_empty()
    }

    /// Whether some stream is live here, so that frames are to be expected.
    pub(crate) fn has_streams(&self) -> bool {
        !self.sessions.by_id.is_empty()
    }

    /// The publish of a session; `None` if the session is no publisher.
    pub(crate) fn publish_of(&self, key: SessionKey) -> Option<&PublishRecord> {
        let live = self.broadcasts.get(self.sessions.get(key)?.publishes?)?;
        Some(live.record_of(key))
    }
}

#[cfg(test)]
mod tests;
