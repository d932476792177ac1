//! A broadcaster or player on a blocking socket.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_rtmp::{
    ClientConfig, ClientEvent, ClientRole, ClientSession, Limits, MediaKind, MediaMessage,
};

use super::PATIENCE;
use crate::sample::{AVC_HEADER, number, picture};

pub(super) struct Peer {
    pub(super) socket: TcpStream,
    session: ClientSession,
    events: VecDeque<ClientEvent>,
}

impl Peer {
    pub(super) fn publish(port: u16, name: &str) -> Self {
        Self::open(port, name, ClientRole::Publish, &[])
    }

    pub(super) fn play(port: u16, name: &str) -> Self {
        Self::open(port, name, ClientRole::Play, &[])
    }

    /// A player that lists Opus in connect (Enhanced RTMP).
    pub(super) fn play_opus(port: u16, name: &str) -> Self {
        Self::play_listing(port, name, &["Opus"])
    }

    /// A player that lists these codecs in connect.
    pub(super) fn play_listing(port: u16, name: &str, four_ccs: &[&str]) -> Self {
        Self::open(port, name, ClientRole::Play, four_ccs)
    }

    /// The next media message.
    pub(super) fn next_media(&mut self) -> MediaMessage {
        match self.wait_event(|event| matches!(event, ClientEvent::Media(_))) {
            ClientEvent::Media(media) => media,
            _ => unreachable!("just matched"),
        }
    }

    fn open(port: u16, name: &str, role: ClientRole, four_ccs: &[&str]) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("the core listens");
        Self::open_on(socket, port, name, role, four_ccs)
    }

    /// The same on a connection on which something was already sent.
    pub(super) fn publish_on(socket: TcpStream, name: &str) -> Self {
        Self::open_on(socket, 1935, name, ClientRole::Publish, &[])
    }

    /// The same for a player.
    pub(super) fn play_on(socket: TcpStream, name: &str) -> Self {
        Self::open_on(socket, 1935, name, ClientRole::Play, &[])
    }

    fn open_on(
        socket: TcpStream,
        port: u16,
        name: &str,
        role: ClientRole,
        four_ccs: &[&str],
    ) -> Self {
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket option");
        let config = ClientConfig {
            role,
            app: "live".into(),
            tc_url: format!("rtmp://127.0.0.1:{port}/live"),
            name: name.into(),
            seed: [7; 8],
            limits: Limits { turn_work: u32::MAX, ..Limits::default() },
            four_cc_list: four_ccs.iter().map(|four_cc| (*four_cc).to_owned()).collect(),
            ..ClientConfig::new(role)
        };
        let session = ClientSession::new(config, Instant::now());
        Self { socket, session, events: VecDeque::new() }
    }

    pub(super) fn wait_ready(&mut self) {
        self.wait_event(|event| matches!(event, ClientEvent::Ready));
    }

    /// The first event that `pick` accepts; earlier ones are dropped.
    pub(super) fn wait_event(&mut self, pick: impl Fn(&ClientEvent) -> bool) -> ClientEvent {
        let until = Instant::now() + PATIENCE;
        loop {
            while let Some(event) = self.events.pop_front() {
                if pick(&event) {
                    return event;
                }
            }
            assert!(Instant::now() < until, "the event arrives in time");
            assert!(self.step(), "the connection stays until the event");
        }
    }

    /// Returns all media until the stream ends.
    pub(super) fn media_to_end(&mut self) -> Vec<MediaMessage> {
        self.watch_to_end(|_| {})
    }

    /// The same; `see` gets every message as it arrives.
    pub(super) fn watch_to_end(&mut self, see: impl Fn(&MediaMessage)) -> Vec<MediaMessage> {
        let mut media = Vec::new();
        let until = Instant::now() + PATIENCE;
        loop {
            let is_open = self.step();
            while let Some(event) = self.events.pop_front() {
                match event {
                    ClientEvent::Media(message) => {
                        see(&message);
                        media.push(message);
                    }
                    ClientEvent::Ended { .. } | ClientEvent::Close => return media,
                    ClientEvent::Ready
                    | ClientEvent::Refused { .. }
                    | ClientEvent::Reconnect { .. }
                    | ClientEvent::Redirected { .. } => {}
                }
            }
            if !is_open {
                return media;
            }
            assert!(Instant::now() < until, "the stream ends in time");
        }
    }

    /// Sends frame `n` of a stream with a keyframe every `gop` frames: headers first, then video frames of 1,000 bytes
    /// that contain their number, each with an audio frame of 100 bytes.
    pub(super) fn send_frame(&mut self, n: u32, gop: u32) {
        if n == 0 {
            self.send(MediaKind::Video, 0, AVC_HEADER);
            self.send(MediaKind::Audio, 0, &[0xaf, 0, 0x11, 0x90]);
        }
        self.send(MediaKind::Video, n * 40, &picture(n.is_multiple_of(gop), n, 1005));
        let mut sound = vec![0xaf, 1];
        sound.resize(102, 0);
        self.send(MediaKind::Audio, n * 40, &sound);
    }

    /// Payload bytes of one [`Peer::send_frame`].
    pub(super) const FRAME_BYTES: u64 = 1100;

    pub(super) fn send(&mut self, kind: MediaKind, timestamp: u32, body: &[u8]) {
        self.session.send_media(kind, timestamp, &[], &Bytes::copy_from_slice(body));
        self.flush();
    }

    pub(super) fn say_goodbye(&mut self) {
        self.session.end();
        self.flush();
    }

    /// Closes with a reset instead of closing commands.
    pub(super) fn reset(self) {
        let socket = socket2::Socket::from(self.socket);
        socket.set_linger(Some(Duration::ZERO)).expect("a socket option");
    }

    /// Sends bytes directly, bypassing the session.
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// One round of writing and reading; false if the connection is closed.
    pub(super) fn step(&mut self) -> bool {
        self.flush();
        let mut buffer = [0; 65_536];
        match self.socket.read(&mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                let input = buffer.get(..length).expect("what was read");
                self.session.handle_input(input, Instant::now()).expect("the core speaks RTMP");
                while let Some(event) = self.session.poll_event() {
                    self.events.push_back(event);
                }
                self.flush();
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }

    fn flush(&mut self) {
        while !self.session.output().is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let count = self.session.output().io_slices(&mut slices);
            match self.socket.write_vectored(slices.get(..count).expect("as many as were filled")) {
                Ok(written) => self.session.output_mut().consume(written),
                // The core closed: what it sent before is read next.
                Err(_) => return,
            }
        }
    }
}

/// The numbers of frames, each `every_ms`: as an encoder sends, so that those who read keep up.
pub(super) fn paced(frames: Range<u32>, every_ms: u64) -> impl Iterator<Item = u32> {
    frames.inspect(move |_| thread::sleep(Duration::from_millis(every_ms))) // media takes as long as it lasts
}

/// Numbers of the video frames in `media`, in order of arrival.
pub(super) fn pictures(media: &[MediaMessage]) -> Vec<u32> {
    let video = media.iter().filter(|message| message.kind == MediaKind::Video);
    video.filter_map(|message| number(&message.payload)).collect()
}
