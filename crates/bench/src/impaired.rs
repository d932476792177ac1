//! One WebRTC publisher through a bad network into a server, and the upstream it pushes to: what arrives intact, in
//! order and in sync. Like an encoder, the publisher sends a keyframe when one is requested.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use headgate_peer::Settings;
use headgate_rtmp::{MediaKind, MediaMessage};
use mio::{Events, Poll, Token};

use crate::impairment::Conditions;
use crate::in_step::InStep;
use crate::load::Stamp;
use crate::sink::{Sink, Takes};
use crate::udp_proxy::UdpProxy;
use crate::whip_http::{delete, post_offer, post_path};
use crate::whip_load::{Arrived, due, is_due_keyframe, is_intact, recognise};
use crate::whip_publisher::{Asked, WhipPublisher};

/// Generous: every tenth datagram of a handshake may be lost.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
const TURN: Duration = Duration::from_millis(2);
/// How long the last datagrams may take to arrive.
const SETTLE: Duration = Duration::from_millis(1_500);

/// What to run.
pub(crate) struct Run {
    /// Where the server pushes to: us.
    pub(crate) listen: SocketAddr,
    /// The server's HTTP.
    pub(crate) target: SocketAddr,
    pub(crate) stream_url: String,
    pub(crate) name: String,
    pub(crate) seconds: u64,
    pub(crate) conditions: Conditions,
    pub(crate) seed: u64,
    /// How much earlier audio is captured than video that is sent at the same time.
    pub(crate) apart: Duration,
}

/// What arrived of what was sent.
#[derive(Default)]
struct Account {
    pictures_sent: u32,
    sounds_sent: u32,
    pictures: u32,
    sounds: u32,
    /// Pictures whose bytes changed, or whose reference never arrived.
    corrupt: u32,
    /// Tags whose timestamp went back.
    backwards: u32,
    first_picture: Option<u32>,
    first_sound: Option<u32>,
    last_picture: Option<u32>,
    newest: [u32; 2],
    /// The longest delay between a frame's capture and its sending.
    late: Duration,
    /// From the answer to the end of DTLS.
    connected_after: Duration,
}

/// Publishes for the measured time; one line of JSON.
pub(crate) fn run(run: &Run) -> io::Result<String> {
    let mut poll = Poll::new()?;
    let mut sink = Sink::open(run.listen, Takes::Everything, poll.registry())?;
    let settings = Settings { audio_latency: run.apart, ..Settings::default() };
    let mut publisher = WhipPublisher::open(settings, Token(0), poll.registry())?;
    let mut asked = Asked::default();
    let path = post_path(&run.stream_url, &run.name);
    let answer = post_offer(run.target, &path, &publisher.offer())?;
    if answer.status != 201 {
        return Err(io::Error::other(format!("POST: {} {}", answer.status, answer.body)));
    }
    let (server, given) =
        answer.candidate().ok_or_else(|| io::Error::other("the answer names no UDP candidate"))?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let proxy = UdpProxy::start(listen, server, run.conditions, run.seed)?;
    let here = format!("{} {}", proxy.address.ip(), proxy.address.port());
    publisher.handle_answer(&answer.body.replace(&given, &here), &mut asked)?;

    let mut account = Account::default();
    let mut in_step = InStep::new(run.apart);
    let mut keys: Vec<bool> = Vec::new();
    let mut events = Events::with_capacity(256);
    let mut buffer = vec![0; 64 * 1024];
    let begun = Instant::now();
    let mut media_from = None;
    let mut answered = 0;
    loop {
        poll.poll(&mut events, Some(TURN))?;
        for event in &events {
            let token = event.token();
            if Sink::owns(token) {
                sink.serve(token, poll.registry(), &mut buffer, |_, message| {
                    account.note(message, &keys, &mut in_step);
                })?;
            } else {
                publisher.receive(&mut buffer, &mut asked);
            }
        }
        let now = Instant::now();
        publisher.handle_timeout(now, &mut asked);
        if media_from.is_none() && publisher.is_connected {
            media_from = Some(now);
            account.connected_after = begun.elapsed();
        }
        let Some(from) = media_from else {
            if begun.elapsed() > CONNECT_LIMIT {
                return Err(io::Error::other("the publisher does not connect"));
            }
            continue;
        };
        let elapsed = now - from;
        let until = Duration::from_secs(run.seconds);
        if elapsed > until + SETTLE {
            break;
        }
        let limit = elapsed.min(until);
        while due(MediaKind::Audio, account.sounds_sent) < limit {
            let number = account.sounds_sent;
            let captured = from + due(MediaKind::Audio, number);
            account.note_late(now, captured);
            publisher.send(captured, MediaKind::Audio, stamp(number), None, &mut asked);
            account.sounds_sent += 1;
        }
        while due(MediaKind::Video, account.pictures_sent) < limit {
            let number = account.pictures_sent;
            let is_key = is_due_keyframe(number) || asked.keyframes > answered;
            answered = asked.keyframes;
            keys.push(is_key);
            let captured = from + due(MediaKind::Video, number);
            account.note_late(now, captured);
            publisher.send_picture(captured, stamp(number), is_key, &mut asked);
            account.pictures_sent += 1;
        }
    }
    publisher.close(&mut asked);
    if let Some(path) = &answer.session_path {
        delete(run.target, path)?;
    }
    Ok(account.to_json(&in_step, &asked, proxy.stop()))
}

