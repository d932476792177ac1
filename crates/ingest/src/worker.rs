//! One media worker: one thread, one poll loop, the sessions dealt to it. It never waits for anything but its poll.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use headgate_whip::Path;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::directory::StreamId;
use crate::hub::{Hub, Woken};
use crate::live::{LocalStream, Mirror};
use crate::mailbox::Mailbox;
use crate::ports::listen;
use crate::rtmp_server::ServerConnection;
use crate::seat::{After, Entry, Ready, Seat};
use crate::session::EndReason;
use crate::shared::{Command, Inbox, Shared};
use crate::tls::TlsContext;
use crate::transcoding::{Transcoders, TranscodingThreads};
use crate::udp::UdpPort;
use crate::whip_tcp::{MediaTcp, is_media_connection, open_media_ports};
use crate::{IngestConfig, RtmpTls, StartError};

/// Wake-ups are coalesced to this: a sleep costs about as much as two packets, and on average half of it is added as
/// delay.
const COALESCE: Duration = Duration::from_millis(2);
/// Bytes read from one socket at a time.
const READ_BUFFER: usize = 64 * 1024;
/// What running sessions get to say goodbye when the service stops.
const STOP_LIMIT: Duration = Duration::from_secs(1);

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const MEDIA: Token = Token(2);
const TLS_LISTENER: Token = Token(3);
const MEDIA_LISTENER: Token = Token(4);
/// Tokens below this are the worker's own; those of media connections are marked.
const FIRST_SEAT: usize = 5;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Seat { key: usize, generation: u64 },
    Stream(StreamId),
    Accept,
    MediaSweep,
}

/// Everything that is bound and made before a thread runs.
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rtmp_port: u16,
    pub(crate) rtmp_tls_port: Option<u16>,
    pub(crate) media_ports: Vec<u16>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) transcoding_threads: TranscodingThreads,
}

/// The worker's own state; `live.rs` has what it does with streams, `rtmp_*.rs` what sessions do.
pub(crate) struct Worker {
    index: usize,
    pub(crate) now: Instant,
    pub(crate) poll: Poll,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hub: Hub,
    pub(crate) woken: Woken,
    pub(crate) seats: Slab<Seat>,
    pub(crate) locals: FxHashMap<StreamId, LocalStream>,
    pub(crate) mirrors: FxHashMap<StreamId, Mirror>,
    /// Open questions to the gateway: publish requests and pushes that want an address.
    pub(crate) questions: FxHashMap<u64, usize>,
    /// Readers whose audio waits for a picture, the oldest first.
    pub(crate) held_audio: VecDeque<(Instant, usize, u64)>,
    /// Seats whose socket had more than one turn's worth to read.
    pub(crate) again: Vec<usize>,
    pub(crate) buffer: Vec<u8>,
    /// The media port; taken out while a batch is handled.
    pub(crate) udp: Option<UdpPort>,
    /// The media port had more than one turn's worth to read.
    pub(crate) has_datagrams: bool,
    /// Datagrams to send at the end of the turn.
    pub(crate) outgoing: Vec<(Path, Vec<u8>)>,
    /// Connections to the media port.
    pub(crate) media_tcp: Option<MediaTcp>,
    /// WHIP sessions by the paths that proved themselves.
    pub(crate) addresses: FxHashMap<Path, usize>,
    /// WHIP sessions by our half of their STUN user name.
    pub(crate) ufrags: FxHashMap<Vec<u8>, usize>,
    pub(crate) stopping: Option<Instant>,
    commands: Receiver<Command>,
    pub(crate) listener: Option<TcpListener>,
    pub(crate) tls_listener: Option<TcpListener>,
    pub(crate) deal_to: usize,
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    generation: u64,
    handles: u64,
    hasher: RandomState,
}

