//! A media worker's UDP port: datagrams in batches in both directions, many per system call. It does not know which
//! sessions they belong to.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::SocketAddr;

use headgate_whip::Path;
use mio::net::UdpSocket;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use socket2::{Domain, Protocol, Socket, Type};

use super::socket_options::{forget_ancillary_data, forget_destinations};

/// Buffer size for one datagram; WebRTC sends no more than fits an Ethernet frame.
pub(super) const DATAGRAM_LIMIT: usize = 2048;
/// Requested kernel receive buffer, which fills while the worker is busy: 100 streams for 160 ms. The kernel may grant
/// less.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The kernel doubles the requested size to account for its own overhead (socket(7), SO_RCVBUF).
const KERNEL_OVERHEAD: usize = 2;
/// Datagrams sent in one system call.
const SEND_BATCH: usize = 32;

/// One bound port with its buffers.
pub(super) struct UdpPort {
    pub(super) socket: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
    room: usize,
    metas: Vec<RecvMeta>,
    outgoing: Vec<(SocketAddr, Vec<u8>)>,
    /// The size that the kernel granted, if it is less than requested.
    small_receive_buffer: Option<usize>,
}

impl UdpPort {
    /// Binds the port; port 0 picks a free one.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // The system's limit may be lower; bursts are then lost earlier, and NACK recovers them.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let granted = socket.recv_buffer_size()? / KERNEL_OVERHEAD;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from_std(socket.into());
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        forget_ancillary_data(&socket);
        if !address.ip().is_unspecified() {
            forget_destinations(&socket);
        }
        let room = DATAGRAM_LIMIT * state.gro_segments();
        Ok(Self {
            socket,
            state,
            buffer: Vec::new(),
            room,
            metas: vec![RecvMeta::default(); BATCH_SIZE],
            outgoing: Vec::new(),
            small_receive_buffer: (granted < RECEIVE_BUFFER).then_some(granted),
        })
    }

    /// The local port.
    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Size in bytes of the receive buffer, if the kernel granted less than requested.
    pub(super) const fn small_receive_buffer(&self) -> Option<usize> {
        self.small_receive_buffer
    }

    /// Reads a batch; 0 if nothing is waiting.
    pub(super) fn receive(&mut self) -> io::Result<usize> {
        if self.buffer.is_empty() {
            // Allocated on first use; pages that no burst reaches are never touched.
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

    /// The datagrams of the last batch; the kernel may have merged several from one sender.
    pub(super) fn datagrams(&mut self, batch: usize) -> impl Iterator<Item = (Path, &mut [u8])> {
        let filled = self.buffer.chunks_exact_mut(self.room).zip(&self.metas).take(batch);
        filled.flat_map(|(buffer, meta)| {
            let bytes = buffer.get_mut(..meta.len).unwrap_or_default();
            let path = Path { address: meta.addr, local: meta.dst_ip, is_tcp: false };
            bytes.chunks_mut(meta.stride.max(1)).map(move |datagram| (path, datagram))
        })
    }

    /// Queues one datagram for the next [`UdpPort::flush`]. On a socket with several addresses it is sent immediately,
    /// from the one that the client sent to: the kernel would choose by its routes, and the client ignore the answer.
    /// What the kernel does not accept is lost like any datagram.
    pub(super) fn send(&mut self, path: Path, datagram: Vec<u8>) {
        if path.local.is_none() {
            self.outgoing.push((path.address, datagram));
            return;
        }
        let transmit = Transmit {
            destination: path.address,
            ecn: None,
            contents: &datagram,
            segment_size: None,
            src_ip: path.local,
        };
        let _ = self.state.try_send(UdpSockRef::from(&self.socket), &transmit);
    }

    /// Sends the queued datagrams.
    pub(super) fn flush(&mut self) {
        for batch in self.outgoing.chunks(SEND_BATCH) {
            send_batch(&self.socket, batch);
        }
        self.outgoing.clear();
    }
}

fn send_batch(socket: &UdpSocket, batch: &[(SocketAddr, Vec<u8>)]) {
    let addresses: Vec<_> = batch.iter().map(|(to, _)| to.as_any()).collect();
    let slices: Vec<_> = batch.iter().map(|(_, datagram)| [IoSlice::new(datagram)]).collect();
    let mut nothing: Vec<_> = batch.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let parts = addresses.iter().zip(&slices).zip(&mut nothing);
    let mut messages: Vec<_> =
        parts.map(|((to, slice), control)| MMsgHdr::new_with_addr(to, slice, control)).collect();
    let mut sent = 0;
    while let Some(rest) = messages.get_mut(sent..).filter(|rest| !rest.is_empty()) {
        sent += match sendmmsg(socket, rest, SendFlags::empty()) {
            Ok(count) => count.max(1),
            Err(rustix::io::Errno::INTR) => 0,
            // The error belongs to the first datagram, whose client is gone; the others are still sent.
            Err(_) => 1,
        };
    }
}

/// Datagrams that the kernel dropped on these ports since they were bound, because they were not read in time (proc(5),
/// /proc/net/udp, "drops"). `None` where the system does not report it.
pub(crate) fn kernel_drops(ports: &[u16]) -> Option<u64> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"].map(std::fs::read_to_string);
    if tables.iter().all(Result::is_err) {
        return None;
    }
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    Some(lines.filter_map(|line| drops_of(line, ports)).sum())
}

