//! Connections of trusted proxies that have not sent their PROXY protocol header yet. The header is taken from the socket
//! exactly, so that what follows it, TLS included, is as if the client had connected itself.

use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use headgate_rtmp::{PROXY_HEADER_SHOWN_BYTES, ProxyHeader, ProxyHeaderError};
use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use slotmap::{Key, KeyData, SlotMap, new_key_type};

use super::shared::Accepted;

/// How long a trusted proxy may take to send its header.
const HEADER_LIMIT: Duration = Duration::from_secs(5);
/// Set in the tokens of these connections; the index in any other key is always below it.
const PROXIED_BIT: u64 = 1 << 30;

new_key_type! {
    /// A connection that awaits its header.
    struct ProxiedKey;
}

/// A connection whose header is complete.
pub(super) struct Introduced {
    pub(super) accepted: Accepted,
    /// The client; `None` if the connection is the proxy's own.
    pub(super) client: Option<IpAddr>,
}

/// Why a connection of a trusted proxy was closed before its header was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unintroduced {
    /// Closed without a byte, as health checks do; not worth a report.
    #[error("the trusted proxy closed the connection")]
    Silent,
    /// Closed within the header.
    #[error("the connection ended within the PROXY protocol header")]
    Cut,
    #[error("no PROXY protocol header within 5 s")]
    Late,
    #[error(transparent)]
    Header(#[from] ProxyHeaderError),
}

struct Proxied {
    accepted: Accepted,
    until: Instant,
    progress: Progress,
}

enum Progress {
    Reading,
    /// The client is known; this many bytes of the header are left to be dropped.
    Skipping {
        left: usize,
        client: Option<IpAddr>,
    },
}

/// What became of one of these connections.
pub(super) type Outcome = Result<Introduced, (IpAddr, Unintroduced)>;

/// One worker's connections that await a header.
#[derive(Default)]
pub(super) struct ProxiedConnections {
    connections: SlotMap<ProxiedKey, Proxied>,
    /// When the first of them may be late.
    sweep_at: Option<Instant>,
}

impl ProxiedConnections {
    /// Awaits the header of a connection; `Some` if it has already been decided.
    pub(super) fn add(
        &mut self,
        registry: &Registry,
        mut accepted: Accepted,
        now: Instant,
    ) -> Option<Outcome> {
        let until = now + HEADER_LIMIT;
        let key = self.connections.insert_with_key(|key| {
            // A failure shows up as a connection that is late.
            let _ = registry.register(&mut accepted.socket, token_of(key), Interest::READABLE);
            Proxied { accepted, until, progress: Progress::Reading }
        });
        self.sweep_at.get_or_insert(until);
        self.read(registry, key, false)
    }

    /// Handles an event of a connection.
    pub(super) fn handle_ready(&mut self, registry: &Registry, event: &Event) -> Option<Outcome> {
        let key = KeyData::from_ffi(event.token().0 as u64 & !PROXIED_BIT).into();
        self.read(registry, key, event.is_read_closed() || event.is_error())
    }

    /// When [`ProxiedConnections::poll_late`] has something to do.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.sweep_at
    }

    /// Closes connections whose header is late, and returns the addresses of their proxies.
    pub(super) fn poll_late(&mut self, now: Instant) -> Vec<Outcome> {
        if self.sweep_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let late = self.connections.iter().filter(|(_, one)| one.until <= now);
        let late: Vec<_> = late.map(|(key, _)| key).collect();
        let closed = late.into_iter().filter_map(|key| self.connections.remove(key));
        let closed = closed.map(|one| Err((one.accepted.peer, Unintroduced::Late))).collect();
        self.sweep_at = self.connections.values().map(|one| one.until).min();
        closed
    }

    /// Closes all connections.
    pub(super) fn close_all(&mut self) {
        self.connections.clear();
        self.sweep_at = None;
    }

    fn read(&mut self, registry: &Registry, key: ProxiedKey, is_closed: bool) -> Option<Outcome> {
        let connection = self.connections.get_mut(key)?;
        let outcome = match connection.progress.read(&mut connection.accepted.socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && !is_closed => return None,
            Err(_) => Err(Unintroduced::Cut),
            Ok(outcome) => outcome,
        };
        let mut accepted = self.connections.remove(key)?.accepted;
        if self.connections.is_empty() {
            self.sweep_at = None;
        }
        Some(match outcome {
            Ok(client) => {
                let _ = registry.deregister(&mut accepted.socket);
                Ok(Introduced { accepted, client })
            }
            Err(reason) => Err((accepted.peer, reason)),
        })
    }
}

impl Progress {
    /// Reads the header, and not a byte after it; `WouldBlock` until it is complete.
    fn read(&mut self, socket: &mut TcpStream) -> io::Result<Result<Option<IpAddr>, Unintroduced>> {
        let mut buffer = [0; PROXY_HEADER_SHOWN_BYTES];
        loop {
            match *self {
                Self::Reading => {
                    let shown = unless_interrupted(|| socket.peek(&mut buffer))?;
                    if shown == 0 {
                        return Ok(Err(Unintroduced::Silent));
                    }
                    match ProxyHeader::read(&buffer[..shown]) {
                        Ok(Some(ProxyHeader { length, source })) => {
                            *self = Self::Skipping { left: length, client: source };
                        }
                        // A later event reports the rest, or the end, which peeking does not show.
                        Ok(None) => return Err(ErrorKind::WouldBlock.into()),
                        Err(error) => return Ok(Err(error.into())),
                    }
                }
                Self::Skipping { left: 0, client } => return Ok(Ok(client)),
                Self::Skipping { ref mut left, .. } => {
                    let room = buffer.len().min(*left);
                    match unless_interrupted(|| socket.read(&mut buffer[..room]))? {
                        0 => return Ok(Err(Unintroduced::Cut)),
                        length => *left -= length,
                    }
                }
            }
        }
    }
}

fn unless_interrupted(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whether the token belongs to a connection that awaits its header.
pub(super) const fn is_proxied(token: Token) -> bool {
    token.0 as u64 & PROXIED_BIT != 0
}

fn token_of(key: ProxiedKey) -> Token {
    Token(usize::try_from(key.data().as_ffi() | PROXIED_BIT).unwrap_or(usize::MAX))
}
