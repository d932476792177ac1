//! The transport between a WHIP publisher and the core: UDP, or frames over TCP (RFC 4571).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// One transport.
pub(super) enum Wire {
    /// Hears only the address that it sent to, as ICE demands (RFC 8445 7.2.5.2.1).
    Udp {
        socket: UdpSocket,
        to: Option<SocketAddr>,
    },
    Tcp {
        stream: Option<TcpStream>,
        input: Vec<u8>,
    },
}

impl Wire {
    pub(super) fn open(is_tcp: bool) -> Self {
        if is_tcp {
            return Self::Tcp { stream: None, input: Vec::new() };
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        socket.set_read_timeout(Some(Duration::from_millis(2))).expect("a socket option");
        Self::Udp { socket, to: None }
    }

    pub(super) fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        match self {
            Self::Udp { socket, to: sent_to } => {
                *sent_to = Some(to);
                let _ = socket.send_to(datagram, to);
            }
            Self::Tcp { stream, .. } => {
                let stream = stream.get_or_insert_with(|| {
                    let stream = TcpStream::connect(to).expect("the media port takes TCP");
                    stream.set_read_timeout(Some(Duration::from_millis(2))).expect("an option");
                    stream
                });
                let length = u16::try_from(datagram.len()).expect("a datagram").to_be_bytes();
                // Split where a network might split it: the length alone, then the rest.
                let _ = stream.write_all(&length).and_then(|()| stream.write_all(datagram));
            }
        }
    }

    /// The next datagram, if one arrives soon.
    pub(super) fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        match self {
            Self::Udp { socket, to } => {
                let (length, from) = socket.recv_from(&mut buffer).ok()?;
                (*to == Some(from)).then(|| buffer[..length].to_vec())
            }
            Self::Tcp { stream, input } => {
                match stream.as_mut()?.read(&mut buffer) {
                    Ok(length) => input.extend_from_slice(&buffer[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return None,
                }
                let length = usize::from(u16::from_be_bytes(*input.first_chunk()?));
                let frame = input.get(2..2 + length)?.to_vec();
                input.drain(..2 + length);
                Some(frame)
            }
        }
    }
}
