//! The address and transport a datagram came from, and on which an answer is sent.

use std::net::SocketAddr;

/// The client's end of a transport: UDP, or framed TCP (RFC 4571). The same address may occur with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The client's address.
    pub address: SocketAddr,
    /// Frames on a TCP connection that the client opened (RFC 6544 passive).
    pub is_tcp: bool,
}

impl Path {
    /// A TCP connection from `address`.
    #[must_use]
    pub const fn tcp(address: SocketAddr) -> Self {
        Self { address, is_tcp: true }
    }
}

impl From<SocketAddr> for Path {
    fn from(address: SocketAddr) -> Self {
        Self { address, is_tcp: false }
    }
}
