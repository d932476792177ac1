//! A media worker's UDP port: datagrams in batches, one system call for many. Not whose they are.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;

use mio::net::UdpSocket;
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

/// Room for one datagram; WebRTC sends no more than an Ethernet frame holds.
pub(crate) const DATAGRAM_LIMIT: usize = 2048;
/// What the kernel holds for us while the worker is busy: 100 streams for 160 ms. The kernel may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// One bound port with its buffers.
pub(crate) struct UdpPort {
    pub(crate) socket: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
    room: usize,
    metas: Vec<RecvMeta>,
}

impl UdpPort {
    /// Binds; port 0 takes any free one.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // The system's own limit may be lower; then bursts are lost earlier, and NACK brings them back.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.bind(&address.into())?;
        let socket = UdpSocket::from_std(socket.into());
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let room = DATAGRAM_LIMIT * state.gro_segments();
        let metas = vec![RecvMeta::default(); BATCH_SIZE];
        Ok(Self { socket, state, buffer: Vec::new(), room, metas })
    }

    /// The port it is bound to.
    pub(crate) fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Reads a batch; 0 when there is nothing.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        if self.buffer.is_empty() {
            // Pages that no burst reaches are never touched.
            self.buffer = vec![0; self.room * BATCH_SIZE];
        }
        let mut slices: Vec<IoSliceMut<'_>> =
            self.buffer.chunks_exact_mut(self.room).map(IoSliceMut::new).collect();
        loop {
            let socket = UdpSockRef::from(&self.socket);
            match self.state.recv(socket, &mut slices, &mut self.metas) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }

    /// The datagrams of the last batch; the kernel may have joined several of one sender.
    pub(crate) fn datagrams(
        &mut self,
        batch: usize,
    ) -> impl Iterator<Item = (SocketAddr, &mut [u8])> {
        let filled = self.buffer.chunks_exact_mut(self.room).zip(&self.metas).take(batch);
        filled.flat_map(|(buffer, meta)| {
            let bytes = buffer.get_mut(..meta.len).unwrap_or_default();
            bytes.chunks_mut(meta.stride.max(1)).map(|datagram| (meta.addr, datagram))
        })
    }

    /// Sends one datagram; what the kernel does not take is lost like any datagram.
    pub(crate) fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let _ = self.socket.send_to(datagram, to);
    }
}
