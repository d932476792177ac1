//! One media worker's state without its I/O: sessions, live streams, subscribers, routes, pending questions and timers.
//! Pure: it is given bytes and time, and produces actions. Its tests run whole workers in virtual time.

pub(crate) mod arrivals;
mod backup;
mod capturing;
mod end;
mod fill;
mod holding;
mod hub;
mod join_point;
mod keys;
mod least_rate;
pub(crate) mod message;
mod messages;
mod previewing;
mod publishing;
mod pulling;
mod push_orders;
mod queue;
mod reading;
pub(crate) mod relay;
mod remote;
mod revoked;
mod routes;
mod source;
mod stage;
mod timeline;
mod timers;
mod turn;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use headgate_rtmp::Output;
use headgate_whip::Path;
use rustc_hash::FxHashMap;
use slotmap::SlotMap;

use crate::publish::end_reason::EndReason;
use crate::publish::record::StreamId;
use crate::publish::registry::Publishes;
use crate::publish::upstream_cause::UpstreamCause;
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_server::RtmpServer;
use crate::transcoding::Transcoders;
use arrivals::{Arrival, Arrivals};
pub(crate) use fill::Filled;
use hub::{Hub, Woken};
pub(crate) use keys::SessionKey;
use keys::{StreamKey, SubscriberKey};
use least_rate::LeastRate;
use message::Message;
use revoked::RevokedSessions;
use routes::Routes;
use source::LocalSource;
use timers::{TimerOwner, Timers};

/// A request of the switchboard to its reactor.
pub(crate) enum Action {
    /// Open a TCP connection for a push or a pull; answered by [`Switchboard::handle_connected`] or
    /// [`Switchboard::handle_connect_failed`].
    Connect { session: SessionKey, address: SocketAddr, tls_host: Option<String> },
    /// Close the session's socket immediately.
    Disconnect(SessionKey),
    /// Read the session's socket although the poll reports nothing.
    Read(SessionKey),
    /// Send a datagram to a WHIP client.
    Send(Path, Vec<u8>),
    /// The path belongs to no session any more: close its TCP connection, if it has one.
    ClosePath(Path),
    /// Hand the session with its socket over to the worker of its stream.
    Move { session: SessionKey, home: usize, arrival: Box<Arrival> },
    /// Send a message to another worker.
    Tell(usize, Message),
}

/// A worker's place in the process, and its configuration.
#[derive(Clone)]
pub(crate) struct Context {
    /// This worker's number.
    pub(crate) worker: usize,
    /// Number of workers.
    pub(crate) workers: usize,
    /// Whether players that join late start with the cached GOP.
    pub(crate) caches_gop: bool,
    /// Whether pushes without audio get silent AAC (R5).
    pub(crate) pushes_silence: bool,
    /// Whether publishes may be captured from their first byte.
    pub(crate) captures: bool,
    /// All running publishes of the process.
    pub(crate) publishes: Arc<Publishes>,
    /// The audio threads.
    pub(crate) transcoders: Arc<Transcoders>,
}

/// A session and its relations to streams, questions and timers.
struct Entry {
    /// Taken out while its turn runs, so that nothing of it remains after a panic.
    session: Option<Session>,
    /// The stream that it publishes.
    publishes: Option<StreamKey>,
    /// The stream that it pushes.
    pushes: Option<StreamKey>,
    /// Its queue on the stream that it reads.
    reads: Option<SubscriberKey>,
    /// Its pending question to the gateway.
    question: Option<u64>,
    /// When its waiting frames are no longer held back: audio waits for the next video frame, a preview's frames for
    /// a larger batch.
    held_until: Option<Instant>,
    least_rate: LeastRate,
    /// Whether its deadline may have changed since the timer was armed.
    is_touched: bool,
    /// Whether datagrams have arrived since its last `settle`.
    is_unsettled: bool,
}

/// The state of one worker.
///
/// When the reactor wakes, it calls [`Switchboard::begin`] with the time and then any of the `handle_*` methods; then
/// [`Switchboard::settle`], which carries out the effects of the batch; then it serves every session of
/// [`Switchboard::poll_ready`] by [`Switchboard::fill`] and its socket, and drains [`Switchboard::poll_actions`] and
/// [`Switchboard::poll_wakes`]. It sleeps until [`Switchboard::poll_timeout`] at most and then calls
/// [`Switchboard::handle_timeout`].
pub(crate) struct Switchboard {
    context: Context,
    now: Instant,
    sessions: SlotMap<SessionKey, Entry>,
    hub: Hub,
    by_id: FxHashMap<StreamId, StreamKey>,
    /// Pending questions to the gateway: publish and play requests, pushes that need an address, pulls that lost their
    /// source.
    questions: FxHashMap<u64, SessionKey>,
    arrivals: Arrivals,
    routes: Routes,
    revoked: RevokedSessions,
    timers: Timers,
    woken: Woken,
    touched: Vec<SessionKey>,
    unsettled: Vec<SessionKey>,
    actions: Vec<Action>,
    spare_effects: Vec<Effect>,
    is_stopping: bool,
    drawn: u64,
    hasher: RandomState,
}

impl Switchboard {
    /// A worker without sessions.
    pub(crate) fn new(context: Context, now: Instant) -> Self {
        Self {
            context,
            now,
            sessions: SlotMap::with_key(),
            hub: Hub::default(),
            by_id: FxHashMap::default(),
            questions: FxHashMap::default(),
            arrivals: Arrivals::default(),
            routes: Routes::default(),
            revoked: RevokedSessions::default(),
            timers: Timers::default(),
            woken: Woken::default(),
            touched: Vec::new(),
            unsettled: Vec::new(),
            actions: Vec::new(),
            spare_effects: Vec::new(),
            is_stopping: false,
            drawn: 0,
            hasher: RandomState::new(),
        }
    }

