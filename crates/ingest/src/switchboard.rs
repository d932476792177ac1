//! One media worker's state without its I/O: sessions, live streams, readers, routes, questions and timers. Pure: it is
//! handed bytes and time, and leaves actions. Whole workers run in virtual time in its tests.

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
mod queue;
mod reading;
pub(crate) mod relay;
mod remote;
mod revoked;
mod routes;
mod source;
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
use crate::session::Session;
use crate::session::effect::Effect;
use crate::session::rtmp_server::RtmpServer;
use crate::transcoding::Transcoders;
pub(crate) use fill::Filled;
use hub::{Hub, Woken};
pub(crate) use keys::SessionKey;
use keys::{StreamKey, SubscriberKey};
use least_rate::LeastRate;
use message::Message;
use revoked::RevokedSessions;
use routes::Routes;
use source::{LocalSource, Published};
use timers::{TimerOwner, Timers};

/// What a switchboard wants of its reactor.
pub(crate) enum Action {
    /// A TCP connection for a push or a pull; answered by [`Switchboard::handle_connected`] or
    /// [`Switchboard::handle_connect_failed`].
    Connect { session: SessionKey, address: SocketAddr, tls_host: Option<String> },
    /// The session's socket is closed at once.
    Disconnect(SessionKey),
    /// The session's socket is read although the poll says nothing.
    Read(SessionKey),
    /// A datagram for a WHIP client.
    Send(Path, Vec<u8>),
    /// The path is nobody's any more: a TCP connection on it closes.
    ClosePath(Path),
    /// A message for another worker.
    Tell(usize, Message),
}

/// What a worker is part of, and how it behaves.
#[derive(Clone)]
pub(crate) struct Context {
    /// This worker's number.
    pub(crate) worker: usize,
    /// How many there are.
    pub(crate) workers: usize,
    /// Whether late players start with the cached GOP.
    pub(crate) caches_gop: bool,
    /// Whether pushes without audio get silence (R5).
    pub(crate) pushes_silence: bool,
    /// Whether publishes may be captured from their first byte.
    pub(crate) captures: bool,
    /// All running publishes of the process.
    pub(crate) publishes: Arc<Publishes>,
    /// The audio threads.
    pub(crate) transcoders: Arc<Transcoders>,
}

/// A session with what is known of it beyond its own state.
struct Entry {
    /// Taken out while its turn runs, so that a panic leaves nothing of it behind.
    session: Option<Session>,
    /// The stream that it publishes.
    publishes: Option<Published>,
    /// The stream that it pushes.
    pushes: Option<StreamKey>,
    /// Its queue on the stream that it reads.
    reads: Option<SubscriberKey>,
    /// Its open question to the gateway.
    question: Option<u64>,
    /// What waits for it is held back until then: audio for the next video frame, a preview's frames for each other.
    held_until: Option<Instant>,
    least_rate: LeastRate,
    /// Its deadline may have changed since it was armed.
    is_touched: bool,
    /// Datagrams came since it was settled.
    is_unsettled: bool,
}

