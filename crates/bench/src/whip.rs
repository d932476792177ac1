//! N WebRTC publishers into a server, and the upstream it pushes to, in one poll loop: WHIP in → push out.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_peer::{Settings, SrtpChoice};
use headgate_rtmp::MediaKind;
use mio::{Events, Poll, Token};

use crate::chromium::Recording;
use crate::histogram::Percentiles;
use crate::ledger::{Balance, Ledger};
use crate::load::Stamp;
use crate::pace::{self, Lateness, Load, WARM_UP};
use crate::sink::{Sink, Takes};
use crate::spread::Spread;
use crate::whip_aac::AacAccount;
use crate::whip_http::{delete, post_offer, post_path};
use crate::whip_load::{Arrived, Sound, due, prepare_sound, recognise};
use crate::whip_publisher::{Asked, WhipPublisher};

/// All publishers must be connected within this, or the run fails.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How often the timers of all publishers are checked.
const TIMER_INTERVAL: Duration = Duration::from_millis(5);
/// Idle time between connecting and media, in which the caller reads the server's memory.
const PAUSE: Duration = Duration::from_millis(500);
/// What creating an AAC encoder may cost a server on one core; all are needed at the same time.
const ENCODER_WARM_UP: Duration = Duration::from_millis(100);
/// What to run.
pub(crate) struct Run {
    /// Where the server pushes to: us.
    pub(crate) listen: SocketAddr,
    /// The server's HTTP.
    pub(crate) target: SocketAddr,
    /// What the publishers name as their upstream.
    pub(crate) stream_url: String,
    /// One publisher for each stream name.
    pub(crate) names: Vec<String>,
    /// Measured time.
    pub(crate) seconds: u64,
    pub(crate) sound: Sound,
    pub(crate) srtp: SrtpChoice,
}

/// The result of a run.
pub(crate) struct Outcome {
    pub(crate) balance: Balance,
    pub(crate) late: Lateness,
    pub(crate) counts: Counts,
    /// From the sending of an AAC frame's first sample to the arrival of the frame.
    pub(crate) aac_delay: Percentiles,
}

/// Counts outside the ledger.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    asked: Asked,
    /// From the first POST to the last connection.
    connecting: Duration,
    aac_frames: u64,
    /// AAC frames whose timestamp is not one frame after the previous one.
    aac_gaps: u64,
}

struct Bench<'a> {
    run: &'a Run,
    poll: Poll,
    events: Events,
    sink: Sink,
    publishers: Vec<WhipPublisher>,
    sound: Vec<Vec<u8>>,
    recording: Recording,
    spread: Spread,
    ledger: Ledger,
    started: Instant,
    buffer: Vec<u8>,
    next_timers: Instant,
    counts: Counts,
    is_measuring: bool,
    aac: AacAccount,
}

/// Runs the load. `connected` is called when all sessions are connected and no media flows yet, `report` when measuring
/// begins (true) and ends (false).
pub(crate) fn run(run: &Run, connected: impl Fn(), report: impl Fn(bool)) -> io::Result<Outcome> {
    let mut bench = Bench::open(run)?;
    bench.connect()?;
    connected();
    bench.turn_for(PAUSE)?;
    let sessions = u32::try_from(run.names.len()).unwrap_or(u32::MAX);
    let encoders = if run.sound == Sound::Opus { 0 } else { sessions };
    let times = (WARM_UP + ENCODER_WARM_UP * encoders, run.seconds);
    let phases = pace::at_random(run.names.len());
    let late =
        pace::run(&mut bench, &phases, times, &|kind, number| Some(due(kind, number)), report)?;
    bench.say_goodbye()?;
    let AacAccount { frames, gaps, delays, .. } = bench.aac;
    let aac_delay = delays.percentiles();
    let counts = Counts { aac_frames: frames, aac_gaps: gaps, ..bench.counts };
    Ok(Outcome { balance: bench.ledger.balance(), late, counts, aac_delay })
}

impl<'a> Bench<'a> {
    fn open(run: &'a Run) -> io::Result<Self> {
        let poll = Poll::new()?;
        let takes = if run.sound == Sound::Opus { Takes::Everything } else { Takes::NoOpus };
        let sink = Sink::open(run.listen, takes, poll.registry())?;
        let settings =
            Settings { srtp: run.srtp, stereo: run.sound != Sound::AacMono, ..Settings::default() };
        let publishers = (0..run.names.len())
            .map(|at| WhipPublisher::open(settings, Token(at), poll.registry()))
            .collect::<io::Result<_>>()?;
        Ok(Self {
            run,
            poll,
            events: Events::with_capacity(1024),
            sink,
            publishers,
            sound: prepare_sound(run.sound)?,
            recording: Recording::read()?,
            spread: Spread::new(run.names.len()),
            ledger: Ledger::new(run.names.len()),
            started: Instant::now(),
            buffer: vec![0; 256 * 1024],
            next_timers: Instant::now(),
            counts: Counts::default(),
            is_measuring: false,
            aac: AacAccount::default(),
        })
    }

