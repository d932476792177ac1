//! How many bytes must wait before the poll reports a socket (SO_RCVLOWAT, socket 7).
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;

/// A failure is ignored: the relay then reads more often.
pub(super) fn set(socket: &impl AsRawFd, bytes: libc::c_int) {
    // SAFETY: the descriptor is the socket's own and open; the kernel reads one int, whose size is passed.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}
