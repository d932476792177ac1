//! N publishers into a server, and the upstream it pushes to, in one poll loop: RTMP in → push out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_rtmp::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, Limits, MediaKind, ServerConfig,
    ServerEvent, ServerSession,
};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::connection::{Connection, Session};
use crate::ledger::{Balance, Ledger};
use crate::load::{HEADERS, Stamp, due, read_stamp, unit};

const LISTENER: Token = Token(usize::MAX);
/// Publishers and pushes are up before this, or the run fails.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Media flows for so long before anything is measured.
const WARM_UP: Duration = Duration::from_secs(3);
/// What was sent last may take so long to arrive.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// What to run.
pub(crate) struct Run {
    /// Where the server pushes to: us.
    pub(crate) listen: SocketAddr,
    /// The server.
    pub(crate) target: SocketAddr,
    /// One publisher for each stream name.
    pub(crate) names: Vec<String>,
    /// Measured time.
    pub(crate) seconds: u64,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) balance: Balance,
    /// The most that a unit left later than it was due: the generator's own lateness.
    pub(crate) generator_late: Duration,
}

struct Bench {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    publishers: usize,
    ready: Vec<bool>,
    ledger: Ledger,
    started: Instant,
    buffer: Vec<u8>,
}

/// Runs the load. `report` is called when measuring begins (true) and ends (false).
pub(crate) fn run(run: &Run, report: impl Fn(bool)) -> io::Result<Outcome> {
    let mut bench = Bench::open(run)?;
    bench.wait_ready()?;
    let mut queue = BinaryHeap::new();
    // Publishers out of step: spread over one frame interval.
    let base = Instant::now();
    for publisher in 0..bench.publishers {
        let offset = due(MediaKind::Video, 1) * u32::try_from(publisher).unwrap_or(0);
        let start = base + offset / u32::try_from(bench.publishers).unwrap_or(1);
        bench.send_headers(publisher);
        queue.push(Reverse((start, publisher, false, 0_u32, start)));
        queue.push(Reverse((start, publisher, true, 0_u32, start)));
    }
    let measure_from = base + WARM_UP;
    let until = measure_from + Duration::from_secs(run.seconds);
    let mut is_measuring = false;
    let mut generator_late = Duration::ZERO;
    loop {
        let now = Instant::now();
        if !is_measuring && now >= measure_from {
            is_measuring = true;
            report(true);
        }
        if now >= until {
            break;
        }
        while let Some(&Reverse((at, publisher, is_audio, number, start))) = queue.peek() {
            if at > now {
                break;
            }
            queue.pop();
            if is_measuring {
                generator_late = generator_late.max(now - at);
            }
            let kind = if is_audio { MediaKind::Audio } else { MediaKind::Video };
            bench.send_unit(publisher, kind, number, is_measuring);
            let next = start + due(kind, number + 1);
            queue.push(Reverse((next, publisher, is_audio, number + 1, start)));
        }
        let next = queue.peek().map_or(until, |Reverse((at, ..))| (*at).min(until));
        bench.turn(next.saturating_duration_since(Instant::now()))?;
    }
    report(false);
    let settled_by = Instant::now() + SETTLE_LIMIT;
    while !bench.ledger.is_settled() && Instant::now() < settled_by {
        bench.turn(Duration::from_millis(20))?;
    }
    bench.say_goodbye()?;
    Ok(Outcome { balance: bench.ledger.balance(), generator_late })
}

impl Bench {
    fn open(run: &Run) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(run.listen)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let mut bench = Self {
            poll,
            listener,
            connections: Vec::new(),
            publishers: run.names.len(),
            ready: vec![false; run.names.len()],
            ledger: Ledger::new(run.names.len()),
            started: Instant::now(),
            buffer: vec![0; 256 * 1024],
        };
        for name in &run.names {
            let config = ClientConfig {
                role: ClientRole::Publish,
                app: "live".into(),
                tc_url: format!("rtmp://{}/live", run.target),
                name: name.clone().into_bytes(),
                seed: [3; 8],
                limits: Limits::default(),
                four_cc_list: Vec::new(),
            };
            let session = Box::new(ClientSession::new(config, Instant::now()));
            bench.add(TcpStream::connect(run.target)?, Session::Publisher(session))?;
        }
        Ok(bench)
    }

    fn add(&mut self, mut socket: TcpStream, session: Session) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let token = Token(self.connections.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut socket, token, interest)?;
        self.connections.push(Some(Connection { socket, session }));
        Ok(())
    }

    fn wait_ready(&mut self) -> io::Result<()> {
        let until = Instant::now() + READY_LIMIT;
        while !self.ready.iter().all(|ready| *ready) {
            if Instant::now() > until {
                return Err(io::Error::other("not every publisher was accepted in time"));
            }
            self.turn(Duration::from_millis(20))?;
        }
        Ok(())
    }

    fn turn(&mut self, timeout: Duration) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.poll.poll(&mut events, Some(timeout))?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((socket, _)) = self.listener.accept() {
                    let session = ServerSession::new(ServerConfig::default(), Instant::now());
                    self.add(socket, Session::Sink(Box::new(session)))?;
                }
            } else {
                self.serve(event.token().0);
            }
        }
        Ok(())
    }

    fn serve(&mut self, at: usize) {
        let Some(slot) = self.connections.get_mut(at) else { return };
        let Some(connection) = slot else { return };
        let is_open = connection.receive(&mut self.buffer);
        let now = self.started.elapsed();
        match &mut connection.session {
            Session::Publisher(session) => {
                while let Some(event) = session.poll_event() {
                    if event == ClientEvent::Ready
                        && let Some(ready) = self.ready.get_mut(at)
                    {
                        *ready = true;
                    }
                }
            }
            Session::Sink(session) => {
                while let Some(event) = session.poll_event() {
                    match event {
                        ServerEvent::PublishRequested(_) => session.allow(),
                        ServerEvent::Media(message) => {
                            if let Some(stamp) = read_stamp(message.kind, &message.payload) {
                                self.ledger.note_received(message.kind, stamp, now);
                            }
                        }
                        ServerEvent::PlayRequested(_)
                        | ServerEvent::PublishEnded
                        | ServerEvent::PlayEnded
                        | ServerEvent::Close => {}
                    }
                }
            }
        }
        connection.flush();
        if !is_open {
            *slot = None;
        }
    }

    fn send_headers(&mut self, publisher: usize) {
        for (kind, body) in HEADERS {
            self.send(publisher, kind, 0, &Bytes::from_static(body));
        }
    }

    fn send_unit(&mut self, publisher: usize, kind: MediaKind, number: u32, counts: bool) {
        let stamp = Stamp {
            publisher: u32::try_from(publisher).unwrap_or(u32::MAX),
            number,
            sent: self.started.elapsed(),
        };
        let timestamp = u32::try_from(due(kind, number).as_millis()).unwrap_or(0);
        if counts {
            self.ledger.note_sent(kind, stamp);
        }
        self.send(publisher, kind, timestamp, &unit(kind, stamp));
    }

    fn send(&mut self, publisher: usize, kind: MediaKind, timestamp: u32, body: &Bytes) {
        if let Some(Some(connection)) = self.connections.get_mut(publisher)
            && let Session::Publisher(session) = &mut connection.session
        {
            session.send_media(kind, timestamp, &[], body);
            connection.flush();
        }
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        for connection in self.connections.iter_mut().flatten() {
            if let Session::Publisher(session) = &mut connection.session {
                session.end();
            }
            connection.flush();
        }
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until {
            self.turn(Duration::from_millis(50))?;
        }
        Ok(())
    }
}
