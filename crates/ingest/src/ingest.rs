//! The running core as the gateway uses it: start and stop, answers, state. Any thread may call its methods.

mod accepting;
mod armed;
mod capturing;
mod whip;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Instant, SystemTime};

use headgate_whip::Identity;

use self::armed::Captures;
use crate::publish::end_reason::EndReason;
use crate::publish::hold::Hold;
use crate::publish::mailbox::{Denial, Event, Mailbox};
use crate::publish::near::Near;
use crate::publish::play_guard::PlayGuard;
use crate::publish::players::PlayerStatus;
use crate::publish::preview_pipe::{PreviewReader, preview_pipe};
use crate::publish::pull_record::{PullSource, PullStatus};
use crate::publish::record::PublishSnapshot;
use crate::publish::registry::Publishes;
use crate::publish::upstream_cause::PushOrder;
use crate::publish::upstreams::{AddedUpstream, Upstream};
use crate::reactor::config::{IngestConfig, StartError};
use crate::reactor::connection_limits::ConnectionCount;
use crate::reactor::shared::{Command, Shared};
use crate::reactor::tls::TlsError;
use crate::reactor::worker_load::WorkerStatus;
use crate::reactor::{Opened, Reactor, RtmpPorts, open, udp};
use crate::switchboard::message::{Message, Opening};
use crate::transcoding::{Notify, TranscodingThreads};

pub use capturing::{CaptureError, CaptureHandle};
pub use whip::{ParsedOffer, WhipError, WhipPublish, own_offer, parse_offer, validate_fragment};

