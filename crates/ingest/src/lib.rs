//! The driver: threads, sockets, timers, and the life of a publish. It carries; the gateway decides.

/// One line to standard error. `eprintln!` panics when the pipe behind it is full, and these lines are said when
/// something is wrong already.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

mod accepting;
mod directory;
mod gathering;
mod gop;
mod hub;
mod link;
mod live;
mod mailbox;
mod players;
mod ports;
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
mod silence;
mod tls;
mod tracks;
mod transcoding;
mod udp;
mod upstream_url;
mod upstreams;
mod whip_desk;
mod whip_session;
mod whip_tcp;
mod worker;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

pub use tls::TlsError;

pub use mailbox::{AddressWanted, Event, PublishEnded, PublishRequested, UpstreamChanged};
pub use players::PlayerStatus;
pub use session::{EndReason, PublishSnapshot};
pub use tracks::{AudioTrack, Tracks, VideoTrack};
pub use transcoding::ENCODERS_AHEAD;
pub use upstream_url::UpstreamUrl;
pub use upstreams::{AddedUpstream, Upstream, UpstreamSource, UpstreamState, UpstreamStatus};

use headgate_whip::sdp::{AnswerSettings, read_offer, write_answer};
use headgate_whip::{Credentials, Identity, WhipSession};

use mailbox::Mailbox;
use shared::{Command, Shared};
use whip_desk::WhipDesks;
use whip_session::WhipOpening;
use worker::{Opened, Worker};

pub use headgate_whip::sdp::OfferError;
pub use headgate_whip::{AudioDiagnostics, Diagnostics, TrackDiagnostics, VideoDiagnostics};
pub use whip_desk::{WhipPatchError, WhipPatched, judge_fragment};

/// How to start the core.
#[derive(Clone, Debug)]
pub struct IngestConfig {
    /// Where RTMP is served; port 0 takes any free one.
    pub rtmp: SocketAddr,
    /// RTMP over TLS beside it.
    pub rtmp_tls: Option<RtmpTls>,
    /// Authorities that upstreams' certificates are judged by beside the system's, PEM.
    pub upstream_ca_pem: Option<String>,
    /// UDP port of the first media worker, the next workers' follow; port 0 takes any free ones.
    pub media: SocketAddr,
    /// What answers name, the best first.
    pub public_addresses: Vec<IpAddr>,
    /// Threads that make AAC of Opus; at least one.
    pub audio_workers: usize,
    /// AAC encoders of each kind made before a stream needs them.
    pub encoders_ahead: usize,
    /// Media workers; at least one.
    pub workers: usize,
    /// Whether late players start with the cached GOP.
    pub caches_gop: bool,
    /// Whether pushes without sound get silence (R5).
    pub pushes_silence: bool,
}

