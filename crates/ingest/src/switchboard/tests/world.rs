//! One switchboard, the gateway's part, and the peers of its sessions.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use headgate_rtmp::{
    ClientConfig, ClientRole, ClientSession, Limits, MediaKind, ServerConfig, ServerSession,
};

use super::super::message::Message;
use super::super::moved_publish::MovedPublish;
use super::super::*;
use super::peer::{Peer, Remote, take};
use super::recorder::recording_encoders;
use crate::publish::mailbox::{
    Event, HoldEnded, Mailbox, OnAirChanged, PlayEnded, PlayRequested, PublishEnded, PullEnded,
    SourceWanted,
};
use crate::publish::play_guard::PlayGuard;
use crate::publish::registry::Publishes;
use crate::publish::upstreams::{Upstream, UpstreamSource};
pub(super) use crate::sample::AVC_HEADER;
use crate::sample::{number, picture};
use crate::transcoding::{Transcoders, TranscodingThreads};
use crate::{EndReason, UpstreamTested, UpstreamUrl};

/// An upstream of the tests.
pub(super) const URL: &str = "rtmp://upstream.example/live/out";
pub(super) const AAC_HEADER: &[u8] = &[0xaf, 0, 0x12, 0x10];
pub(super) const AAC_FRAME: &[u8] = &[0xaf, 1, 0x21, 9, 9];