/// The running media core.
pub struct Ingest {
    shared: Arc<Shared>,
    identity: Identity,
    rtmp: RtmpPorts,
    media_ports: Vec<u16>,
    small_receive_buffer: Option<usize>,
    public_addresses: Vec<IpAddr>,
    next_whip: AtomicUsize,
    captures: Captures,
    audio_threads: Mutex<Vec<JoinHandle<()>>>,
    media_threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Ingest {
    /// Binds the ports, starts the workers and begins to serve. `wake` is called from any thread when [`Ingest::drain`]
    /// has events; it must not block.
    ///
    /// # Errors
    /// A port is in use, or the system refuses a socket or a thread.
    pub fn start(
        config: &IngestConfig,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, StartError> {
        let identity = Identity::generate()?;
        let opened = open(config, Publishes::new(Mailbox::new(wake)))?;
        let Opened { shared, reactors, transcoding, .. } = opened;
        let ingest = Self {
            shared,
            identity,
            rtmp: opened.rtmp,
            media_ports: opened.media_ports,
            small_receive_buffer: opened.small_receive_buffer,
            public_addresses: config.public_addresses.clone(),
            next_whip: AtomicUsize::new(0),
            captures: Captures::new(config.captures),
            audio_threads: Mutex::default(),
            media_threads: Mutex::default(),
        };
        // A failed start leaves no thread behind: each one holds the callback that wakes the gateway.
        ingest.spawn(reactors, transcoding).inspect_err(|_| ingest.stop())?;
        Ok(ingest)
    }

    /// Starts every thread, or as many as the system allows.
    fn spawn(&self, reactors: Vec<Reactor>, transcoding: TranscodingThreads) -> io::Result<()> {
        let shared = self.shared.clone();
        let notify: Notify = Arc::new(move |worker, stream| {
            shared.tell(worker, Message::Transcoded(stream));
        });
        transcoding.spawn(notify, |thread| put(&self.audio_threads, thread))?;
        for reactor in reactors {
            let thread = Builder::new().name(format!("media-{}", reactor.index()));
            put(&self.media_threads, thread.spawn(move || reactor.run())?);
        }
        Ok(())
    }

    /// Serves this certificate to new TLS connections.
    ///
    /// # Errors
    /// The certificate or key cannot be used; the previous certificate stays in place.
    pub fn set_certificate(&self, cert_pem: &str, key_pem: &str) -> Result<(), TlsError> {
        self.shared.tls.set_certificate(cert_pem, key_pem)
    }

    /// The UDP ports, one per media worker.
    #[must_use]
    pub fn media_ports(&self) -> &[u16] {
        &self.media_ports
    }

    /// Size in bytes of each media port's kernel receive buffer when that is less than was requested.
    #[must_use]
    pub const fn small_receive_buffer(&self) -> Option<usize> {
        self.small_receive_buffer
    }

    /// Datagrams that the kernel dropped on the media ports because they were not read in time; `None` where the system
    /// does not report it. Reads a file, so media workers must not call it.
    #[must_use]
    pub fn kernel_drops(&self) -> Option<u64> {
        udp::kernel_drops(&self.media_ports)
    }

    /// RTMP connections that were closed at once because a limit was reached, plus upstreams that were not dialled for
    /// the same reason.
    #[must_use]
    pub fn refused_connections(&self) -> u64 {
        self.shared.connections.refused()
    }

    /// Open connections to the RTMP ports.
    #[must_use]
    pub fn connections(&self) -> ConnectionCount {
        self.shared.connections.count()
    }

    /// Transcoders currently running.
    #[must_use]
    pub fn transcoders(&self) -> usize {
        self.shared.transcoders.running()
    }

    /// Transcoders that failed since the start.
    #[must_use]
    pub fn failed_transcoders(&self) -> u64 {
        self.shared.transcoders.failed()
    }

    /// Drains the events since the previous call, oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<Event> {
        self.shared.publishes.mailbox().drain()
    }

    /// Allows a publish request: the publish goes live under `client_id` and is pushed to `upstreams`. A
    /// [`crate::PublishEnded`] follows in every case, even if the broadcaster has already left.
    pub fn allow(&self, request: u64, client_id: u64, upstreams: Vec<Upstream>, hold: Hold) {
        self.prepare_tls(&upstreams);
        let (worker, now, publishes) =
            (self.shared.worker_of(request), Instant::now(), &self.shared.publishes);
        let near = Near::find(publishes, client_id, &hold);
        let guard = near.open(publishes, client_id, worker, None, now);
        let record = guard.record();
        record.set_silence_limit(hold.silence);
        self.begin_armed(record);
        if record.worker != worker {
            // First of all: what the gateway tells that worker from now on may come before the publish does.
            self.shared.tell(record.worker, Message::Expect(record.stream));
        }
        let opening = Opening { window: hold.window, near, ..Opening::new(guard, upstreams) };
        self.shared.tell(worker, Message::Allow { request, opening });
    }

    /// Stops holding a lost publish: its upstreams and players end. Unknown client ids are ignored.
    pub fn release(&self, client_id: u64) {
        if let Some(record) = self.shared.publishes.find_held(client_id) {
            self.shared.tell(record.worker, Message::Release(record.stream));
        }
    }

    /// Puts one of two running publishes of a name on air, now or at its next keyframe. Unknown client ids and
    /// publishes that are already on air are ignored.
    pub fn switch_to(&self, client_id: u64) {
        if let Some(record) = self.shared.publishes.find(client_id) {
            self.shared.tell(record.worker, Message::SwitchTo(record.stream));
        }
    }

    /// Allows a play request: the player reads a publish of this node. Another node and its bytes are not counted. A
    /// [`crate::PlayEnded`] follows in every case, even if the player has already left.
    pub fn allow_play(&self, request: u64, is_counted: bool) {
        let guard = PlayGuard::new(self.shared.publishes.clone(), request);
        let message = Message::AllowPlay { request, guard, is_counted };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Allows a play request for a stream of another node: the player reads from the running pull of that name, or from
    /// a new one. A [`crate::PlayEnded`] follows in every case, and a [`crate::PullEnded`] for each pull.
    pub fn pull(&self, request: u64, source: PullSource) {
        self.prepare_source(&source);
        let guard = PlayGuard::new(self.shared.publishes.clone(), request);
        let message = Message::Pull { request, guard, source };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers [`crate::SourceWanted`]; `None` means that no node publishes the stream any more.
    pub fn dial_pull(&self, pull: u64, source: Option<PullSource>) {
        source.iter().for_each(|source| self.prepare_source(source));
        self.shared.tell(self.shared.worker_of(pull), Message::DialPull { pull, source });
    }

    /// The running pulls, sorted by name.
    #[must_use]
    pub fn pulls(&self) -> Vec<PullStatus> {
        let mut pulls = self.shared.publishes.pulls(Instant::now(), SystemTime::now());
        pulls.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        pulls
    }

    /// Denies a publish or play request; the peer sees `description`.
    pub fn deny(&self, request: u64, denial: Denial, description: String) {
        let message = Message::Deny { request, denial, description };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers [`crate::PublishRequested`]: redirects the broadcaster to one of these tcUrls (`rtmp://host:port/app`),
    /// once. Clients that are not known to follow redirects get `description` instead.
    pub fn redirect(&self, request: u64, tc_urls: Vec<String>, description: String) {
        let message = Message::Redirect { request, tc_urls, description };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers [`crate::AddressWanted`]; an empty list means that the push cannot connect for now.
    pub fn dial(&self, push: u64, addresses: Vec<IpAddr>) {
        self.shared.tell(self.shared.worker_of(push), Message::Dial { push, addresses });
    }

    /// Answers [`crate::AddressWanted`]: no connection to that host is allowed.
    pub fn forbid(&self, push: u64) {
        self.shared.tell(self.shared.worker_of(push), Message::Forbid { push });
    }

    /// Ends a running publish; the broadcaster sees `description`. Unknown client ids are ignored.
    pub fn end(&self, client_id: u64, reason: EndReason, description: String) {
        if let Some(record) = self.shared.publishes.find(client_id) {
            let message = Message::End { stream: record.stream, reason, description };
            self.shared.tell(record.worker, message);
        }
    }

    /// Adds an upstream to a running publish.
    pub fn add_upstream(&self, client_id: u64, upstream: Upstream) -> AddedUpstream {
        let Some(record) = self.shared.publishes.find(client_id) else {
            return AddedUpstream::NotRunning;
        };
        self.prepare_tls(std::slice::from_ref(&upstream));
        match record.upstreams.add(upstream, Instant::now()) {
            Ok(Some(upstream)) => {
                let message = Message::AddUpstream { stream: record.stream, record: upstream };
                self.shared.tell(record.worker, message);
                AddedUpstream::Added
            }
            Ok(None) => AddedUpstream::Added,
            Err(()) => AddedUpstream::TooMany,
        }
    }

    /// Removes an upstream from a running publish by its [`Upstream::id`]. Returns false if the publish or the upstream
    /// does not exist.
    pub fn remove_upstream(&self, client_id: u64, id: &str) -> bool {
        let Some(record) = self.shared.publishes.find(client_id) else { return false };
        let Some(serial) = record.upstreams.remove(id) else { return false };
        self.shared.tell(record.worker, Message::RemoveUpstream { stream: record.stream, serial });
        true
    }

    /// Orders something for the push of a running publish to an upstream, by its [`Upstream::id`]. Returns false if the
    /// publish or the upstream does not exist.
    pub fn order_push(&self, client_id: u64, id: &str, order: PushOrder) -> bool {
        let Some(record) = self.shared.publishes.find(client_id) else { return false };
        let Some(upstream) = record.upstreams.find(id) else { return false };
        // Shown from here on, whenever its worker hears of it.
        match order {
            PushOrder::Pause => upstream.set_paused(Instant::now()),
            PushOrder::Resume if upstream.is_paused() => upstream.set_connecting(Instant::now()),
            PushOrder::Resume | PushOrder::Retry => {}
        }
        let (stream, serial) = (record.stream, upstream.serial);
        self.shared.tell(record.worker, Message::OrderPush { stream, serial, order });
        true
    }

    /// Tests an upstream: connects as a push does, and publishes a test picture and silence for two seconds. `test` is
    /// an id of no publish. [`crate::AddressWanted`] and at last [`crate::UpstreamTested`] are reported under it.
    pub fn test_upstream(&self, test: u64, upstream: Upstream) {
        self.prepare_tls(std::slice::from_ref(&upstream));
        let workers = self.shared.workers() as u64;
        let worker = usize::try_from(test % workers.max(1)).unwrap_or(0);
        self.shared.tell(worker, Message::TestUpstream { test, upstream });
    }

    /// Loads the system's root certificates before the first RTMPS upstream, so that no media worker has to.
    fn prepare_tls(&self, upstreams: &[Upstream]) {
        if upstreams.iter().any(|upstream| upstream.url.is_tls) {
            // Errors are reported, with their text, when the upstream is dialled.
            let _ = self.shared.tls.prepare();
        }
    }

    /// Does the same before a pull over RTMPS.
    fn prepare_source(&self, source: &PullSource) {
        if source.url.is_tls {
            let _ = self.shared.tls.prepare();
        }
    }

    /// Counters and state of a running publish.
    #[must_use]
    pub fn snapshot(&self, client_id: u64) -> Option<PublishSnapshot> {
        let record = self.shared.publishes.find(client_id)?;
        Some(record.snapshot(Instant::now(), SystemTime::now()))
    }

    /// The players of a running publish, oldest first; empty if it is not running.
    #[must_use]
    pub fn players(&self, client_id: u64) -> Vec<PlayerStatus> {
        let record = self.shared.publishes.find(client_id);
        record.map_or_else(Vec::new, |record| {
            record.players.status(Instant::now(), SystemTime::now())
        })
    }

    /// Opens a preview of a running publish or pull: FLV, starting at the cached keyframe. `None` if it is not running.
    /// `wake` is called from any thread when there is data to read again; it must not block.
    pub fn open_preview(
        &self,
        client_id: u64,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Option<PreviewReader> {
        let record = self.shared.publishes.find_readable(client_id)?;
        let (writer, reader) = preview_pipe(wake);
        let message = Message::OpenPreview { stream: record.stream, writer };
        self.shared.tell(record.worker, message);
        Some(reader)
    }

    /// Number of media workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// Load and lateness of each media worker over the last second.
    #[must_use]
    pub fn worker_status(&self) -> Vec<WorkerStatus> {
        let now = Instant::now();
        self.shared.loads.iter().map(|load| load.status(now)).collect()
    }

    /// Ends every session with [`EndReason::Shutdown`] and joins the workers, which takes about a second at most. Call
    /// it off the JavaScript thread, then drain once more.
    pub fn stop(&self) {
        for worker in 0..self.shared.workers() {
            self.shared.send(worker, Command::Stop);
        }
        for thread in taken(&self.media_threads) {
            // A worker that panicked has already written to standard error and dropped its sessions.
            let _ = thread.join();
        }
        self.shared.transcoders.stop();
        for thread in taken(&self.audio_threads) {
            let _ = thread.join();
        }
    }
}

fn put(threads: &Mutex<Vec<JoinHandle<()>>>, thread: JoinHandle<()>) {
    threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
}

fn taken(threads: &Mutex<Vec<JoinHandle<()>>>) -> Vec<JoinHandle<()>> {
    std::mem::take(&mut threads.lock().unwrap_or_else(PoisonError::into_inner))
}
