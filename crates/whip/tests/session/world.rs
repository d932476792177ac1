//! A publisher, a session, the network between them, and the time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_media::{Codec, Frame, FrameKind};
use headgate_peer::{Event, Publisher, Settings};
use headgate_whip::sdp::{AnswerSettings, read_offer, write_answer};
use headgate_whip::{Credentials, Identity, Path, WhipEnd, WhipEvent, WhipSession};

pub(crate) const SPS: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50];
pub(crate) const PPS: &[u8] = &[0x68, 0xce, 0x3c, 0x80];
/// Frames between two keyframes when none is requested.
const GOP: u32 = 1_000;
const FRAME: Duration = Duration::from_millis(40);

/// What the network does to one datagram: true drops it.
pub(crate) type Loss = Box<dyn FnMut(Direction, &[u8]) -> bool>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

pub(crate) struct World {
    pub(crate) publisher: Publisher,
    pub(crate) session: WhipSession,
    pub(crate) now: Instant,
    pub(crate) client: SocketAddr,
    pub(crate) is_tcp: bool,
    pub(crate) delay: Duration,
    pub(crate) loss: Loss,
    /// Replaces a datagram of the publisher by others.
    pub(crate) split: Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>>>,
    /// Someone else who knows the answer, and its address.
    pub(crate) rival: Option<(SocketAddr, Publisher)>,
    pub(crate) answer: String,
    /// Frames the session produced.
    pub(crate) frames: Vec<Frame>,
    pub(crate) events: Vec<WhipEvent>,
    pub(crate) client_events: Vec<Event>,
    /// Access units sent, by their number, as they must be received.
    sent: BTreeMap<u32, Vec<u8>>,
    sent_frames: u32,
    since_keyframe: u32,
    wants_keyframe: bool,
    sent_packets: u32,
    wire: VecDeque<(Instant, Direction, Vec<u8>)>,
    /// Datagrams that the session sent.
    pub(crate) to_client: usize,
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::with_fingerprint(settings, |offer| offer)
    }

    /// `change` edits the offer before the server reads it.
    pub(crate) fn with_fingerprint(
        settings: Settings,
        change: impl FnOnce(String) -> String,
    ) -> Self {
        let now = Instant::now();
        let mut publisher = Publisher::new(settings).expect("a publisher");
        let identity = Identity::generate().expect("an identity");
        let offer = read_offer(&change(publisher.offer())).expect("an acceptable offer");
        let credentials = Credentials::generate(&identity).expect("random bytes");
        let answer = write_answer(
            &offer,
            &AnswerSettings {
                ufrag: &credentials.ufrag,
                pwd: &credentials.password,
                fingerprint: identity.fingerprint(),
                candidates: &["192.0.2.1:8189".parse().expect("an address")],
                session_id: 1,
                start_bitrate_kbps: 2000,
                max_bitrate_kbps: 0,
                stereo: false,
                audio_bitrate: None,
            },
        );
        let session = WhipSession::new(&identity, &offer, &credentials, 0, now);
        publisher.handle_answer(now, &answer).expect("an acceptable answer");
        Self {
            publisher,
            session,
            now,
            client: "198.51.100.7:40000".parse().expect("an address"),
            is_tcp: false,
            delay: Duration::from_millis(5),
            loss: Box::new(|_, _| false),
            split: Box::new(|datagram| vec![datagram]),
            rival: None,
            answer,
            frames: Vec::new(),
            events: Vec::new(),
            client_events: Vec::new(),
            sent: BTreeMap::new(),
            sent_frames: 0,
            since_keyframe: 0,
            wants_keyframe: true,
            sent_packets: 0,
            wire: VecDeque::new(),
            to_client: 0,
        }
    }

    /// Lets time pass from one due time to the next. Fails if a handled timer remains due.
    pub(crate) fn pass(&mut self, time: Duration) {
        /// Rounds at one point in time: each side answers the other a few times.
        const ROUNDS_LIMIT: usize = 100;
        let until = self.now + time;
        let mut rounds = 0;
        loop {
            self.exchange();
            let timers = [self.publisher.poll_timeout(), self.session.poll_timeout()];
            let arrival = self.wire.iter().map(|(at, ..)| *at).min();
            let next = timers.into_iter().flatten().chain(arrival).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            rounds = if next > self.now { 0 } else { rounds + 1 };
            assert!(rounds < ROUNDS_LIMIT, "a timer that was handled is still due");
            self.now = self.now.max(next);
            self.deliver();
            if self.publisher.poll_timeout().is_some_and(|at| self.now >= at) {
                self.publisher.handle_timeout(self.now);
            }
            if self.session.poll_timeout().is_some_and(|at| self.now >= at) {
                self.session.handle_timeout(self.now);
                let next = self.session.poll_timeout();
                assert!(
                    next.is_none_or(|at| at > self.now),
                    "a timer that was handled is still due"
                );
            }
        }
    }

    /// Passes time until media may flow; false when it never can.
    pub(crate) fn connect(&mut self) -> bool {
        for _ in 0..120 {
            self.pass(Duration::from_millis(100));
            if self.client_events.contains(&Event::Connected)
                && self.events.contains(&WhipEvent::Connected)
            {
                return true;
            }
        }
        false
    }

    /// Publishes video frames of `bytes` bytes, each with two audio packets, in real time.
    pub(crate) fn publish(&mut self, frames: u32, bytes: usize) {
        for _ in 0..frames {
            self.send_video(bytes);
            self.send_audio();
            self.pass(FRAME / 2);
            self.send_audio();
            self.pass(FRAME / 2);
        }
    }

    pub(crate) fn send_video(&mut self, bytes: usize) {
        let number = self.sent_frames;
        self.sent_frames += 1;
        let is_key = self.wants_keyframe || self.since_keyframe >= GOP;
        self.since_keyframe = if is_key { 0 } else { self.since_keyframe + 1 };
        self.wants_keyframe &= !is_key;
        let mut nal = if is_key { vec![0x65, 0x88] } else { vec![0x41, 0x9a] };
        nal.extend_from_slice(&number.to_be_bytes());
        nal.resize(bytes.max(8), number as u8);
        let time = number.wrapping_mul(3600);
        if is_key {
            self.publisher.send_video(self.now, time, &[SPS, PPS, &nal]);
        } else {
            self.publisher.send_video(self.now, time, &[&nal]);
        }
        self.sent.insert(number, [&(nal.len() as u32).to_be_bytes()[..], &nal].concat());
    }

    pub(crate) fn send_audio(&mut self) {
        let packet = [&[0xfc][..], &self.sent_packets.to_be_bytes(), &[7; 100]].concat();
        self.publisher.send_audio(self.now, self.sent_packets.wrapping_mul(960), &packet);
        self.sent_packets += 1;
    }

    /// A datagram from any address reaches the server at once.
    pub(crate) fn inject(&mut self, source: SocketAddr, datagram: &[u8]) {
        self.session.handle_datagram(self.now, source, &mut datagram.to_vec());
    }

    /// Numbers of the video frames received; fails on one that differs from the one sent or cannot be decoded.
    pub(crate) fn video_frames(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        for frame in self.frames.iter().filter(|frame| frame.codec == Codec::H264) {
            if frame.kind == FrameKind::Configuration {
                continue;
            }
            let number = frame.data.get(6..10).expect("a numbered frame");
            let number = u32::from_be_bytes(number.try_into().expect("four bytes"));
            assert_eq!(Some(&frame.data.to_vec()), self.sent.get(&number), "frame {number}");
            let follows = numbers.last().is_some_and(|last| *last + 1 == number);
            assert!(follows || frame.kind == FrameKind::Keyframe, "frame {number} has no base");
            numbers.push(number);
        }
        numbers
    }

    /// Audio packets received.
    pub(crate) fn audio_packets(&self) -> usize {
        self.frames.iter().filter(|frame| frame.kind == FrameKind::Audio).count()
    }

    pub(crate) fn sent_video(&self) -> u32 {
        self.sent_frames
    }

    pub(crate) fn sent_audio(&self) -> u32 {
        self.sent_packets
    }

    pub(crate) fn end(&self) -> Option<WhipEnd> {
        self.events.iter().find_map(|event| match event {
            WhipEvent::Ended(end) => Some(*end),
            WhipEvent::Proven(_)
            | WhipEvent::Forgotten(_)
            | WhipEvent::Source(_)
            | WhipEvent::Connected => None,
        })
    }

    /// The client forgets that a keyframe was requested.
    pub(crate) fn keep_from_keyframes(&mut self) {
        self.wants_keyframe = false;
    }

    fn path(&self) -> Path {
        Path { address: self.client, local: None, is_tcp: self.is_tcp }
    }

    fn exchange(&mut self) {
        while let Some((_, datagram)) = self.publisher.poll_transmit() {
            if !(self.loss)(Direction::ToServer, &datagram) {
                for part in (self.split)(datagram) {
                    self.wire.push_back((self.now + self.delay, Direction::ToServer, part));
                }
            }
        }
        if let Some((address, rival)) = &mut self.rival {
            while let Some((_, mut datagram)) = rival.poll_transmit() {
                self.session.handle_datagram(self.now, *address, &mut datagram);
            }
            if rival.poll_timeout().is_some_and(|at| self.now >= at) {
                rival.handle_timeout(self.now);
            }
        }
        while let Some((to, datagram)) = self.session.poll_transmit() {
            if let Some((address, rival)) = &mut self.rival
                && to == (*address).into()
            {
                rival.handle_datagram(self.now, &datagram);
                continue;
            }
            self.to_client += 1;
            let is_lost = (self.loss)(Direction::ToClient, &datagram);
            if to == self.path() && !is_lost {
                self.wire.push_back((self.now + self.delay, Direction::ToClient, datagram));
            }
        }
        while let Some(frame) = self.session.poll_frame() {
            self.frames.push(frame);
        }
        while let Some(event) = self.session.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = self.publisher.poll_event() {
            self.wants_keyframe |= event == Event::KeyframeWanted;
            self.client_events.push(event);
        }
    }

    fn deliver(&mut self) {
        let mut later = VecDeque::new();
        for (at, direction, mut datagram) in std::mem::take(&mut self.wire) {
            if at > self.now {
                later.push_back((at, direction, datagram));
                continue;
            }
            match direction {
                Direction::ToServer => {
                    let path = self.path();
                    self.session.handle_datagram(self.now, path, &mut datagram);
                }
                Direction::ToClient => self.publisher.handle_datagram(self.now, &datagram),
            }
        }
        self.wire = later;
    }
}

/// A small random number generator with a fixed sequence.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub(crate) const fn roll(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