/// How often the worker wakes when it is busy.
const TICK: Duration = Duration::from_millis(10);

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) switchboard: Switchboard,
    pub(super) publishes: Arc<Publishes>,
    pub(super) peers: HashMap<SessionKey, Peer>,
    pub(super) ended: Vec<PublishEnded>,
    pub(super) holds_ended: Vec<HoldEnded>,
    pub(super) on_air: Vec<OnAirChanged>,
    /// How long streams are held.
    pub(super) window: Duration,
    /// Requests that have not been answered yet.
    pub(super) asked: VecDeque<u64>,
    /// When pushes requested an address.
    pub(super) resolved: Vec<Instant>,
    /// Messages for other workers.
    pub(super) posted: Vec<(usize, Message)>,
    /// Sessions that leave for another worker.
    pub(super) moved: Vec<(usize, SessionKey, Box<MovedPublish>)>,
    /// Datagrams for WHIP clients.
    pub(super) sent: Vec<(Path, Vec<u8>)>,
    /// Whether upstreams and sources can be connected to, whether they accept, and how many bytes they read at each
    /// tick.
    pub(super) upstream: (bool, bool, usize),
    /// Whether they are sessions of another world.
    pub(super) dials_world: bool,
    /// Whether the gateway leaves plays unanswered instead of allowing them.
    pub(super) holds_plays: bool,
    /// Play requests that were left unanswered.
    pub(super) plays: VecDeque<PlayRequested>,
    pub(super) plays_ended: Vec<PlayEnded>,
    /// Pulls that lost their source.
    pub(super) wanted: VecDeque<SourceWanted>,
    pub(super) pulls_ended: Vec<PullEnded>,
    /// The audio threads, and the samples of all AAC that they have made.
    pub(super) audio: TranscodingThreads,
    pub(super) heard: Arc<Mutex<Vec<i16>>>,
    /// Codes of refused connections.
    pub(super) refused: Vec<&'static str>,
    /// Results of upstreams' tests.
    pub(super) tested: Vec<UpstreamTested>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::on(0, 1)
    }

    /// Worker number `worker` of `workers`.
    pub(super) fn on(worker: usize, workers: usize) -> Self {
        let publishes = Publishes::new(Mailbox::new(Box::new(|| {})));
        let heard = Arc::<Mutex<Vec<i16>>>::default();
        let samples = heard.clone();
        let (transcoders, audio) = Transcoders::new(1, recording_encoders(samples));
        let context = Context {
            worker,
            workers,
            caches_gop: true,
            pushes_silence: true,
            captures: false,
            publishes: publishes.clone(),
            transcoders: Arc::new(transcoders),
        };
        let now = Instant::now();
        Self {
            now,
            switchboard: Switchboard::new(context, now),
            publishes,
            peers: HashMap::new(),
            ended: Vec::new(),
            holds_ended: Vec::new(),
            on_air: Vec::new(),
            window: Duration::ZERO,
            asked: VecDeque::new(),
            resolved: Vec::new(),
            posted: Vec::new(),
            moved: Vec::new(),
            sent: Vec::new(),
            upstream: (true, true, usize::MAX),
            dials_world: false,
            holds_plays: false,
            plays: VecDeque::new(),
            plays_ended: Vec::new(),
            wanted: VecDeque::new(),
            pulls_ended: Vec::new(),
            audio,
            heard,
            refused: Vec::new(),
            tested: Vec::new(),
        }
    }

    /// Makes it a worker of the same process as the other.
    pub(super) fn share(&mut self, other: &Self) {
        self.publishes = other.publishes.clone();
        self.switchboard.sessions.context.publishes = other.publishes.clone();
    }

    /// Opens a connection of a broadcaster or player of `name`.
    pub(super) fn connect(&mut self, role: ClientRole, name: &str) -> SessionKey {
        self.connect_to("live", role, name)
    }

    /// The same for any app.
    pub(super) fn connect_to(&mut self, app: &str, role: ClientRole, name: &str) -> SessionKey {
        let config = ClientConfig {
            app: app.into(),
            tc_url: "rtmp://h/live".into(),
            name: name.into(),
            limits: Limits { turn_work: u32::MAX, ..Limits::default() },
            ..ClientConfig::new(role)
        };
        let key = self.switchboard.accept(IpAddr::from([192, 0, 2, 1])).expect("it serves");
        let remote = Remote::Client(Box::new(ClientSession::new(config, self.now)));
        self.add_peer(key, remote, usize::MAX);
        self.settle();
        key
    }

    /// A player of `name`.
    pub(super) fn player(&mut self, name: &str) -> SessionKey {
        self.connect(ClientRole::Play, name)
    }

    /// Sends frame `n`, one every 40 ms with a keyframe each second, containing its number and `length` more bytes.
    pub(super) fn send_frame(&mut self, key: SessionKey, n: u32, length: usize) {
        let frame = picture(n.is_multiple_of(25), n, 9 + length);
        self.send(key, MediaKind::Video, n * 40, &frame);
    }

    /// Sends a message from a publisher and gives the worker its turn.
    pub(super) fn send(&mut self, key: SessionKey, kind: MediaKind, timestamp: u32, body: &[u8]) {
        if let Some(Peer { remote: Remote::Client(client), .. }) = self.peers.get_mut(&key) {
            client.send_media(kind, timestamp, &[], &Bytes::copy_from_slice(body));
        }
        self.settle();
    }

    /// Sends a message of any type from a publisher, below its session.
    pub(super) fn send_message(&mut self, key: SessionKey, kind: u8, payload: &[u8]) {
        let [.., l0, l1, l2] = payload.len().to_be_bytes();
        self.send_bytes(key, &[&[20, 0, 0, 0, l0, l1, l2, kind, 1, 0, 0, 0], payload].concat());
    }

    /// Sends bytes from a publisher, below its session.
    pub(super) fn send_bytes(&mut self, key: SessionKey, bytes: &[u8]) {
        self.switchboard.begin(self.now);
        if self.switchboard.begin_turn(key) {
            self.switchboard.handle_input(key, bytes);
        }
        self.switchboard.end_read(key, false);
        self.settle();
    }

    /// Closes the peer's connection.
    pub(super) fn hang_up(&mut self, key: SessionKey) {
        self.peers.remove(&key);
        self.switchboard.handle_closed(key, None);
        self.settle();
    }

    /// Lets time pass, with the worker waking as often as it must.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            let due = self.switchboard.poll_timeout().unwrap_or(until);
            self.now = due.clamp(self.now, self.now + TICK).max(self.now).min(until);
            if due > self.now {
                self.now = (self.now + TICK).min(due).min(until);
            }
            self.switchboard.begin(self.now);
            self.switchboard.handle_timeout();
            self.settle();
            let next = self.switchboard.poll_timeout();
            assert!(next.is_none_or(|at| at > self.now), "a deadline that is never served");
        }
    }

    /// Passes bytes and actions on until nothing moves.
    pub(super) fn settle(&mut self) {
        self.switchboard.begin(self.now);
        let mut left: HashMap<_, _> = self.peers.iter().map(|(key, of)| (*key, of.reads)).collect();
        for _ in 0..1_000 {
            self.switchboard.settle();
            let mut moved = self.carry_actions();
            moved |= self.read_peers();
            // A peer that reads makes the worker's socket writable again.
            let behind = self.peers.keys().copied().filter(|key| {
                self.switchboard.output_mut(*key).is_some_and(|output| !output.is_empty())
            });
            let mut ready: Vec<_> = behind.collect();
            ready.extend(self.switchboard.poll_ready());
            for key in ready {
                moved |= self.write(key, left.entry(key).or_insert(usize::MAX));
            }
            moved |= self.drain_mailbox();
            for stream in self.audio.run(self.now) {
                self.switchboard.handle_message(Message::Transcoded(stream));
                moved = true;
            }
            if !moved {
                return;
            }
        }
        panic!("the worker never becomes idle");
    }

    /// Numbers of the frames that a peer has received.
    pub(super) fn frames(&self, key: SessionKey) -> Vec<u32> {
        let media = self.peers[&key].media.iter().filter(|of| of.kind == MediaKind::Video);
        media.filter_map(|of| number(&of.payload)).collect()
    }

    /// The peer of the only push or pull.
    pub(super) fn upstream_peer(&self) -> Option<SessionKey> {
        let is_upstream = |peer: &Peer| matches!(peer.remote, Remote::Upstream(_));
        self.peers.iter().find(|(_, peer)| is_upstream(peer)).map(|(key, _)| *key)
    }

    pub(super) fn add_peer(&mut self, key: SessionKey, remote: Remote, reads: usize) {
        self.peers.insert(key, Peer::new(remote, reads, self.upstream.1));
    }

    fn carry_actions(&mut self) -> bool {
        let actions = self.switchboard.poll_actions();
        let moved = !actions.is_empty();
        for action in actions {
            match action {
                Action::Connect { session, .. } if self.upstream.0 => {
                    let remote = if self.dials_world {
                        Remote::World { received: Vec::new(), written: Vec::new() }
                    } else {
                        let server = ServerSession::new(ServerConfig::default(), self.now);
                        Remote::Upstream(Box::new(server))
                    };
                    self.add_peer(session, remote, self.upstream.2);
                    self.switchboard.handle_connected(session);
                }
                Action::Connect { session, .. } => {
                    let cause = UpstreamCause::ConnectionRefused;
                    self.switchboard.handle_connect_failed(session, cause, None);
                }
                Action::Disconnect(key) => {
                    // Keep players and broadcasters, for what they recorded.
                    if matches!(
                        self.peers.get(&key),
                        Some(Peer { remote: Remote::Upstream(_) | Remote::World { .. }, .. })
                    ) {
                        self.peers.remove(&key);
                    }
                }
                Action::Send(path, datagram) => self.sent.push((path, datagram)),
                Action::Tell(worker, message) => self.posted.push((worker, message)),
                Action::Move { session, home, moved } => {
                    self.moved.push((home, session, moved));
                }
                Action::Read(_) | Action::ClosePath(_) => {}
            }
        }
        moved
    }

    /// Passes what peers have written to the worker.
    fn read_peers(&mut self) -> bool {
        let mut moved = false;
        for key in self.peers.keys().copied().collect::<Vec<_>>() {
            let Some(peer) = self.peers.get_mut(&key) else { continue };
            if !self.switchboard.begin_turn(key) {
                moved |= self.switchboard.end_read(key, false);
                continue;
            }
            let bytes = peer.take_written();
            if !bytes.is_empty() {
                self.switchboard.handle_input(key, &bytes);
                moved = true;
            }
            moved |= self.switchboard.end_read(key, false);
        }
        moved
    }

    /// Passes the worker's output to a peer, as much as it reads.
    fn write(&mut self, key: SessionKey, left: &mut usize) -> bool {
        let Some(peer) = self.peers.get_mut(&key) else { return false };
        self.switchboard.fill(key);
        let Some(output) = self.switchboard.output_mut(key) else { return false };
        let was_empty = output.is_empty();
        let bytes = take(output, *left);
        let is_behind = !output.is_empty();
        *left -= bytes.len().min(*left);
        if bytes.is_empty() && !was_empty {
            return false;
        }
        self.switchboard.handle_written(key, bytes.len(), is_behind);
        peer.read(&bytes, self.now);
        !bytes.is_empty()
    }

    fn drain_mailbox(&mut self) -> bool {
        let events = self.publishes.mailbox().drain();
        let moved = !events.is_empty();
        for event in events {
            match event {
                Event::PublishRequested(asked) => self.asked.push_back(asked.request),
                Event::PublishEnded(ended) => self.ended.push(ended),
                Event::HoldEnded(ended) => self.holds_ended.push(ended),
                Event::AddressWanted(wanted) => {
                    self.resolved.push(self.now);
                    let addresses = vec![IpAddr::from([192, 0, 2, 9])];
                    self.switchboard.handle_message(Message::Dial { push: wanted.push, addresses });
                }
                Event::PlayRequested(asked) if self.holds_plays => self.plays.push_back(asked),
                Event::PlayRequested(asked) => self.allow_play(asked.request),
                Event::PlayEnded(ended) => self.plays_ended.push(ended),
                Event::ConnectionRefused(refused) => self.refused.push(refused.code),
                Event::SourceWanted(wanted) => self.wanted.push_back(wanted),
                Event::PullEnded(ended) => self.pulls_ended.push(ended),
                Event::OnAirChanged(changed) => self.on_air.push(changed),
                Event::UpstreamTested(tested) => self.tested.push(tested),
                Event::UpstreamChanged(_) => {}
            }
        }
        moved
    }

    /// Allows a play, as the gateway.
    pub(super) fn allow_play(&mut self, request: u64) {
        let guard = PlayGuard::new(self.publishes.clone(), request);
        self.switchboard.handle_message(Message::AllowPlay { request, guard, is_counted: true });
    }

    /// The reasons of the ends so far, with client ids.
    pub(super) fn reasons(&self) -> Vec<(u64, EndReason)> {
        self.ended.iter().map(|ended| (ended.client_id, ended.reason)).collect()
    }
}

/// An upstream for a publish of the tests.
pub(super) fn upstream(url: &str) -> Upstream {
    let (id, url) = (url.to_owned(), UpstreamUrl::parse(url).expect("valid"));
    Upstream { id, url, source: UpstreamSource::Stream, is_paused: false }
}

/// The address of a client of the tests.
pub(super) fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 7], port))
}
