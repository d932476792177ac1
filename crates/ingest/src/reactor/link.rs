//! One non-blocking TCP connection of a worker, plain or TLS: reads, and vectored writes out of a session's output.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use headgate_rtmp::Output;
use mio::net::TcpStream;
use rustls::Connection;

use super::connection_limits::ConnectionPermit;
use super::socket_options::{round_trip, set_low_water};

/// Slices in one vectored write: a large keyframe in 64 KiB chunks with its headers, and the audio that rides along.
const SLICES_LIMIT: usize = 128;
/// How often the kernel is asked for a connection's round trip: a system call each time.
const ROUND_TRIP_PAUSE: Duration = Duration::from_secs(2);

/// What a read gave.
pub(super) enum Received {
    /// So many bytes; see [`Link::has_more`].
    Bytes(usize),
    /// Nothing for now.
    Blocked,
    /// The peer closed or the connection broke.
    Closed,
}

/// One socket, and how writing to it goes.
pub(super) struct Link {
    pub(super) socket: TcpStream,
    tls: Option<Box<Connection>>,
    /// Why TLS failed, in words for the operator.
    fault: Option<String>,
    is_connecting: bool,
    can_write: bool,
    was_shut: bool,
    /// The peer's last byte is in the socket.
    read_closed: bool,
    /// So many bytes wake us.
    mark: usize,
    /// It waits for its turn to be read.
    is_queued: bool,
    round_trip_at: Option<Instant>,
    /// Given back with the socket.
    _permit: ConnectionPermit,
}

impl Link {
    /// A connection that came.
    pub(super) const fn accepted(
        socket: TcpStream,
        tls: Option<Box<Connection>>,
        permit: ConnectionPermit,
    ) -> Self {
        Self {
            socket,
            tls,
            fault: None,
            is_connecting: false,
            can_write: true,
            was_shut: false,
            read_closed: false,
            mark: 1,
            is_queued: false,
            round_trip_at: None,
            _permit: permit,
        }
    }

    /// A connection that is being made.
    pub(super) fn connecting(
        socket: TcpStream,
        tls: Option<Box<Connection>>,
        permit: ConnectionPermit,
    ) -> Self {
        Self { is_connecting: true, ..Self::accepted(socket, tls, permit) }
    }

    /// It waits for its turn to be read. False: it did so already.
    pub(super) const fn enqueue(&mut self) -> bool {
        !std::mem::replace(&mut self.is_queued, true)
    }

    /// Its turn has come.
    pub(super) const fn dequeue(&mut self) {
        self.is_queued = false;
    }

    /// The connection is not made yet.
    pub(super) const fn is_connecting(&self) -> bool {
        self.is_connecting
    }

    /// The poll has news of a connection that is being made. False: it failed.
    pub(super) fn finish_connect(&mut self) -> bool {
        self.is_connecting = false;
        // Media is coalesced by us, not by the kernel; without it only latency suffers.
        let _ = self.socket.set_nodelay(true);
        matches!(self.socket.take_error(), Ok(None)) && self.socket.peer_addr().is_ok()
    }

    /// Sealed bytes wait for the socket.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// What it writes and reads is sealed.
    pub(super) const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// So many bytes are to wait before the poll says so. Where it cannot be had, every byte wakes: TLS has records of
    /// its own.
    pub(super) fn set_mark(&mut self, mark: usize) {
        if mark != self.mark && self.tls.is_none() {
            self.mark = mark;
            set_low_water(&self.socket, mark);
        }
    }

    /// Why TLS failed; `None` when it did not.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// It is time to ask for the round trip again.
    pub(super) fn is_round_trip_due(&self, now: Instant) -> bool {
        self.round_trip_at.is_none_or(|at| now >= at + ROUND_TRIP_PAUSE)
    }

    /// The round trip that the kernel measures by what the peer acknowledges; a system call.
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

    /// The poll has news of the socket.
    pub(super) const fn handle_ready(&mut self, can_write: bool, read_closed: bool) {
        self.can_write |= can_write;
        self.read_closed |= read_closed;
    }

    /// The peer has sent its last byte, or is gone.
    pub(super) const fn is_read_closed(&self) -> bool {
        self.read_closed
    }

    /// After a read of `length` into `room`: whether another read can give something without a new event. A short read
    /// has emptied the socket (epoll 7, "Questions and answers", 9), but for the end that was announced already.
    pub(super) const fn has_more(&self, length: usize, room: usize) -> bool {
        length == room || self.read_closed || self.tls.is_some()
    }

    /// True while the socket takes bytes.
    pub(super) const fn can_write(&self) -> bool {
        self.can_write
    }

    /// Writes as much as the peer takes. True: it took bytes, or there were none. An error means the connection is gone.
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
                    // A short write is the kernel's word that its buffer is full.
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
                Ok(0) => return Received::Closed,
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        self.fault = Some(error.to_string());
                        // The alert that says why; whoever does not read it learns nothing.
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
                // In the handshake: the peer's turn.
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

    /// Says that nothing more will be written; the peer can still read what is on its way.
    pub(super) fn shut_writing(&mut self) {
        if !self.was_shut {
            self.was_shut = true;
            if let Some(tls) = &mut self.tls {
                tls.send_close_notify();
                let _ = tls.write_tls(&mut self.socket);
            }
            // A peer that is gone already needs no goodbye.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }
}
