//! Accepts connections to the RTMP ports and distributes them among the workers in turn.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Interest, Registry, Token};

use super::config::{IngestConfig, PortUse, StartError};
use super::ports::{adopt, listen};
use super::shared::{Accepted, Shared};
use super::spare_descriptor::{SpareDescriptor, is_exhausted};
use super::tokens::{LISTENER, PULL_LISTENER, TLS_LISTENER};

/// Connections accepted from one port per turn, so that a burst of them does not occupy the worker.
const ACCEPTS_PER_TURN: usize = 64;
/// Pause before accepting again when not even the spare descriptor could be used.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket.
struct Listener {
    socket: TcpListener,
    token: Token,
    is_tls: bool,
    /// Whether it is registered with the poll.
    is_polled: bool,
}

impl Listener {
    const fn new(socket: TcpListener, token: Token) -> Self {
        let is_tls = token.0 == TLS_LISTENER.0;
        Self { socket, token, is_tls, is_polled: false }
    }

    fn poll(&mut self, registry: &Registry) -> io::Result<()> {
        if !self.is_polled {
            registry.register(&mut self.socket, self.token, Interest::READABLE)?;
            self.is_polled = true;
        }
        Ok(())
    }
}

/// The ports and sockets of RTMP, for use outside this module.
#[derive(Clone, Copy, Default)]
pub(crate) struct RtmpPorts {
    /// `None` if only RTMPS is served.
    pub(crate) port: Option<u16>,
    pub(crate) tls_port: Option<u16>,
    /// Valid until the acceptor closes it.
    pub(crate) socket: Option<RawFd>,
    pub(crate) tls_socket: Option<RawFd>,
}

/// The listening sockets, owned by the first worker.
pub(super) struct Acceptor {
    listeners: Vec<Listener>,
    /// The worker that gets the next connection.
    next: usize,
    spare: SpareDescriptor,
    paused_until: Option<Instant>,
}

impl Acceptor {
    /// Binds the ports, or adopts sockets that are already bound.
    pub(super) fn open(config: &IngestConfig) -> Result<(Self, RtmpPorts), StartError> {
        let mut ports = RtmpPorts::default();
        let mut listeners = Vec::new();
        let plain = match (&config.rtmp_socket, config.rtmp) {
            (_, None) => None,
            (Some(socket), _) => Some(adopt(socket)?),
            (None, Some(address)) => Some(listen(address, PortUse::Rtmp)?),
        };
        if let Some(socket) = plain {
            ports.port = Some(socket.local_addr()?.port());
            ports.socket = Some(socket.as_raw_fd());
            listeners.push(Listener::new(socket, LISTENER));
        }
        if let Some(tls) = &config.rtmp_tls {
            let socket = match &tls.socket {
                Some(socket) => adopt(socket)?,
                None => listen(tls.address, PortUse::RtmpTls)?,
            };
            ports.tls_port = Some(socket.local_addr()?.port());
            ports.tls_socket = Some(socket.as_raw_fd());
            listeners.push(Listener::new(socket, TLS_LISTENER));
        }
        let spare = SpareDescriptor::new();
        Ok((Self { listeners, next: 0, spare, paused_until: None }, ports))
    }

    /// Starts accepting connections.
    pub(super) fn start(&mut self, registry: &Registry) -> io::Result<()> {
        self.listeners.iter_mut().try_for_each(|listener| listener.poll(registry))
    }

    /// Accepts connections from one more socket.
    pub(super) fn add(&mut self, socket: TcpListener, registry: &Registry) -> io::Result<()> {
        let mut listener = Listener::new(socket, PULL_LISTENER);
        listener.poll(registry)?;
        self.listeners.push(listener);
        Ok(())
    }

    /// Closes the sockets for broadcasters and players; another process may continue to listen on them.
    pub(super) fn close_public(&mut self, registry: &Registry) {
        self.close(registry, |listener| listener.token != PULL_LISTENER);
    }

    pub(super) fn close_all(&mut self, registry: &Registry) {
        self.close(registry, |_| true);
    }

    /// Deregisters explicitly: epoll drops a socket only when every process has closed it.
    fn close(&mut self, registry: &Registry, is_meant: impl Fn(&Listener) -> bool) {
        for listener in self.listeners.iter_mut().filter(|each| is_meant(each) && each.is_polled) {
            let _ = registry.deregister(&mut listener.socket);
        }
        self.listeners.retain(|listener| !is_meant(listener));
    }

    /// When to call [`Acceptor::accept`] although the poll reports nothing.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Accepts the waiting connections; returns each with the worker that gets it.
    pub(super) fn accept(&mut self, shared: &Shared, now: Instant) -> Vec<(usize, Accepted)> {
        self.paused_until = None;
        let mut dealt = Vec::new();
        for listener in self.listeners.iter().filter(|listener| listener.is_polled) {
            // The rest wait for the next turn.
            let mut left = ACCEPTS_PER_TURN;
            loop {
                if left == 0 {
                    self.paused_until = Some(now);
                    break;
                }
                left -= 1;
                let (socket, peer) = match listener.socket.accept() {
                    Ok((socket, peer)) => (socket, peer.ip().to_canonical()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // A connection that was reset while waiting does not affect the next one.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                        ) =>
                    {
                        continue;
                    }
                    // No descriptor is left: close it without an answer, as beyond a limit.
                    Err(error)
                        if is_exhausted(&error) && self.spare.refuse_one(&listener.socket) =>
                    {
                        shared.connections.note_refused();
                        continue;
                    }
                    Err(_) => {
                        self.paused_until = Some(now + ACCEPT_PAUSE);
                        break;
                    }
                };
                // Beyond a limit the connection is closed without an answer.
                let is_proxied =
                    listener.token != PULL_LISTENER && shared.trusted_proxies.contains(peer);
                let permit = if is_proxied {
                    shared.connections.admit_proxied()
                } else {
                    shared.connections.admit(peer)
                };
                let Some(permit) = permit else { continue };
                let worker = self.next % shared.workers();
                self.next = worker + 1;
                let is_tls = listener.is_tls;
                dealt.push((worker, Accepted { socket, peer, is_tls, is_proxied, permit }));
            }
        }
        dealt
    }
}
