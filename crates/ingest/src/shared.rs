//! What the workers and the handle share: the mailbox, the directory, and each worker's inbox.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use headgate_media::Frame;
use mio::Waker;
use mio::net::TcpStream;

use crate::Denial;
use crate::directory::{Directory, StreamId};
use crate::mailbox::{EndSlot, Mailbox};
use crate::relay::Relay;
use crate::session::EndReason;
use crate::tls::TlsContext;
use crate::transcoding::Transcoders;
use crate::upstreams::{Upstream, UpstreamRecord};
use crate::whip_desk::WhipOrder;
use crate::whip_session::WhipOpening;

/// What other threads ask of a worker.
pub(crate) enum Command {
    /// A connection that came, and whether it speaks TLS.
    Accept(TcpStream, IpAddr, bool),
    Allow {
        request: u64,
        slot: EndSlot,
        upstreams: Vec<Upstream>,
    },
    OpenWhip(Box<WhipOpening>),
    /// Something to do for a running WHIP publish.
    Whip {
        client_id: u64,
        order: WhipOrder,
    },
    Deny {
        request: u64,
        denial: Denial,
        description: String,
    },
    Dial {
        push: u64,
        addresses: Vec<IpAddr>,
    },
    End {
        client_id: u64,
        reason: EndReason,
        description: String,
    },
    /// One more upstream of a running publish.
    AddUpstream {
        client_id: u64,
        record: Arc<UpstreamRecord>,
    },
    RemoveUpstream {
        client_id: u64,
        id: u64,
    },
    /// Worker `reader` has players of a stream that lives here.
    Attach {
        stream: StreamId,
        reader: usize,
        relay: Arc<Relay>,
    },
    /// The answer: where the relay starts. `None` when the stream is gone.
    Seed {
        stream: StreamId,
        burst: Option<Vec<Frame>>,
    },
    /// A stream's transcoder made AAC.
    Transcoded {
        stream: StreamId,
    },
    /// Someone on another worker begins to read a stream that lives here.
    WantKeyframe(StreamId),
    Detach {
        stream: StreamId,
        relay: Arc<Relay>,
    },
    Stop,
}

/// One worker's commands and the eventfd that wakes its poll.
pub(crate) struct Inbox {
    commands: Sender<Command>,
    waker: Waker,
    is_woken: AtomicBool,
}

impl Inbox {
    pub(crate) const fn new(commands: Sender<Command>, waker: Waker) -> Self {
        Self { commands, waker, is_woken: AtomicBool::new(false) }
    }
}

/// What all workers and the handle share.
pub(crate) struct Shared {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) directory: Directory,
    pub(crate) transcoders: Transcoders,
    pub(crate) tls: TlsContext,
    pub(crate) caches_gop: bool,
    /// Pushes without sound get silence.
    pub(crate) pushes_silence: bool,
    inboxes: Vec<Inbox>,
    next_stream: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        mailbox: Arc<Mailbox>,
        transcoders: Transcoders,
        tls: TlsContext,
        caches_gop: bool,
        pushes_silence: bool,
        inboxes: Vec<Inbox>,
    ) -> Arc<Self> {
        let (directory, next_stream) = (Directory::default(), AtomicU64::new(0));
        Arc::new(Self {
            mailbox,
            directory,
            transcoders,
            tls,
            caches_gop,
            pushes_silence,
            inboxes,
            next_stream,
        })
    }

    /// The worker has seen that it was woken; what comes now wakes it again.
    pub(crate) fn set_awake(&self, worker: usize) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.is_woken.store(false, Ordering::Release);
        }
    }

    /// The worker that made a request's or push's handle.
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

    /// Makes a worker look at its commands and relays.
    pub(crate) fn wake(&self, worker: usize) {
        if let Some(inbox) = self.inboxes.get(worker)
            && !inbox.is_woken.swap(true, Ordering::AcqRel)
        {
            // It fails only when the eventfd is gone, and then so is the worker.
            let _ = inbox.waker.wake();
        }
    }

    pub(crate) fn new_stream(&self) -> StreamId {
        StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn workers(&self) -> usize {
        self.inboxes.len()
    }
}