/// The state of one worker.
///
/// The reactor calls [`Switchboard::begin`] with the time when it wakes, then any of the `handle_*` methods; then
/// [`Switchboard::settle`], which carries out what the batch led to; then it serves every session of
/// [`Switchboard::poll_ready`] by [`Switchboard::fill`] and its socket, and drains [`Switchboard::poll_actions`] and
/// [`Switchboard::poll_wakes`]. It sleeps until [`Switchboard::poll_timeout`] at most and then calls
/// [`Switchboard::handle_timeout`].
pub(crate) struct Switchboard {
    context: Context,
    now: Instant,
    sessions: SlotMap<SessionKey, Entry>,
    hub: Hub,
    by_id: FxHashMap<StreamId, StreamKey>,
    /// Open questions to the gateway: publish and play requests, pushes that need an address, pulls that lost their source.
    questions: FxHashMap<u64, SessionKey>,
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
    /// A worker with nothing to do.
    pub(crate) fn new(context: Context, now: Instant) -> Self {
        Self {
            context,
            now,
            sessions: SlotMap::with_key(),
            hub: Hub::default(),
            by_id: FxHashMap::default(),
            questions: FxHashMap::default(),
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

    /// The time of everything that follows.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.now = now;
        self.revoked.handle_time(now);
    }

    /// A connection came to the RTMP port. `None`: none is taken any more.
    pub(crate) fn accept(&mut self, peer: IpAddr) -> Option<SessionKey> {
        if self.is_stopping {
            return None;
        }
        let keeps_early = self.context.captures;
        let server = RtmpServer::new(peer, self.random(), keeps_early, self.now);
        Some(self.insert(Session::Server(Box::new(server))))
    }

    /// A new turn of a session: it may do a turn's work again. Whether its socket may be read.
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

    /// Bytes from the session's socket.
    pub(crate) fn handle_input(&mut self, key: SessionKey, input: &[u8]) {
        self.turn(key, |session, now, effects| session.handle_input(input, now, effects));
    }

    /// The socket was read as far as this turn goes; `read_closed`: nothing more will come from it. True: bytes that
    /// were read are still to be handled next turn.
    pub(crate) fn end_read(&mut self, key: SessionKey, read_closed: bool) -> bool {
        let now = self.now;
        let Some(session) = self.session_mut(key) else { return false };
        if let Session::Server(server) = session {
            server.end_read(now);
        }
        let (has_unread, takes_input) = (session.has_unread_input(), session.takes_input());
        self.touch(key);
        if read_closed && !has_unread && !takes_input {
            // A publish that waits for its decision is not read; whoever has left does not wait.
            self.handle_closed(key, None);
        }
        has_unread
    }

    /// Bytes that must wait in the session's socket before they are worth a read.
    pub(crate) fn receive_mark(&self, key: SessionKey) -> usize {
        self.session(key).map_or(1, Session::receive_mark)
    }

    /// The peer closed, or the connection broke; `fault`: why TLS failed.
    pub(crate) fn handle_closed(&mut self, key: SessionKey, fault: Option<&str>) {
        self.turn(key, |session, now, effects| session.handle_closed(fault, now, effects));
    }

    /// The connection that a push or a pull asked for is there.
    pub(crate) fn handle_connected(&mut self, key: SessionKey) {
        self.turn(key, |session, now, _| match session {
            Session::Push(push) => push.handle_connected(now),
            Session::Pull(pull) => pull.handle_connected(now),
            Session::Server(_) | Session::Whip(_) | Session::Preview(_) => {}
        });
        self.woken.readers.push(key);
    }

    /// It could not be made; `fault`: no other address would help, and why.
    pub(crate) fn handle_connect_failed(&mut self, key: SessionKey, fault: Option<&str>) {
        self.turn(key, |session, now, effects| match session {
            Session::Push(push) => push.handle_connect_failed(fault, now, effects),
            Session::Pull(pull) => pull.handle_connect_failed(fault, now, effects),
            Session::Server(_) | Session::Whip(_) | Session::Preview(_) => {}
        });
    }

    /// A datagram from a WHIP client, or from anybody.
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

    /// The TCP connection of a path is gone: the client proves itself on the next one.
    pub(crate) fn handle_path_closed(&mut self, path: Path) {
        self.routes.remove_path(path);
    }

    /// Carries out what the datagrams of a batch led to, once for each session.
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

    /// The next thing for the reactor to do, oldest first.
    pub(crate) fn poll_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Other workers whose relays have something new.
    pub(crate) fn poll_wakes(&mut self) -> Vec<usize> {
        let mut workers = std::mem::take(&mut self.woken.workers);
        workers.sort_unstable();
        workers.dedup();
        workers
    }

    /// Bytes for a session's socket.
    pub(crate) fn output_mut(&mut self, key: SessionKey) -> Option<&mut Output> {
        self.session_mut(key)?.output_mut()
    }

    /// Whether the sending side of a session's socket closes once its output is written.
    pub(crate) fn is_closing(&self, key: SessionKey) -> bool {
        self.session(key).is_some_and(Session::is_closing)
    }

    /// Nothing is left of any session or publish.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.by_id.is_empty()
    }

    /// Some stream is live here: frames will come.
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

    fn local_mut(&mut self, key: StreamKey) -> Option<&mut LocalSource> {
        self.hub.stream_mut(key)?.source.local_mut()
    }

    /// 64 bits that nobody can predict.
    fn random(&mut self) -> u64 {
        self.drawn += 1;
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(self.drawn);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests;
