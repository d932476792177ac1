//! Binds the ports of the core before any thread runs, so that a port in use is reported immediately.

use std::io::{self, ErrorKind};
use std::net::{self, SocketAddr};

use mio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, Type};

use super::config::{IngestConfig, PortUse, StartError};
use super::udp::UdpPort;

/// Connections that the kernel may queue until they are accepted.
const BACKLOG: i32 = 1024;

/// Opens the media port of worker `index`: the configured port plus `index`, or any free one.
pub(super) fn open_media_port(config: &IngestConfig, index: usize) -> Result<UdpPort, StartError> {
    let mut address = config.media;
    if address.port() != 0 {
        let port = u16::try_from(index).ok().and_then(|index| address.port().checked_add(index));
        address.set_port(port.ok_or(StartError::PortTaken(PortUse::Media, address.port()))?);
    }
    UdpPort::open(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => StartError::PortTaken(PortUse::Media, address.port()),
        _ => StartError::Io(error),
    })
}

/// Uses a TCP socket that another process has bound.
pub(super) fn adopt(socket: &net::TcpListener) -> io::Result<TcpListener> {
    let socket = socket.try_clone()?;
    socket.set_nonblocking(true)?;
    Ok(TcpListener::from_std(socket))
}

/// Binds a TCP port and listens.
pub(crate) fn listen(address: SocketAddr, port_use: PortUse) -> Result<TcpListener, StartError> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into()).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => StartError::PortTaken(port_use, address.port()),
        _ => StartError::Io(error),
    })?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}
