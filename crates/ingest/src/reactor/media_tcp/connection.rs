//! One media connection: frames with a length before them (RFC 4571, RFC 6544).

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use headgate_whip::Path;
use mio::net::TcpStream;

use crate::reactor::connection_limits::ConnectionPermit;
use crate::reactor::udp::DATAGRAM_LIMIT;
use crate::switchboard::Switchboard;

/// What waits for a connection that does not read: our reports are small, and what is too much is lost like a datagram.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// A connection that we end is read on for so long, its input dropped: closed over what its client still sends, the
/// kernel would reset it, and our last words with it.
const LINGER_LIMIT: Duration = Duration::from_secs(1);
/// And so far: a client that read our goodbye sends no more than was on its way.
const LINGER_LIMIT_BYTES: usize = 1024 * 1024;
/// Bytes of one connection in one turn, so that others get theirs.
const TURN_LIMIT: usize = 256 * 1024;

/// What reading led to.
pub(super) enum Outcome {
    /// Nothing more for now.
    Stay,
    /// More waits for the next turn.
    Again,
    /// It is not worth keeping.
    Close,
}

pub(super) struct Connection {
    socket: TcpStream,
    peer: SocketAddr,
    since: Instant,
    is_proven: bool,
    /// We have said all: what still comes is dropped, until the client closes or this moment.
    lingers_until: Option<Instant>,
    lingered_bytes: usize,
    /// The part of a frame that came.
    input: Vec<u8>,
    output: Vec<u8>,
    /// Given back with the socket.
    _permit: ConnectionPermit,
}

impl Connection {
    pub(super) const fn new(
        socket: TcpStream,
        peer: SocketAddr,
        since: Instant,
        permit: ConnectionPermit,
    ) -> Self {
        Self {
            socket,
            peer,
            since,
            is_proven: false,
            lingers_until: None,
            lingered_bytes: 0,
            input: Vec::new(),
            output: Vec::new(),
            _permit: permit,
        }
    }

    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) fn is_unproven_of(&self, address: IpAddr) -> bool {
        !self.is_proven && self.peer.ip() == address
    }

    /// It lingered long enough, or proved nothing within `proof_limit`.
    pub(super) fn is_over(&self, now: Instant, proof_limit: Duration) -> bool {
        match self.lingers_until {
            Some(until) => now >= until,
            None => !self.is_proven && now >= self.since + proof_limit,
        }
    }

    /// Its session is gone: what waits is written once, then we send no more.
    pub(super) fn linger(&mut self, now: Instant) {
        self.write();
        // A broken one is found out by reading.
        let _ = self.socket.shutdown(Shutdown::Write);
        self.output.clear();
        self.lingers_until.get_or_insert(now + LINGER_LIMIT);
    }

    /// Sends a frame; what has no room is lost.
    pub(super) fn send(&mut self, datagram: &[u8]) {
        let Ok(length) = u16::try_from(datagram.len()) else { return };
        if self.output.len() + datagram.len() + 2 > OUTPUT_LIMIT {
            return;
        }
        self.output.extend_from_slice(&length.to_be_bytes());
        self.output.extend_from_slice(datagram);
        self.write();
    }

    /// Writes what waits. False: it is broken.
    pub(super) fn write(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(0) => return false,
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Reads a turn's worth and hands whole frames to their session.
    pub(super) fn read(&mut self, buffer: &mut [u8], switchboard: &mut Switchboard) -> Outcome {
        let mut taken = 0;
        while taken < TURN_LIMIT {
            let read = match self.socket.read(buffer) {
                Ok(0) => return Outcome::Close,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Outcome::Stay,
                Err(_) => return Outcome::Close,
            };
            taken += read;
            if self.lingers_until.is_some() {
                self.lingered_bytes += read;
                if self.lingered_bytes > LINGER_LIMIT_BYTES {
                    return Outcome::Close;
                }
                continue;
            }
            self.input.extend_from_slice(buffer.get(..read).unwrap_or_default());
            if !self.handle_frames(switchboard) {
                return Outcome::Close;
            }
        }
        Outcome::Again
    }

    /// False: it is not worth keeping.
    fn handle_frames(&mut self, switchboard: &mut Switchboard) -> bool {
        let path = Path::tcp(self.peer);
        let mut at = 0;
        loop {
            let Ok(frame) = next_frame(&self.input, at) else { return false };
            let Some((start, end)) = frame else { break };
            let datagram = self.input.get_mut(start..end).unwrap_or_default();
            switchboard.handle_datagram(path, datagram);
            if !self.is_proven {
                // The first frame is a check that proves itself, or this connection is not for us.
                switchboard.settle();
                self.is_proven = switchboard.has_route(path);
                if !self.is_proven {
                    return false;
                }
            }
            at = end;
        }
        self.input.drain(..at);
        true
    }
}

/// Where the next whole frame stands in what has come, from `at` on.
///
/// # Errors
/// It is larger than any datagram of WebRTC.
fn next_frame(input: &[u8], at: usize) -> Result<Option<(usize, usize)>, ()> {
    let Some(&[high, low]) = input.get(at..at + 2) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > DATAGRAM_LIMIT {
        return Err(());
    }
    let end = at + 2 + length;
    Ok((end <= input.len()).then_some((at + 2, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_found_once_all_of_it_is_there_and_refused_when_it_is_too_long() {
        let mut input = vec![0, 3, 1, 2, 3, 0, 2, 9];
        assert_eq!(next_frame(&input, 0), Ok(Some((2, 5))));
        assert_eq!(next_frame(&input, 5), Ok(None));
        input.push(8);
        assert_eq!(next_frame(&input, 5), Ok(Some((7, 9))));
        assert_eq!(next_frame(&[0xff, 0xff, 0], 0), Err(()));
    }
}
