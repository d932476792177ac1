//! Connections that come to the RTMP ports, dealt to the workers in turn.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use mio::net::TcpStream;

use crate::rtmp_server::ServerConnection;
use crate::seat::Entry;
use crate::shared::Command;
use crate::worker::{Timer, Worker};

/// Pause before accepting again when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Worker {
    /// Takes what came to the ports and deals it to the workers in turn.
    pub(crate) fn accept(&mut self) {
        let mut accepted = Vec::new();
        let mut paused = false;
        let listeners = [(&self.listener, false), (&self.tls_listener, true)];
        for (listener, is_tls) in listeners {
            let Some(listener) = listener else { continue };
            loop {
                match listener.accept() {
                    Ok((socket, peer)) => {
                        accepted.push((socket, peer.ip().to_canonical(), is_tls));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // One that was reset while it waited says nothing about the next.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(_) => {
                        paused = true;
                        break;
                    }
                }
            }
        }
        if paused {
            self.set_timer(self.now + ACCEPT_PAUSE, Timer::Accept);
        }
        for (socket, peer, is_tls) in accepted {
            let worker = self.deal_to % self.shared.workers();
            self.deal_to = worker + 1;
            if worker == self.index() {
                self.welcome(socket, peer, is_tls);
            } else {
                self.shared.send(worker, Command::Accept(socket, peer, is_tls));
            }
        }
    }

    /// Seats a connection that was dealt to this worker.
    pub(crate) fn welcome(&mut self, socket: TcpStream, peer: IpAddr, is_tls: bool) {
        if self.stopping.is_some() {
            return;
        }
        // Without a certificate there is no such port.
        let tls = if is_tls { self.shared.tls.accept().ok() } else { None };
        if is_tls && tls.is_none() {
            return;
        }
        let seed = self.random();
        let server = ServerConnection::new(socket, tls, peer, seed, self.now);
        let key = self.seat(Entry::Server(Box::new(server)));
        self.turn(key, |worker, key, entry| entry.start(worker, key));
    }
}
