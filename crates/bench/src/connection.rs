//! One non-blocking connection of the bench with its session: of a publisher, a player or the upstream.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::time::Instant;

use bytes::{Buf, BytesMut};
use headgate_rtmp::{ClientSession, Output, ServerSession};
use mio::net::TcpStream;

/// Slices in one write.
const SLICES: usize = 64;

/// Either side of RTMP.
pub(crate) enum Session {
    /// We publish or play.
    Client(Box<ClientSession>),
    /// We are the upstream.
    Sink(Box<ServerSession>),
}

/// A socket and its session.
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    pub(crate) session: Session,
    /// Whether the peer is not told that we accept Opus.
    hides_opus: bool,
    /// Chunks that did not come from the session, with the session's own output between them.
    own: Option<BytesMut>,
}

/// The codec as an AMF0 string of `fourCcList` and key of `audioFourCcInfoMap`, and a name that is no codec.
const OPUS: &[u8] = b"\0\x04Opus";
const NO_CODEC: &[u8] = b"\0\x04none";

impl Connection {
    pub(crate) const fn new(socket: TcpStream, session: Session) -> Self {
        Self { socket, session, hides_opus: false, own: None }
    }

    pub(crate) const fn hiding_opus(mut self) -> Self {
        self.hides_opus = true;
        self
    }

    /// The buffer for chunks of our own; from now on the session's output is copied in between them.
    pub(crate) fn own_chunks(&mut self) -> &mut BytesMut {
        let session = match &mut self.session {
            Session::Client(session) => session.output_mut(),
            Session::Sink(session) => session.output_mut(),
        };
        let own = self.own.get_or_insert_default();
        drain(session, own);
        own
    }

    /// Reads all available bytes into the session; false when the connection has ended.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    let input = buffer.get(..length).unwrap_or_default();
                    let outcome = match &mut self.session {
                        Session::Client(session) => session.handle_input(input, Instant::now()),
                        Session::Sink(session) => session.handle_input(input, Instant::now()),
                    };
                    if outcome.is_err() {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// Writes what the socket accepts; the rest waits for the poll.
    pub(crate) fn flush(&mut self) {
        if self.own.is_some() {
            return self.flush_own();
        }
        let output: &mut Output = match &mut self.session {
            Session::Client(session) => session.output_mut(),
            Session::Sink(session) => session.output_mut(),
        };
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = output.io_slices(&mut slices);
            let slices = slices.get(..count).unwrap_or_default();
            let written = if self.hides_opus {
                self.socket.write(&without_opus(slices))
            } else {
                self.socket.write_vectored(slices)
            };
            match written {
                Ok(written) => output.consume(written),
                Err(_) => return,
            }
        }
    }

    fn flush_own(&mut self) {
        self.own_chunks();
        let Some(own) = &mut self.own else { return };
        while !own.is_empty() {
            match self.socket.write(own) {
                Ok(written) => own.advance(written),
                Err(_) => return,
            }
        }
    }
}

/// Appends everything in a session's output to `own`.
fn drain(output: &mut Output, own: &mut BytesMut) {
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = output.io_slices(&mut slices);
        let taken = slices.iter().take(count).map(|slice| slice.len()).sum();
        for slice in slices.iter().take(count) {
            own.extend_from_slice(slice);
        }
        output.consume(taken);
    }
}

/// Copies a sink's output (it is short) and removes Opus wherever it is listed.
fn without_opus(slices: &[IoSlice]) -> Vec<u8> {
    let mut bytes = slices.iter().flat_map(|slice| slice.iter().copied()).collect::<Vec<u8>>();
    while let Some(at) = bytes.windows(OPUS.len()).position(|window| window == OPUS) {
        if let Some(found) = bytes.get_mut(at..at + OPUS.len()) {
            found.copy_from_slice(NO_CODEC);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use super::without_opus;

    #[test]
    fn opus_is_removed_from_the_list_and_the_map() {
        let said = b"\x02\0\x04Opus\0\x04Opus\0\x3f\xf0";
        assert_eq!(without_opus(&[IoSlice::new(said)]), b"\x02\0\x04none\0\x04none\0\x3f\xf0");
    }
}
