//! Socket options that our libraries do not offer: the only unsafe code of this crate.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::net::{TcpStream, UdpSocket};

/// The poll reports the socket once this many bytes wait (SO_RCVLOWAT, socket 7).
pub(super) fn set_low_water(socket: &TcpStream, bytes: usize) {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(1);
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

/// Turns off the ancillary data that quinn-udp requests for each datagram: traffic class and time of arrival. They are
/// not used here, and the kernel would write them for every datagram (ip 7, ipv6 7, socket 7).
pub(super) fn forget_ancillary_data(socket: &UdpSocket) {
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0);
    set(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 0);
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 0);
}

/// Turns off the address that each datagram was sent to, which a socket bound to one address knows.
pub(super) fn forget_destinations(socket: &UdpSocket) {
    set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 0);
    set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0);
}

/// A failure is ignored: it only costs unnecessary work.
fn set(socket: &impl AsRawFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) {
    // SAFETY: the descriptor is the socket's own and open; the kernel reads one int, whose size is passed.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

/// The smoothed round trip of TCP_INFO (tcp 7); `None` before the first measurement.
pub(super) fn round_trip(socket: &TcpStream) -> Option<Duration> {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is the socket's own and open; the kernel writes at most `length` bytes, which is the size
    // of the buffer, and every bit pattern of them, zeros included, is a valid `tcp_info`.
    let (outcome, info) = unsafe {
        let outcome = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        );
        (outcome, info.assume_init())
    };
    (outcome == 0 && info.tcpi_rtt > 0).then(|| Duration::from_micros(info.tcpi_rtt.into()))
}
