//! N publishers into a server, and the upstream it pushes to, in one poll loop: RTMP in → push out.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_rtmp::{ClientConfig, ClientEvent, ClientRole, ClientSession, Limits, MediaKind};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::connection::{Connection, Session};
use crate::ledger::{Balance, Ledger};
use crate::load::{HEADERS, Stamp, due, read_stamp, unit};
use crate::pace::{self, Lateness, Load, WARM_UP};
use crate::sink::{Sink, Takes};

/// Publishers and pushes are up before this, or the run fails.
const READY_LIMIT: Duration = Duration::from_secs(20);

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

struct Bench {
    poll: Poll,
    sink: Sink,
    connections: Vec<Option<Connection>>,
    ready: Vec<bool>,
    ledger: Ledger,
    started: Instant,
    buffer: Vec<u8>,
}

/// Runs the load. `report` is called when measuring begins (true) and ends (false).
pub(crate) fn run(run: &Run, report: impl Fn(bool)) -> io::Result<(Balance, Lateness)> {
    let mut bench = Bench::open(run)?;
    bench.wait_ready()?;
    for publisher in 0..bench.ready.len() {
        bench.send_headers(publisher);
    }
    let phases = pace::evenly(run.names.len());
    let late = pace::run(&mut bench, &phases, (WARM_UP, run.seconds), due, report)?;
    bench.say_goodbye()?;
    Ok((bench.ledger.balance(), late))
}

impl Bench {
    fn open(run: &Run) -> io::Result<Self> {
        let poll = Poll::new()?;
        let sink = Sink::open(run.listen, Takes::Everything, poll.registry())?;
        let mut bench = Self {
            poll,
            sink,
            connections: Vec::new(),
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
                limits: Limits { turn_work: u32::MAX, ..Limits::default() },
                four_cc_list: Vec::new(),
                ..ClientConfig::new(ClientRole::Publish)
            };
            let session = Box::new(ClientSession::new(config, Instant::now()));
            bench.add(TcpStream::connect(run.target)?, Session::Client(session))?;
        }
        Ok(bench)
    }

    fn add(&mut self, mut socket: TcpStream, session: Session) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let token = Token(self.connections.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut socket, token, interest)?;
        self.connections.push(Some(Connection::new(socket, session)));
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

    fn serve(&mut self, at: usize) {
        let Some(slot) = self.connections.get_mut(at) else { return };
        let Some(connection) = slot else { return };
        let is_open = connection.receive(&mut self.buffer);
        if let Session::Client(session) = &mut connection.session {
            while let Some(event) = session.poll_event() {
                if event == ClientEvent::Ready
                    && let Some(ready) = self.ready.get_mut(at)
                {
                    *ready = true;
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

    fn send(&mut self, publisher: usize, kind: MediaKind, timestamp: u32, body: &Bytes) {
        if let Some(Some(connection)) = self.connections.get_mut(publisher)
            && let Session::Client(session) = &mut connection.session
        {
            session.send_media(kind, timestamp, &[], body);
            connection.flush();
        }
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        for connection in self.connections.iter_mut().flatten() {
            if let Session::Client(session) = &mut connection.session {
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

impl Load for Bench {
    fn turn(&mut self, timeout: Duration) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        self.poll.poll(&mut events, Some(timeout))?;
        for event in &events {
            if !Sink::owns(event.token()) {
                self.serve(event.token().0);
                continue;
            }
            let (ledger, started) = (&mut self.ledger, self.started);
            let (registry, buffer) = (self.poll.registry(), &mut self.buffer);
            self.sink.serve(event.token(), registry, buffer, |_, message| {
                if let Some(stamp) = read_stamp(message.kind, &message.payload) {
                    ledger.note_received(message.kind, stamp, started.elapsed());
                }
            })?;
        }
        Ok(())
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

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
