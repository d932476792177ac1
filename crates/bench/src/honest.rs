//! Honest load of a clip: N RTMP publishers with an encoder's chunks, the upstream that streams are pushed to, and
//! players. Every frame is accounted for at the upstream or at the one player that stays on its stream.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use headgate_rtmp::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, Limits, MediaKind, MediaMessage,
};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::chunks::{Chunks, message_type};
use crate::clip::Clip;
use crate::connection::{Connection, Session};
use crate::ledger::{Balance, Ledger};
use crate::load::Stamp;
use crate::pace::{self, Lateness, Load};
use crate::players::Players;
use crate::sink::{Sink, Takes};

/// All publishers must be ready within this, or the run fails.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Enough for every publisher to start (within a GOP of two seconds) and every player to receive its stream.
const WARM_UP: Duration = Duration::from_secs(6);
/// Precision of the times at which players come and go.
const PLAYER_INTERVAL: Duration = Duration::from_millis(20);

/// Who plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    Nobody,
    /// One on every second stream, which is not pushed.
    EverySecond,
    /// This many that come and go, on any stream.
    Coming(usize),
    /// This many on each stream; none is pushed.
    OnEach(usize),
}

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
    pub(crate) clip: Clip,
    pub(crate) audience: Audience,
    /// Chunk size that the publishers announce: OBS 4,096 bytes, FFmpeg 60,000; the default is 128.
    pub(crate) chunk_size: u32,
}

/// The result of a run.
pub(crate) struct Outcome {
    pub(crate) balance: Balance,
    pub(crate) late: Lateness,
    /// Further members of a JSON object, each preceded by a comma.
    pub(crate) more: String,
}

struct Honest<'a> {
    run: &'a Run,
    poll: Poll,
    events: Events,
    sink: Sink,
    publishers: Vec<Option<Connection>>,
    ready: usize,
    chunks: Chunks,
    players: Players<'a>,
    next_players: Instant,
    ledger: Ledger,
    corrupt: u64,
    started: Instant,
    buffer: Vec<u8>,
}

/// Runs the load. `ready` is called when every publisher may send, `report` when measuring begins (true) and ends
/// (false).
pub(crate) fn run(run: &Run, ready: impl Fn(), report: impl Fn(bool)) -> io::Result<Outcome> {
    let mut load = Honest::open(run)?;
    load.wait_ready()?;
    load.send_headers();
    match run.audience {
        Audience::Nobody => {}
        Audience::EverySecond => {
            for stream in (1..run.names.len()).step_by(2) {
                load.players.stay(stream, false, load.poll.registry())?;
            }
        }
        Audience::OnEach(count) => {
            for player in 0..count {
                for stream in 0..run.names.len() {
                    // Only one player feeds the ledger, which counts every frame once.
                    load.players.stay(stream, player > 0, load.poll.registry())?;
                }
                load.turn(Duration::ZERO)?;
            }
        }
        Audience::Coming(count) => load.players.come_and_go(count, Instant::now()),
    }
    ready();
    let phases = pace::at_random(run.names.len());
    let due = |kind, number| run.clip.due(kind, number);
    let late = pace::run(&mut load, &phases, (WARM_UP, run.seconds), &due, report)?;
    let closed = load.publishers.iter().filter(|publisher| publisher.is_none()).count();
    let more = format!(",\"corrupt\":{},\"publishers_closed\":{closed}", load.corrupt);
    let visits = match run.audience {
        Audience::Coming(_) => load.players.visits.to_json(),
        Audience::OnEach(_) => load.players.stayed().to_json(),
        Audience::Nobody | Audience::EverySecond => String::new(),
    };
    load.say_goodbye()?;
    Ok(Outcome { balance: load.ledger.balance(), late, more: more + &visits })
}

