//! WHIP sessions whose network fails: a blackout, a publisher that disappears, or a new source port. Measures whether
//! each session is still pushed afterwards, and how soon.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_peer::Settings;
use headgate_rtmp::MediaKind;
use mio::{Events, Poll, Token};

use crate::histogram::{Histogram, Percentiles};
use crate::load::Stamp;
use crate::sink::{Sink, Takes};
use crate::whip_http::{delete, post_offer, post_path};
use crate::whip_load::{Arrived, due, is_due_keyframe, recognise};
use crate::whip_publisher::{Asked, WhipPublisher};

const TURN: Duration = Duration::from_millis(2);
/// All sessions of a round must be connected within this, or the round fails.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long media flows before the trial.
const BEFORE: Duration = Duration::from_secs(3);
/// How soon a surviving session must be pushed again.
const AFTER: Duration = Duration::from_secs(8);

/// What happens to the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing passes in either direction for this long.
    Blackout(Duration),
    /// The publisher disappears silently.
    Gone,
    /// All further datagrams come from another port.
    Rebind,
}

/// What to run.
pub(crate) struct Run {
    /// Where the server pushes to: us.
    pub(crate) listen: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) stream_url: String,
    /// One session for each stream name in each round.
    pub(crate) names: Vec<String>,
    pub(crate) kind: Kind,
    pub(crate) rounds: u32,
}

struct Trial {
    publisher: WhipPublisher,
    sent: [u32; 2],
    /// The first picture number that counts as resumed, and the time from which it is measured.
    after: Option<(u32, Instant)>,
    resumed: Option<Duration>,
    answered_keyframes: u64,
    asked: Asked,
}

#[derive(Default)]
struct Account {
    sessions: u32,
    resumed: u32,
    closed: u32,
    took: Histogram,
}

impl Kind {
    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "blackout-3" => Self::Blackout(Duration::from_secs(3)),
            "blackout-10" => Self::Blackout(Duration::from_secs(10)),
            "blackout-30" => Self::Blackout(Duration::from_secs(30)),
            "gone" => Self::Gone,
            "rebind" => Self::Rebind,
            _ => return None,
        })
    }

    /// From the start of the trial until media must pass again.
    const fn lasts(self) -> Duration {
        match self {
            Self::Blackout(time) => time,
            Self::Gone | Self::Rebind => Duration::ZERO,
        }
    }
}

pub(crate) fn run(run: &Run) -> io::Result<String> {
    let mut poll = Poll::new()?;
    let mut sink = Sink::open(run.listen, Takes::Everything, poll.registry())?;
    let mut account = Account::default();
    for _ in 0..run.rounds {
        round(run, &mut poll, &mut sink, &mut account)?;
    }
    let Account { sessions, resumed, closed, took } = account;
    let Percentiles { p50_us, most_us, .. } = took.percentiles();
    let (p50, most) = (p50_us / 1_000, most_us / 1_000);
    Ok(format!(
        "{{\"sessions\":{sessions},\"resumed\":{resumed},\"closed\":{closed},\"resumed_p50_ms\":{p50},\"resumed_max_ms\":{most}}}"
    ))
}