/// RTMP over TLS.
#[derive(Clone)]
pub struct RtmpTls {
    /// Port 0 takes any free one.
    pub address: SocketAddr,
    /// Certificate chain, the own one first.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// The key does not print.
impl std::fmt::Debug for RtmpTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RtmpTls({})", self.address)
    }
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
    /// The certificate for RTMPS cannot be used.
    #[error("cannot use the certificate for RTMPS: {0}")]
    Tls(#[from] TlsError),
    /// The media certificate could not be made.
    #[error(transparent)]
    Identity(#[from] headgate_whip::IdentityError),
}

impl StartError {
    /// Stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PortTaken(_) => "port_taken",
            Self::Io(_) => "io",
            Self::Tls(_) => "tls",
            Self::Identity(_) => "identity",
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

/// A WHIP publish that the gateway allowed.
#[derive(Clone, Debug)]
pub struct WhipPublish {
    /// Issued by the gateway.
    pub client_id: u64,
    /// Stream name without arguments.
    pub name: Vec<u8>,
    /// The client's offer.
    pub offer: String,
    /// Where it is pushed.
    pub upstreams: Vec<Upstream>,
    /// Stereo was asked for.
    pub stereo: bool,
    /// What a browser begins with, kbit/s.
    pub start_bitrate_kbps: u32,
    /// What it may rise to, kbit/s; 0 is no limit.
    pub max_bitrate_kbps: u32,
    /// AAC bitrate of a stereo sound, bit/s.
    pub audio_bitrate: u32,
    /// An AMF0 object that joins the connect command to `own_upstream`; empty for none.
    pub connect_info: Vec<u8>,
}

/// Why a WHIP publish did not open.
#[derive(Debug, thiserror::Error)]
pub enum WhipError {
    /// The offer is refused.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// No randomness for its credentials.
    #[error(transparent)]
    Identity(#[from] headgate_whip::IdentityError),
}

/// What an offer has, judged before anyone is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferSummary {
    /// There is sound.
    pub has_audio: bool,
    /// There is a picture.
    pub has_video: bool,
}

/// Judges an offer without opening anything.
///
/// # Errors
/// Why it is refused.
pub fn judge_offer(offer: &str) -> Result<OfferSummary, OfferError> {
    let offer = read_offer(offer)?;
    Ok(OfferSummary { has_audio: offer.audio.is_some(), has_video: offer.video.is_some() })
}

/// The running media core.
pub struct Ingest {
    shared: Arc<Shared>,
    identity: Identity,
    rtmp_port: u16,
    rtmp_tls_port: Option<u16>,
    media_ports: Vec<u16>,
    public_addresses: Vec<IpAddr>,
    next_whip: AtomicUsize,
    whips: Arc<WhipDesks>,
    audio_threads: Mutex<Vec<JoinHandle<()>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
        let Opened { shared, rtmp_port, rtmp_tls_port, media_ports, workers, transcoding_threads } =
            Worker::open_all(config, Mailbox::new(wake))?;
        let notify = shared.clone();
        let audio_threads = transcoding_threads.spawn(Arc::new(move |worker, stream| {
            notify.send(worker, Command::Transcoded { stream });
        }))?;
        shared.transcoders.warm();
        let mut threads = Vec::new();
        for worker in workers {
            let name = format!("media-{}", worker.index());
            threads.push(std::thread::Builder::new().name(name).spawn(move || worker.run())?);
        }
        let (public_addresses, next_whip) = (config.public_addresses.clone(), AtomicUsize::new(0));
        Ok(Self {
            shared,
            identity,
            rtmp_port,
            rtmp_tls_port,
            media_ports,
            public_addresses,
            next_whip,
            whips: Arc::default(),
            audio_threads: Mutex::new(audio_threads),
            threads: Mutex::new(threads),
        })
    }

    /// The port RTMP is served on.
    #[must_use]
    pub const fn rtmp_port(&self) -> u16 {
        self.rtmp_port
    }

    /// The port RTMP over TLS is served on.
    #[must_use]
    pub const fn rtmp_tls_port(&self) -> Option<u16> {
        self.rtmp_tls_port
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

    /// Opens a WHIP publish that was allowed, and returns the answer. A [`PublishEnded`] follows in any case, also
    /// after an error.
    ///
    /// # Errors
    /// A refused offer, or no randomness.
    pub fn open_whip(&self, publish: WhipPublish) -> Result<String, WhipError> {
        let worker = self.next_whip.fetch_add(1, Ordering::Relaxed) % self.media_ports.len().max(1);
        let now = Instant::now();
        let slot = self.shared.mailbox.open_slot(publish.client_id, worker, now);
        let offer = read_offer(&publish.offer)?;
        let credentials = Credentials::generate(&self.identity)?;
        let port = self.media_ports.get(worker).copied().unwrap_or_default();
        let candidates: Vec<_> =
            self.public_addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
        let answer = write_answer(
            &offer,
            &AnswerSettings {
                ufrag: &credentials.ufrag,
                pwd: &credentials.password,
                fingerprint: self.identity.fingerprint(),
                candidates: &candidates,
                session_id: publish.client_id,
                start_bitrate_kbps: publish.start_bitrate_kbps,
                max_bitrate_kbps: publish.max_bitrate_kbps,
                stereo: publish.stereo,
                audio_bitrate: None,
            },
        );
        if offer.audio.is_some() {
            self.shared.transcoders.warm();
        }
        let session = Box::new(WhipSession::new(
            &self.identity,
            &offer,
            &credentials,
            publish.max_bitrate_kbps,
            now,
        ));
        let desk = self.whips.open(publish.client_id, worker, &offer, candidates);
        let WhipPublish { name, upstreams, audio_bitrate, connect_info, .. } = publish;
        let connect_info = connect_info.into();
        let opening =
            WhipOpening { session, desk, name, slot, upstreams, audio_bitrate, connect_info };
        self.shared.send(worker, Command::OpenWhip(Box::new(opening)));
        Ok(answer)
    }

    /// Transcoders that run now.
    #[must_use]
    pub fn transcoders(&self) -> usize {
        self.shared.transcoders.running()
    }

    /// Streams whose audio could not be transcoded, since the start.
    #[must_use]
    pub fn transcoders_failed(&self) -> u64 {
        self.shared.transcoders.failed()
    }

    /// Everything the gateway must know since the last call, oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<Event> {
        self.shared.mailbox.drain()
    }

    /// Answers a request: the publish goes live under `client_id` and is pushed to `upstreams`. A [`PublishEnded`]
    /// follows in any case, also when the broadcaster did not wait.
    pub fn allow(&self, request: u64, client_id: u64, upstreams: Vec<Upstream>) {
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

    /// Pushes a running publish to one more upstream.
    pub fn add_upstream(&self, client_id: u64, upstream: Upstream) -> AddedUpstream {
        let mailbox = &self.shared.mailbox;
        let running = mailbox.counters(client_id).zip(mailbox.worker(client_id));
        let Some((counters, worker)) = running else { return AddedUpstream::NotRunning };
        match counters.upstreams.add(upstream) {
            Ok(Some(record)) => {
                self.shared.send(worker, Command::AddUpstream { client_id, record });
                AddedUpstream::Added
            }
            Ok(None) => AddedUpstream::Added,
            Err(()) => AddedUpstream::TooMany,
        }
    }

    /// Takes an upstream from a running publish: the complete URL, or as a snapshot shows it. False when it has none
    /// like that.
    pub fn remove_upstream(&self, client_id: u64, url: &str) -> bool {
        let mailbox = &self.shared.mailbox;
        let running = mailbox.counters(client_id).zip(mailbox.worker(client_id));
        let Some((counters, worker)) = running else { return false };
        let Some(id) = counters.upstreams.remove(url) else { return false };
        self.shared.send(worker, Command::RemoveUpstream { client_id, id });
        true
    }

    /// The counters of a running publish.
    #[must_use]
    pub fn snapshot(&self, client_id: u64) -> Option<PublishSnapshot> {
        Some(self.shared.mailbox.counters(client_id)?.snapshot(Instant::now()))
    }

    /// Who plays a running publish, the oldest first; none when it does not run.
    #[must_use]
    pub fn players(&self, client_id: u64) -> Vec<PlayerStatus> {
        let counters = self.shared.mailbox.counters(client_id);
        counters.map_or_else(Vec::new, |counters| counters.players.status())
    }

    /// Media workers that run.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared.workers()
    }

    /// Ends every session with [`EndReason::Shutdown`] and joins the workers: about a second at most. Call it off the
    /// JavaScript thread, then drain once more.
    pub fn stop(&self) {
        for worker in 0..self.shared.workers() {
            self.shared.send(worker, Command::Stop);
        }
        for thread in taken(&self.threads) {
            // A worker that panicked has said so on standard error and dropped its sessions.
            let _ = thread.join();
        }
        self.shared.transcoders.stop();
        for thread in taken(&self.audio_threads) {
            let _ = thread.join();
        }
    }

    /// The mailbox outlives the workers: what they said last is drained from here.
    pub fn drainer(&self) -> impl Fn() -> Vec<Event> + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.mailbox.drain()
    }
}

fn taken(threads: &Mutex<Vec<JoinHandle<()>>>) -> Vec<JoinHandle<()>> {
    std::mem::take(&mut threads.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests;
