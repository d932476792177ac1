//! What all workers and the handle share: the registry, the audio threads, TLS, and each worker's inbox.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use mio::Waker;
use mio::net::{TcpListener, TcpStream};

use super::connection_limits::{ConnectionLimits, ConnectionPermit};
use super::tls::TlsContext;
use super::worker_load::WorkerLoad;
use crate::publish::registry::Publishes;
use crate::switchboard::message::Message;
use crate::transcoding::Transcoders;

/// What other threads ask of a worker.
pub(crate) enum Command {
    /// A connection that came.
    Accept(Accepted),
    /// For its switchboard.
    Message(Message),
    /// Accept at the RTMP ports from now on; for the first worker.
    StartAccepting,
    /// Close them; for the first worker.
    StopAccepting,
    /// Accept here, too; for the first worker.
    AcceptPulls(TcpListener),
    /// End everything, within a second.
    Stop,
}

/// A connection that came to an RTMP port.
pub(crate) struct Accepted {
    pub(super) socket: TcpStream,
    pub(super) peer: IpAddr,
    /// It came to the port that speaks TLS.
    pub(super) is_tls: bool,
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

/// What all workers and the handle share.
pub(crate) struct Shared {
    pub(crate) publishes: Arc<Publishes>,
    pub(crate) transcoders: Arc<Transcoders>,
    pub(crate) tls: TlsContext,
    pub(crate) connections: Arc<ConnectionLimits>,
    pub(super) inboxes: Vec<Inbox>,
    /// One for each worker.
    pub(crate) loads: Vec<WorkerLoad>,
}

impl Shared {
    /// The worker has seen that it was woken; what comes now wakes it again.
    pub(super) fn set_awake(&self, worker: usize) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.is_woken.store(false, Ordering::Release);
        }
    }

    /// The worker that made a question's handle.
    pub(crate) fn worker_of(&self, handle: u64) -> usize {
        usize::try_from(handle % self.inboxes.len() as u64).unwrap_or(0)
    }

    /// Gives a command to a worker. A worker that is gone drops it, and with it what the command holds.
    pub(crate) fn send(&self, worker: usize, command: Command) {
        if let Some(inbox) = self.inboxes.get(worker) {
            let _ = inbox.commands.send(command);
            self.wake(worker);
        }
    }

    /// Gives a message to a worker's switchboard.
    pub(crate) fn tell(&self, worker: usize, message: Message) {
        self.send(worker, Command::Message(message));
    }

    /// Makes a worker drain its commands and relays.
    pub(super) fn wake(&self, worker: usize) {
        if let Some(inbox) = self.inboxes.get(worker)
            && !inbox.is_woken.swap(true, Ordering::AcqRel)
        {
            // It fails only when the eventfd is gone, and then so is the worker.
            let _ = inbox.waker.wake();
        }
    }

    /// How many workers there are.
    pub(crate) fn workers(&self) -> usize {
        self.inboxes.len()
    }
}
