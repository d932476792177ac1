//! The running core, as the gateway holds it: starts, answers, asks, stops. Any thread may call it.

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
use crate::publish::hold::{Beside, Hold};
use crate::publish::mailbox::{Denial, Event, Mailbox, OnAirCause, OnAirChanged};
use crate::publish::play_guard::PlayGuard;
use crate::publish::players::PlayerStatus;
use crate::publish::preview_pipe::{PreviewReader, preview_pipe};
use crate::publish::pull_record::{PullSource, PullStatus};
use crate::publish::record::PublishSnapshot;
use crate::publish::registry::{Held, Publishes};
use crate::publish::upstreams::{AddedUpstream, Upstream};
use crate::reactor::config::{IngestConfig, StartError};
use crate::reactor::connection_limits::ConnectionCount;
use crate::reactor::shared::{Command, Shared};
use crate::reactor::tls::TlsError;
use crate::reactor::worker_load::WorkerStatus;
use crate::reactor::{Opened, Reactor, RtmpPorts, open, udp};
use crate::switchboard::message::{Message, PublishOpening};
use crate::switchboard::relay::Relay;
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
    /// Binds, starts the workers and serves. `wake` is called from any thread when [`Ingest::drain`] has something;
    /// it must not block.
    ///
    /// # Errors
    /// A taken port, or what the system refuses.
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
        // Of a start that fails no thread is left: each holds what wakes the gateway.
        ingest.spawn(reactors, transcoding).inspect_err(|_| ingest.stop())?;
        Ok(ingest)
    }

    /// Starts every thread, or as many as the system gives.
    fn spawn(&self, reactors: Vec<Reactor>, transcoding: TranscodingThreads) -> io::Result<()> {
        let told = self.shared.clone();
        let notify: Notify = Arc::new(move |worker, stream| {
            told.tell(worker, Message::Transcoded(stream));
        });
        transcoding.spawn(notify, |thread| put(&self.audio_threads, thread))?;
        for reactor in reactors {
            let thread = Builder::new().name(format!("media-{}", reactor.index()));
            put(&self.media_threads, thread.spawn(move || reactor.run())?);
        }
        Ok(())
    }

    /// Connections that come from now on see this certificate.
    ///
    /// # Errors
    /// When it cannot be used; the old one stays.
    pub fn set_certificate(&self, cert_pem: &str, key_pem: &str) -> Result<(), TlsError> {
        self.shared.tls.set_certificate(cert_pem, key_pem)
    }

    /// The UDP ports, one per media worker.
    #[must_use]
    pub fn media_ports(&self) -> &[u16] {
        &self.media_ports
    }

    /// Bytes that the kernel buffers on each media port, when it grants fewer than asked for.
    #[must_use]
    pub const fn small_receive_buffer(&self) -> Option<usize> {
        self.small_receive_buffer
    }

    /// Datagrams that the kernel dropped on the media ports because we did not read them in time; `None` where the
    /// system does not say. Reads a file: not for a media worker.
    #[must_use]
    pub fn kernel_drops(&self) -> Option<u64> {
        udp::kernel_drops(&self.media_ports)
    }

    /// RTMP connections that were closed at once because a limit was reached, and upstreams that were not dialled for
    /// the same reason.
    #[must_use]
    pub fn refused_connections(&self) -> u64 {
        self.shared.connections.refused()
    }

    /// Connections to the RTMP ports now.
    #[must_use]
    pub fn connections(&self) -> ConnectionCount {
        self.shared.connections.count()
    }

    /// Transcoders that run now.
    #[must_use]
    pub fn transcoders(&self) -> usize {
        self.shared.transcoders.running()
    }

    /// Transcoders that could not do their work, since the start.
    #[must_use]
    pub fn failed_transcoders(&self) -> u64 {
        self.shared.transcoders.failed()
    }

    /// Everything the gateway must know since the last call, oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<Event> {
        self.shared.publishes.mailbox().drain()
    }

    /// Answers a request: the publish goes live under `client_id` and is pushed to `upstreams`. A [`crate::PublishEnded`]
    /// follows in any case, also when the broadcaster did not wait.
    pub fn allow(&self, request: u64, client_id: u64, upstreams: Vec<Upstream>, hold: Hold) {
        self.prepare_tls(&upstreams);
        let (worker, now, publishes) =
            (self.shared.worker_of(request), Instant::now(), &self.shared.publishes);
        let window = hold.window;
        let Near { held, other } = self.find_near(client_id, &hold);
        let (continues, beside) = (
            held.as_ref().map(|held| held.record.stream),
            other.as_ref().map(|of| of.record.stream),
        );
        let Some(Held { record: near, name }) = held.or(other) else {
            let guard = publishes.open(client_id, worker, None, now);
            self.begin_armed(guard.record());
            let opening = PublishOpening { guard, upstreams, window, continues, beside };
            return self.shared.tell(worker, Message::Allow { request, opening });
        };
        let guard = publishes.open_successor(&near, client_id, None, now);
        let record = guard.record().clone();
        self.begin_armed(&record);
        let opening = PublishOpening { guard, upstreams, window, continues, beside };
        let home = near.worker;
        if home == worker {
            return self.shared.tell(worker, Message::Allow { request, opening });
        }
        // The stream's worker first: it is told by the other when the broadcaster did not wait.
        let relay = Arc::new(Relay::default());
        let open = Message::OpenForAway { worker, relay: relay.clone(), name, opening };
        self.shared.tell(home, open);
        self.shared.tell(worker, Message::AllowAway { request, home, relay, record });
    }

    /// Ends the upstreams and players of a publish that was lost, if they are held. Unknown client ids are ignored.
    pub fn release(&self, client_id: u64) {
        if let Some(Held { record, .. }) = self.shared.publishes.find_held(client_id) {
            self.shared.tell(record.worker, Message::Release(record.stream));
        }
    }

    /// Where a publish is to live: with the one that it continues, or with the other one of its name. The gateway hears
    /// if that is there no more.
    fn find_near(&self, client_id: u64, hold: &Hold) -> Near {
        let publishes = &self.shared.publishes;
        let held = hold.continues.and_then(|lost| publishes.find_held(lost));
        let other = hold.beside.as_ref().and_then(|Beside { client_id, name }| {
            let record = publishes.find(*client_id)?;
            Some(Held { record, name: name.clone() })
        });
        if hold.beside.is_some() && other.is_none() {
            let (is_on_air, cause) = (true, OnAirCause::Began);
            let changed = OnAirChanged { client_id, is_on_air, other: None, cause };
            publishes.mailbox().put(Event::OnAirChanged(changed));
        }
        Near { held, other }
    }

    /// Puts one of two running publishes of a name on air: at once, or at its next keyframe. Unknown client ids are
    /// ignored, and one that is on air is left there.
    pub fn switch_to(&self, client_id: u64) {
        if let Some(record) = self.shared.publishes.find(client_id) {
            self.shared.tell(record.worker, Message::SwitchTo(record.stream));
        }
    }

    /// Answers a play request: the player reads what is published here. Another node is not counted as a player, nor what
    /// it gets. A [`crate::PlayEnded`] follows in any case, also when it did not wait.
    pub fn allow_play(&self, request: u64, is_counted: bool) {
        let guard = PlayGuard::new(self.shared.publishes.clone(), request);
        let message = Message::AllowPlay { request, guard, is_counted };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers a play request: the player reads what is pulled from another node, by the pull of its name that runs or a
    /// new one. A [`crate::PlayEnded`] follows in any case, and a [`crate::PullEnded`] for each pull.
    pub fn pull(&self, request: u64, source: PullSource) {
        self.prepare_source(&source);
        let guard = PlayGuard::new(self.shared.publishes.clone(), request);
        let message = Message::Pull { request, guard, source };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers [`crate::SourceWanted`]; `None`: the stream is nowhere any more.
    pub fn dial_pull(&self, pull: u64, source: Option<PullSource>) {
        source.iter().for_each(|source| self.prepare_source(source));
        self.shared.tell(self.shared.worker_of(pull), Message::DialPull { pull, source });
    }

    /// The pulls that run, by name.
    #[must_use]
    pub fn pulls(&self) -> Vec<PullStatus> {
        let mut pulls = self.shared.publishes.pulls(Instant::now(), SystemTime::now());
        pulls.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        pulls
    }

    /// Answers a publish or play request: refused, with a description that the peer sees.
    pub fn deny(&self, request: u64, denial: Denial, description: String) {
        let message = Message::Deny { request, denial, description };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers [`crate::PublishRequested`]: it is refused here. Who is known to follow is sent to one of these tcUrls
    /// (`rtmp://host:port/app`), once; the others are told the description.
    pub fn redirect(&self, request: u64, tc_urls: Vec<String>, description: String) {
        let message = Message::Redirect { request, tc_urls, description };
        self.shared.tell(self.shared.worker_of(request), message);
    }

    /// Answers [`crate::AddressWanted`]; no address means "not now".
    pub fn dial(&self, push: u64, addresses: Vec<IpAddr>) {
        self.shared.tell(self.shared.worker_of(push), Message::Dial { push, addresses });
    }

    /// Ends a running publish; `description` is shown to the broadcaster. Unknown client ids are ignored.
    pub fn end(&self, client_id: u64, reason: EndReason, description: String) {
        if let Some(record) = self.shared.publishes.find(client_id) {
            let message = Message::End { stream: record.stream, reason, description };
            self.shared.tell(record.worker, message);
        }
    }

    /// Pushes a running publish to one more upstream.
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

    /// Takes an upstream from a running publish, by its [`Upstream::id`]. False when it has none of that name.
    pub fn remove_upstream(&self, client_id: u64, id: &str) -> bool {
        let Some(record) = self.shared.publishes.find(client_id) else { return false };
        let Some(serial) = record.upstreams.remove(id) else { return false };
        self.shared.tell(record.worker, Message::RemoveUpstream { stream: record.stream, serial });
        true
    }

    /// Reads the system's authorities before the first upstream by RTMPS, so that no media worker has to.
    fn prepare_tls(&self, upstreams: &[Upstream]) {
        if upstreams.iter().any(|upstream| upstream.url.is_tls) {
            // What is wrong shows, in words, where the upstream is dialled.
            let _ = self.shared.tls.prepare();
        }
    }

    /// The same before a pull by RTMPS.
    fn prepare_source(&self, source: &PullSource) {
        if source.url.is_tls {
            let _ = self.shared.tls.prepare();
        }
    }

    /// The counters of a running publish.
    #[must_use]
    pub fn snapshot(&self, client_id: u64) -> Option<PublishSnapshot> {
        let record = self.shared.publishes.find(client_id)?;
        Some(record.snapshot(Instant::now(), SystemTime::now()))
    }

    /// Who plays a running publish, the oldest first; none when it does not run.
    #[must_use]
    pub fn players(&self, client_id: u64) -> Vec<PlayerStatus> {
        let record = self.shared.publishes.find(client_id);
        record.map_or_else(Vec::new, |record| {
            record.players.status(Instant::now(), SystemTime::now())
        })
    }

    /// A running publish, or the pull of one, as FLV, from its cached keyframe on; `None` when it does not run. `wake` is called from any
    /// thread when there is something to read again; it must not block.
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

    /// Media workers that run.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// How busy and how late each media worker was over the last second.
    #[must_use]
    pub fn worker_status(&self) -> Vec<WorkerStatus> {
        let now = Instant::now();
        self.shared.loads.iter().map(|load| load.status(now)).collect()
    }

    /// Ends every session with [`EndReason::Shutdown`] and joins the workers: about a second at most. Call it off the
    /// JavaScript thread, then drain once more.
    pub fn stop(&self) {
        for worker in 0..self.shared.workers() {
            self.shared.send(worker, Command::Stop);
        }
        for thread in taken(&self.media_threads) {
            // A worker that panicked has said so on standard error and dropped its sessions.
            let _ = thread.join();
        }
        self.shared.transcoders.stop();
        for thread in taken(&self.audio_threads) {
            let _ = thread.join();
        }
    }

    /// The mailbox outlives the workers: their last events are drained from here.
    pub fn drainer(&self) -> impl Fn() -> Vec<Event> + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.publishes.mailbox().drain()
    }
}

/// What a publish that begins is opened with.
struct Near {
    /// The lost publish that it continues.
    held: Option<Held>,
    /// The other publish of its name.
    other: Option<Held>,
}

fn put(threads: &Mutex<Vec<JoinHandle<()>>>, thread: JoinHandle<()>) {
    threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
}

fn taken(threads: &Mutex<Vec<JoinHandle<()>>>) -> Vec<JoinHandle<()>> {
    std::mem::take(&mut threads.lock().unwrap_or_else(PoisonError::into_inner))
}
