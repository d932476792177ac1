//! RTMP players: one that stays on each of some streams, many on each, or many that come and go, each with its own
//! account.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_rtmp::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, Limits, MediaKind, MediaMessage,
};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::clip::Clip;
use crate::connection::{Connection, Session};
use crate::dice::Dice;
use crate::histogram::Histogram;

/// Tokens from here on belong to players, below those of the sink.
const FIRST: usize = 1 << 31;
/// How long a player that comes and goes stays.
const STAY_MS: std::ops::Range<u64> = 5_000..20_000;
/// When the first visits begin.
const ARRIVE_MS: std::ops::Range<u64> = 0..5_000;

/// A player's connection, or its pause.
struct Player {
    connection: Option<Connection>,
    /// The stream it plays, by the order of the names.
    stream: usize,
    /// When it leaves; `None` for one that stays.
    until: Option<Instant>,
    /// `None` before the first.
    visit: Option<Visit>,
}

/// What one visit has received.
struct Visit {
    since: Instant,
    /// The next number expected, of video and of audio.
    next: [Option<u32>; 2],
}

/// Totals over all finished visits.
#[derive(Default)]
pub(crate) struct Visits {
    pub(crate) visits: u64,
    pub(crate) units: u64,
    /// Frames missing between the first and the last of a visit.
    pub(crate) lost: u64,
    /// Received twice or out of order.
    pub(crate) misplaced: u64,
    pub(crate) corrupt: u64,
    /// First video frames that were not keyframes, and frames of another stream.
    pub(crate) unexpected: u64,
    /// Visits without a video frame.
    pub(crate) silent: u64,
    /// From connecting to the first video frame.
    pub(crate) joining: Histogram,
}

/// All players of a run.
pub(crate) struct Players<'a> {
    target: SocketAddr,
    names: &'a [String],
    players: Vec<Player>,
    pub(crate) visits: Visits,
    dice: Dice,
}

impl<'a> Players<'a> {
    pub(crate) fn new(target: SocketAddr, names: &'a [String]) -> Self {
        Self { target, names, players: Vec::new(), visits: Visits::default(), dice: Dice::new(7) }
    }

    /// Adds a player that stays on this stream. Its messages are handed to the caller, or counted as a visit.
    pub(crate) fn stay(
        &mut self,
        stream: usize,
        is_visit: bool,
        registry: &Registry,
    ) -> io::Result<()> {
        let token = Token(FIRST + self.players.len());
        let connection = Some(self.connect(stream, token, registry)?);
        let visit = is_visit.then(|| Visit::new(Instant::now()));
        self.players.push(Player { connection, stream, until: None, visit });
        Ok(())
    }

    /// The visits of players that stay, including unfinished ones.
    pub(crate) fn stayed(&mut self) -> &Visits {
        for player in &self.players {
            self.visits.close(player.visit.as_ref());
        }
        &self.visits
    }

    /// Adds players that come and go, from now on.
    pub(crate) fn come_and_go(&mut self, count: usize, now: Instant) {
        for _ in 0..count {
            let until = Some(now + Duration::from_millis(self.draw(ARRIVE_MS)));
            self.players.push(Player { connection: None, stream: 0, until, visit: None });
        }
    }

    pub(crate) const fn owns(token: Token) -> bool {
        token.0 >= FIRST
    }

    /// Handles readiness; `hear` receives each message of a player that stays.
    pub(crate) fn serve(
        &mut self,
        token: Token,
        clip: &Clip,
        buffer: &mut [u8],
        mut hear: impl FnMut(&MediaMessage),
    ) {
        let Some(player) = self.players.get_mut(token.0 - FIRST) else { return };
        let Some(connection) = &mut player.connection else { return };
        let is_open = connection.receive(buffer);
        if let Session::Client(session) = &mut connection.session {
            while let Some(event) = session.poll_event() {
                let ClientEvent::Media(message) = event else { continue };
                match &mut player.visit {
                    None => hear(&message),
                    Some(visit) => self.visits.note(visit, player.stream, &message, clip),
                }
            }
        }
        connection.flush();
        if !is_open {
            player.connection = None;
        }
    }

