//! One media worker: one thread and one poll loop, which blocks only in its poll.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry};
use quinn_udp::BATCH_SIZE;
use slotmap::SecondaryMap;

use super::accept::Acceptor;
use super::link::Link;
use super::media_tcp::{MediaTcp, is_media_connection};
use super::proxied::{ProxiedConnections, is_proxied};
use super::shared::{Command, Shared};
use super::tokens::{
    LISTENER, MEDIA, MEDIA_LISTENER, PULL_LISTENER, TLS_LISTENER, WAKER, session_of,
};
use super::udp::UdpPort;
use super::worker_load::LoadMeter;
use crate::publish::end_reason::EndReason;
use crate::switchboard::{Action, SessionKey, Switchboard};

/// Wake-ups are coalesced to this interval: a sleep costs about as much as two packets and adds half the interval as
/// delay on average. It also bounds how often one connection gets its turn.
const COALESCE: Duration = Duration::from_millis(2);
/// Bytes read from one socket at a time.
const READ_BUFFER: usize = 64 * 1024;
/// Batches of datagrams read per turn, so that TCP gets its share.
const BATCHES_PER_TURN: usize = 8;
/// How long running sessions have to send their closing commands when the service stops.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// A worker's thread, sockets and buffers around its switchboard.
pub(crate) struct Reactor {
    index: usize,
    pub(super) poll: Poll,
    pub(super) shared: Arc<Shared>,
    commands: Receiver<Command>,
    pub(super) switchboard: Switchboard,
    pub(super) links: SecondaryMap<SessionKey, Link>,
    /// Sessions whose sockets are due to be read, without duplicates.
    pub(super) to_read: Vec<SessionKey>,
    /// Sessions whose sockets became writable.
    pub(super) to_write: Vec<SessionKey>,
    pub(super) buffer: Vec<u8>,
    udp: UdpPort,
    /// The media port may have more datagrams to read.
    has_datagrams: bool,
    media_tcp: MediaTcp,
    pub(super) proxied: ProxiedConnections,
    acceptor: Option<Acceptor>,
    stopping_until: Option<Instant>,
    pub(super) now: Instant,
    load: LoadMeter,
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
        let now = Instant::now();
        Self {
            index,
            poll,
            shared,
            commands,
            switchboard,
            links: SecondaryMap::new(),
            to_read: Vec::new(),
            to_write: Vec::new(),
            buffer: vec![0; READ_BUFFER],
            udp,
            has_datagrams: false,
            media_tcp,
            proxied: ProxiedConnections::default(),
            acceptor,
            stopping_until: None,
            now,
            load: LoadMeter::new(now),
        }
    }

    /// This worker's number.
    pub(crate) const fn index(&self) -> usize {
        self.index
    }

    /// Serves until [`Command::Stop`]. After a panic outside a session's own turn this worker ends all its sessions,
    /// reports that on standard error and continues without them.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.is_done() {
            if catch_unwind(AssertUnwindSafe(|| self.cycle(&mut events))).is_err() {
                say!("media worker {} panicked: its sessions end", self.index);
                self.give_up();
            }
        }
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Message(message) => message.refuse(),
                Command::Adopt(moved) => moved.1.refuse(EndReason::Shutdown),
                Command::Accept(_)
                | Command::AcceptPulls(_)
                | Command::StartAccepting
                | Command::StopAccepting
                | Command::Stop => {}
            }
        }
    }

    /// Drops everything that was being served.
    fn give_up(&mut self) {
        self.switchboard.give_up();
        self.links.clear();
        self.to_read.clear();
        self.to_write.clear();
        self.media_tcp.close_all();
        self.proxied.close_all();
        self.buffer.resize(READ_BUFFER, 0);
        // A wake-up may have been lost in the panic.
        self.shared.set_awake(self.index);
        self.shared.wake(self.index);
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
        if let Some(load) = self.shared.loads.get(self.index) {
            self.load.measure(woke, load);
        }
        self.switchboard.begin(woke);
        let mut is_woken = false;
        for event in events.iter() {
            match event.token() {
                WAKER => is_woken = true,
                LISTENER | TLS_LISTENER | PULL_LISTENER => self.accept(),
                MEDIA => self.has_datagrams = true,
                MEDIA_LISTENER => self.media_tcp.set_pending(),
                token if is_media_connection(token) => {
                    self.media_tcp.handle_ready(token, &mut self.buffer, &mut self.switchboard);
                }
                token if is_proxied(token) => self.handle_proxied(event),
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
        self.media_tcp.accept(self.poll.registry(), &self.shared.connections, woke);
        self.media_tcp.read_again(&mut self.buffer, &mut self.switchboard);
        self.switchboard.handle_timeout();
        self.perform_actions();
        for key in std::mem::take(&mut self.to_read) {
            self.read(key);
        }
        for key in std::mem::take(&mut self.to_write) {
            self.pump(key);
        }
        if self.acceptor.as_ref().and_then(Acceptor::deadline).is_some_and(|at| woke >= at) {
            self.accept();
        }
        self.media_tcp.handle_timeout(woke, &mut self.switchboard);
        self.close_unintroduced();
        self.serve();
        self.media_tcp.settle_closing(woke);
        let worked = woke.elapsed();
        if self.switchboard.has_streams() && !self.has_datagrams && !self.media_tcp.has_more() {
            std::thread::sleep(COALESCE.saturating_sub(worked));
        }
        self.load.note_turn(worked, woke.elapsed(), COALESCE);
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        // Call this even if its result is not used: it arms the timers that find due sessions.
        let deadline = self.switchboard.poll_timeout();
        if !self.to_read.is_empty() || self.has_datagrams || self.media_tcp.has_more() {
            return Some(Duration::ZERO);
        }
        let accept = self.acceptor.as_ref().and_then(Acceptor::deadline);
        let (media, proxied) = (self.media_tcp.deadline(), self.proxied.deadline());
        let deadlines = [deadline, accept, media, proxied, self.stopping_until];
        let earliest = deadlines.into_iter().flatten().min()?;
        Some(earliest.saturating_duration_since(Instant::now()))
    }

    fn handle_commands(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Accept(accepted) => self.take(accepted),
                Command::Message(message) => self.switchboard.handle_message(message),
                Command::Adopt(moved) => self.adopt(moved.0, moved.1),
                Command::Stop => {
                    self.stopping_until = Some(self.now + STOP_LIMIT);
                    self.change_acceptor(Acceptor::close_all);
                    self.switchboard.stop();
                }
                Command::StopAccepting => self.change_acceptor(Acceptor::close_public),
                Command::StartAccepting => self.change_acceptor(|acceptor, registry| {
                    if let Err(error) = acceptor.start(registry) {
                        say!("RTMP connections are not accepted: {error}");
                    }
                }),
                Command::AcceptPulls(socket) => self.change_acceptor(|acceptor, registry| {
                    if let Err(error) = acceptor.add(socket, registry) {
                        say!("connections of other nodes are not accepted: {error}");
                    }
                }),
            }
        }
    }

    fn change_acceptor(&mut self, change: impl FnOnce(&mut Acceptor, &Registry)) {
        if let Some(acceptor) = &mut self.acceptor {
            change(acceptor, self.poll.registry());
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

    fn read_datagrams(&mut self) {
        for _ in 0..BATCHES_PER_TURN {
            // An error concerns a datagram that we sent (ICMP); the next ones can still be read.
            let Ok(batch) = self.udp.receive() else { continue };
            for (path, datagram) in self.udp.datagrams(batch) {
                self.switchboard.handle_datagram(path, datagram);
            }
            // An incomplete batch: the socket was empty, and new datagrams raise a new event.
            if batch < BATCH_SIZE {
                self.has_datagrams = false;
                break;
            }
        }
    }

    /// Carries out the actions of the turn until no new ones result.
    fn serve(&mut self) {
        loop {
            self.switchboard.settle();
            let has_acted = self.perform_actions();
            let ready = self.switchboard.poll_ready();
            if !has_acted && ready.is_empty() {
                break;
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

    fn perform_actions(&mut self) -> bool {
        let actions = self.switchboard.poll_actions();
        let has_any = !actions.is_empty();
        for action in actions {
            self.perform(action);
        }
        has_any
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Connect { session, address, tls_host } => {
                self.connect(session, address, tls_host.as_deref());
            }
            Action::Disconnect(key) => {
                self.links.remove(key);
            }
            Action::Read(key) => self.read_later(key),
            Action::Send(path, datagram) if path.is_tcp => {
                self.media_tcp.send(path.address, &datagram);
            }
            Action::Send(path, datagram) => self.udp.send(path, datagram),
            Action::ClosePath(path) if path.is_tcp => self.media_tcp.close(path.address),
            Action::ClosePath(_) => {}
            Action::Move { session, home, moved } => self.move_to(session, home, *moved),
            Action::Tell(worker, message) => self.shared.tell(worker, message),
        }
    }
}
