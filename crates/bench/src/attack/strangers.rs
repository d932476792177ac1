//! A sender that belongs to no session: datagrams from unknown ports to the media port, of every kind that a server
//! has to parse. Replies are counted; there must be none.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use headgate_peer::Settings;

use super::{Attempt, Run};
use crate::dice::Dice;
use crate::whip_alone::WhipAlone;
use crate::whip_http::post_path;

/// Sockets, each with its own port.
const SOCKETS: usize = 32;
const BATCH: usize = 64;
const LONGEST: usize = 1_400;
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

pub(super) fn attack(run: &Run, until: Instant) -> io::Result<Attempt> {
    // A session of our own, never connected, supplies the media port.
    let path = post_path(&run.stream_url, &run.name);
    let asked = WhipAlone::ask(run.http, &path, Settings::default())?;
    let server = asked.answer.candidate().ok_or_else(|| io::Error::other("no UDP candidate"))?;
    let sockets = (0..SOCKETS)
        .map(|_| {
            let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        })
        .collect::<io::Result<Vec<_>>>()?;
    let (mut dice, mut attempt, mut replies) = (Dice::new(2), Attempt::default(), 0_u64);
    let mut buffer = [0; 2_048];
    while Instant::now() < until {
        for _ in 0..BATCH {
            let datagram = datagram(&mut dice);
            if let Some(socket) = sockets.get(dice.below(SOCKETS)) {
                // A datagram that the kernel refuses is not counted.
                if socket.send_to(&datagram, server.0).is_ok() {
                    attempt.messages += 1;
                    attempt.bytes += datagram.len() as u64;
                }
            }
        }
        for socket in &sockets {
            while socket.recv_from(&mut buffer).is_ok() {
                replies += 1;
            }
        }
    }
    asked.delete()?;
    attempt.ended = (replies > 0).then(|| format!("{replies} replies"));
    Ok(attempt)
}

fn datagram(dice: &mut Dice) -> Vec<u8> {
    let mut any = |least: usize| -> Vec<u8> {
        let length = least + dice.below(LONGEST - least);
        (0..length).map(|_| dice.roll() as u8).collect()
    };
    let mut body = any(64);
    match dice.below(9) {
        0 => client_hello(dice, 0, 40), // in one fragment
        1 => client_hello(dice, 0, 1),  // of one byte
        2 => client_hello(dice, 0, 0),  // of none
        3 => record(22, 0, &body),      // junk as handshake
        4 => record(21, 0, &[2, 40]),   // a fatal alert in the clear
        5 => record(23, 1, &body),      // application data under unknown keys
        6 => stun(dice),
        7 => {
            body.splice(0..2, [0x80, 102]); // RTP
            body
        }
        _ => body,
    }
}

/// DTLS 1.2 (RFC 6347 4.1).
fn record(kind: u8, epoch: u8, body: &[u8]) -> Vec<u8> {
    let mut record = vec![kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 1];
    record.extend_from_slice(&u16::try_from(body.len()).unwrap_or(0).to_be_bytes());
    record.extend_from_slice(body);
    record
}

/// A fragment of a hello (RFC 6347 4.2.2) of which the rest never comes.
fn client_hello(dice: &mut Dice, sequence: u8, fragment: u8) -> Vec<u8> {
    let mut body = vec![1, 0, 0, 200, 0, sequence, 0, 0, 0, 0, 0, fragment, 0xfe, 0xfd];
    body.truncate(12);
    body.extend((0..fragment).map(|_| dice.roll() as u8));
    record(22, 0, &body)
}

/// A connectivity check (RFC 8445 7.2.2) for a session that does not exist, with a random user name.
fn stun(dice: &mut Dice) -> Vec<u8> {
    let name = format!("{:08x}:{:08x}", dice.roll(), dice.roll());
    let mut message = vec![0, 1, 0, 24];
    message.extend_from_slice(&MAGIC_COOKIE);
    message.extend((0..12).map(|_| dice.roll() as u8));
    message.extend_from_slice(&[0, 6, 0, 17]);
    message.extend_from_slice(name.as_bytes());
    message.extend_from_slice(&[0; 3]);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_field_of_a_check_matches_its_length() {
        let message = stun(&mut Dice::new(3));
        assert_eq!(message.len(), 20 + usize::from(u16::from_be_bytes([message[2], message[3]])));
    }
}
