//! The TCP sockets of sessions: accepting, connecting, reading and writing. The switchboard interprets the bytes.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use mio::Interest;
use mio::event::Event;
use mio::net::TcpStream;

use super::cycle::Reactor;
use super::link::{Link, Received};
use super::proxied::{Introduced, Outcome, Unintroduced};
use super::shared::{Accepted, Command};
use super::tokens::token_of;
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::ConnectionRefused;
use crate::publish::upstream_cause::UpstreamCause;
use crate::switchboard::message::Message;
use crate::switchboard::moved_publish::MovedPublish;
use crate::switchboard::{Filled, SessionKey};

/// Reads of one socket per turn, so that a fast peer does not delay the others.
const READS_PER_TURN: usize = 4;

/// Why a TCP connection was not established.
fn cause_of(error: &io::Error) -> UpstreamCause {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
            UpstreamCause::ConnectionRefused
        }
        ErrorKind::TimedOut => UpstreamCause::TimedOut,
        _ => UpstreamCause::Unreachable,
    }
}

impl Reactor {
    /// Serves a connection that was accepted for this worker.
    pub(super) fn take(&mut self, accepted: Accepted) {
        if accepted.is_proxied {
            let outcome = self.proxied.add(self.poll.registry(), accepted, self.now);
            self.introduce(outcome);
            return;
        }
        let Accepted { socket, peer, is_tls, permit, .. } = accepted;
        // The TLS port exists only with a certificate.
        let tls = if is_tls { self.shared.tls.accept().ok() } else { None };
        if is_tls && tls.is_none() {
            return;
        }
        let Some(key) = self.switchboard.accept(peer) else { return };
        // The service coalesces media itself; if this option fails, only latency suffers.
        let _ = socket.set_nodelay(true);
        if self.watch(key, Link::accepted(socket, tls, permit)) {
            self.read(key);
        } else {
            self.switchboard.handle_closed(key, None);
        }
    }

    /// Handles an event of a connection that awaits its PROXY protocol header.
    pub(super) fn handle_proxied(&mut self, event: &Event) {
        let outcome = self.proxied.handle_ready(self.poll.registry(), event);
        self.introduce(outcome);
    }

    /// Closes connections whose PROXY protocol header is late.
    pub(super) fn close_unintroduced(&mut self) {
        for outcome in self.proxied.poll_late(self.now) {
            self.introduce(Some(outcome));
        }
    }

    /// Serves a connection as its client's once its header has named the client, within the limit of that address.
    fn introduce(&mut self, outcome: Option<Outcome>) {
        match outcome {
            Some(Ok(Introduced { mut accepted, client })) => {
                if client.is_some_and(|client| !accepted.permit.assign(client)) {
                    return;
                }
                let peer = client.unwrap_or(accepted.peer);
                self.take(Accepted { peer, is_proxied: false, ..accepted });
            }
            Some(Err((_, Unintroduced::Silent))) | None => {}
            Some(Err((address, reason))) => {
                let (code, detail) = ("proxy_header", reason.to_string());
                self.switchboard.report_connection(ConnectionRefused { address, code, detail });
            }
        }
    }

    /// Hands a session with its socket over to the worker of its stream.
    pub(super) fn move_to(&mut self, key: SessionKey, home: usize, moved: MovedPublish) {
        let link = self.links.remove(key).and_then(|mut link| {
            self.poll.registry().deregister(&mut link.socket).is_ok().then_some(link)
        });
        if let Some(link) = link {
            self.shared.send(home, Command::Adopt(Box::new((link, moved))));
        } else {
            self.shared.tell(home, Message::Forgo(moved.stream()));
            moved.refuse(EndReason::BroadcasterLeft);
        }
    }

    /// Serves a session that another worker handed over. What its socket received meanwhile raises an event here.
    pub(super) fn adopt(&mut self, mut link: Link, moved: MovedPublish) {
        let Some(key) = self.switchboard.adopt(moved) else { return };
        link.dequeue();
        if self.watch(key, link) {
            self.read(key);
        } else {
            self.switchboard.handle_closed(key, None);
        }
    }

