//! Fuzz bodies: whatever the bytes, no panic and no unbounded memory. Run by the shells in `crates/fuzz` and by tests.

mod media;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headgate_media::{Codec, FrameKind, Timestamp};

use crate::clock::Clock;
use crate::depacketizer::{AccessUnit, Depacketizer};
use crate::reorder::FrameTime;
use crate::rtp::RtpHeader;
use crate::sdp::{
    AnswerSettings, LayerSource, Offer, OwnOffer, read_fragment, read_offer, write_answer,
    write_fragment,
};
use crate::video::VideoTrack;
use crate::{Credentials, Identity, WhipSession};

thread_local! {
    static IDENTITY: Identity = Identity::generate().expect("an identity");
}

/// The offer that the fuzz bodies use: simulcast, retransmissions, every kind of feedback.
pub const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n\
m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n\
a=ice-ufrag:fuzz\r\na=ice-pwd:0123456789abcdefghijklmn\r\na=setup:actpass\r\n\
a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=mid:1\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:96 H264/90000\r\n\
a=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\na=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\n\
a=rtcp-fb:96 transport-cc\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n\
a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id\r\n\
a=rid:h send\r\na=rid:l send\r\na=simulcast:send h;l\r\n";

/// Parses the bytes as an offer; an accepted one must be answerable.
pub fn sdp_offer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(offer) = read_offer(&text) else { return };
    let answer = write_answer(
        &offer,
        &AnswerSettings {
            ufrag: "ours",
            pwd: "ours-ours-ours-ours-ours",
            fingerprint: &[7; 32],
            candidates: &["192.0.2.1:8189".parse().expect("an address")],
            session_id: 1,
            start_bitrate_kbps: 2500,
            max_bitrate_kbps: 6000,
            stereo: false,
            audio_bitrate: None,
        },
    );
    assert!(answer.starts_with("v=0\r\n") && answer.ends_with("\r\n"));
    assert!(
        !answer.contains("\r\n\r\n")
            && answer.matches('\n').count() == answer.matches("\r\n").count()
    );
}

/// Parses the bytes as the answer to each of our own offers; an accepted one has their sections and payload types.
pub fn sdp_answer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (audio, video) in [(true, true), (true, false), (false, true)] {
        let ours = OwnOffer::new(audio, video).expect("a section");
        let Ok(answer) = ours.read_answer(&text) else { continue };
        let expected = ours.expected();
        let of = |offer: &Offer| {
            let audio = offer.audio.as_ref().map(|audio| audio.payload_type);
            (audio, offer.video.as_ref().map(|video| video.payload_type))
        };
        assert_eq!(of(&answer), of(expected));
        assert!(answer.candidates.len() <= 100);
        IDENTITY.with(|identity| {
            let credentials = Credentials::generate(identity).expect("random bytes");
            WhipSession::new(identity, &answer, &credentials, 0, Instant::now())
        });
    }
}

/// Parses the bytes as a trickle ICE fragment; a restart is answered.
pub fn sdp_fragment(bytes: &[u8]) {
    if let Ok(fragment) = read_fragment(&String::from_utf8_lossy(bytes)) {
        assert!(fragment.candidates.len() <= 100);
        let answer = write_fragment(&offer(), &fragment.ufrag, &fragment.pwd, &fragment.candidates);
        assert!(read_fragment(&answer).is_ok());
    }
}

/// Beginnings of payloads as they are and as they are not allowed, so that what follows gets past the first byte.
const BEGINNINGS: [&[u8]; 8] = [
    media::KEYFRAME,
    &[0x65, 0x88],
    &[0x41, 0x9a],
    &[0x01, 0x9a],
    &[0x7c, 0x85, 0x88],
    &[0x7c, 0x45],
    &[0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50, 0, 0, 1, 0x68, 0xce, 0, 0, 1],
    &[0x78, 0, 3, 0x41, 0x9a, 1],
];