    /// Disconnects players whose time is up and connects them to another stream later.
    pub(crate) fn handle_timeout(&mut self, now: Instant, registry: &Registry) -> io::Result<()> {
        for at in 0..self.players.len() {
            let Some(player) = self.players.get_mut(at) else { continue };
            if player.until.is_none_or(|until| now < until) {
                continue;
            }
            player.connection = None;
            self.visits.close(player.visit.as_ref());
            let (stay, stream) = (self.draw(STAY_MS), self.draw(0..self.names.len() as u64));
            let stream = usize::try_from(stream).unwrap_or(0);
            let connection = Some(self.connect(stream, Token(FIRST + at), registry)?);
            let until = Some(now + Duration::from_millis(stay));
            let visit = Some(Visit::new(now));
            if let Some(player) = self.players.get_mut(at) {
                *player = Player { connection, stream, until, visit };
            }
        }
        Ok(())
    }

    fn connect(&self, stream: usize, token: Token, registry: &Registry) -> io::Result<Connection> {
        let mut socket = TcpStream::connect(self.target)?;
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        let config = ClientConfig {
            app: "live".into(),
            tc_url: format!("rtmp://{}/live", self.target),
            name: self.names.get(stream).cloned().unwrap_or_default().into_bytes(),
            seed: [5; 8],
            limits: Limits { turn_work: u32::MAX, ..Limits::default() },
            ..ClientConfig::new(ClientRole::Play)
        };
        let session = Box::new(ClientSession::new(config, Instant::now()));
        Ok(Connection::new(socket, Session::Client(session)))
    }

    fn draw(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + u64::from(self.dice.roll()) % (range.end - range.start)
    }
}

impl Visit {
    const fn new(since: Instant) -> Self {
        Self { since, next: [None; 2] }
    }
}

impl Visits {
    fn note(&mut self, visit: &mut Visit, stream: usize, message: &MediaMessage, clip: &Clip) {
        let Some((stamp, is_whole)) = clip.recognise(message.kind, &message.payload) else {
            return;
        };
        let is_video = message.kind == MediaKind::Video;
        let Some(next) = visit.next.get_mut(usize::from(!is_video)) else { return };
        self.units += 1;
        self.corrupt += u64::from(!is_whole);
        let is_strange = stamp.publisher as usize != stream;
        match *next {
            None if is_video => {
                self.unexpected += u64::from(is_strange || !Clip::is_key(&message.payload));
                self.joining.note(visit.since.elapsed());
            }
            None => self.unexpected += u64::from(is_strange),
            Some(next) if stamp.number < next => self.misplaced += 1,
            Some(next) => self.lost += u64::from(stamp.number - next),
        }
        *next = Some(next.unwrap_or(0).max(stamp.number + 1));
    }

    fn close(&mut self, visit: Option<&Visit>) {
        let Some(Visit { next: [video, _], .. }) = visit else { return };
        self.visits += 1;
        self.silent += u64::from(video.is_none());
    }

    /// Members of a JSON object, each preceded by a comma.
    pub(crate) fn to_json(&self) -> String {
        let Visits { visits, units, lost, misplaced, corrupt, unexpected, silent, joining } = self;
        let mut json = String::new();
        for (name, value) in [
            ("visits", *visits),
            ("visit_units", *units),
            ("visit_lost", *lost),
            ("visit_misplaced", *misplaced),
            ("visit_corrupt", *corrupt),
            ("visit_unexpected", *unexpected),
            ("visit_silent", *silent),
            ("joining_p50_ms", joining.percentiles().p50_us / 1_000),
            ("joining_p99_ms", joining.percentiles().p99_us / 1_000),
        ] {
            // Writing to a String cannot fail.
            let _ = write!(json, ",\"{name}\":{value}");
        }
        json
    }
}
