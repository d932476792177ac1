//! A reserve file descriptor for when the process may open no more: it is used to accept a connection and close it, so
//! that the peer is refused at once and the listener does not report it forever. Not used for connections that are
//! served.

use std::fs::File;
use std::io;

use mio::net::TcpListener;
use rustix::io::Errno;

/// One descriptor in reserve.
#[derive(Debug)]
pub(super) struct SpareDescriptor(Option<File>);

impl SpareDescriptor {
    pub(super) fn new() -> Self {
        Self(open())
    }

    /// Accepts the longest waiting connection and closes it. Returns false if even that failed: then nothing was
    /// accepted, and the caller should try again after a pause.
    pub(super) fn refuse_one(&mut self, listener: &TcpListener) -> bool {
        if self.0.is_none() {
            self.0 = open();
        }
        // Another thread may take the freed descriptor in between.
        let had_one = self.0.take().is_some();
        let is_refused = had_one && listener.accept().is_ok();
        self.0 = open();
        is_refused
    }
}

/// Whether the process or the whole system has reached its limit of open files.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|of| error.raw_os_error() == Some(of.raw_os_error()))
}

fn open() -> Option<File> {
    File::open("/dev/null").ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_spare_descriptor_closes_a_waiting_connection_and_is_restored() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = TcpListener::bind(address).expect("a port");
        let mut spare = SpareDescriptor::new();
        assert!(!spare.refuse_one(&listener), "no connection waits");
        for _ in 0..3 {
            let mut client =
                TcpStream::connect(listener.local_addr().expect("bound")).expect("it waits");
            assert!(spare.refuse_one(&listener));
            client.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
            let closed = client.read(&mut [0; 16]);
            assert!(closed.is_err() || closed.is_ok_and(|read| read == 0), "it is closed");
        }
        assert!(spare.0.is_some());
    }

    #[test]
    fn only_a_lack_of_descriptors_is_exhaustion() {
        assert!(is_exhausted(&io::Error::from_raw_os_error(Errno::MFILE.raw_os_error())));
        assert!(is_exhausted(&io::Error::from_raw_os_error(Errno::NFILE.raw_os_error())));
        assert!(!is_exhausted(&io::Error::from(io::ErrorKind::WouldBlock)));
    }
}