const fn stamp(number: u32) -> Stamp {
    Stamp { publisher: 0, number, sent: Duration::ZERO }
}

impl Account {
    fn note(&mut self, message: &MediaMessage, keys: &[bool], in_step: &mut InStep) {
        let Arrived::Stamped(stamp) = recognise(message.kind, &message.payload) else { return };
        let number = stamp.number;
        let place = usize::from(message.kind == MediaKind::Audio);
        if let Some(newest) = self.newest.get_mut(place) {
            self.backwards += u32::from(message.timestamp < *newest);
            *newest = message.timestamp;
        }
        in_step.note(message.kind, number, message.timestamp);
        if message.kind == MediaKind::Audio {
            self.sounds += 1;
            self.first_sound.get_or_insert(number);
            return;
        }
        let is_key = keys.get(number as usize).copied().unwrap_or(false);
        let has_reference = self.last_picture.is_some_and(|last| last + 1 == number);
        if !is_intact(stamp, is_key, &message.payload) || !(is_key || has_reference) {
            self.corrupt += 1;
        }
        self.pictures += 1;
        self.first_picture.get_or_insert(number);
        self.last_picture = Some(number);
    }

    fn note_late(&mut self, now: Instant, captured: Instant) {
        self.late = self.late.max(now.saturating_duration_since(captured));
    }

    fn to_json(&self, in_step: &InStep, asked: &Asked, lost: u64) -> String {
        let Self { pictures_sent, sounds_sent, pictures, sounds, corrupt, backwards, .. } = self;
        let number = |number: Option<u32>| number.map_or(-1, i64::from);
        let (first_picture, first_sound) = (number(self.first_picture), number(self.first_sound));
        let (skew, settled) = (in_step.worst_ms(), in_step.settled_ms());
        let connected = self.connected_after.as_millis();
        let (keyframes, nacked, late) = (asked.keyframes, asked.nacked, self.late.as_millis());
        format!(
            "{{\"pictures_sent\":{pictures_sent},\"pictures\":{pictures},\"sounds_sent\":{sounds_sent},\"sounds\":{sounds},\"corrupt\":{corrupt},\"backwards\":{backwards},\"first_picture\":{first_picture},\"first_sound\":{first_sound},\"skew_ms\":{skew},\"in_step_from_ms\":{settled},\"keyframes_wanted\":{keyframes},\"nacked\":{nacked},\"datagrams_lost\":{lost},\"sent_late_ms\":{late},\"connected_after_ms\":{connected}}}"
        )
    }
}
