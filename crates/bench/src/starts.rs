//! Many WebRTC publishers that start within seconds of each other, pushed as AAC: how each upstream's audio starts.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use headgate_peer::{Settings, SrtpChoice};
use headgate_rtmp::MediaKind;
use mio::{Events, Poll, Token};

use crate::aac_start::AacStart;
use crate::load::Stamp;
use crate::sink::{Sink, Takes};
use crate::whip_http::{Answer, delete, post_offer, post_path};
use crate::whip_load::{Sound, due, prepare_sound};
use crate::whip_publisher::{Asked, WhipPublisher};

const TURN: Duration = Duration::from_millis(2);
/// What to run.
pub(crate) struct Run {
    /// Where the server pushes to: us.
    pub(crate) listen: SocketAddr,
    /// The server's HTTP.
    pub(crate) target: SocketAddr,
    pub(crate) stream_url: String,
    /// One publisher for each stream name.
    pub(crate) names: Vec<String>,
    /// Publishers that start in a second.
    pub(crate) rate: u32,
    /// How long media flows after the last one has started.
    pub(crate) seconds: u64,
    /// [`Sound::AacStereo`] or [`Sound::AacMono`].
    pub(crate) audio: Sound,
}

/// A publisher and what it has sent.
struct Starting {
    publisher: WhipPublisher,
    /// Its media times count from here.
    since: Option<Instant>,
    sent: [u32; 2],
}

/// Starts all publishers and runs them. Returns one line of JSON.
pub(crate) fn run(run: &Run) -> io::Result<String> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 << 10];
    let mut asked = Asked::default();
    let mut sink = Sink::open(run.listen, Takes::NoOpus, poll.registry())?;
    let packets = prepare_sound(run.audio)?;
    let stereo = run.audio != Sound::AacMono;
    let settings = Settings { stereo, srtp: SrtpChoice::Gcm, ..Settings::default() };
    let mut starting = (0..run.names.len())
        .map(|at| {
            let publisher = WhipPublisher::open(settings, Token(at), poll.registry())?;
            Ok(Starting { publisher, since: None, sent: [0; 2] })
        })
        .collect::<io::Result<Vec<_>>>()?;
    let answers = post_all(run, starting.iter().map(|one| one.publisher.offer()).collect());
    let mut upstreams: Vec<AacStart> = Vec::new();
    let begun = Instant::now();
    let all_begun = Duration::from_secs(1) * u32::try_from(run.names.len()).unwrap_or(0) / run.rate;
    let (mut refused, mut late) = (0, Duration::ZERO);
    while begun.elapsed() < all_begun + Duration::from_secs(run.seconds) {
        poll.poll(&mut events, Some(TURN))?;
        for event in &events {
            let token = event.token();
            if Sink::owns(token) {
                sink.serve(token, poll.registry(), &mut buffer, |push, message| {
                    if upstreams.len() <= push {
                        upstreams.resize_with(push + 1, AacStart::default);
                    }
                    if let Some(upstream) = upstreams.get_mut(push) {
                        upstream.note(message);
                    }
                })?;
            } else if let Some(one) = starting.get_mut(token.0) {
                one.publisher.receive(&mut buffer, &mut asked);
            }
        }
        while let Ok((at, answer)) = answers.try_recv() {
            let Some(one) = starting.get_mut(at) else { continue };
            let answer = answer?;
            refused += u32::from(answer.status != 201);
            if answer.status == 201 {
                one.publisher.handle_answer(&answer.body, &mut asked)?;
                one.publisher.session_path = answer.session_path;
            }
        }
        let now = Instant::now();
        for one in &mut starting {
            one.publisher.handle_timeout(now, &mut asked);
            late = late.max(one.send(now, &packets, &mut asked));
        }
    }
    let connected = starting.iter().filter(|one| one.since.is_some()).count();
    for one in &mut starting {
        one.publisher.close(&mut asked);
        if let Some(path) = &one.publisher.session_path {
            delete(run.target, path)?;
        }
    }
    let list: Vec<String> = upstreams.iter().map(AacStart::to_json).collect();
    let (late, list) = (late.as_millis(), list.join(","));
    Ok(format!(
        "{{\"connected\":{connected},\"refused\":{refused},\"sent_late_ms\":{late},\"upstreams\":[{list}]}}"
    ))
}

/// Posts each offer when it is due, in separate threads, so that a slow answer delays no media.
fn post_all(run: &Run, offers: Vec<String>) -> Receiver<(usize, io::Result<Answer>)> {
    let (sender, answers) = channel();
    let interval = Duration::from_secs(1) / run.rate.max(1);
    for (at, (offer, name)) in offers.into_iter().zip(&run.names).enumerate() {
        let path = post_path(&run.stream_url, name);
        let (sender, target) = (sender.clone(), run.target);
        thread::spawn(move || {
            thread::sleep(interval * u32::try_from(at).unwrap_or(0));
            sender.send((at, post_offer(target, &path, &offer)))
        });
    }
    answers
}

impl Starting {
    /// Sends what is due. Returns the largest delay.
    fn send(&mut self, now: Instant, packets: &[Vec<u8>], asked: &mut Asked) -> Duration {
        if !self.publisher.is_connected || self.publisher.is_closed {
            return Duration::ZERO;
        }
        let since = *self.since.get_or_insert(now);
        let elapsed = now - since;
        let mut late = Duration::ZERO;
        for (kind, sent) in [MediaKind::Video, MediaKind::Audio].into_iter().zip(&mut self.sent) {
            while due(kind, *sent) <= elapsed {
                late = late.max(elapsed - due(kind, *sent));
                let stamp = Stamp { publisher: 0, number: *sent, sent: Duration::ZERO };
                let audio = packets.get(*sent as usize % packets.len().max(1));
                let audio = audio.filter(|_| kind == MediaKind::Audio).map(Vec::as_slice);
                self.publisher.send(since + due(kind, *sent), kind, stamp, audio, asked);
                *sent += 1;
            }
        }
        late
    }
}