    fn watch(&mut self, key: SessionKey, mut link: Link) -> bool {
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut link.socket, token_of(key), interest);
        if registered.is_ok() {
            self.links.insert(key, link);
        }
        registered.is_ok()
    }

    /// Handles an event of a session's socket.
    pub(super) fn handle_ready(&mut self, key: SessionKey, event: &Event) {
        let Some(link) = self.links.get_mut(key) else { return };
        link.handle_ready(event.is_writable(), event.is_read_closed() || event.is_error());
        if link.is_connecting() {
            if event.is_writable() || event.is_error() {
                self.finish_connect(key);
            }
            return;
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read_later(key);
        }
        if event.is_writable() {
            // Write after reading: if the peer has left, what it sent before gives the better reason.
            self.to_write.push(key);
        }
    }

    /// Queues the session to be read in this cycle, or in the next one if reading is already done; once, however often
    /// this is called.
    pub(super) fn read_later(&mut self, key: SessionKey) {
        if let Some(link) = self.links.get_mut(key)
            && link.enqueue()
        {
            self.to_read.push(key);
        }
    }

    /// Reads as much as one turn allows.
    pub(super) fn read(&mut self, key: SessionKey) {
        let Some(link) = self.links.get_mut(key).filter(|link| !link.is_connecting()) else {
            return;
        };
        link.dequeue();
        let mut has_more = self.switchboard.begin_turn(key);
        for _ in 0..READS_PER_TURN {
            let Some(link) = self.links.get_mut(key).filter(|_| has_more) else { break };
            match link.read(&mut self.buffer) {
                Received::Bytes(length) => {
                    has_more = link.has_more(length, self.buffer.len());
                    let input = self.buffer.get(..length).unwrap_or_default();
                    self.switchboard.handle_input(key, input);
                    has_more &= self.switchboard.takes_input(key);
                }
                Received::Blocked => has_more = false,
                Received::Closed => {
                    has_more = false;
                    if let Some((code, detail)) = link.handshake_fault() {
                        self.switchboard.report_tls_fault(key, code, detail);
                    }
                    self.switchboard.handle_closed(key, link.fault());
                }
            }
        }
        if self.links.get_mut(key).is_some_and(Link::poll_secured) {
            self.switchboard.handle_secured(key);
        }
        let read_closed = self.links.get(key).is_some_and(Link::is_read_closed);
        let has_unread = self.switchboard.end_read(key, read_closed && !has_more);
        let Some(link) = self.links.get_mut(key) else { return };
        link.set_mark(self.switchboard.receive_mark(key));
        let is_tls = link.is_tls();
        if link.is_round_trip_due(self.now)
            && let Some(record) = self.switchboard.publish_of(key)
            && let Some(time) = link.poll_round_trip(self.now)
        {
            record.note_round_trip(time);
        }
        if has_more || has_unread {
            self.read_later(key);
        }
        if is_tls {
            // The TLS handshake may have something to send.
            self.pump(key);
        }
    }

    pub(super) fn connect(&mut self, key: SessionKey, address: SocketAddr, tls_host: Option<&str>) {
        let Some(permit) = self.shared.connections.admit_ours() else {
            let fault = Some("the connection limit is reached");
            self.switchboard.handle_connect_failed(key, UpstreamCause::NoRoom, fault);
            return;
        };
        let tls = match tls_host.map(|host| self.shared.tls.connect(host)) {
            None => None,
            Some(Ok(tls)) => Some(tls),
            Some(Err(error)) => {
                let fault = format!("TLS: {error}");
                self.switchboard.handle_connect_failed(key, UpstreamCause::Tls, Some(&fault));
                return;
            }
        };
        let cause = match TcpStream::connect(address) {
            Ok(socket) => {
                if self.watch(key, Link::connecting(socket, tls, permit)) {
                    return;
                }
                UpstreamCause::Unreachable
            }
            Err(error) => cause_of(&error),
        };
        self.switchboard.handle_connect_failed(key, cause, None);
    }

    fn finish_connect(&mut self, key: SessionKey) {
        let Some(link) = self.links.get_mut(key) else { return };
        match link.finish_connect() {
            Ok(()) => {
                self.switchboard.handle_connected(key);
                self.read(key);
            }
            Err(error) => {
                self.links.remove(key);
                self.switchboard.handle_connect_failed(key, cause_of(&error), None);
            }
        }
    }

    /// Writes a session's output as far as its socket accepts it.
    pub(super) fn pump(&mut self, key: SessionKey) {
        loop {
            let Some(link) = self.links.get_mut(key) else { return };
            // With TLS, encrypted data that is still buffered hides that the peer accepts nothing: fill its output so
            // that this shows.
            if !link.can_write() && !link.is_tls() {
                return;
            }
            let filled = self.switchboard.fill(key);
            let Some(output) = self.switchboard.output_mut(key) else { return };
            let before = output.pending_bytes();
            let Ok(progress) = link.flush(output) else {
                self.switchboard.handle_closed(key, None);
                return;
            };
            let left = output.pending_bytes();
            let is_behind = left > 0 || link.wants_write();
            if progress {
                self.switchboard.handle_written(key, before - left, is_behind);
            }
            if !is_behind && self.switchboard.is_closing(key) {
                link.shut_writing();
            }
            if filled == Filled::Drained || !link.can_write() {
                return;
            }
        }
    }
}