/// Reads records of length, flags (marker, gap, whether a further packet is available, packets lost or a beginning) and
/// time step, each followed by that many bytes of payload. What is emitted has a slice, and no NAL unit that a decoder
/// rejects; what is withheld is counted.
pub fn depacketizer(bytes: &[u8]) {
    let mut depacketizer = Depacketizer::new(&[]);
    let (mut rest, mut timestamp) = (bytes, 0_u32);
    while let Some((&[length, flags, step], after)) = rest.split_first_chunk() {
        let (payload, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        timestamp = timestamp.wrapping_add(u32::from(step));
        let mut emit = |unit: AccessUnit| {
            assert!(!unit.data.is_empty());
            let kinds = read_units(&unit.data);
            assert!(kinds.iter().all(|first| matches!(first, 1..0x80) && first & 0x1f < 24));
            assert!(kinds.iter().any(|first| matches!(first & 0x1f, 1..=5)));
        };
        if flags & 2 != 0 {
            depacketizer.handle_gap(u64::from(flags >> 4), &mut emit);
        }
        let beginning = BEGINNINGS.get(usize::from(flags >> 4)).filter(|_| flags & 8 != 0);
        let payload = [beginning.copied().unwrap_or_default(), payload].concat();
        depacketizer.handle_payload(timestamp, flags & 1 != 0, &payload, &mut emit);
        if flags & 4 == 0 {
            depacketizer.finish_marked(&mut emit);
        }
    }
}

/// Checks that NAL units with four-byte lengths cover an access unit exactly; returns the first byte of each.
fn read_units(mut data: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        assert!(length > 0 && length <= rest.len());
        kinds.push(rest[0]);
        data = &rest[length..];
    }
    assert!(data.is_empty());
    kinds
}

/// Sends random packets of both layers through jitter, depacketizer, clock and decode times, with pauses and sender
/// reports. The first byte chooses how the layers are told apart.
pub fn jitter(bytes: &[u8]) {
    let start = Instant::now();
    let Some(mut section) = offer().video else { return };
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        section.rids.clear();
        section.sources = [(0, Some(4)), (2, None)]
            .map(|(ssrc, rtx_ssrc)| LayerSource { ssrc, rtx_ssrc })
            .to_vec();
    }
    let (mut video, mut clock, mut frames) =
        (VideoTrack::new(&section, start), Clock::default(), VecDeque::new());
    let (mut now, mut rest, mut last) = (start, bytes, None);
    while let Some((&[flags, high, low, t0, t1, pause, length], after)) = rest.split_first_chunk() {
        let (payload, after) = after.split_at(usize::from(length % 32).min(after.len()));
        rest = after;
        now += Duration::from_millis(u64::from(pause) * u64::from(pause));
        let payload_type = if flags & 8 == 0 { 96 } else { 97 };
        let mut packet = vec![
            0x90,
            payload_type | (flags & 1) << 7,
            high,
            low,
            t0,
            t1,
            t1,
            pause,
            0,
            0,
            0,
            flags & 6,
        ];
        let rid = if flags & 4 == 0 { b'h' } else { b'l' };
        packet.extend_from_slice(&[
            0xbe,
            0xde,
            0,
            1,
            if payload_type == 96 { 0xa0 } else { 0xb0 },
            rid,
            0,
            0,
        ]);
        packet.extend_from_slice(payload);
        if flags & 16 != 0 {
            clock.handle_video_report(
                now,
                u32::from(flags & 6),
                u64::from(t0) << 40,
                u32::from(high) << 24,
            );
            clock.handle_audio_report(now, 99, u64::from(t1) << 40, u32::from(low) << 24);
        }
        if let Some(header) = RtpHeader::read(&packet) {
            video.handle_packet(now, &header, &packet, &mut clock, &mut frames);
        }
        video.handle_timeout(now, &mut clock, &mut frames);
        let _ = video.poll_pli(now);
        let mut asked = Vec::new();
        for layer in video.layers_mut() {
            layer.receiver.poll_nack(now, &mut asked);
        }
        assert!(asked.len() <= 128 && video.poll_timeout(now).is_none_or(|at| at > now));
        for frame in frames.drain(..) {
            assert_eq!(frame.codec, Codec::H264);
            if frame.kind != FrameKind::Configuration {
                assert!(
                    last.is_none_or(|last| frame.timestamp > last) && frame.composition_ms >= 0
                );
                last = Some(frame.timestamp);
            }
        }
    }
}

