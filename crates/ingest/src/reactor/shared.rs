//! State shared by all workers and the handle: the registry, the audio threads, TLS, and each worker's inbox.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use mio::Waker;
use mio::net::{TcpListener, TcpStream};

use super::connection_limits::{ConnectionLimits, ConnectionPermit};
use super::link::Link;
use super::networks::Networks;
use super::tls::TlsContext;
use super::worker_load::WorkerLoad;
use crate::publish::registry::Publishes;
use crate::switchboard::message::Message;
use crate::switchboard::moved_publish::MovedPublish;
use crate::transcoding::Transcoders;

/// A request from another thread to a worker.
pub(crate) enum Command {
    /// Serve an accepted connection.
    Accept(Accepted),
    /// Serve a session of another worker, whose stream lives on this one.
    Adopt(Box<(Link, MovedPublish)>),
    /// A message for its switchboard.
    Message(Message),
    /// Start accepting on the RTMP ports; for the first worker.
    StartAccepting,
    /// Close the RTMP ports; for the first worker.
    StopAccepting,
    /// Accept on this port as well; for the first worker.
    AcceptPulls(TcpListener),
    /// End all sessions within a second.
    Stop,
}

/// A connection accepted on an RTMP port.
pub(crate) struct Accepted {
    pub(super) socket: TcpStream,
    pub(super) peer: IpAddr,
    /// Whether it was accepted on the TLS port.
    pub(super) is_tls: bool,
    /// Whether it begins with a PROXY protocol header.
    pub(super) is_proxied: bool,
    pub(super) permit: ConnectionPermit,
}

/// One worker's commands and the eventfd that wakes its poll.
pub(super) struct Inbox {
    commands: Sender<Command>,
    waker: Waker,
    is_woken: AtomicBool,
}

impl Inbox {
    pub(super) const fn new(commands: Sender<Command>, waker: Waker) -> Self {
        Self { commands, waker, is_woken: AtomicBool::new(false) }
    }
}

/// State shared by all workers and the handle.
pub(crate) struct Shared {
    pub(crate) publishes: Arc<Publishes>,
    pub(crate) transcoders: Arc<Transcoders>,
    pub(crate) tls: TlsContext,
    pub(crate) connections: Arc<ConnectionLimits>,
    /// Who must send a PROXY protocol header.
    pub(super) trusted_proxies: Networks,
    pub(super) inboxes: Vec<Inbox>,
    /// One for each worker.
    pub(crate) loads: Vec<WorkerLoad>,
}

impl Shared {
    /// Notes that the worker has seen its wake-up; the next command wakes it again.
    pub(super) fn set_awake(&self, worker: usize) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.is_woken.store(false, Ordering::Release);
        }
    }

    /// The worker that issued a handle.
    pub(crate) fn worker_of(&self, handle: u64) -> usize {
        usize::try_from(handle % self.inboxes.len() as u64).unwrap_or(0)
    }

    /// Sends a command to a worker. If the worker has ended, the command is dropped together with what it owns.
    pub(crate) fn send(&self, worker: usize, command: Command) {
        if let Some(inbox) = self.inboxes.get(worker) {
            let _ = inbox.commands.send(command);
            self.wake(worker);
        }
    }

    /// Sends a message to a worker's switchboard.
    pub(crate) fn tell(&self, worker: usize, message: Message) {
        self.send(worker, Command::Message(message));
    }

    /// Wakes a worker to drain its commands and relays.
    pub(super) fn wake(&self, worker: usize) {
        if let Some(inbox) = self.inboxes.get(worker)
            && !inbox.is_woken.swap(true, Ordering::AcqRel)
        {
            // Fails only if the eventfd is gone, and then the worker is too.
            let _ = inbox.waker.wake();
        }
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.inboxes.len()
    }
}