impl Worker {
    /// All workers of the process; the first one accepts and deals.
    pub(crate) fn open_all(
        config: &IngestConfig,
        mailbox: Arc<Mailbox>,
    ) -> Result<Opened, StartError> {
        let mut listener = listen(config.rtmp)?;
        let rtmp_port = listener.local_addr()?.port();
        let tls = TlsContext::new(config.upstream_ca_pem.clone());
        let mut tls_listener =
            config.rtmp_tls.as_ref().map(|tls| listen(tls.address)).transpose()?;
        if let Some(RtmpTls { cert_pem, key_pem, .. }) = &config.rtmp_tls {
            tls.set_certificate(cert_pem, key_pem)?;
        }
        let rtmp_tls_port = match &tls_listener {
            Some(listener) => Some(listener.local_addr()?.port()),
            None => None,
        };
        let mut polls = Vec::new();
        let mut inboxes = Vec::new();
        let mut media_ports = Vec::new();
        for index in 0..config.workers.max(1) {
            let poll = Poll::new()?;
            let (mut udp, mut tcp) = open_media_ports(config, index)?;
            poll.registry().register(&mut udp.socket, MEDIA, Interest::READABLE)?;
            poll.registry().register(&mut tcp, MEDIA_LISTENER, Interest::READABLE)?;
            media_ports.push(udp.port()?);
            let waker = Waker::new(poll.registry(), WAKER)?;
            let (commands, receiver) = channel();
            inboxes.push(Inbox::new(commands, waker));
            polls.push((poll, udp, tcp, receiver));
        }
        let (transcoders, transcoding_threads) =
            Transcoders::new(config.audio_workers, config.encoders_ahead);
        let IngestConfig { caches_gop, pushes_silence, .. } = *config;
        let shared = Shared::new(mailbox, transcoders, tls, caches_gop, pushes_silence, inboxes);
        if let Some((poll, ..)) = polls.first() {
            poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
            if let Some(listener) = &mut tls_listener {
                poll.registry().register(listener, TLS_LISTENER, Interest::READABLE)?;
            }
        }
        let mut listener = Some(listener);
        let workers = polls
            .into_iter()
            .enumerate()
            .map(|(index, (poll, udp, tcp, commands))| Self {
                index,
                now: Instant::now(),
                poll,
                shared: shared.clone(),
                hub: Hub::default(),
                woken: Woken::default(),
                seats: Slab::new(),
                locals: FxHashMap::default(),
                mirrors: FxHashMap::default(),
                questions: FxHashMap::default(),
                held_audio: VecDeque::new(),
                again: Vec::new(),
                buffer: Vec::new(),
                udp: Some(udp),
                has_datagrams: false,
                outgoing: Vec::new(),
                media_tcp: Some(MediaTcp::new(tcp)),
                addresses: FxHashMap::default(),
                ufrags: FxHashMap::default(),
                stopping: None,
                commands,
                listener: listener.take(),
                tls_listener: tls_listener.take(),
                deal_to: 0,
                timers: BinaryHeap::new(),
                generation: 0,
                handles: 0,
                hasher: RandomState::new(),
            })
            .collect();
        Ok(Opened { shared, rtmp_port, rtmp_tls_port, media_ports, workers, transcoding_threads })
    }

    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    /// Serves until [`Command::Stop`]. A panic outside a session's own turn gives up this worker's sessions, loudly,
    /// and goes on with none.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.is_done() {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.cycle(&mut events)));
            if outcome.is_err() {
                say!("media worker {} panicked: its sessions end", self.index);
                self.give_up();
            }
        }
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Allow { mut slot, .. } => slot.name_reason(EndReason::Shutdown),
                Command::OpenWhip(mut opening) => opening.slot.name_reason(EndReason::Shutdown),
                Command::Accept(..)
                | Command::Deny { .. }
                | Command::Whip { .. }
                | Command::Dial { .. }
                | Command::End { .. }
                | Command::AddUpstream { .. }
                | Command::RemoveUpstream { .. }
                | Command::Attach { .. }
                | Command::Seed { .. }
                | Command::Transcoded { .. }
                | Command::Detach { .. }
                | Command::WantKeyframe(_)
                | Command::Stop => {}
            }
        }
    }

    /// Seats a session and watches its timers.
    pub(crate) fn seat(&mut self, entry: Entry) -> usize {
        self.generation += 1;
        let key = self.seats.insert(Seat::new(self.generation, entry));
        self.set_seat_timer(key);
        key
    }

    /// Watches a socket for a seat.
    pub(crate) fn watch(&self, key: usize, socket: &mut TcpStream) -> io::Result<()> {
        let generation = self.seats.get(key).map_or(self.generation, |seat| seat.generation);
        let token = seat_token(key, generation);
        self.poll.registry().register(socket, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Runs one session's turn. A panic in it ends that session alone.
    pub(crate) fn turn(
        &mut self,
        key: usize,
        act: impl FnOnce(&mut Self, usize, &mut Entry) -> After,
    ) {
        let Some(mut entry) = self.seats.get_mut(key).and_then(|seat| seat.entry.take()) else {
            return;
        };
        match catch_unwind(AssertUnwindSafe(|| act(self, key, &mut entry))) {
            Ok(After::Stay) => {
                if let Some(seat) = self.seats.get_mut(key) {
                    seat.entry = Some(entry);
                }
                self.set_seat_timer(key);
            }
            Ok(After::Gone(reason)) => self.leave(key, reason),
            Err(_) => {
                // It may have taken the buffer along; to read into none would look like the peer's end.
                self.provide_buffer();
                self.leave(key, EndReason::InternalError);
            }
        }
    }

    /// A handle for a question to the gateway; it names this worker.
    pub(crate) fn new_question(&mut self, key: usize) -> u64 {
        self.handles += 1;
        let handle = self.handles * self.shared.workers() as u64 + self.index as u64;
        self.questions.insert(handle, key);
        handle
    }

    /// 64 bits nobody can predict.
    pub(crate) fn random(&mut self) -> u64 {
        self.handles += 1;
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(self.handles);
        hasher.finish()
    }

    pub(crate) fn set_timer(&mut self, at: Instant, timer: Timer) {
        self.timers.push(Reverse((at, timer)));
    }

    fn set_seat_timer(&mut self, key: usize) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        let deadline = match &seat.entry {
            Some(Entry::Server(server)) => server.deadline(),
            Some(Entry::Whip(whip)) => whip.deadline(),
            Some(Entry::Push(push)) => push.deadline(),
            None => None,
        };
        // A timer that is set too early costs one look; one that is set too late would cost the deadline.
        if let Some(at) = deadline
            && seat.timer.is_none_or(|set| at < set)
        {
            seat.timer = Some(at);
            let timer = Timer::Seat { key, generation: seat.generation };
            self.timers.push(Reverse((at, timer)));
        }
    }

    fn provide_buffer(&mut self) {
        if self.buffer.len() != READ_BUFFER {
            self.buffer = vec![0; READ_BUFFER];
        }
    }

    fn cycle(&mut self, events: &mut Events) {
        self.provide_buffer();
        let timeout = self.next_timeout();
        if let Err(error) = self.poll.poll(events, timeout)
            && error.kind() != ErrorKind::Interrupted
        {
            say!("media worker {}: poll failed: {error}", self.index);
            std::process::abort();
        }
        let woke = Instant::now();
        self.now = woke;
        let mut is_woken = false;
        for event in events.iter() {
            match event.token() {
                WAKER => is_woken = true,
                LISTENER | TLS_LISTENER => self.accept(),
                MEDIA => self.has_datagrams = true,
                MEDIA_LISTENER => self.accept_media(),
                token if is_media_connection(token) => self.handle_media_connection(token),
                token => {
                    let (key, generation) = seat_of(token);
                    if self.seats.get(key).is_some_and(|seat| seat.generation as u32 == generation)
                    {
                        let ready = Ready {
                            readable: event.is_readable(),
                            writable: event.is_writable(),
                            read_closed: event.is_read_closed() || event.is_error(),
                        };
                        self.turn(key, |worker, key, entry| entry.handle_ready(worker, key, ready));
                    }
                }
            }
        }
        if is_woken {
            self.shared.set_awake(self.index);
            self.handle_commands();
            self.drain_mirrors();
        }
        if self.has_datagrams {
            self.handle_datagrams();
        }
        for key in std::mem::take(&mut self.again) {
            self.turn(key, |worker, key, entry| entry.handle_ready(worker, key, Ready::READ));
        }
        self.handle_timers();
        self.release_audio();
        self.serve_readers();
        self.send_datagrams();
        let has_live = !self.locals.is_empty() || !self.mirrors.is_empty();
        if has_live && self.again.is_empty() && !self.has_datagrams {
            std::thread::sleep(COALESCE.saturating_sub(woke.elapsed()));
        }
    }

    /// Lets everyone whose queue grew write, until nothing new comes of it.
    fn serve_readers(&mut self) {
        while !self.woken.readers.is_empty() {
            let mut readers = std::mem::take(&mut self.woken.readers);
            readers.sort_unstable();
            readers.dedup();
            for key in readers {
                if !self.holds_audio(key) {
                    self.turn(key, |worker, key, entry| entry.handle_ready(worker, key, Ready::NO));
                }
            }
        }
        let mut workers = std::mem::take(&mut self.woken.workers);
        workers.sort_unstable();
        workers.dedup();
        for worker in workers {
            self.shared.wake(worker);
        }
    }

    fn handle_commands(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Accept(socket, peer, is_tls) => self.welcome(socket, peer, is_tls),
                Command::Allow { request, slot, upstreams } => self.allow(request, slot, upstreams),
                Command::OpenWhip(opening) => self.open_whip(*opening),
                Command::Whip { client_id, order } => self.obey_whip(client_id, order),
                Command::Transcoded { stream } => self.publish_transcoded(stream),
                Command::Deny { request, denial, description } => {
                    self.answer(request, |_, _, server| server.deny(denial, &description));
                }
                Command::Dial { push, addresses } => self.dial(push, addresses),
                Command::End { client_id, reason, description } => {
                    self.end_publish(client_id, reason, &description);
                }
                Command::AddUpstream { client_id, record } => self.add_upstream(client_id, record),
                Command::RemoveUpstream { client_id, id } => self.remove_upstream(client_id, id),
                Command::Attach { stream, reader, relay } => self.attach(stream, reader, relay),
                Command::Seed { stream, burst } => self.seed(stream, burst),
                Command::Detach { stream, relay } => self.detach(stream, &relay),
                Command::WantKeyframe(stream) => self.want_keyframe(stream),
                Command::Stop => self.begin_stop(),
            }
        }
    }

    /// A turn for the server connection that asked `request`, if it still waits.
    pub(crate) fn answer(
        &mut self,
        request: u64,
        act: impl FnOnce(&mut Self, usize, &mut ServerConnection),
    ) -> bool {
        let Some(key) = self.questions.remove(&request) else { return false };
        let mut answered = false;
        self.turn(key, |worker, key, entry| match entry {
            Entry::Server(server) if server.awaits(request) => {
                answered = true;
                act(worker, key, server);
                // What came while the question was open is read now.
                entry.handle_ready(worker, key, Ready::READ)
            }
            Entry::Server(_) | Entry::Whip(_) | Entry::Push(_) => After::Stay,
        });
        answered
    }

    fn handle_timers(&mut self) {
        while let Some(Reverse((at, timer))) = self.timers.peek().copied() {
            if at > self.now {
                break;
            }
            self.timers.pop();
            match timer {
                Timer::Seat { key, generation } => {
                    let Some(seat) = self.seats.get_mut(key) else { continue };
                    if seat.generation == generation {
                        seat.timer = None;
                        self.turn(key, |worker, key, entry| entry.handle_timeout(worker, key));
                    }
                }
                Timer::Stream(stream) => self.settle(stream),
                Timer::Accept => self.accept(),
                Timer::MediaSweep => self.sweep_media(),
            }
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        if !self.again.is_empty() || self.has_datagrams {
            return Some(Duration::ZERO);
        }
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let audio = self.held_audio.front().map(|(at, ..)| *at);
        let earliest = [timer, audio, self.stopping].into_iter().flatten().min()?;
        Some(earliest.saturating_duration_since(Instant::now()))
    }

    fn begin_stop(&mut self) {
        self.stopping = Some(self.now + STOP_LIMIT);
        self.listener = None;
        self.tls_listener = None;
        self.end_all(EndReason::Shutdown);
    }

    fn is_done(&self) -> bool {
        let empty = self.seats.is_empty() && self.locals.is_empty();
        self.stopping.is_some_and(|until| empty || Instant::now() >= until)
    }

    fn give_up(&mut self) {
        for key in self.seats.iter().map(|(key, _)| key).collect::<Vec<_>>() {
            self.seats.remove(key);
        }
        for (stream, local) in self.locals.drain() {
            self.shared.directory.leave(&local.name, stream);
        }
        for (stream, mirror) in self.mirrors.drain() {
            self.shared.send(mirror.owner, Command::Detach { stream, relay: mirror.relay });
        }
        self.hub = Hub::default();
        self.questions.clear();
        self.held_audio.clear();
        self.addresses.clear();
        self.ufrags.clear();
        self.woken = Woken::default();
    }
}

/// A seat's key below, the low half of its generation above: a late event of an earlier occupant is told apart.
fn seat_token(key: usize, generation: u64) -> Token {
    Token((generation as u32 as usize) << 32 | (key + FIRST_SEAT))
}

fn seat_of(token: Token) -> (usize, u32) {
    ((token.0 & 0xffff_ffff) - FIRST_SEAT, (token.0 >> 32) as u32)
}