    fn connect(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        for (at, name) in self.run.names.iter().enumerate() {
            let path = post_path(&self.run.stream_url, name);
            let Some(publisher) = self.publishers.get_mut(at) else { continue };
            let answer = post_offer(self.run.target, &path, &publisher.offer())?;
            if answer.status != 201 {
                let message = format!("POST of {name}: {} {}", answer.status, answer.body);
                return Err(io::Error::other(message));
            }
            publisher.session_path = answer.session_path;
            publisher.handle_answer(&answer.body, &mut self.counts.asked)?;
            self.turn(Duration::ZERO)?;
        }
        while !self.publishers.iter().all(|publisher| publisher.is_connected) {
            if begun.elapsed() > READY_LIMIT || self.counts.asked.closed > 0 {
                return Err(io::Error::other("not every publisher connected"));
            }
            self.turn(TIMER_INTERVAL)?;
        }
        self.counts.connecting = begun.elapsed();
        Ok(())
    }

    fn turn_for(&mut self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.turn(TIMER_INTERVAL)?;
        }
        Ok(())
    }

    /// Sends the datagrams that are due.
    fn send_due(&mut self) {
        while let Some((publisher, waiting)) = self.spread.poll(Instant::now(), self.started) {
            if let Some(publisher) = self.publishers.get_mut(publisher) {
                publisher.transmit(waiting.to, &waiting.datagram, &mut self.counts.asked);
            }
        }
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        self.is_measuring = false;
        for publisher in &mut self.publishers {
            publisher.close(&mut self.counts.asked);
        }
        self.turn_for(PAUSE)?;
        for publisher in &self.publishers {
            if let Some(path) = &publisher.session_path {
                // Usually the closed DTLS has already ended it: 404 is fine.
                delete(self.run.target, path)?;
            }
        }
        self.turn_for(PAUSE)
    }
}

impl Load for Bench<'_> {
    fn turn(&mut self, timeout: Duration) -> io::Result<()> {
        let leaves = self.spread.next().map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.min(TIMER_INTERVAL).min(leaves.unwrap_or(TIMER_INTERVAL));
        self.poll.poll(&mut self.events, Some(timeout))?;
        self.send_due();
        let (registry, buffer) = (self.poll.registry(), &mut self.buffer);
        for event in &self.events {
            let token = event.token();
            if Sink::owns(token) {
                let (ledger, started) = (&mut self.ledger, self.started);
                let (aac, is_measuring) = (&mut self.aac, self.is_measuring);
                let spread = &self.spread;
                self.sink.serve(token, registry, buffer, |push, message| {
                    let now = started.elapsed();
                    match recognise(message.kind, &message.payload) {
                        Arrived::Stamped(stamp) => {
                            // The delay of a picture counts from its last packet.
                            let left = spread.left_at(stamp.publisher as usize, stamp.number);
                            let is_picture = message.kind == MediaKind::Video;
                            let sent = left.filter(|_| is_picture).unwrap_or(stamp.sent);
                            ledger.note_received(message.kind, Stamp { sent, ..stamp }, now);
                            aac.note_picture(push, message, stamp);
                        }
                        Arrived::Aac => aac.note_frame(push, message, now, is_measuring),
                        Arrived::Other => {}
                    }
                })?;
            } else if let Some(publisher) = self.publishers.get_mut(token.0) {
                publisher.receive(buffer, &mut self.counts.asked);
            }
        }
        let now = Instant::now();
        if now >= self.next_timers {
            self.next_timers = now + TIMER_INTERVAL;
            for publisher in &mut self.publishers {
                publisher.handle_timeout(now, &mut self.counts.asked);
            }
        }
        Ok(())
    }

    fn send_unit(&mut self, publisher: usize, kind: MediaKind, number: u32, counts: bool) {
        self.is_measuring = counts;
        let stamp = Stamp {
            publisher: u32::try_from(publisher).unwrap_or(u32::MAX),
            number,
            sent: self.started.elapsed(),
        };
        let sound = self.sound.get(number as usize % self.sound.len().max(1));
        let is_stamped = kind == MediaKind::Video || sound.is_none();
        if counts && is_stamped {
            self.ledger.note_sent(kind, stamp);
        }
        let now = Instant::now();
        let (Some(of), asked) = (self.publishers.get_mut(publisher), &mut self.counts.asked) else {
            return;
        };
        match (kind, self.recording.picture(number)) {
            (MediaKind::Video, Some(picture)) => {
                let datagrams = of.cut(now, stamp, picture);
                self.spread.add(publisher, number, picture, datagrams, now);
                self.send_due();
            }
            _ => of.send(now, kind, stamp, sound.map(Vec::as_slice), asked),
        }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Counts {
    /// Members of a JSON object, each preceded by a comma.
    pub(crate) fn to_json(self) -> String {
        let Asked { keyframes, nacked, transport_feedback, unsent, closed } = self.asked;
        let mut json = String::new();
        for (name, value) in [
            ("aac_frames", self.aac_frames),
            ("aac_gaps", self.aac_gaps),
            ("keyframes_wanted", keyframes),
            ("nacked", nacked),
            ("transport_feedback", transport_feedback),
            ("unsent_datagrams", unsent),
            ("closed_early", closed),
        ] {
            // Writing to a String cannot fail.
            let _ = write!(json, ",\"{name}\":{value}");
        }
        let _ = write!(json, ",\"connecting_ms\":{}", self.connecting.as_millis());
        json
    }
}
