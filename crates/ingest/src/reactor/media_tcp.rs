//! Media over TCP: connections to the media port's number, frames with a length before them (RFC 4571, RFC 6544).
//! For clients behind networks that let no UDP through. Not whose frames they are.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use headgate_whip::Path;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::ports::{listen, open_media_port};
use crate::udp::{DATAGRAM_LIMIT, UdpPort};
use crate::worker::{Timer, Worker};
use crate::{IngestConfig, StartError};

/// Connections of one worker.
const CONNECTIONS_LIMIT: usize = 1024;
/// Connections of one address that have not proven themselves.
const UNPROVEN_LIMIT: usize = 16;
/// A connection proves itself by its first frame within this.
const PROOF_LIMIT: Duration = Duration::from_secs(5);
/// What waits for a connection that does not read: our reports are small, and what is too much is lost like a datagram.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// A connection that we end is read on for so long, unread: closed over what its client still sends, the kernel would
/// reset it, and our last words with it.
const LINGER_LIMIT: Duration = Duration::from_secs(1);
/// And so far: a client that read our goodbye sends no more than was on its way.
const LINGER_LIMIT_BYTES: usize = 1024 * 1024;
/// Bytes of one connection in one turn, so that others get theirs.
const TURN_LIMIT: usize = 256 * 1024;
/// How often silent strangers are looked for.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);
/// Tries to find a number that is free for UDP and TCP, when any will do.
const PORT_TRIES: usize = 16;

/// Marks the tokens of connections.
const CONNECTION_BIT: usize = 1 << 31;

struct Connection {
    socket: TcpStream,
    peer: SocketAddr,
    since: Instant,
    generation: u32,
    is_proven: bool,
    /// Its session is gone: what waits is written once, then we send no more.
    is_closing: bool,
    /// We have said all: what still comes is thrown away, until the client closes or this moment.
    lingers_until: Option<Instant>,
    lingered_bytes: usize,
    /// The part of a frame that came.
    input: Vec<u8>,
    output: Vec<u8>,
}

/// One worker's media connections.
pub(crate) struct MediaTcp {
    pub(crate) listener: TcpListener,
    connections: Slab<Connection>,
    by_peer: FxHashMap<SocketAddr, usize>,
    /// Connections that had more than one turn's worth to read.
    again: Vec<usize>,
    generation: u32,
    is_swept: bool,
    has_closing: bool,
}

/// What reading led to.
enum Outcome {
    Stay,
    Again,
    Close,
}

impl MediaTcp {
    pub(crate) fn new(listener: TcpListener) -> Self {
        let (connections, by_peer) = (Slab::new(), FxHashMap::default());
        let (generation, is_swept, has_closing) = (0, false, false);
        Self {
            listener,
            connections,
            by_peer,
            again: Vec::new(),
            generation,
            is_swept,
            has_closing,
        }
    }

    fn accept(&mut self, registry: &Registry, now: Instant) {
        loop {
            match self.listener.accept() {
                Ok((socket, peer)) => self.welcome(registry, now, socket, peer),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                // Nothing more, or no file descriptor left: the next one that comes wakes us again.
                Err(_) => return,
            }
        }
    }

    fn welcome(
        &mut self,
        registry: &Registry,
        now: Instant,
        mut socket: TcpStream,
        peer: SocketAddr,
    ) {
        let is_stranger = |ip: IpAddr| {
            let of_peer = move |connection: &Connection| connection.peer.ip() == ip;
            self.connections.iter().filter(|(_, each)| !each.is_proven && of_peer(each)).count()
        };
        if self.connections.len() >= CONNECTIONS_LIMIT || is_stranger(peer.ip()) >= UNPROVEN_LIMIT {
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let entry = self.connections.vacant_entry();
        let token = Token((generation as usize) << 32 | CONNECTION_BIT | entry.key());
        let _ = socket.set_nodelay(true);
        if registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE).is_err() {
            return;
        }
        self.by_peer.insert(peer, entry.key());
        entry.insert(Connection {
            socket,
            peer,
            since: now,
            generation,
            is_proven: false,
            is_closing: false,
            lingers_until: None,
            lingered_bytes: 0,
            input: Vec::new(),
            output: Vec::new(),
        });
    }

