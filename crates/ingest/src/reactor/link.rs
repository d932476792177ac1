//! One non-blocking TCP connection of a worker, plain or TLS: reads, and vectored writes from a session's output.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use headgate_rtmp::Output;
use mio::net::TcpStream;
use rustls::Connection;

use super::connection_limits::ConnectionPermit;
use super::socket_options::{round_trip, set_low_water};
use super::tls::fault_code;

/// Slices in one vectored write: a large keyframe in 64 KiB chunks with its headers, and the audio sent along with it.
const SLICES_LIMIT: usize = 128;
/// How often the kernel is asked for a connection's round trip, which is a system call.
const ROUND_TRIP_PAUSE: Duration = Duration::from_secs(2);

/// Result of a read.
pub(super) enum Received {
    /// Number of bytes read; see [`Link::has_more`].
    Bytes(usize),
    /// No data at present.
    Blocked,
    /// The peer closed or the connection broke.
    Closed,
}

/// One socket and its read and write state.
pub(crate) struct Link {
    pub(super) socket: TcpStream,
    tls: Option<Box<Connection>>,
    /// Why TLS failed, as text for the operator.
    fault: Option<String>,
    /// Stable name of the reason why its handshake failed.
    handshake_fault: Option<&'static str>,
    /// The peer has begun the handshake of TLS; a balancer's check of the port does not.
    has_begun: bool,
    is_connecting: bool,
    /// The handshake of TLS has been reported as complete.
    was_secured: bool,
    can_write: bool,
    was_shut: bool,
    /// The peer has sent its last byte, which we may not have read yet.
    read_closed: bool,
    /// Number of waiting bytes that raises a read event.
    mark: usize,
    /// It is queued to be read.
    is_queued: bool,
    round_trip_at: Option<Instant>,
    /// Released together with the socket.
    _permit: ConnectionPermit,
}

impl Link {
    /// An accepted connection.
    pub(super) const fn accepted(
        socket: TcpStream,
        tls: Option<Box<Connection>>,
        permit: ConnectionPermit,
    ) -> Self {
        Self {
            socket,
            tls,
            fault: None,
            handshake_fault: None,
            has_begun: false,
            is_connecting: false,
            was_secured: false,
            can_write: true,
            was_shut: false,
            read_closed: false,
            mark: 1,
            is_queued: false,
            round_trip_at: None,
            _permit: permit,
        }
    }

    /// A connection that is being established.
    pub(super) fn connecting(
        socket: TcpStream,
        tls: Option<Box<Connection>>,
        permit: ConnectionPermit,
    ) -> Self {
        Self { is_connecting: true, ..Self::accepted(socket, tls, permit) }
    }

    /// Marks it as queued to be read; false if it already was.
    pub(super) const fn enqueue(&mut self) -> bool {
        !std::mem::replace(&mut self.is_queued, true)
    }

    /// Marks it as no longer queued.
    pub(super) const fn dequeue(&mut self) {
        self.is_queued = false;
    }

    /// Whether the connection is still being established.
    pub(super) const fn is_connecting(&self) -> bool {
        self.is_connecting
    }

    /// Handles the first event of a connection that is being established.
    pub(super) fn finish_connect(&mut self) -> io::Result<()> {
        self.is_connecting = false;
        // The service coalesces media itself; if this option fails, only latency suffers.
        let _ = self.socket.set_nodelay(true);
        match self.socket.take_error()? {
            Some(error) => Err(error),
            None => self.socket.peer_addr().map(|_| ()),
        }
    }

