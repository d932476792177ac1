//! Connections that come to the RTMP ports, dealt to the workers in turn.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Interest, Registry};

use super::config::{IngestConfig, PortUse, StartError};
use super::ports::listen;
use super::shared::{Accepted, Shared};
use super::tokens::{LISTENER, TLS_LISTENER};

/// Connections taken from one port in one turn, so that whoever connects in a row does not keep the worker.
const ACCEPTS_PER_TURN: usize = 64;
/// Pause before accepting again when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The listening sockets; the first worker has them.
pub(super) struct Acceptor {
    plain: TcpListener,
    tls: Option<TcpListener>,
    /// The worker that the next connection is dealt to.
    next: usize,
    paused_until: Option<Instant>,
}

impl Acceptor {
    /// Binds; returns the ports, too.
    pub(super) fn open(config: &IngestConfig) -> Result<(Self, u16, Option<u16>), StartError> {
        let plain = listen(config.rtmp, PortUse::Rtmp)?;
        let port = plain.local_addr()?.port();
        let tls = config
            .rtmp_tls
            .as_ref()
            .map(|tls| listen(tls.address, PortUse::RtmpTls))
            .transpose()?;
        let tls_port = match &tls {
            Some(listener) => Some(listener.local_addr()?.port()),
            None => None,
        };
        Ok((Self { plain, tls, next: 0, paused_until: None }, port, tls_port))
    }

    pub(super) fn register(&mut self, registry: &Registry) -> io::Result<()> {
        registry.register(&mut self.plain, LISTENER, Interest::READABLE)?;
        match &mut self.tls {
            Some(listener) => registry.register(listener, TLS_LISTENER, Interest::READABLE),
            None => Ok(()),
        }
    }

    /// When to accept again although the poll says nothing.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Takes what came, each with the worker it is dealt to.
    pub(super) fn accept(&mut self, shared: &Shared, now: Instant) -> Vec<(usize, Accepted)> {
        self.paused_until = None;
        let mut dealt = Vec::new();
        for (listener, is_tls) in [(Some(&self.plain), false), (self.tls.as_ref(), true)] {
            let Some(listener) = listener else { continue };
            // More wait for the next turn.
            let mut left = ACCEPTS_PER_TURN;
            loop {
                if left == 0 {
                    self.paused_until = Some(now);
                    break;
                }
                left -= 1;
                let (socket, peer) = match listener.accept() {
                    Ok((socket, peer)) => (socket, peer.ip().to_canonical()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // One that was reset while it waited says nothing about the next.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                        ) =>
                    {
                        continue;
                    }
                    Err(_) => {
                        self.paused_until = Some(now + ACCEPT_PAUSE);
                        break;
                    }
                };
                // Past a limit it is closed without a word.
                let Some(permit) = shared.connections.admit(peer) else { continue };
                let worker = self.next % shared.workers();
                self.next = worker + 1;
                dealt.push((worker, Accepted { socket, peer, is_tls, permit }));
            }
        }
        dealt
    }
}
