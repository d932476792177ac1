//! The fuzz body inside SRTP: packets that a client with keys can send, in any order, every timer run when due.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_media::{FrameKind, Timestamp, Track};

use crate::transport::dtls::{MasterKey, SrtpKeys, SrtpProfile};
use crate::transport::identity::Identity;
use crate::transport::srtp::Srtp;
use crate::{WhipEvent, WhipSession};

/// SPS, PPS and an IDR slice in one STAP-A; payload that follows pads it.
pub(super) const KEYFRAME: &[u8] = &[
    0x78, 0, 8, 0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0, 4, 0x68, 0xce, 0x3c, 0x80, 0, 4,
    0x65, 0x88, 0x84, 0x21,
];
const AUDIO: u8 = 111;
const VIDEO: u8 = 96;
const RETRANSMISSION: u8 = 97;

/// Reads records of a kind, two numbers, a pause and a length, each followed by that many bytes of payload, and sends
/// them as SRTP and SRTCP of a connected client. Frames must leave in order, reports must decrypt, and no handled timer
/// may still be due.
pub(super) fn run(now: Instant, bytes: &[u8]) {
    let mut run = Run::new(now);
    let mut rest = bytes;
    while let Some((&[kind, a, b, pause, length], after)) = rest.split_first_chunk() {
        let (payload, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        // Mostly the pace of media, sometimes a long silence.
        let millis = if pause < 0xf0 { u64::from(pause % 64) } else { u64::from(pause) * 20 };
        run.pass(Duration::from_millis(millis));
        run.send(kind, a, b, payload);
        if run.is_over {
            break;
        }
    }
    run.pass(Duration::from_secs(1));
    let _ = run.session.diagnostics(run.now);
    run.session.close(run.now);
    run.pass(Duration::from_secs(1));
    assert!(run.session.is_closed());
}

struct Run {
    session: WhipSession,
    /// Protects with the client's key and decrypts with ours.
    client: Srtp,
    address: SocketAddr,
    now: Instant,
    is_over: bool,
    /// Sequence numbers of audio, video and retransmissions, and of all of them together.
    sequences: [u16; 3],
    transport_sequence: u16,
    rtp_time: u32,
    newest: [Option<Timestamp>; 2],
}

impl Run {
    fn new(now: Instant) -> Self {
        let (mut session, address) = super::session(now);
        let master = |fill| MasterKey { key: vec![fill; 16], salt: vec![fill; 12] };
        let profile = SrtpProfile::Gcm;
        session.assume_connected(SrtpKeys { profile, ours: master(1), theirs: master(2) });
        let keys = SrtpKeys { profile, ours: master(2), theirs: master(1) };
        let provider = super::IDENTITY.with(Identity::provider);
        Self {
            session,
            client: Srtp::new(&keys, &provider).expect("valid keys"),
            address,
            now,
            is_over: false,
            sequences: [100, 200, 300],
            transport_sequence: 0,
            rtp_time: 0,
            newest: [None; 2],
        }
    }

    /// Lets time pass and handles each timer when it is due.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.session.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.session.handle_timeout(self.now);
            self.drain();
            let next = self.session.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "what was handled is still due");
        }
        self.now = until;
    }

    fn send(&mut self, kind: u8, a: u8, b: u8, payload: &[u8]) {
        let datagram = match kind & 7 {
            0 => self.rtp(AUDIO, kind, a, b, payload),
            1..=3 => self.rtp(VIDEO, kind, a, b, payload),
            4 => self.rtp(RETRANSMISSION, kind, a, b, payload),
            5 => {
                // A sender report of one of the sources, or arbitrary content, after a header that carries its length.
                let words = payload.len() / 4 + 1;
                let ssrc = [0, 0, 0, if a & 1 == 0 { AUDIO } else { VIDEO }];
                let head = [0x80 | b & 0x1f, 200 + a % 7, 0, words as u8];
                let body = payload.get(..payload.len() / 4 * 4).unwrap_or_default();
                self.client.protect_rtcp(&[&head, &ssrc, body].concat()).map(Vec::from)
            }
            6 => Some(payload.to_vec()),
            _ => {
                self.session.want_keyframe();
                self.session.limit_bitrate(u32::from(a) << 8 | u32::from(b));
                None
            }
        };
        if let Some(mut datagram) = datagram {
            self.session.handle_datagram(self.now, self.address, &mut datagram);
        }
        self.drain();
    }

    /// A packet whose sequence number steps by `a` (signed, and far where `b` is odd and large) and whose time steps by
    /// `b`.
    fn rtp(&mut self, payload_type: u8, kind: u8, a: u8, b: u8, payload: &[u8]) -> Option<Vec<u8>> {
        let track = match payload_type {
            AUDIO => 0,
            VIDEO => 1,
            _ => 2,
        };
        let step = i16::from(a as i8) * if b > 0xf8 { 97 } else { 1 };
        let sequence = self.sequences.get_mut(track)?;
        *sequence = sequence.wrapping_add_signed(step);
        self.rtp_time = self.rtp_time.wrapping_add(u32::from(b) * 100);
        self.transport_sequence = self.transport_sequence.wrapping_add(u16::from(a & 3));
        // Padding has its own length in its last byte.
        let is_padding = kind >> 6 == 3;
        let mut packet = vec![if is_padding { 0xb0 } else { 0x90 }, payload_type | (kind & 8) << 4];
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&self.rtp_time.to_be_bytes());
        packet.extend_from_slice(&[0, 0, (kind >> 4) & 3, payload_type]);
        let [high, low] = self.transport_sequence.to_be_bytes();
        let (id, rid) = if track == 2 { (0xb0, b'l') } else { (0xa0, b'h') };
        packet.extend_from_slice(&[0xbe, 0xde, 0, 2, 0x31, high, low, id, rid, 0, 0, 0]);
        match kind >> 6 {
            1 => packet.extend_from_slice(KEYFRAME),
            2 => packet.extend_from_slice(&[0x41, 0x9a]),
            3 => packet.extend_from_slice(&[0, 0, 0, 4]),
            _ => {}
        }
        if !is_padding {
            packet.extend_from_slice(payload);
        }
        self.client.protect_rtp(&packet).map(Vec::from)
    }

    fn drain(&mut self) {
        while let Some((to, mut datagram)) = self.session.poll_transmit() {
            assert_eq!(to, self.address.into());
            assert!(self.client.open_rtcp(&mut datagram).is_ok(), "our reports open");
        }
        while let Some(frame) = self.session.poll_frame() {
            let is_video = frame.track() == Track::Video;
            assert!(!frame.data.is_empty() && frame.composition_ms >= 0);
            if is_video && frame.kind != FrameKind::Configuration {
                super::read_units(&frame.data);
            }
            if let Some(newest) = self.newest.get_mut(usize::from(is_video)) {
                assert!(newest.is_none_or(|newest| frame.timestamp >= newest));
                *newest = Some(frame.timestamp);
            }
        }
        while let Some(event) = self.session.poll_event() {
            self.is_over |= matches!(event, WhipEvent::Ended(_));
        }
    }
}