    /// Whether encrypted bytes wait for the socket.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether the connection uses TLS.
    pub(super) const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// True once, when the handshake of TLS is complete.
    pub(super) fn poll_secured(&mut self) -> bool {
        let is_secured = self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking());
        is_secured && !std::mem::replace(&mut self.was_secured, true)
    }

    /// Sets how many bytes must wait before the poll reports the socket. Not applied to TLS, which has records of its
    /// own; there every byte raises an event.
    pub(super) fn set_mark(&mut self, mark: usize) {
        if mark != self.mark && self.tls.is_none() {
            self.mark = mark;
            set_low_water(&self.socket, mark);
        }
    }

    /// Stable name and description of the reason why the handshake of TLS failed.
    pub(super) fn handshake_fault(&self) -> Option<(&'static str, &str)> {
        let detail = self.fault.as_deref().unwrap_or("the peer closed the connection");
        self.handshake_fault.map(|code| (code, detail))
    }

    /// Why TLS failed; `None` if it did not.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Whether the round trip is due to be read again.
    pub(super) fn is_round_trip_due(&self, now: Instant) -> bool {
        self.round_trip_at.is_none_or(|at| now >= at + ROUND_TRIP_PAUSE)
    }

    /// The kernel's estimate of the round trip, from the peer's acknowledgements; a system call.
    pub(super) fn poll_round_trip(&mut self, now: Instant) -> Option<Duration> {
        self.round_trip_at = Some(now);
        round_trip(&self.socket)
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Received {
        if self.tls.is_some() {
            return self.read_sealed(buffer);
        }
        loop {
            return match self.socket.read(buffer) {
                Ok(0) => Received::Closed,
                Ok(length) => Received::Bytes(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Received::Blocked,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => Received::Closed,
            };
        }
    }

    /// Notes an event of the socket.
    pub(super) const fn handle_ready(&mut self, can_write: bool, read_closed: bool) {
        self.can_write |= can_write;
        self.read_closed |= read_closed;
    }

    /// Whether the peer has sent its last byte, or is gone.
    pub(super) const fn is_read_closed(&self) -> bool {
        self.read_closed
    }

    /// Whether a read of `length` bytes into `room` may be followed by another one without a new event. A short read
    /// has emptied the socket (epoll 7, "Questions and answers", 9), except for an end that was already announced.
    pub(super) const fn has_more(&self, length: usize, room: usize) -> bool {
        length == room || self.read_closed || self.tls.is_some()
    }

    /// Whether the socket accepts bytes.
    pub(super) const fn can_write(&self) -> bool {
        self.can_write
    }

    /// Writes as much as the peer accepts. Returns true if it accepted bytes or none were waiting; an error means that
    /// the connection is gone.
    pub(super) fn flush(&mut self, output: &mut Output) -> io::Result<bool> {
        if self.tls.is_some() {
            return self.flush_sealed(output);
        }
        let mut progress = output.is_empty();
        while self.can_write && !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_LIMIT];
            let count = output.io_slices(&mut slices);
            let offered: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            match self.socket.write_vectored(&slices[..count]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    output.consume(written);
                    progress = true;
                    // A short write means that the kernel's buffer is full.
                    self.can_write = written == offered;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_write = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(progress)
    }

    fn read_sealed(&mut self, buffer: &mut [u8]) -> Received {
        let Some(tls) = &mut self.tls else { return Received::Closed };
        loop {
            match tls.reader().read(buffer) {
                // close_notify.
                Ok(0) => return Received::Closed,
                Ok(length) => return Received::Bytes(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Received::Closed,
            }
            match tls.read_tls(&mut self.socket) {
                Ok(0) => {
                    if self.has_begun && tls.is_handshaking() {
                        self.handshake_fault = Some("tls_abandoned");
                    }
                    return Received::Closed;
                }
                Ok(_) => {
                    self.has_begun = true;
                    if let Err(error) = tls.process_new_packets() {
                        self.fault = Some(error.to_string());
                        if tls.is_handshaking() {
                            self.handshake_fault = Some(fault_code(&error));
                        }
                        // Send the alert that names the error, if the peer reads it.
                        let _ = tls.write_tls(&mut self.socket);
                        return Received::Closed;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Received::Blocked,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Received::Closed,
            }
        }
    }

    fn flush_sealed(&mut self, output: &mut Output) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let mut progress = output.is_empty() && !tls.wants_write();
        while self.can_write && (!output.is_empty() || tls.wants_write()) {
            let mut slices = [IoSlice::new(&[]); SLICES_LIMIT];
            let count = output.io_slices(&mut slices);
            let sealed = tls.writer().write_vectored(&slices[..count])?;
            output.consume(sealed);
            if !tls.wants_write() {
                // During the handshake: the peer must send next.
                break;
            }
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => progress = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.can_write = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(progress)
    }

    /// Closes the write side; the peer can still read what is in flight.
    pub(super) fn shut_writing(&mut self) {
        if !self.was_shut {
            self.was_shut = true;
            if let Some(tls) = &mut self.tls {
                tls.send_close_notify();
                let _ = tls.write_tls(&mut self.socket);
            }
            // Fails only if the peer is already gone.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }
}