/// Gives a clock any timestamps, reports and arrivals: its timeline never goes back, and never gets far ahead of them.
pub fn clock(bytes: &[u8]) {
    /// More than what both tracks together may be ahead.
    const AHEAD_LIMIT_US: i64 = 20_000_000;
    let start = Instant::now();
    let (mut clock, mut now, mut rest) = (Clock::default(), start, bytes);
    let (mut last_audio, mut last_video, mut last_position, mut count) = (0, -1, 0, 0);
    let mut rtp = [0_u32; 2];
    while let Some((&[kind, a, b, c, pause], after)) = rest.split_first_chunk() {
        rest = after;
        now += Duration::from_millis(match pause {
            0..0xf0 => u64::from(pause % 48),
            _ => u64::from(pause & 15) * 700,
        });
        let (track, ssrc) = (usize::from(kind & 1), u32::from(kind >> 6));
        let value = u32::from_be_bytes([a, b, c, a]);
        let time = rtp.get_mut(track).expect("one of two tracks");
        *time = match kind >> 1 & 7 {
            0 => value,
            1 => time.wrapping_sub(value >> 12),
            2 => *time,
            _ => time.wrapping_add(u32::from(a) << 5),
        };
        let (rtp, ntp) = (*time, u64::from(value) << 32 | u64::from(value));
        let passed = i64::try_from((now - start).as_micros()).expect("a few hours");
        count += 1;
        let limit = passed + passed / 500 + AHEAD_LIMIT_US + count * 1_000;
        match (kind >> 4 & 3, track) {
            (0, 0) => clock.handle_audio_report(now, ssrc, ntp, rtp.wrapping_add(value >> 10)),
            (0, _) => clock.handle_video_report(now, ssrc, ntp, rtp.wrapping_add(value >> 10)),
            (_, 0) => {
                let stamp = clock.stamp_audio(now, ssrc, rtp).as_micros();
                assert!((last_audio..=limit).contains(&stamp));
                last_audio = stamp;
            }
            (_, _) => {
                let shown = clock.stamp_video(now, ssrc, rtp).as_micros();
                // What reordering does.
                last_position = shown.max(last_position + 1_000);
                let decode = Timestamp::from_micros(last_position);
                let placed = clock.place_video(FrameTime { decode, shown: decode });
                let stamp = placed.decode.as_micros();
                assert!(stamp > last_video && stamp <= limit && placed.shown >= placed.decode);
                last_video = stamp;
            }
        }
    }
    let _ = (clock.skew_us(), clock.take_irregularities());
}

/// Sends datagrams to a session in its handshake: from a path that passed an ICE check, and from one that did not.
pub fn whip_session(bytes: &[u8]) {
    let mut now = Instant::now();
    let (mut session, client) = session(now);
    let stranger: SocketAddr = "203.0.113.9:9".parse().expect("an address");
    let mut rest = bytes;
    while let Some((&[flags, high, low], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high & 7, low])).min(after.len());
        let (datagram, after) = after.split_at(length);
        rest = after;
        now += Duration::from_millis(u64::from(flags >> 3) * 10);
        let source = if flags & 1 == 0 { client } else { stranger };
        session.handle_datagram(now, source, &mut datagram.to_vec());
        session.handle_timeout(now);
        while let Some((to, _)) = session.poll_transmit() {
            assert_eq!(to, client.into(), "only the proven one is answered");
        }
        while session.poll_frame().is_some() || session.poll_event().is_some() {}
    }
    let _ = session.diagnostics(now);
    session.close(now);
}

/// Sends packets of a client that has the keys, so that they get past SRTP.
pub fn whip_media(bytes: &[u8]) {
    media::run(Instant::now(), bytes);
}

/// A session whose client has passed an ICE check, and that client's address.
fn session(now: Instant) -> (WhipSession, SocketAddr) {
    let password = "fuzz-fuzz-fuzz-fuzz-fuzz";
    let credentials =
        Credentials { ufrag: "server".to_owned(), password: password.to_owned(), ssrc: 1 };
    let mut session =
        IDENTITY.with(|identity| WhipSession::new(identity, &offer(), &credentials, 0, now));
    let client: SocketAddr = "198.51.100.7:4000".parse().expect("an address");
    session.prove(now, client.into());
    (session, client)
}

fn offer() -> Offer {
    read_offer(OFFER).expect("the offer above")
}
