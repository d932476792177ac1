//! The driver: threads, sockets, timers, and the life of a publish. It carries; the gateway decides.

mod directory;
mod gop;
mod hub;
mod link;
mod live;
mod mailbox;
mod pump;
mod queue;
mod relay;
mod retry;
mod rtmp_clock;
mod rtmp_frames;
mod rtmp_push;
mod rtmp_server;
mod seat;
mod session;
mod shared;
mod upstream_url;
mod worker;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

pub use mailbox::{AddressWanted, Event, PublishEnded, PublishRequested, UpstreamChanged};
pub use session::{EndReason, PublishSnapshot};
pub use upstream_url::UpstreamUrl;

use mailbox::Mailbox;
use shared::{Command, Shared};
use worker::Worker;

/// How to start the core.
#[derive(Clone, Debug)]
pub struct IngestConfig {
    /// Where RTMP is served; port 0 takes any free one.
    pub rtmp: SocketAddr,
    /// Media workers; at least one.
    pub workers: usize,
    /// Whether late players start with the cached GOP.
    pub caches_gop: bool,
}

/// Why the core did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program has the port.
    #[error("port {0} is taken")]
    PortTaken(u16),
    /// The system refused a socket, a poll or a thread.
    #[error("cannot start the media core: {0}")]
    Io(#[from] io::Error),
}

impl StartError {
    /// Stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PortTaken(_) => "port_taken",
            Self::Io(_) => "io",
        }
    }
}

/// How a publish is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The customer or a rule said no.
    Denied,
    /// The name is unknown, malformed or live already.
    BadName,
}

/// The running media core.
pub struct Ingest {
    shared: Arc<Shared>,
    rtmp_port: u16,
    threads: Vec<JoinHandle<()>>,
}

impl Ingest {
    /// Binds, starts the workers and serves. `wake` is called from any thread when [`Ingest::drain`] has something;
    /// it must not block.
    ///
    /// # Errors
    /// A taken port, or what the system refuses.
    pub fn start(
        config: &IngestConfig,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, StartError> {
        let (shared, rtmp_port, workers) = Worker::open_all(config, Mailbox::new(wake))?;
        let mut threads = Vec::new();
        for worker in workers {
            let name = format!("media-{}", worker.index());
            threads.push(std::thread::Builder::new().name(name).spawn(move || worker.run())?);
        }
        Ok(Self { shared, rtmp_port, threads })
    }

    /// The port RTMP is served on.
    #[must_use]
    pub const fn rtmp_port(&self) -> u16 {
        self.rtmp_port
    }

    /// Everything the gateway must know since the last call, oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<Event> {
        self.shared.mailbox.drain()
    }

    /// Answers a request: the publish goes live under `client_id` and is pushed to `upstreams`. A [`PublishEnded`]
    /// follows in any case, also when the broadcaster did not wait.
    pub fn allow(&self, request: u64, client_id: u64, upstreams: Vec<UpstreamUrl>) {
        let worker = self.shared.worker_of(request);
        let slot = self.shared.mailbox.open_slot(client_id, worker, Instant::now());
        self.shared.send(worker, Command::Allow { request, slot, upstreams });
    }

    /// Answers a request: refused, with a description the broadcaster sees.
    pub fn deny(&self, request: u64, denial: Denial, description: String) {
        let command = Command::Deny { request, denial, description };
        self.shared.send(self.shared.worker_of(request), command);
    }

    /// Answers [`AddressWanted`]; no address means "not now".
    pub fn dial(&self, push: u64, addresses: Vec<IpAddr>) {
        self.shared.send(self.shared.worker_of(push), Command::Dial { push, addresses });
    }

    /// Ends a running publish; `description` is shown to the broadcaster. Unknown client ids are ignored.
    pub fn end(&self, client_id: u64, reason: EndReason, description: String) {
        if let Some(worker) = self.shared.mailbox.worker(client_id) {
            self.shared.send(worker, Command::End { client_id, reason, description });
        }
    }

    /// The counters of a running publish.
    #[must_use]
    pub fn snapshot(&self, client_id: u64) -> Option<PublishSnapshot> {
        Some(self.shared.mailbox.counters(client_id)?.snapshot(Instant::now()))
    }

    /// Media workers that run.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.threads.len()
    }

    /// Ends every session with [`EndReason::Shutdown`] and joins the workers: about a second at most. Call it off the
    /// JavaScript thread, then drain once more.
    pub fn stop(mut self) {
        for worker in 0..self.threads.len() {
            self.shared.send(worker, Command::Stop);
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so on standard error and dropped its sessions.
            let _ = thread.join();
        }
    }

    /// The mailbox outlives the workers: what they said last is drained from here.
    pub fn drainer(&self) -> impl Fn() -> Vec<Event> + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.mailbox.drain()
    }
}

#[cfg(test)]
mod tests;
