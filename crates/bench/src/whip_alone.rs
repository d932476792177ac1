//! One WebRTC publisher in its own poll loop, for programs with a thread for each.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_peer::Settings;
use headgate_rtmp::MediaKind;
use mio::{Events, Poll, Token};

use crate::load::Stamp;
use crate::whip_http::{Answer, delete, post_offer};
use crate::whip_load::due;
use crate::whip_publisher::{Asked, WhipPublisher};

/// A server that takes longer to connect has failed.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// Precision of the times at which media is sent.
const TURN: Duration = Duration::from_millis(5);

/// A publisher that has received the server's answer.
pub(crate) struct WhipAlone {
    pub(crate) publisher: WhipPublisher,
    pub(crate) asked: Asked,
    pub(crate) answer: Answer,
    http: SocketAddr,
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
    begun: Instant,
    sent: [u32; 2],
}

impl WhipAlone {
    /// Posts the offer. Fails when the server rejects it.
    pub(crate) fn ask(http: SocketAddr, path: &str, settings: Settings) -> io::Result<Self> {
        let poll = Poll::new()?;
        let publisher = WhipPublisher::open(settings, Token(0), poll.registry())?;
        let answer = post_offer(http, path, &publisher.offer())?;
        if answer.status != 201 {
            return Err(io::Error::other(format!("POST: {} {}", answer.status, answer.body)));
        }
        Ok(Self {
            publisher,
            asked: Asked::default(),
            answer,
            http,
            poll,
            events: Events::with_capacity(16),
            buffer: vec![0; 64 << 10],
            begun: Instant::now(),
            sent: [0; 2],
        })
    }

    /// Runs ICE and DTLS; media times count from their completion.
    pub(crate) fn connect(&mut self) -> io::Result<()> {
        let ready_by = Instant::now() + READY_LIMIT;
        self.publisher.handle_answer(&self.answer.body, &mut self.asked)?;
        while !self.publisher.is_connected {
            if Instant::now() > ready_by || self.publisher.is_closed {
                return Err(io::Error::other("not connected"));
            }
            self.turn(TURN)?;
        }
        self.begun = Instant::now();
        Ok(())
    }

    /// Waits for the network, at most `wait`, and does what is due except sending media.
    pub(crate) fn turn(&mut self, wait: Duration) -> io::Result<()> {
        self.poll.poll(&mut self.events, Some(wait))?;
        self.serve();
        Ok(())
    }

    /// Like `turn`, without waiting.
    pub(crate) fn serve(&mut self) {
        self.publisher.receive(&mut self.buffer, &mut self.asked);
        self.publisher.handle_timeout(Instant::now(), &mut self.asked);
    }

    /// Time since media began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Sends what is due of the tracks that `takes` selects.
    pub(crate) fn send_due(&mut self, takes: impl Fn(MediaKind) -> bool) {
        for (kind, sent) in [MediaKind::Video, MediaKind::Audio].into_iter().zip(&mut self.sent) {
            while takes(kind) && due(kind, *sent) <= self.begun.elapsed() {
                let stamp = Stamp { publisher: u32::MAX, number: *sent, sent: Duration::ZERO };
                self.publisher.send(Instant::now(), kind, stamp, None, &mut self.asked);
                *sent += 1;
            }
        }
    }

    /// Publishes both tracks for `time`, or until the server ends it.
    pub(crate) fn publish_for(&mut self, time: Duration) -> io::Result<()> {
        while self.elapsed() < time && !self.publisher.is_closed {
            self.send_due(|_| true);
            self.turn(TURN)?;
        }
        Ok(())
    }

    /// Ends the session by HTTP: 200 when it existed.
    pub(crate) fn delete(&self) -> io::Result<u16> {
        let path = self.answer.session_path.as_deref().unwrap_or_default();
        Ok(delete(self.http, path)?.status)
    }
}
