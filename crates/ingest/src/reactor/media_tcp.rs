//! Media over TCP: connections to the TCP port with the media port's number, for clients in networks that block UDP. It
//! does not know which sessions the frames belong to.

mod connection;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_whip::Path;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use rustc_hash::FxHashMap;
use slotmap::{Key, KeyData, SlotMap, new_key_type};

use super::config::{IngestConfig, PortUse, StartError};
use super::connection_limits::{ConnectionLimits, ConnectionPermit, network_of};
use super::ports::{listen, open_media_port};
use super::spare_descriptor::{SpareDescriptor, is_exhausted};
use super::udp::UdpPort;
use crate::switchboard::Switchboard;
use connection::{Connection, Outcome};

/// Connections of one worker.
const CONNECTIONS_LIMIT: usize = 1024;
/// Unauthenticated connections from one address.
const UNPROVEN_LIMIT: usize = 16;
/// A connection must authenticate by its first frame within this time.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// Connections accepted per turn, so that a burst of them does not occupy the worker.
const ACCEPTS_PER_TURN: usize = 64;
/// How often expired connections are searched for.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// Pause before accepting again when not even the spare descriptor could be used.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Attempts to find a port number that is free for both UDP and TCP, when any number will do.
const PORT_TRIES: usize = 16;

/// Set in the tokens of media connections; the index in a session's key is always below it.
const CONNECTION_BIT: u64 = 1 << 31;

new_key_type! {
    /// A media connection of this worker.
    struct ConnectionKey;
}

/// One worker's media connections.
pub(super) struct MediaTcp {
    listener: TcpListener,
    connections: SlotMap<ConnectionKey, Connection>,
    by_peer: FxHashMap<SocketAddr, ConnectionKey>,
    /// Connections that had more to read than one turn allows.
    again: Vec<ConnectionKey>,
    /// Connections whose session has ended; their output holds its last datagrams.
    closing: Vec<ConnectionKey>,
    sweep_at: Option<Instant>,
    /// The listener may have connections to accept.
    is_pending: bool,
    spare: SpareDescriptor,
    /// When to accept again although the poll reports nothing.
    accept_at: Option<Instant>,
}

impl MediaTcp {
    pub(super) fn new(listener: TcpListener) -> Self {
        let (connections, by_peer) = (SlotMap::with_key(), FxHashMap::default());
        let (again, closing) = (Vec::new(), Vec::new());
        let (sweep_at, is_pending) = (None, false);
        let (spare, accept_at) = (SpareDescriptor::new(), None);
        Self {
            listener,
            connections,
            by_peer,
            again,
            closing,
            sweep_at,
            is_pending,
            spare,
            accept_at,
        }
    }

    /// Notes that connections are waiting.
    pub(super) const fn set_pending(&mut self) {
        self.is_pending = true;
    }

