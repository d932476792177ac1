//! One media worker: one thread, one poll loop. It waits for nothing but its poll.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use quinn_udp::BATCH_SIZE;
use slotmap::{Key, KeyData, SecondaryMap};

use super::accept::Acceptor;
use super::link::{Link, Received};
use super::media_tcp::{MediaTcp, is_media_connection};
use super::shared::{Accepted, Command, Shared};
use super::udp::UdpPort;
use crate::switchboard::{Action, Filled, SessionKey, Switchboard};

/// Wake-ups are coalesced to this: a sleep costs about as much as two packets, and on average half of it is added as
/// delay. It also bounds how often one connection gets its turn.
const COALESCE: Duration = Duration::from_millis(2);
/// Bytes read from one socket at a time.
const READ_BUFFER: usize = 64 * 1024;
/// Reads of one socket in one turn, so that a fast peer does not keep its neighbours waiting.
const READS_PER_TURN: usize = 4;
/// Batches of datagrams in one turn, so that TCP gets its share.
const BATCHES_PER_TURN: usize = 8;
/// What running sessions get to say goodbye when the service stops.
const STOP_LIMIT: Duration = Duration::from_secs(1);

// Tokens of sessions are above 32 bits: the generation of their key is never zero.
pub(super) const WAKER: Token = Token(0);
pub(super) const LISTENER: Token = Token(1);
pub(super) const MEDIA: Token = Token(2);
pub(super) const TLS_LISTENER: Token = Token(3);
pub(super) const MEDIA_LISTENER: Token = Token(4);

/// A worker's thread, sockets and buffers around its switchboard.
pub(crate) struct Reactor {
    index: usize,
    poll: Poll,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    switchboard: Switchboard,
    links: SecondaryMap<SessionKey, Link>,
    /// Sessions that had more than one turn's worth to read.
    again: Vec<SessionKey>,
    buffer: Vec<u8>,
    udp: UdpPort,
    /// The media port had more than one turn's worth to read.
    has_datagrams: bool,
    media_tcp: MediaTcp,
    acceptor: Option<Acceptor>,
    stopping_until: Option<Instant>,
    now: Instant,
}

impl Reactor {
    #[expect(clippy::too_many_arguments, reason = "the parts of a worker, each made elsewhere")]
    pub(super) fn new(
        index: usize,
        poll: Poll,
        shared: Arc<Shared>,
        commands: Receiver<Command>,
        switchboard: Switchboard,
        udp: UdpPort,
        media_tcp: MediaTcp,
        acceptor: Option<Acceptor>,
    ) -> Self {
        Self {
            index,
            poll,
            shared,
            commands,
            switchboard,
            links: SecondaryMap::new(),
            again: Vec::new(),
            buffer: vec![0; READ_BUFFER],
            udp,
            has_datagrams: false,
            media_tcp,
            acceptor,
            stopping_until: None,
            now: Instant::now(),
        }
    }

