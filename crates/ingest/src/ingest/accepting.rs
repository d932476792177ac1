//! Where RTMP connections are accepted: ports and sockets, and the hand-over of both to another process.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use super::Ingest;
use crate::reactor::config::{PortUse, StartError};
use crate::reactor::listen;
use crate::reactor::shared::Command;

/// The worker that accepts for all.
const ACCEPTING: usize = 0;

impl Ingest {
    /// The port RTMP is served on.
    #[must_use]
    pub const fn rtmp_port(&self) -> u16 {
        self.rtmp.port
    }

    /// The port RTMP over TLS is served on.
    #[must_use]
    pub const fn rtmp_tls_port(&self) -> Option<u16> {
        self.rtmp.tls_port
    }

    /// The sockets that listen at these two: for a process that is to inherit them. They are closed by
    /// [`Ingest::stop_accepting`] and [`Ingest::stop`].
    #[must_use]
    pub const fn rtmp_sockets(&self) -> (RawFd, Option<RawFd>) {
        (self.rtmp.socket, self.rtmp.tls_socket)
    }

    /// Accepts RTMP connections from now on, where the configuration said not to do so at once.
    pub fn start_accepting(&self) {
        self.shared.send(ACCEPTING, Command::StartAccepting);
    }

    /// Accepts no more RTMP connections and closes the sockets: those that wait in them are another process's. Running
    /// sessions stay.
    pub fn stop_accepting(&self) {
        self.shared.send(ACCEPTING, Command::StopAccepting);
    }

    /// Accepts RTMP connections at one more port, which [`Ingest::stop_accepting`] leaves open: other nodes pull there.
    /// Returns the port; 0 takes any free one.
    ///
    /// # Errors
    /// A taken port, or what the system refuses.
    pub fn accept_pulls(&self, address: SocketAddr) -> Result<u16, StartError> {
        let socket = listen(address, PortUse::Pulls)?;
        let port = socket.local_addr()?.port();
        self.shared.send(ACCEPTING, Command::AcceptPulls(socket));
        Ok(port)
    }
}