    /// Sends a frame; what has no room is lost.
    pub(crate) fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(&key) = self.by_peer.get(&to) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Ok(length) = u16::try_from(datagram.len()) else { return };
        if connection.output.len() + datagram.len() + 2 > OUTPUT_LIMIT {
            return;
        }
        connection.output.extend_from_slice(&length.to_be_bytes());
        connection.output.extend_from_slice(datagram);
        if !connection.write() {
            self.remove(key);
        }
    }

    /// The session that this path led to is gone.
    pub(crate) fn close(&mut self, peer: SocketAddr) {
        if let Some(connection) =
            self.by_peer.get(&peer).and_then(|key| self.connections.get_mut(*key))
        {
            connection.is_closing = true;
            self.has_closing = true;
        }
    }

    /// Ends those whose session is gone, its last words being written; true: they are to be read on.
    pub(crate) fn settle_closing(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.has_closing) {
            return false;
        }
        for (key, each) in &mut self.connections {
            if !std::mem::take(&mut each.is_closing) {
                continue;
            }
            each.write();
            // Broken ones are found out by reading.
            let _ = each.socket.shutdown(Shutdown::Write);
            each.output.clear();
            each.lingers_until = Some(now + LINGER_LIMIT);
            self.by_peer.remove(&each.peer);
            self.again.push(key);
        }
        true
    }

    /// Closes strangers that said nothing in time, and those that lingered long enough.
    fn sweep(&mut self, now: Instant) {
        self.remove_those(|each| match each.lingers_until {
            Some(until) => now >= until,
            None => !each.is_proven && now >= each.since + PROOF_LIMIT,
        });
    }

    fn remove_those(&mut self, is_over: impl Fn(&Connection) -> bool) {
        let over = self.connections.iter().filter(|(_, each)| is_over(each)).map(|(key, _)| key);
        for key in over.collect::<Vec<_>>() {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: usize) -> Option<SocketAddr> {
        let connection = self.connections.try_remove(key)?;
        if self.by_peer.get(&connection.peer) == Some(&key) {
            self.by_peer.remove(&connection.peer);
        }
        Some(connection.peer)
    }
}

