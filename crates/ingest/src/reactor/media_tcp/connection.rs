//! One media connection: frames prefixed with their length (RFC 4571, RFC 6544).

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use headgate_whip::Path;
use mio::net::TcpStream;

use crate::reactor::connection_limits::{ConnectionPermit, network_of};
use crate::reactor::udp::DATAGRAM_LIMIT;
use crate::switchboard::Switchboard;

/// Output buffered for a connection that does not read: our reports are small, and what does not fit is dropped like a
/// datagram.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// How long a connection that we end is still read, with its input dropped: if it were closed while its client still
/// sends, the kernel would reset it and lose our last datagrams.
const LINGER_LIMIT: Duration = Duration::from_secs(1);
/// Limit of bytes read meanwhile: a client that has seen the end sends no more than what was in flight.
const LINGER_LIMIT_BYTES: usize = 1024 * 1024;
/// Bytes read from one connection per turn, so that others get their share.
const TURN_LIMIT: usize = 256 * 1024;

/// Result of reading.
pub(super) enum Outcome {
    /// No more data at present.
    Stay,
    /// More data waits for the next turn.
    Again,
    /// The connection must be closed.
    Close,
}

pub(super) struct Connection {
    socket: TcpStream,
    peer: SocketAddr,
    since: Instant,
    is_proven: bool,
    /// Set once everything was sent: input is dropped until the client closes or until this moment.
    lingers_until: Option<Instant>,
    lingered_bytes: usize,
    /// Received bytes that do not yet form a complete frame.
    input: Vec<u8>,
    output: Vec<u8>,
    /// Released together with the socket.
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

    /// Since when it has not authenticated; `None` once it has, or while it lingers.
    pub(super) const fn unproven_since(&self) -> Option<Instant> {
        if self.is_proven || self.lingers_until.is_some() { None } else { Some(self.since) }
    }

    pub(super) fn is_unproven_of(&self, network: IpAddr) -> bool {
        !self.is_proven && network_of(self.peer.ip()) == network
    }

    /// Whether it has lingered long enough, or did not authenticate within `proof_limit`.
    pub(super) fn is_over(&self, now: Instant, proof_limit: Duration) -> bool {
        match self.lingers_until {
            Some(until) => now >= until,
            None => !self.is_proven && now >= self.since + proof_limit,
        }
    }

    /// Its session has ended: writes the remaining output once, then closes the write side.
    pub(super) fn linger(&mut self, now: Instant) {
        self.write();
        // A broken connection is detected when it is read.
        let _ = self.socket.shutdown(Shutdown::Write);
        self.output.clear();
        self.lingers_until.get_or_insert(now + LINGER_LIMIT);
    }

    /// Sends a frame; it is dropped if the buffer is full.
    pub(super) fn send(&mut self, datagram: &[u8]) {
        let Ok(length) = u16::try_from(datagram.len()) else { return };
        if self.output.len() + datagram.len() + 2 > OUTPUT_LIMIT {
            return;
        }
        self.output.extend_from_slice(&length.to_be_bytes());
        self.output.extend_from_slice(datagram);
        self.write();
    }

    /// Writes the buffered output; false if the connection is broken.
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

    /// Reads as much as one turn allows and passes complete frames to their session.
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

    /// Returns false if the connection must be closed.
    fn handle_frames(&mut self, switchboard: &mut Switchboard) -> bool {
        let path = Path::tcp(self.peer);
        let mut at = 0;
        loop {
            let Ok(frame) = next_frame(&self.input, at) else { return false };
            let Some((start, end)) = frame else { break };
            let datagram = self.input.get_mut(start..end).unwrap_or_default();
            switchboard.handle_datagram(path, datagram);
            if !self.is_proven {
                // The first frame must be an authenticated check; otherwise the connection is closed.
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

/// Finds the next complete frame in `input`, starting at `at`.
///
/// # Errors
/// The frame is larger than any WebRTC datagram.
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
    fn a_frame_is_found_once_it_is_complete_and_rejected_if_it_is_too_long() {
        let mut input = vec![0, 3, 1, 2, 3, 0, 2, 9];
        assert_eq!(next_frame(&input, 0), Ok(Some((2, 5))));
        assert_eq!(next_frame(&input, 5), Ok(None));
        input.push(8);
        assert_eq!(next_frame(&input, 5), Ok(Some((7, 9))));
        assert_eq!(next_frame(&[0xff, 0xff, 0], 0), Err(()));
    }
}