/// The last column of a line whose local port, in hexadecimal, is one of these ports.
fn drops_of(line: &str, ports: &[u16]) -> Option<u64> {
    let mut columns = line.split_whitespace();
    let (_, port) = columns.nth(1)?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    if ports.contains(&port) { columns.last()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::time::Duration;

    #[test]
    fn drops_are_the_last_column_of_our_own_ports() {
        let line = " 100: 0100007F:1FFD 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
                    0        0 31 2 0000000000000000 42";
        assert_eq!(drops_of(line, &[8189]), Some(42));
        assert_eq!(drops_of(line, &[8190]), None);
        assert_eq!(drops_of("nonsense", &[8189]), None);
    }

    #[test]
    fn metadata_of_single_datagrams_is_not_requested_from_the_kernel() {
        for any in [SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from(([0_u16; 8], 0))] {
            // A machine without IPv6 cannot open this port.
            let Ok(port) = UdpPort::open(any) else { continue };
            let socket = socket2::SockRef::from(&port.socket);
            let is_asked =
                if any.is_ipv4() { socket.recv_tos_v4() } else { socket.recv_tclass_v6() };
            assert!(!is_asked.expect("an option"));
        }
    }

    #[test]
    fn a_client_is_answered_from_the_address_it_sent_to() {
        for (any, asked) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.3"), ("[::]:0", "::1")]
        {
            // A machine without IPv6 cannot open its port.
            let Ok(mut port) = UdpPort::open(any.parse().expect("an address")) else { continue };
            let asked: IpAddr = asked.parse().expect("an address");
            let ours = SocketAddr::new(asked, port.port().expect("bound"));
            let home = if asked.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
            let client = std::net::UdpSocket::bind(home).expect("a free port");
            client.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
            client.send_to(b"hello", ours).expect("sent");
            let path = (0..500).find_map(|_| {
                let batch = port.receive().expect("read");
                let path = port.datagrams(batch).next().map(|(path, _)| path);
                if path.is_none() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                path
            });
            port.send(path.expect("the datagram came"), b"answer".to_vec());
            let (length, from) = client.recv_from(&mut [0; 16]).expect("the answer came");
            assert_eq!((length, from), (6, ours));
        }
    }

    #[test]
    fn a_batch_is_sent_although_one_of_its_addresses_fails() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut port = UdpPort::open(any).expect("a free port");
        let receiver = std::net::UdpSocket::bind(any).expect("a free port");
        receiver.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
        let to = receiver.local_addr().expect("bound");
        for n in 0..40_u8 {
            port.send(to.into(), vec![n; 10]);
            // Nobody can listen on port 0: the kernel refuses it.
            port.send(any.into(), vec![n; 10]);
        }
        port.flush();
        let mut buffer = [0; 16];
        for n in 0..40_u8 {
            assert_eq!(receiver.recv(&mut buffer).expect("it came"), 10);
            assert_eq!(buffer[0], n);
        }
    }
}
