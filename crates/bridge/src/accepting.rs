//! Listening sockets that one process hands over to its successor, and notifications to the service manager.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram};
use std::sync::Arc;

use napi::bindgen_prelude::Result;
use napi::{Error, Status};
use napi_derive::napi;

use crate::{MediaCore, address};

/// Listening RTMP sockets, as file descriptors of this process; null for a port that is not served.
#[napi(object, use_nullable = true)]
pub struct RtmpSockets {
    /// The RTMP socket, unless only RTMP over TLS is served.
    pub plain: Option<i32>,
    /// The RTMP over TLS socket.
    pub tls: Option<i32>,
}

#[napi]
impl MediaCore {
    /// The sockets to be inherited by a successor process; stopAccepting closes them.
    #[napi(catch_unwind)]
    pub fn rtmp_sockets(&self) -> RtmpSockets {
        let (plain, tls) = self.ingest.rtmp_sockets();
        RtmpSockets { plain, tls }
    }

    /// Starts accepting RTMP connections.
    #[napi(catch_unwind)]
    pub fn start_accepting(&self) {
        self.ingest.start_accepting();
    }

    /// Stops accepting RTMP connections and closes the sockets in this process: pending connections go to the successor.
    /// Sessions continue.
    #[napi(catch_unwind)]
    pub fn stop_accepting(&self) {
        self.ingest.stop_accepting();
    }

    /// Accepts connections from other nodes on an additional port, which stays open, and returns that port; 0 takes any
    /// free one. Throws with a code of `StartError`.
    #[napi(catch_unwind)]
    pub fn accept_pulls(&self, host: String, port: u16) -> Result<u16, &'static str> {
        let host = address(&host).map_err(|error| Error::new("io", error.reason.clone()))?;
        let opened = self.ingest.accept_pulls(SocketAddr::new(host, port));
        opened.map_err(|error| Error::new(error.code(), error.to_string()))
    }
}

/// A duplicate of a listening socket that this process inherited; the descriptor itself stays open.
pub(crate) fn inherited(descriptor: RawFd) -> Result<Arc<TcpListener>> {
    Ok(Arc::new(TcpListener::from(duplicate(descriptor)?)))
}

/// Duplicates the descriptor of a socket that is open in this process. Each is watched and closed separately.
#[napi(catch_unwind)]
pub fn duplicate_descriptor(descriptor: i32) -> Result<i32> {
    Ok(duplicate(descriptor)?.into_raw_fd())
}

fn duplicate(descriptor: RawFd) -> Result<OwnedFd> {
    if descriptor < 0 {
        return Err(Error::new(Status::InvalidArg, "not a file descriptor"));
    }
    // SAFETY: it is borrowed only for the call that duplicates it, which fails if it is not open.
    #[expect(unsafe_code, reason = "a descriptor is known by its number alone")]
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned().map_err(|error| {
        Error::new(Status::InvalidArg, format!("the socket cannot be used: {error}"))
    })
}

/// Sends `state` to the service manager (sd_notify(3)) at its socket: a path, or `@` and an abstract name.
#[napi(catch_unwind)]
pub fn notify_manager(socket: String, state: String) -> Result<()> {
    let notify = || -> io::Result<()> {
        let address = match socket.strip_prefix('@') {
            Some(name) => UnixAddr::from_abstract_name(name)?,
            None => UnixAddr::from_pathname(&socket)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
        Ok(())
    };
    notify().map_err(|error| Error::new(Status::GenericFailure, error.to_string()))
}