    /// Accepts waiting connections, as many as one turn allows.
    pub(super) fn accept(
        &mut self,
        registry: &Registry,
        limits: &Arc<ConnectionLimits>,
        now: Instant,
    ) {
        if self.accept_at.take_if(|at| now >= *at).is_some() {
            self.is_pending = true;
        }
        if !self.is_pending {
            return;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok((socket, peer)) => {
                    if let Some(permit) = limits.admit_ours() {
                        self.add(registry, now, socket, peer, permit);
                    }
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_pending = false;
                    break;
                }
                Err(error) if is_exhausted(&error) && self.spare.refuse_one(&self.listener) => {
                    limits.note_refused();
                }
                Err(_) => {
                    self.is_pending = false;
                    self.accept_at = Some(now + ACCEPT_PAUSE);
                    break;
                }
            }
        }
        if !self.connections.is_empty() {
            self.sweep_at.get_or_insert(now + SWEEP_PAUSE);
        }
    }

    fn add(
        &mut self,
        registry: &Registry,
        now: Instant,
        mut socket: TcpStream,
        peer: SocketAddr,
        permit: ConnectionPermit,
    ) {
        let network = network_of(peer.ip());
        let unproven = self.connections.values().filter(|each| each.is_unproven_of(network));
        if unproven.count() >= UNPROVEN_LIMIT || !self.make_room() {
            return;
        }
        let _ = socket.set_nodelay(true);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let key = self.connections.insert_with_key(|key| {
            // A failure shows up when the socket is read.
            let _ = registry.register(&mut socket, token_of(key), interest);
            Connection::new(socket, peer, now, permit)
        });
        self.by_peer.insert(peer, key);
    }

    /// If all places are taken, closes the connection that has not authenticated for the longest time: a client does so
    /// within a round trip. Returns false if all have.
    fn make_room(&mut self) -> bool {
        if self.connections.len() < CONNECTIONS_LIMIT {
            return true;
        }
        let unproven =
            self.connections.iter().filter_map(|(key, of)| Some((of.unproven_since()?, key)));
        let Some((_, oldest)) = unproven.min_by_key(|(since, _)| *since) else { return false };
        // It has no session, whose path would have to be closed.
        self.forget(oldest);
        true
    }

    /// Handles an event of a connection.
    pub(super) fn handle_ready(
        &mut self,
        token: Token,
        buffer: &mut [u8],
        switchboard: &mut Switchboard,
    ) {
        let key = ConnectionKey::from(KeyData::from_ffi(token.0 as u64 & !CONNECTION_BIT));
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.write() {
            self.read(key, buffer, switchboard);
        } else {
            self.remove(key, switchboard);
        }
    }

    /// Whether there is something to read or accept without a new event.
    pub(super) fn has_more(&self) -> bool {
        self.is_pending || !self.again.is_empty()
    }

    /// Closes all connections.
    pub(super) fn close_all(&mut self) {
        self.connections.clear();
        self.by_peer.clear();
        self.again.clear();
        self.closing.clear();
        self.sweep_at = None;
    }

    /// Continues reading connections that had more than one turn's worth.
    pub(super) fn read_again(&mut self, buffer: &mut [u8], switchboard: &mut Switchboard) {
        for key in std::mem::take(&mut self.again) {
            self.read(key, buffer, switchboard);
        }
    }

    fn read(&mut self, key: ConnectionKey, buffer: &mut [u8], switchboard: &mut Switchboard) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match connection.read(buffer, switchboard) {
            Outcome::Stay => {}
            Outcome::Again => self.again.push(key),
            Outcome::Close => self.remove(key, switchboard),
        }
    }

    /// Sends a frame; it is dropped if the buffer is full.
    pub(super) fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(&key) = self.by_peer.get(&to) else { return };
        if let Some(connection) = self.connections.get_mut(key) {
            // A broken connection is detected when it is read.
            connection.send(datagram);
        }
    }

    /// Marks the connection of a path whose session has ended.
    pub(super) fn close(&mut self, peer: SocketAddr) {
        self.closing.extend(self.by_peer.get(&peer));
    }

    /// Stops sending on connections whose session has ended, after their last datagrams; their input is still drained
    /// for a moment.
    pub(super) fn settle_closing(&mut self, now: Instant) {
        for key in std::mem::take(&mut self.closing) {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.linger(now);
            let peer = connection.peer();
            self.unlink(peer, key);
            self.again.push(key);
        }
    }

    /// When [`MediaTcp::accept`] or [`MediaTcp::handle_timeout`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.sweep_at, self.accept_at].into_iter().flatten().min()
    }

    /// Closes connections that did not authenticate in time, and those that have lingered long enough.
    pub(super) fn handle_timeout(&mut self, now: Instant, switchboard: &mut Switchboard) {
        if self.sweep_at.take_if(|at| now >= *at).is_none() {
            return;
        }
        let over = self.connections.iter().filter(|(_, each)| each.is_over(now, PROOF_LIMIT));
        for key in over.map(|(key, _)| key).collect::<Vec<_>>() {
            self.remove(key, switchboard);
        }
        self.sweep_at = (!self.connections.is_empty()).then(|| now + SWEEP_PAUSE);
    }

    fn remove(&mut self, key: ConnectionKey, switchboard: &mut Switchboard) {
        if let Some(peer) = self.forget(key) {
            // A client that lost its connection authenticates on the next one.
            switchboard.handle_path_closed(Path::tcp(peer));
        }
    }

    /// Closes a connection. Returns its peer, unless that has another connection.
    fn forget(&mut self, key: ConnectionKey) -> Option<SocketAddr> {
        let peer = self.connections.remove(key)?.peer();
        self.unlink(peer, key).then_some(peer)
    }

    /// Sends nothing more to the peer on this connection. Returns false if the peer has another one.
    fn unlink(&mut self, peer: SocketAddr, key: ConnectionKey) -> bool {
        let is_newest = self.by_peer.get(&peer) == Some(&key);
        if is_newest {
            self.by_peer.remove(&peer);
        }
        is_newest
    }
}

/// Whether the token belongs to a media connection.
pub(super) const fn is_media_connection(token: Token) -> bool {
    token.0 as u64 & CONNECTION_BIT != 0
}

fn token_of(key: ConnectionKey) -> Token {
    Token(usize::try_from(key.data().as_ffi() | CONNECTION_BIT).unwrap_or(usize::MAX))
}

/// Opens the UDP port and the TCP listener of worker `index` on the same number.
pub(super) fn open_media_ports(
    config: &IngestConfig,
    index: usize,
) -> Result<(UdpPort, TcpListener), StartError> {
    // Ports that do not fit stay open until the end, so that they are not offered again.
    let mut unfit = Vec::new();
    loop {
        let udp = open_media_port(config, index)?;
        match listen(SocketAddr::new(config.media.ip(), udp.port()?), PortUse::Media) {
            Ok(listener) => return Ok((udp, listener)),
            Err(StartError::PortTaken(..))
                if config.media.port() == 0 && unfit.len() < PORT_TRIES =>
            {
                unfit.push(udp);
            }
            Err(error) => return Err(error),
        }
    }
}
