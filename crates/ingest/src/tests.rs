//! The core with real sockets: publishers and players are clients of our own protocol crate on blocking sockets.

mod clocks;
mod endings;
mod enhanced;
mod handing_over;
mod hostile;
mod moving;
mod numbers;
mod own_offer;
mod peer;
mod players;
mod proxied;
mod pulls;
mod pushes;
mod str0m_peer;
mod upstreams;
mod waiting;
mod whip;
mod whip_upstream;
mod whip_wire;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::{
    AddressWanted, Event, Hold, Ingest, IngestConfig, PublishEnded, PublishRequested, PullSource,
    Upstream, UpstreamSource, UpstreamUrl,
};

/// The arguments with which another core plays.
const NODE_ARGUMENT: &str = "headgate-node=1";
/// Longer than anything here should take; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(20);
/// Any free port of this machine alone.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn asked(event: &Event) -> Option<PublishRequested> {
    match event {
        Event::PublishRequested(asked) => Some(asked.clone()),
        _ => None,
    }
}

fn upstream(url: &str) -> Upstream {
    let id = url.to_owned();
    let url = UpstreamUrl::parse(url).expect("valid");
    Upstream { id, url, source: UpstreamSource::Stream, is_paused: false }
}

/// A core whose gateway is played by the test; every player is allowed.
struct Core {
    ingest: Arc<Ingest>,
    events: Receiver<Event>,
    waiting: Vec<Event>,
    /// How publishers are held.
    hold: Hold,
}

impl Core {
    fn start(workers: usize) -> Self {
        Self::start_beside(workers, None)
    }

    /// A core that pulls streams from `source` if they are not published here.
    fn start_beside(workers: usize, source: Option<PullSource>) -> Self {
        Self::open(workers, source, None, (LOOPBACK, LOOPBACK.ip()))
    }

    /// A core that inherits a listening socket and accepts only after `start_accepting`.
    fn start_after(workers: usize, rtmp_socket: TcpListener) -> Self {
        Self::open(workers, None, Some(Arc::new(rtmp_socket)), (LOOPBACK, LOOPBACK.ip()))
    }

    /// A core whose media socket is bound to `media` and announced as `public`.
    fn start_at(media: SocketAddr, public: IpAddr) -> Self {
        Self::open(1, None, None, (media, public))
    }

    fn open(
        workers: usize,
        source: Option<PullSource>,
        rtmp_socket: Option<Arc<TcpListener>>,
        (media, public): (SocketAddr, IpAddr),
    ) -> Self {
        Self::open_as(&Self::config(workers, rtmp_socket, (media, public)), source)
    }

    fn config(
        workers: usize,
        rtmp_socket: Option<Arc<TcpListener>>,
        (media, public): (SocketAddr, IpAddr),
    ) -> IngestConfig {
        let accepts = rtmp_socket.is_none();
        IngestConfig {
            rtmp: Some(LOOPBACK),
            trusted_proxies: Vec::new(),
            rtmp_socket,
            accepts,
            rtmp_tls: None,
            upstream_ca_pem: None,
            media,
            public_addresses: vec![public],
            workers,
            audio_workers: 1,
            caches_gop: true,
            pushes_silence: true,
            captures: false,
            rtmp_connections: 0,
            rtmp_connections_per_address: 0,
        }
    }

    fn open_as(config: &IngestConfig, source: Option<PullSource>) -> Self {
        let (wake, woken) = channel();
        let wake = Box::new(move || {
            // The receiver is gone once the test is over.
            let _ = wake.send(());
        });
        let ingest = Arc::new(Ingest::start(config, wake).expect("a free port"));
        let (put, events) = channel();
        let core = Arc::downgrade(&ingest);
        thread::spawn(move || {
            while woken.recv().is_ok() {
                let Some(ingest) = Weak::upgrade(&core) else { return };
                for event in ingest.drain() {
                    match event {
                        Event::PlayRequested(asked) => match (&source, asked.client_id) {
                            (Some(source), None) => ingest.pull(asked.request, source.clone()),
                            _ => {
                                let is_node =
                                    asked.arguments.as_deref() == Some(NODE_ARGUMENT.as_bytes());
                                ingest.allow_play(asked.request, !is_node);
                            }
                        },
                        // The receiver is gone once the test is over.
                        other => drop(put.send(other)),
                    }
                }
            }
        });
        Self { ingest, events, waiting: Vec::new(), hold: Hold::default() }
    }

    fn port(&self) -> u16 {
        self.ingest.rtmp_port().expect("plain RTMP is served")
    }

    /// Waits until a publish has reached this timestamp in ms: everything before it has been published.
    fn wait_for_time(&self, client_id: u64, millis: i64) {
        whip::wait_until("the frames have arrived", || {
            self.ingest.snapshot(client_id).is_some_and(|publish| publish.timestamp_ms >= millis)
        });
    }

    /// Waits for the first event that `pick` accepts; others are kept for later.
    fn wait_for<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.take(&pick) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).expect("the event arrives in time");
            self.waiting.push(event);
        }
    }

    /// The first event that `pick` accepts, if it has arrived.
    fn take<T>(&mut self, pick: impl Fn(&Event) -> Option<T>) -> Option<T> {
        self.waiting.extend(self.events.try_iter());
        let at = self.waiting.iter().position(|event| pick(event).is_some())?;
        pick(&self.waiting.remove(at))
    }

    fn request(&mut self) -> PublishRequested {
        self.wait_for(asked)
    }

    /// The publish request of a publisher, which is stepped until the core has understood it.
    fn request_of(&mut self, publisher: &mut peer::Peer) -> PublishRequested {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(request) = self.take(asked) {
                return request;
            }
            assert!(publisher.step(), "the connection stays until the request");
            assert!(Instant::now() < until, "the request arrives in time");
        }
    }

    fn ended(&mut self, client_id: u64) -> PublishEnded {
        self.wait_for(|event| match event {
            Event::PublishEnded(ended) if ended.client_id == client_id => Some(*ended),
            _ => None,
        })
    }

    fn address_wanted(&mut self) -> AddressWanted {
        self.wait_for(|event| match event {
            Event::AddressWanted(wanted) => Some(wanted.clone()),
            _ => None,
        })
    }

    /// A publisher of `name`, allowed as `client_id` and pushed to `upstreams`.
    fn publisher(&mut self, name: &str, client_id: u64, upstreams: &[String]) -> peer::Peer {
        let mut publisher = peer::Peer::publish(self.port(), name);
        let request = self.request_of(&mut publisher);
        let upstreams = upstreams.iter().map(|url| upstream(url)).collect();
        self.ingest.allow(request.request, client_id, upstreams, self.hold.clone());
        publisher.wait_ready();
        publisher
    }

    fn ended_count(&mut self) -> usize {
        self.waiting.extend(self.events.try_iter());
        self.waiting.iter().filter(|event| matches!(event, Event::PublishEnded(_))).count()
    }
}
