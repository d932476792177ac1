//! One WebRTC publisher with its UDP socket: `headgate_peer` and its driver.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use bytes::BytesMut;
use headgate_peer::{Event, Publisher, Settings};
use headgate_rtmp::MediaKind;
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};

use crate::chromium::Picture;
use crate::load::Stamp;
use crate::whip_load::{is_due_keyframe, picture, picture_of, rtp_time, stamped_sound};

/// What the server requested and what the sockets did, over all publishers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) keyframes: u64,
    pub(crate) nacked: u64,
    pub(crate) transport_feedback: u64,
    /// Datagrams the kernel refused.
    pub(crate) unsent: u64,
    pub(crate) closed: u64,
}

/// A publisher and its socket.
pub(crate) struct WhipPublisher {
    socket: UdpSocket,
    peer: Publisher,
    scratch: BytesMut,
    pub(crate) session_path: Option<String>,
    pub(crate) is_connected: bool,
    pub(crate) is_closed: bool,
    /// Nothing passes in either direction.
    pub(crate) is_dark: bool,
}

impl WhipPublisher {
    /// A publisher that waits for its answer.
    pub(crate) fn open(settings: Settings, token: Token, registry: &Registry) -> io::Result<Self> {
        let peer = Publisher::new(settings).map_err(io::Error::other)?;
        let socket = bind(token, registry)?;
        let (session_path, is_connected, is_closed) = (None, false, false);
        let scratch = BytesMut::new();
        let is_dark = false;
        Ok(Self { socket, peer, scratch, session_path, is_connected, is_closed, is_dark })
    }

    pub(crate) fn offer(&self) -> String {
        self.peer.offer()
    }

    pub(crate) fn handle_answer(&mut self, sdp: &str, asked: &mut Asked) -> io::Result<()> {
        self.peer.handle_answer(Instant::now(), sdp).map_err(io::Error::other)?;
        self.flush(asked);
        Ok(())
    }

    pub(crate) fn receive(&mut self, buffer: &mut [u8], asked: &mut Asked) {
        while let Ok((length, _)) = self.socket.recv_from(buffer) {
            if self.is_dark {
                continue;
            }
            let datagram = buffer.get(..length).unwrap_or_default();
            self.peer.handle_datagram(Instant::now(), datagram);
        }
        while let Some(event) = self.peer.poll_event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::KeyframeWanted => asked.keyframes += 1,
                Event::Nack(missing) => asked.nacked += missing.len() as u64,
                Event::TransportFeedback => asked.transport_feedback += 1,
                Event::Closed => {
                    self.is_closed = true;
                    asked.closed += 1;
                }
            }
        }
        self.flush(asked);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, asked: &mut Asked) {
        if self.peer.poll_timeout().is_some_and(|at| now >= at) {
            self.peer.handle_timeout(now);
            self.flush(asked);
        }
    }

    /// Sends one frame; `sound` is what an audio packet carries instead of a stamp. `captured` is the time in sender
    /// reports, however late the frame is sent.
    pub(crate) fn send(
        &mut self,
        captured: Instant,
        kind: MediaKind,
        stamp: Stamp,
        sound: Option<&[u8]>,
        asked: &mut Asked,
    ) {
        match kind {
            MediaKind::Video | MediaKind::Script => {
                let is_key = is_due_keyframe(stamp.number);
                return self.send_picture(captured, stamp, is_key, asked);
            }
            MediaKind::Audio => {
                let packet = sound.unwrap_or_else(|| stamped_sound(stamp, &mut self.scratch));
                self.peer.send_audio(captured, rtp_time(kind, stamp.number), packet);
            }
        }
        self.flush(asked);
    }

    /// Sends one picture, a keyframe or not.
    pub(crate) fn send_picture(
        &mut self,
        captured: Instant,
        stamp: Stamp,
        is_key: bool,
        asked: &mut Asked,
    ) {
        let units = picture(stamp, is_key, &mut self.scratch);
        self.peer.send_video(captured, rtp_time(MediaKind::Video, stamp.number), &units);
        self.flush(asked);
    }

    /// Packetizes one recorded picture; the caller sends the datagrams.
    pub(crate) fn cut(
        &mut self,
        captured: Instant,
        stamp: Stamp,
        picture: &Picture,
    ) -> Vec<(SocketAddr, Vec<u8>)> {
        let units = picture_of(stamp, picture.is_key, picture.bytes, &mut self.scratch);
        self.peer.send_video(captured, rtp_time(MediaKind::Video, stamp.number), &units);
        std::iter::from_fn(|| self.peer.poll_transmit()).collect()
    }

    /// Sends a datagram of the peer, or one from `cut`.
    pub(crate) fn transmit(&mut self, to: SocketAddr, datagram: &[u8], asked: &mut Asked) {
        if self.socket.send_to(datagram, to).is_err() {
            asked.unsent += 1;
        }
    }

    /// Sends one RTP packet unchanged.
    pub(crate) fn send_rtp(&mut self, packet: &[u8], asked: &mut Asked) {
        self.peer.send_rtp(packet);
        self.flush(asked);
    }

    /// Sends from another port from now on.
    pub(crate) fn rebind(&mut self, token: Token, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.socket)?;
        self.socket = bind(token, registry)?;
        Ok(())
    }

    /// Sends only the first `count` datagrams of DTLS; must be called before the answer is handled.
    pub(crate) fn hold_dtls_after(&mut self, count: usize) {
        let mut left = count;
        self.peer.set_dtls_filter(Some(Box::new(move |datagram| {
            let is_sent = left > 0;
            left = left.saturating_sub(1);
            if is_sent { vec![datagram] } else { Vec::new() }
        })));
    }

    /// Protects one RTP packet without sending it; `None` before the keys are available.
    pub(crate) fn protect(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.peer.send_rtp(packet);
        self.peer.poll_transmit().map(|(_, datagram)| datagram)
    }

    /// Sends any datagram.
    pub(crate) fn send_raw(&mut self, datagram: Vec<u8>, asked: &mut Asked) {
        self.peer.send_raw(datagram);
        self.flush(asked);
    }

    /// SSRCs of the audio and the video track.
    pub(crate) const fn ssrcs(&self) -> (u32, u32) {
        self.peer.ssrcs()
    }

    pub(crate) fn close(&mut self, asked: &mut Asked) {
        self.peer.close(Instant::now());
        self.flush(asked);
    }

    fn flush(&mut self, asked: &mut Asked) {
        while let Some((server, datagram)) = self.peer.poll_transmit() {
            if !self.is_dark {
                self.transmit(server, &datagram, asked);
            }
        }
    }
}

fn bind(token: Token, registry: &Registry) -> io::Result<UdpSocket> {
    let mut socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    registry.register(&mut socket, token, Interest::READABLE)?;
    Ok(socket)
}
