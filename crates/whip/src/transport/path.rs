//! The addresses and transport of a datagram, on which an answer is sent.

use std::net::{IpAddr, SocketAddr};

/// One way to a client: UDP, or framed TCP (RFC 4571). The same address may occur with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The client's address.
    pub address: SocketAddr,
    /// The address of ours that the client sent to, and from which it expects the answer (RFC 8445 7.2.5.2.1). `None` if
    /// the socket has only one: UDP bound to an address, and every TCP connection.
    pub local: Option<IpAddr>,
    /// Frames on a TCP connection that the client opened (RFC 6544 passive).
    pub is_tcp: bool,
}

impl Path {
    /// A TCP connection from `address`.
    #[must_use]
    pub const fn tcp(address: SocketAddr) -> Self {
        Self { address, local: None, is_tcp: true }
    }
}

impl From<SocketAddr> for Path {
    fn from(address: SocketAddr) -> Self {
        Self { address, local: None, is_tcp: false }
    }
}
