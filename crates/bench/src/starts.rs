//! Many WebRTC publishers that begin within seconds of each other, each pushed as AAC: how each upstream's audio begins.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use headgate_peer::{Settings, SrtpChoice};
use headgate_rtmp::{MediaKind, MediaMessage};
use mio::{Events, Poll, Token};

use crate::load::Stamp;
use crate::sink::{Sink, Takes};
use crate::whip_http::{Answer, delete, escape, post_offer};
use crate::whip_load::{Arrived, Sound, due, prepare_sound, recognise};
use crate::whip_publisher::{Asked, WhipPublisher};

const TURN: Duration = Duration::from_millis(2);
/// Two AAC frames; timestamps are whole milliseconds.
const STEP_LIMIT_MS: u32 = 22;
/// AAC-LC by its first byte, and the packet types of FLV E.4.2.2.
const AAC: u8 = 10;
const SEQUENCE_HEADER: u8 = 0;

/// What to run.
pub(crate) struct Run {
    /// Where the server pushes to: us.
    pub(crate) listen: SocketAddr,
    /// The server's HTTP.
    pub(crate) target: SocketAddr,
    pub(crate) stream_url: String,
    /// One publisher for each stream name.
    pub(crate) names: Vec<String>,
    /// Publishers that begin in a second.
    pub(crate) rate: u32,
    /// Media flows so long after the last has begun.
    pub(crate) seconds: u64,
    pub(crate) sound: Sound,
}

/// What one upstream got.
#[derive(Default)]
struct Upstream {
    first_video_ms: Option<u32>,
    first_aac_ms: Option<u32>,
    last_aac_ms: Option<u32>,
    frames: u32,
    headers: u32,
    /// How often an AAC timestamp was below the one before, and by how much at most.
    backwards: u32,
    most_back_ms: u32,
    /// How often more than one frame was missing.
    gaps: u32,
}

/// A publisher and what it has sent.
struct Starting {
    publisher: WhipPublisher,
    /// Its media counts from here.
    since: Option<Instant>,
    sent: [u32; 2],
}

/// Begins all and lets them run; one line of JSON.
pub(crate) fn run(run: &Run) -> io::Result<String> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 << 10];
    let mut asked = Asked::default();
    let mut sink = Sink::open(run.listen, Takes::NoOpus, poll.registry())?;
    let packets = prepare_sound(run.sound)?;
    let stereo = run.sound != Sound::AacMono;
    let settings = Settings { stereo, srtp: SrtpChoice::Gcm, ..Settings::default() };
    let mut starting = (0..run.names.len())
        .map(|at| {
            let publisher = WhipPublisher::open(settings, Token(at), poll.registry())?;
            Ok(Starting { publisher, since: None, sent: [0; 2] })
        })
        .collect::<io::Result<Vec<_>>>()?;
    let answers = post_all(run, starting.iter().map(|one| one.publisher.offer()).collect());
    let mut upstreams: Vec<Upstream> = Vec::new();
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
                        upstreams.resize_with(push + 1, Upstream::default);
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
    let list: Vec<String> = upstreams.iter().map(Upstream::to_json).collect();
    let (late, list) = (late.as_millis(), list.join(","));
    Ok(format!(
        "{{\"connected\":{connected},\"refused\":{refused},\"sent_late_ms\":{late},\"upstreams\":[{list}]}}"
    ))
}

/// Posts each offer when it is due, in threads of their own: a slow answer delays no media.
fn post_all(run: &Run, offers: Vec<String>) -> Receiver<(usize, io::Result<Answer>)> {
    let (told, answers) = channel();
    let interval = Duration::from_secs(1) / run.rate.max(1);
    let url = escape(&run.stream_url);
    for (at, (offer, name)) in offers.into_iter().zip(&run.names).enumerate() {
        let path = format!("/p/webrtc?stream_name={}&stream_url={url}", escape(name));
        let (told, target) = (told.clone(), run.target);
        thread::spawn(move || {
            thread::sleep(interval * u32::try_from(at).unwrap_or(0));
            told.send((at, post_offer(target, &path, &offer)))
        });
    }
    answers
}

impl Starting {
    /// Sends what is due; how late the latest was.
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
                let sound = packets.get(*sent as usize % packets.len().max(1));
                let sound = sound.filter(|_| kind == MediaKind::Audio).map(Vec::as_slice);
                self.publisher.send(since + due(kind, *sent), kind, stamp, sound, asked);
                *sent += 1;
            }
        }
        late
    }
}

impl Upstream {
    fn note(&mut self, message: &MediaMessage) {
        let timestamp = message.timestamp;
        if matches!(recognise(message.kind, &message.payload), Arrived::Stamped(_)) {
            self.first_video_ms.get_or_insert(timestamp);
        }
        let (kind, Some(&[first, packet_type])) = (message.kind, message.payload.first_chunk())
        else {
            return;
        };
        if kind != MediaKind::Audio || first >> 4 != AAC {
            return;
        }
        if packet_type == SEQUENCE_HEADER {
            self.headers += 1;
            return;
        }
        self.frames += 1;
        self.first_aac_ms.get_or_insert(timestamp);
        if let Some(last) = self.last_aac_ms.replace(timestamp) {
            self.backwards += u32::from(timestamp < last);
            self.most_back_ms = self.most_back_ms.max(last.saturating_sub(timestamp));
            self.gaps += u32::from(timestamp > last + STEP_LIMIT_MS);
        }
    }

    fn to_json(&self) -> String {
        let number = |number: Option<u32>| number.map_or(-1, i64::from);
        let (first_video, first_aac) = (number(self.first_video_ms), number(self.first_aac_ms));
        let Self { frames, headers, backwards, most_back_ms, gaps, .. } = self;
        format!(
            "{{\"first_video_ms\":{first_video},\"first_aac_ms\":{first_aac},\"aac_frames\":{frames},\"aac_headers\":{headers},\"backwards\":{backwards},\"most_back_ms\":{most_back_ms},\"gaps\":{gaps}}}"
        )
    }
}