    /// Sets the time of all calls that follow.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.now = now;
        self.revoked.handle_time(now);
    }

    /// A connection to the RTMP port was accepted. `None` while the worker stops.
    pub(crate) fn accept(&mut self, peer: IpAddr) -> Option<SessionKey> {
        if self.is_stopping {
            return None;
        }
        let keeps_early = self.context.captures;
        let server = RtmpServer::new(peer, self.random(), keeps_early, self.now);
        Some(self.insert(Session::Server(Box::new(server))))
    }

    /// Begins a new turn of a session, with a full turn's allowance of work. Returns whether its socket may be read.
    pub(crate) fn begin_turn(&mut self, key: SessionKey) -> bool {
        if let Some(session) = self.session_mut(key) {
            session.begin_turn();
        }
        if self.session(key).is_some_and(Session::has_unread_input) {
            self.handle_input(key, &[]);
        }
        self.takes_input(key)
    }

    /// Whether the session's socket may be read.
    pub(crate) fn takes_input(&self, key: SessionKey) -> bool {
        self.session(key).is_some_and(Session::takes_input)
    }

    /// Handles bytes from the session's socket.
    pub(crate) fn handle_input(&mut self, key: SessionKey, input: &[u8]) {
        self.turn(key, |session, now, effects| session.handle_input(input, now, effects));
    }

    /// The socket was read as far as this turn allows; `read_closed`: it will deliver nothing more. Returns true if
    /// bytes that were read are still to be handled in the next turn.
    pub(crate) fn end_read(&mut self, key: SessionKey, read_closed: bool) -> bool {
        let now = self.now;
        let Some(session) = self.session_mut(key) else { return false };
        if let Session::Server(server) = session {
            server.end_read(now);
        }
        let (has_unread, takes_input) = (session.has_unread_input(), session.takes_input());
        self.touch(key);
        if read_closed && !has_unread && !takes_input {
            // A socket is not read while its publish waits for the decision; but a peer that has left must not keep
            // waiting.
            self.handle_closed(key, None);
        }
        has_unread
    }

    /// Number of bytes that must wait in the session's socket before it is read.
    pub(crate) fn receive_mark(&self, key: SessionKey) -> usize {
        self.session(key).map_or(1, Session::receive_mark)
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
        self.woken.readers.push(key);
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
            self.actions.extend(answer.map(|answer| Action::Send(source, answer)));
            return;
        };
        let Some(entry) = self.sessions.get_mut(key) else { return };
        let Some(Session::Whip(whip)) = &mut entry.session else { return };
        let now = self.now;
        let outcome =
            catch_unwind(AssertUnwindSafe(|| whip.handle_datagram(source, datagram, now)));
        if outcome.is_err() {
            self.remove(key, EndReason::InternalError);
        } else if !entry.is_unsettled {
            entry.is_unsettled = true;
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
        for key in std::mem::take(&mut self.touched) {
            let Some(entry) = self.sessions.get_mut(key) else { continue };
            entry.is_touched = false;
            let deadline = entry.session.as_ref().and_then(Session::deadline);
            if let Some(at) = deadline.into_iter().chain(entry.held_until).min() {
                self.timers.arm(TimerOwner::Session(key), at);
            }
        }
        self.timers.next()
    }

    /// Actions for the reactor, oldest first.
    pub(crate) fn poll_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Other workers whose relays have new frames or have ended.
    pub(crate) fn poll_wakes(&mut self) -> Vec<usize> {
        let mut workers = std::mem::take(&mut self.woken.workers);
        workers.sort_unstable();
        workers.dedup();
        workers
    }

    /// Bytes to write to a session's socket.
    pub(crate) fn output_mut(&mut self, key: SessionKey) -> Option<&mut Output> {
        self.session_mut(key)?.output_mut()
    }

    /// Whether the write side of a session's socket shuts down once its remaining output is written.
    pub(crate) fn is_closing(&self, key: SessionKey) -> bool {
        self.session(key).is_some_and(Session::is_closing)
    }

    /// Whether no session and no publish is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.by_id.is_empty()
    }

    /// Whether some stream is live here, so that frames are to be expected.
    pub(crate) fn has_streams(&self) -> bool {
        !self.by_id.is_empty()
    }

    fn session(&self, key: SessionKey) -> Option<&Session> {
        self.sessions.get(key)?.session.as_ref()
    }

    fn session_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.sessions.get_mut(key)?.session.as_mut()
    }

    fn stream(&self, id: StreamId) -> Option<StreamKey> {
        self.by_id.get(&id).copied()
    }

    /// The stream of a publish, unless another publish has taken it over.
    fn running_stream(&self, id: StreamId) -> Option<StreamKey> {
        self.stream(id).filter(|key| self.hub.stream(*key).is_some_and(|of| of.record.stream == id))
    }

    fn local(&self, key: StreamKey) -> Option<&LocalSource> {
        self.hub.stream(key)?.source.local()
    }

    /// The session whose frames a stream of this worker gets.
    fn publisher_of(&self, key: StreamKey) -> Option<SessionKey> {
        self.local(key)?.stage.running().map(|of| of.publisher)
    }

    fn local_mut(&mut self, key: StreamKey) -> Option<&mut LocalSource> {
        self.hub.stream_mut(key)?.source.local_mut()
    }

    /// 64 unpredictable bits.
    fn random(&mut self) -> u64 {
        self.drawn += 1;
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(self.drawn);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests;
