//! A hostile WebRTC publisher whose video no encoder would produce: malformed payloads, false headers, and datagrams
//! with flipped bits, truncated or repeated. Its audio is valid.

use std::io;
use std::time::Instant;

use headgate_peer::Settings;
use headgate_rtmp::MediaKind;

use super::whip::{AUDIO_PAYLOAD_TYPE, BATCH, VIDEO_PAYLOAD_TYPE};
use super::{Attempt, Run};
use crate::dice::Dice;
use crate::whip_alone::WhipAlone;
use crate::whip_http::post_path;

/// Kinds of payload, and of headers around them.
const PAYLOADS: usize = 14;
const HEADERS: usize = 8;
/// One datagram of this many is corrupted after SRTP protection.
const SPOILT: usize = 2;
/// Constrained Baseline of changing sizes, and a PPS.
const SPS: [&[u8]; 3] = [
    b"\x67\x42\xe0\x1f\xda\x01\x40\x16\xe4",
    b"\x67\x42\xe0\x1e\xda\x02\x80\xf6\x84",
    b"\x67\x42\xe0\x1f\xff\xff\xff\xff\xff",
];
const PPS: &[u8] = b"\x68\xce\x3c\x80";
const LONGEST: usize = 1_200;

pub(super) fn attack(run: &Run, until: Instant) -> io::Result<Attempt> {
    let path = post_path(&run.stream_url, &run.name);
    let mut whip = WhipAlone::ask(run.http, &path, Settings::default())?;
    whip.connect()?;
    let (mut dice, mut number, mut bytes) = (Dice::new(1), 0_u32, 0);
    while Instant::now() < until && !whip.publisher.is_closed {
        for _ in 0..BATCH {
            let packet = packet(number, &whip, &mut dice);
            number = number.wrapping_add(1);
            let Some(datagram) = whip.publisher.protect(&packet) else { break };
            for datagram in spoil(datagram, &mut dice) {
                bytes += datagram.len() as u64;
                whip.publisher.send_raw(datagram, &mut whip.asked);
            }
        }
        whip.send_due(|kind| kind == MediaKind::Audio);
        whip.serve();
    }
    let ended = whip.publisher.is_closed.then(|| "DTLS closed".to_owned());
    whip.publisher.close(&mut whip.asked);
    whip.delete()?;
    Ok(Attempt { messages: u64::from(number), bytes, ended })
}

/// An RTP packet before protection.
fn packet(number: u32, whip: &WhipAlone, dice: &mut Dice) -> Vec<u8> {
    #[allow(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
    let mut sequence = number as u16;
    let mut time = u32::try_from(whip.elapsed().as_millis() * 90).unwrap_or(0);
    let (audio, mut ssrc) = whip.publisher.ssrcs();
    let (mut first, mut kind) = (0x80, VIDEO_PAYLOAD_TYPE);
    match dice.below(HEADERS * 4) {
        0 => kind = (dice.roll() & 0x7f) as u8,
        1 => ssrc = dice.roll(),
        2 => ssrc = audio,
        3 => first |= 0x0f, // fifteen CSRCs that are missing
        4 => first |= 0x20, // padding, its length being any last byte
        5 => first |= 0x10, // an extension, so the payload is parsed as one
        6 => sequence = sequence.wrapping_add((dice.roll() & 0xffff) as u16),
        7 => time = dice.roll(),
        8 => (kind, ssrc) = (AUDIO_PAYLOAD_TYPE, audio),
        _ => {}
    }
    let marker = if dice.below(3) == 0 { 0x80 } else { 0 };
    let mut packet = vec![first, marker | kind];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&time.to_be_bytes());
    packet.extend_from_slice(&ssrc.to_be_bytes());
    packet.extend(payload(dice));
    packet
}

/// Valid or almost valid by RFC 6184.
fn payload(dice: &mut Dice) -> Vec<u8> {
    let any = |dice: &mut Dice| -> Vec<u8> {
        let length = dice.below(LONGEST);
        (0..length).map(|_| dice.roll() as u8).collect()
    };
    let behind = |head: &[u8], dice: &mut Dice| [head, &any(dice)].concat();
    match dice.below(PAYLOADS) {
        0 => Vec::new(),
        1 => vec![0x18, 0x00, 0x01, 0x65, 0x00], // STAP-A and one byte more
        2 => {
            let sps = SPS.get(dice.below(SPS.len())).copied().unwrap_or_default();
            let sized = |unit: &[u8]| [&[0, unit.len() as u8], unit].concat();
            [vec![0x18], sized(sps), sized(PPS)].concat()
        }
        3 => behind(&[0x18, 0xff, 0xff, 0x65], dice), // STAP-A with a size beyond its end
        4 => behind(&[0x18, 0x00, 0x00], dice),
        5 => behind(&[0x7c, 0x05], dice), // FU-A that continues without a start
        6 => behind(&[0x7c, 0x85], dice),
        7 => behind(&[0x7c, 0x45], dice),
        8 => behind(&[0x7c, 0xc5], dice), // start and end bits together
        9 => vec![0x7c],
        10 => behind(&[[0x19, 0x1a, 0x1b, 0x1d, 0x1e, 0x1f, 0x00][dice.below(7)]], dice),
        11 => behind(&[0x65, 0x88, 0x84], dice),
        12 => behind(&[0x41, 0x9a, 0x24], dice),
        _ => any(dice),
    }
}

/// What the network delivers: the datagram, a corrupted one that fails authentication, or the datagram twice.
fn spoil(datagram: Vec<u8>, dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut spoilt = datagram.clone();
    match dice.below(SPOILT * 4) {
        0 => {
            let at = dice.below(spoilt.len().max(1));
            if let Some(byte) = spoilt.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
            vec![spoilt]
        }
        1 => {
            spoilt.truncate(dice.below(spoilt.len().max(1)));
            vec![spoilt]
        }
        2 => vec![datagram, spoilt],
        3 => {
            spoilt.push(0);
            vec![spoilt]
        }
        _ => vec![datagram],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_fits_into_a_datagram_and_some_parse() {
        let mut dice = Dice::new(7);
        let payloads: Vec<_> = (0..1_000).map(|_| payload(&mut dice)).collect();
        assert!(payloads.iter().all(|payload| payload.len() <= LONGEST + 4));
        assert!(payloads.iter().any(|payload| payload.starts_with(&[0x18, 0, 9, 0x67])));
        assert!(payloads.iter().any(Vec::is_empty));
    }
}