    /// This worker's number.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    /// Serves until [`Command::Stop`]. A panic outside a session's own turn gives up this worker's sessions, loudly,
    /// and goes on with none.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.is_done() {
            if catch_unwind(AssertUnwindSafe(|| self.cycle(&mut events))).is_err() {
                say!("media worker {} panicked: its sessions end", self.index);
                self.switchboard.give_up();
                self.again.clear();
                self.buffer.resize(READ_BUFFER, 0);
            }
        }
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Message(message) => message.refuse(),
                Command::Accept(_) | Command::Stop => {}
            }
        }
    }

    fn is_done(&self) -> bool {
        self.stopping_until
            .is_some_and(|until| self.switchboard.is_empty() || Instant::now() >= until)
    }

    fn cycle(&mut self, events: &mut Events) {
        let timeout = self.next_timeout();
        if let Err(error) = self.poll.poll(events, timeout)
            && error.kind() != ErrorKind::Interrupted
        {
            say!("media worker {}: poll failed: {error}", self.index);
            std::process::abort();
        }
        let woke = Instant::now();
        self.now = woke;
        self.switchboard.begin(woke);
        let mut is_woken = false;
        for event in events.iter() {
            match event.token() {
                WAKER => is_woken = true,
                LISTENER | TLS_LISTENER => self.accept(),
                MEDIA => self.has_datagrams = true,
                MEDIA_LISTENER => self.media_tcp.accept(self.poll.registry(), woke),
                token if is_media_connection(token) => {
                    self.media_tcp.handle_ready(token, &mut self.buffer, &mut self.switchboard);
                }
                token => self.handle_ready(session_of(token), event),
            }
        }
        if is_woken {
            self.shared.set_awake(self.index);
            self.handle_commands();
            self.switchboard.drain_relays();
        }
        if self.has_datagrams {
            self.read_datagrams();
        }
        self.media_tcp.read_again(&mut self.buffer, &mut self.switchboard);
        for key in std::mem::take(&mut self.again) {
            self.read(key);
        }
        self.switchboard.handle_timeout();
        if self.acceptor.as_ref().and_then(Acceptor::deadline).is_some_and(|at| woke >= at) {
            self.accept();
        }
        self.media_tcp.handle_timeout(woke, &mut self.switchboard);
        self.serve();
        self.media_tcp.settle_closing(woke);
        if self.switchboard.has_streams() && !self.has_datagrams && !self.media_tcp.has_more() {
            std::thread::sleep(COALESCE.saturating_sub(woke.elapsed()));
        }
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        // Armed even when it is not waited for: what is due is found by it.
        let deadline = self.switchboard.poll_timeout();
        if !self.again.is_empty() || self.has_datagrams || self.media_tcp.has_more() {
            return Some(Duration::ZERO);
        }
        let accept = self.acceptor.as_ref().and_then(Acceptor::deadline);
        let deadlines = [deadline, accept, self.media_tcp.deadline(), self.stopping_until];
        let earliest = deadlines.into_iter().flatten().min()?;
        Some(earliest.saturating_duration_since(Instant::now()))
    }

    fn handle_commands(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Accept(accepted) => self.take(accepted),
                Command::Message(message) => self.switchboard.handle_message(message),
                Command::Stop => {
                    self.stopping_until = Some(self.now + STOP_LIMIT);
                    self.acceptor = None;
                    self.switchboard.stop();
                }
            }
        }
    }

    fn accept(&mut self) {
        let Some(acceptor) = &mut self.acceptor else { return };
        for (worker, accepted) in acceptor.accept(&self.shared, self.now) {
            if worker == self.index {
                self.take(accepted);
            } else {
                self.shared.send(worker, Command::Accept(accepted));
            }
        }
    }

    /// A connection that was dealt to this worker.
    fn take(&mut self, accepted: Accepted) {
        let Accepted { socket, peer, is_tls, permit } = accepted;
        // Without a certificate there is no such port.
        let tls = if is_tls { self.shared.tls.accept().ok() } else { None };
        if is_tls && tls.is_none() {
            return;
        }
        let Some(key) = self.switchboard.accept(peer) else { return };
        // Media is coalesced by us, not by the kernel; without it only latency suffers.
        let _ = socket.set_nodelay(true);
        if self.watch(key, Link::accepted(socket, tls, permit)) {
            self.read(key);
        } else {
            self.switchboard.handle_closed(key, None);
        }
    }

    fn watch(&mut self, key: SessionKey, mut link: Link) -> bool {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut link.socket, token_of(key), interest);
        if registered.is_ok() {
            self.links.insert(key, link);
        }
        registered.is_ok()
    }

    /// The poll has news of a session's socket.
    fn handle_ready(&mut self, key: SessionKey, event: &Event) {
        let Some(link) = self.links.get_mut(key) else { return };
        link.handle_ready(event.is_writable(), event.is_read_closed() || event.is_error());
        if link.is_connecting() {
            if event.is_writable() || event.is_error() {
                self.finish_connect(key);
            }
            return;
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(key);
        }
        if event.is_writable() {
            self.pump(key);
        }
    }

    /// Reads what is there, as far as one turn goes.
    fn read(&mut self, key: SessionKey) {
        if self.links.get(key).is_none_or(Link::is_connecting) {
            return;
        }
        let mut has_more = self.switchboard.begin_turn(key);
        for _ in 0..READS_PER_TURN {
            let Some(link) = self.links.get_mut(key).filter(|_| has_more) else { break };
            match link.read(&mut self.buffer) {
                Received::Bytes(length) => {
                    has_more = link.has_more(length, self.buffer.len());
                    let input = self.buffer.get(..length).unwrap_or_default();
                    self.switchboard.handle_input(key, input);
                    has_more &= self.switchboard.takes_input(key);
                }
                Received::Blocked => has_more = false,
                Received::Closed => {
                    has_more = false;
                    self.switchboard.handle_closed(key, link.fault());
                }
            }
        }
        let has_unread = self.switchboard.end_read(key);
        let Some(link) = self.links.get_mut(key) else { return };
        link.set_mark(self.switchboard.receive_mark(key));
        let is_tls = link.is_tls();
        if has_more || has_unread {
            self.again.push(key);
        } else if link.is_read_closed() && !self.switchboard.takes_input(key) {
            // A publish that waits for its decision is not read; whoever has left does not wait.
            self.switchboard.handle_closed(key, None);
        }
        if is_tls {
            // The handshake has words of its own.
            self.pump(key);
        }
    }

    fn read_datagrams(&mut self) {
        for _ in 0..BATCHES_PER_TURN {
            // An error is about a datagram we sent (ICMP): the next ones can still be read.
            let batch = self.udp.receive().unwrap_or(0);
            for (source, datagram) in self.udp.datagrams(batch) {
                self.switchboard.handle_datagram(source.into(), datagram);
            }
            // Less than a whole batch: the socket was empty, and what comes now wakes us anew.
            if batch < BATCH_SIZE {
                self.has_datagrams = false;
                break;
            }
        }
    }

    /// Carries out what the turn led to, until nothing new comes of it.
    fn serve(&mut self) {
        loop {
            self.switchboard.settle();
            let (actions, ready) = (self.switchboard.poll_actions(), self.switchboard.poll_ready());
            if actions.is_empty() && ready.is_empty() {
                break;
            }
            for action in actions {
                self.perform(action);
            }
            for key in ready {
                self.pump(key);
            }
        }
        self.udp.flush();
        for worker in self.switchboard.poll_wakes() {
            self.shared.wake(worker);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Connect { session, address, tls_host } => {
                self.connect(session, address, tls_host.as_deref());
            }
            Action::Disconnect(key) => {
                self.links.remove(key);
            }
            Action::Read(key) => self.read(key),
            Action::Send(path, datagram) if path.is_tcp => {
                self.media_tcp.send(path.address, &datagram);
            }
            Action::Send(path, datagram) => self.udp.send(path.address, datagram),
            Action::ClosePath(path) if path.is_tcp => self.media_tcp.close(path.address),
            Action::ClosePath(_) => {}
            Action::Tell(worker, message) => self.shared.tell(worker, message),
        }
    }

    fn connect(&mut self, key: SessionKey, address: std::net::SocketAddr, tls_host: Option<&str>) {
        let Some(permit) = self.shared.connections.admit(None) else {
            self.switchboard.handle_connect_failed(key, Some("no connection is left"));
            return;
        };
        let tls = match tls_host.map(|host| self.shared.tls.connect(host)) {
            None => None,
            Some(Ok(tls)) => Some(tls),
            Some(Err(error)) => {
                let fault = format!("TLS: {error}");
                self.switchboard.handle_connect_failed(key, Some(&fault));
                return;
            }
        };
        let link = TcpStream::connect(address).map(|socket| Link::connecting(socket, tls, permit));
        if !link.is_ok_and(|link| self.watch(key, link)) {
            self.switchboard.handle_connect_failed(key, None);
        }
    }

    fn finish_connect(&mut self, key: SessionKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        if link.finish_connect() {
            self.switchboard.handle_connected(key);
            self.read(key);
        } else {
            self.links.remove(key);
            self.switchboard.handle_connect_failed(key, None);
        }
    }

    /// Writes what waits for a session, as much as its socket takes.
    fn pump(&mut self, key: SessionKey) {
        loop {
            let Some(link) = self.links.get_mut(key) else { return };
            if !link.can_write() {
                return;
            }
            let filled = self.switchboard.fill(key);
            let Some(output) = self.switchboard.output_mut(key) else { return };
            let before = output.pending_bytes();
            let Ok(progress) = link.flush(output) else {
                self.switchboard.handle_closed(key, None);
                return;
            };
            let left = output.pending_bytes();
            if progress {
                self.switchboard.handle_written(key, before - left);
            }
            if left == 0 && self.switchboard.is_closing(key) {
                link.shut_writing();
            }
            if filled == Filled::Drained || !link.can_write() {
                return;
            }
        }
    }
}

fn token_of(key: SessionKey) -> Token {
    Token(usize::try_from(key.data().as_ffi()).unwrap_or(usize::MAX))
}

fn session_of(token: Token) -> SessionKey {
    KeyData::from_ffi(token.0 as u64).into()
}