fn round(run: &Run, poll: &mut Poll, sink: &mut Sink, account: &mut Account) -> io::Result<()> {
    let mut trials = Vec::new();
    for (at, name) in run.names.iter().enumerate() {
        let mut publisher = WhipPublisher::open(Settings::default(), Token(at), poll.registry())?;
        let path = post_path(&run.stream_url, name);
        let answer = post_offer(run.http, &path, &publisher.offer())?;
        if answer.status != 201 {
            let message = format!("POST of {name}: {} {}", answer.status, answer.body);
            return Err(io::Error::other(message));
        }
        let mut asked = Asked::default();
        publisher.handle_answer(&answer.body, &mut asked)?;
        publisher.session_path = answer.session_path;
        trials.push(Trial::new(publisher, asked));
    }
    turn_until(poll, sink, &mut trials, None, READY_LIMIT, |trials| {
        trials.iter().all(|trial| trial.publisher.is_connected)
    })?;
    if let Some(at) = trials.iter().position(|trial| !trial.publisher.is_connected) {
        return Err(io::Error::other(format!("session {at} does not connect")));
    }
    let begun = Instant::now();
    let media = Some(begun);
    turn_until(poll, sink, &mut trials, media, BEFORE, |_| false)?;
    for (at, trial) in trials.iter_mut().enumerate() {
        match run.kind {
            Kind::Rebind => trial.publisher.rebind(Token(at), poll.registry())?,
            Kind::Blackout(_) | Kind::Gone => trial.publisher.is_dark = true,
        }
    }
    turn_until(poll, sink, &mut trials, media, run.kind.lasts(), |_| false)?;
    for trial in &mut trials {
        trial.publisher.is_dark = run.kind == Kind::Gone;
        trial.after = Some((trial.sent[0], Instant::now()));
    }
    turn_until(poll, sink, &mut trials, media, AFTER, |trials| {
        trials.iter().all(|trial| trial.resumed.is_some())
    })?;
    for trial in &mut trials {
        account.sessions += 1;
        account.closed += u32::from(trial.publisher.is_closed);
        if let Some(took) = trial.resumed {
            account.resumed += 1;
            account.took.note(took);
        }
        if run.kind == Kind::Gone {
            continue;
        }
        trial.publisher.close(&mut trial.asked);
        if let Some(path) = &trial.publisher.session_path {
            delete(run.http, path)?;
        }
    }
    Ok(())
}

/// Serves all sessions until `is_over` or the time limit. Media is sent from `media` on.
fn turn_until(
    poll: &mut Poll,
    sink: &mut Sink,
    trials: &mut [Trial],
    media: Option<Instant>,
    limit: Duration,
    is_over: impl Fn(&[Trial]) -> bool,
) -> io::Result<()> {
    let (mut events, mut buffer) = (Events::with_capacity(1_024), vec![0; 64 << 10]);
    let until = Instant::now() + limit;
    while Instant::now() < until && !is_over(trials) {
        poll.poll(&mut events, Some(TURN))?;
        for event in &events {
            let token = event.token();
            if !Sink::owns(token) {
                if let Some(Trial { publisher, asked, .. }) = trials.get_mut(token.0) {
                    publisher.receive(&mut buffer, asked);
                }
                continue;
            }
            sink.serve(token, poll.registry(), &mut buffer, |_, message| {
                let Arrived::Stamped(stamp) = recognise(message.kind, &message.payload) else {
                    return;
                };
                if message.kind == MediaKind::Video
                    && let Some(trial) = trials.get_mut(stamp.publisher as usize)
                {
                    trial.note_picture(stamp.number);
                }
            })?;
        }
        let now = Instant::now();
        for (at, trial) in trials.iter_mut().enumerate() {
            trial.publisher.handle_timeout(now, &mut trial.asked);
            if let Some(since) = media {
                trial.send_due(u32::try_from(at).unwrap_or(u32::MAX), since);
            }
        }
    }
    Ok(())
}

impl Trial {
    const fn new(publisher: WhipPublisher, asked: Asked) -> Self {
        let (sent, after, resumed) = ([0; 2], None, None);
        Self { publisher, sent, after, resumed, answered_keyframes: 0, asked }
    }

    fn note_picture(&mut self, number: u32) {
        if let Some((first, since)) = self.after
            && number >= first
        {
            self.resumed.get_or_insert(since.elapsed());
        }
    }

    /// Like an encoder, sends a keyframe when one was requested.
    fn send_due(&mut self, publisher: u32, since: Instant) {
        let elapsed = since.elapsed();
        for (kind, at) in [(MediaKind::Video, 0), (MediaKind::Audio, 1)] {
            let Some(sent) = self.sent.get_mut(at) else { continue };
            while due(kind, *sent) <= elapsed {
                let stamp = Stamp { publisher, number: *sent, sent: Duration::ZERO };
                let captured = since + due(kind, *sent);
                if kind == MediaKind::Audio {
                    self.publisher.send(captured, kind, stamp, None, &mut self.asked);
                } else {
                    let is_key =
                        is_due_keyframe(*sent) || self.asked.keyframes > self.answered_keyframes;
                    self.answered_keyframes = self.asked.keyframes;
                    self.publisher.send_picture(captured, stamp, is_key, &mut self.asked);
                }
                *sent += 1;
            }
        }
    }
}