impl<'a> Honest<'a> {
    fn open(run: &'a Run) -> io::Result<Self> {
        let poll = Poll::new()?;
        let sink = Sink::open(run.listen, Takes::Everything, poll.registry())?;
        let mut publishers = Vec::new();
        for (at, name) in run.names.iter().enumerate() {
            let config = ClientConfig {
                app: "live".into(),
                tc_url: format!("rtmp://{}/live", run.target),
                name: name.clone().into_bytes(),
                seed: [3; 8],
                limits: Limits { turn_work: u32::MAX, ..Limits::default() },
                ..ClientConfig::new(ClientRole::Publish)
            };
            let mut socket = TcpStream::connect(run.target)?;
            socket.set_nodelay(true)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut socket, Token(at), interest)?;
            let session = Box::new(ClientSession::new(config, Instant::now()));
            publishers.push(Some(Connection::new(socket, Session::Client(session))));
        }
        Ok(Self {
            run,
            poll,
            events: Events::with_capacity(1024),
            sink,
            publishers,
            ready: 0,
            chunks: Chunks::announce(run.chunk_size, &mut BytesMut::new()),
            players: Players::new(run.target, &run.names),
            next_players: Instant::now(),
            ledger: Ledger::new(run.names.len()),
            corrupt: 0,
            started: Instant::now(),
            buffer: vec![0; 256 * 1024],
        })
    }

    fn wait_ready(&mut self) -> io::Result<()> {
        let until = Instant::now() + READY_LIMIT;
        while self.ready < self.publishers.len() {
            if Instant::now() > until {
                return Err(io::Error::other("not every publisher was accepted in time"));
            }
            self.turn(Duration::from_millis(20))?;
        }
        Ok(())
    }

    fn serve(&mut self, at: usize) {
        let Some(slot) = self.publishers.get_mut(at) else { return };
        let Some(connection) = slot else { return };
        let is_open = connection.receive(&mut self.buffer);
        if let Session::Client(session) = &mut connection.session {
            while let Some(event) = session.poll_event() {
                self.ready += usize::from(event == ClientEvent::Ready);
            }
        }
        connection.flush();
        if !is_open {
            *slot = None;
        }
    }

    fn send_headers(&mut self) {
        for connection in self.publishers.iter_mut().flatten() {
            Chunks::announce(self.run.chunk_size, connection.own_chunks());
            for (kind, body) in &self.run.clip.headers {
                self.chunks.write(message_type(*kind), 0, body, connection.own_chunks());
            }
            connection.flush();
        }
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        for connection in self.publishers.iter_mut().flatten() {
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

impl Load for Honest<'_> {
    fn turn(&mut self, timeout: Duration) -> io::Result<()> {
        self.poll.poll(&mut self.events, Some(timeout.min(PLAYER_INTERVAL)))?;
        let tokens: Vec<Token> = self.events.iter().map(|event| event.token()).collect();
        for token in tokens {
            let (ledger, started) = (&mut self.ledger, self.started);
            let (clip, corrupt) = (&self.run.clip, &mut self.corrupt);
            let mut hear = |message: &MediaMessage| {
                if let Some((stamp, is_whole)) = clip.recognise(message.kind, &message.payload) {
                    *corrupt += u64::from(!is_whole);
                    ledger.note_received(message.kind, stamp, started.elapsed());
                }
            };
            if Sink::owns(token) {
                let (registry, buffer) = (self.poll.registry(), &mut self.buffer);
                self.sink.serve(token, registry, buffer, |_, message| hear(message))?;
            } else if Players::owns(token) {
                self.players.serve(token, clip, &mut self.buffer, hear);
            } else {
                self.serve(token.0);
            }
        }
        let now = Instant::now();
        if now >= self.next_players {
            self.next_players = now + PLAYER_INTERVAL;
            self.players.handle_timeout(now, self.poll.registry())?;
        }
        Ok(())
    }

    fn send_unit(&mut self, publisher: usize, kind: MediaKind, number: u32, counts: bool) {
        let stamp = Stamp {
            publisher: u32::try_from(publisher).unwrap_or(u32::MAX),
            number,
            sent: self.started.elapsed(),
        };
        if counts {
            self.ledger.note_sent(kind, stamp);
        }
        let due = self.run.clip.due(kind, number).unwrap_or_default();
        let timestamp = u32::try_from(due.as_millis()).unwrap_or(0);
        let body = self.run.clip.unit(kind, stamp);
        if let Some(Some(connection)) = self.publishers.get_mut(publisher) {
            self.chunks.write(message_type(kind), timestamp, &body, connection.own_chunks());
            connection.flush();
        }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