impl Connection {
    /// False: it is broken.
    fn write(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(0) => return false,
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// Where the next whole frame stands in what has come, from `at` on.
///
/// # Errors
/// It is larger than any datagram of WebRTC.
fn next_frame(input: &[u8], at: usize) -> Result<Option<(usize, usize)>, ()> {
    let Some(&[high, low]) = input.get(at..at + 2) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > DATAGRAM_LIMIT {
        return Err(());
    }
    let end = at + 2 + length;
    Ok((end <= input.len()).then_some((at + 2, end)))
}

/// UDP port and TCP listener of worker `index` on one number.
pub(crate) fn open_media_ports(
    config: &IngestConfig,
    index: usize,
) -> Result<(UdpPort, TcpListener), StartError> {
    // Those that do not fit are kept until the end, so that they are not offered again.
    let mut unfit = Vec::new();
    loop {
        let udp = open_media_port(config, index)?;
        match listen(SocketAddr::new(config.media.ip(), udp.port()?)) {
            Ok(listener) => return Ok((udp, listener)),
            Err(StartError::PortTaken(_))
                if config.media.port() == 0 && unfit.len() < PORT_TRIES =>
            {
                unfit.push(udp);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the token is one of a media connection.
pub(crate) const fn is_media_connection(token: Token) -> bool {
    token.0 & CONNECTION_BIT != 0
}

impl Worker {
    /// Connections came to the media port.
    pub(crate) fn accept_media(&mut self) {
        if let Some(tcp) = &mut self.media_tcp {
            tcp.accept(self.poll.registry(), self.now);
            if !tcp.connections.is_empty() && !tcp.is_swept {
                tcp.is_swept = true;
                self.set_timer(self.now + SWEEP_PAUSE, Timer::MediaSweep);
            }
        }
    }

    /// Strangers that proved nothing in time are closed.
    pub(crate) fn sweep_media(&mut self) {
        let Some(tcp) = &mut self.media_tcp else { return };
        tcp.sweep(self.now);
        tcp.is_swept = !tcp.connections.is_empty();
        if tcp.is_swept {
            self.set_timer(self.now + SWEEP_PAUSE, Timer::MediaSweep);
        }
    }

    /// A media connection has news.
    pub(crate) fn handle_media_connection(&mut self, token: Token) {
        let (key, generation) = (token.0 & (CONNECTION_BIT - 1), (token.0 >> 32) as u32);
        let Some(tcp) = &mut self.media_tcp else { return };
        let Some(connection) = tcp.connections.get_mut(key) else { return };
        if connection.generation != generation {
            return;
        }
        if connection.write() {
            self.read_media(key);
        } else {
            self.close_media(key);
        }
    }

    /// Reads on where a turn was too short.
    pub(crate) fn read_media_again(&mut self) {
        let again = self.media_tcp.as_mut().map(|tcp| std::mem::take(&mut tcp.again));
        for key in again.unwrap_or_default() {
            self.read_media(key);
        }
    }

    fn read_media(&mut self, key: usize) {
        let Some(tcp) = &mut self.media_tcp else { return };
        // The connection stays in its place while its frames are handled.
        let Some(mut input) =
            tcp.connections.get_mut(key).map(|connection| std::mem::take(&mut connection.input))
        else {
            return;
        };
        let outcome = self.read_frames(key, &mut input);
        let Some(tcp) = &mut self.media_tcp else { return };
        match outcome {
            Outcome::Close => self.close_media(key),
            Outcome::Again | Outcome::Stay => {
                if matches!(outcome, Outcome::Again) {
                    tcp.again.push(key);
                    self.has_datagrams = true;
                }
                if let Some(found) = tcp.connections.get_mut(key) {
                    found.input = input;
                }
            }
        }
    }

    fn read_frames(&mut self, key: usize, input: &mut Vec<u8>) -> Outcome {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut taken = 0;
        let outcome = loop {
            let Some(connection) =
                self.media_tcp.as_mut().and_then(|tcp| tcp.connections.get_mut(key))
            else {
                break Outcome::Close;
            };
            let read = match connection.socket.read(&mut buffer) {
                Ok(0) => break Outcome::Close,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Outcome::Stay,
                Err(_) => break Outcome::Close,
            };
            if connection.lingers_until.is_some() {
                connection.lingered_bytes += read;
                if connection.lingered_bytes > LINGER_LIMIT_BYTES {
                    break Outcome::Close;
                }
            } else {
                input.extend_from_slice(buffer.get(..read).unwrap_or_default());
                if !self.handle_frames(key, input) {
                    break Outcome::Close;
                }
            }
            taken += read;
            if taken >= TURN_LIMIT {
                break Outcome::Again;
            }
        };
        self.buffer = buffer;
        outcome
    }

    /// Hands whole frames to their session; false: the connection is not worth keeping.
    fn handle_frames(&mut self, key: usize, input: &mut Vec<u8>) -> bool {
        let mut at = 0;
        loop {
            let Ok(frame) = next_frame(input, at) else { return false };
            let Some((start, end)) = frame else { break };
            let Some(tcp) = &mut self.media_tcp else { return false };
            let Some(connection) = tcp.connections.get(key) else { return false };
            let (path, is_proven) = (Path::tcp(connection.peer), connection.is_proven);
            self.handle_datagram(path, input.get_mut(start..end).unwrap_or_default());
            if !is_proven {
                // The first frame is a check that proves itself, or this is none of ours.
                let is_ours = self.addresses.contains_key(&path);
                let connection =
                    self.media_tcp.as_mut().and_then(|tcp| tcp.connections.get_mut(key));
                match connection {
                    Some(connection) if is_ours => connection.is_proven = true,
                    Some(_) | None => return false,
                }
            }
            at = end;
        }
        input.drain(..at);
        true
    }

    fn close_media(&mut self, key: usize) {
        let peer = self.media_tcp.as_mut().and_then(|tcp| tcp.remove(key));
        if let Some(peer) = peer {
            // A client that lost its connection proves itself on the next one.
            self.addresses.remove(&Path::tcp(peer));
        }
    }
}
