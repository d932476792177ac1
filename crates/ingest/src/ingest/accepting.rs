//! Accepting RTMP connections: ports and listening sockets, and handing both over to another process.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use super::Ingest;
use crate::reactor::config::{PortUse, StartError};
use crate::reactor::listen;
use crate::reactor::shared::Command;

/// The worker that accepts connections for all workers.
const ACCEPTING: usize = 0;

impl Ingest {
    /// The port that serves plain RTMP; `None` if only RTMPS is served.
    #[must_use]
    pub const fn rtmp_port(&self) -> Option<u16> {
        self.rtmp.port
    }

    /// The port that serves RTMP over TLS.
    #[must_use]
    pub const fn rtmp_tls_port(&self) -> Option<u16> {
        self.rtmp.tls_port
    }

    /// The listening sockets of these two ports, for a process that is to inherit them. [`Ingest::stop_accepting`] and
    /// [`Ingest::stop`] close them.
    #[must_use]
    pub const fn rtmp_sockets(&self) -> (Option<RawFd>, Option<RawFd>) {
        (self.rtmp.socket, self.rtmp.tls_socket)
    }

    /// Starts accepting RTMP connections, if the configuration deferred that.
    pub fn start_accepting(&self) {
        self.shared.send(ACCEPTING, Command::StartAccepting);
    }

    /// Stops accepting RTMP connections and closes the sockets; connections that wait in their backlog belong to the
    /// process that inherited them. Running sessions stay.
    pub fn stop_accepting(&self) {
        self.shared.send(ACCEPTING, Command::StopAccepting);
    }

    /// Accepts RTMP connections from other nodes, which pull streams, on one more port; [`Ingest::stop_accepting`]
    /// leaves it open. Returns the port; 0 picks a free one.
    ///
    /// # Errors
    /// The port is in use, or the system refuses the socket.
    pub fn accept_pulls(&self, address: SocketAddr) -> Result<u16, StartError> {
        let socket = listen(address, PortUse::Pulls)?;
        let port = socket.local_addr()?.port();
        self.shared.send(ACCEPTING, Command::AcceptPulls(socket));
        Ok(port)
    }
}
