//! What a switchboard leaves for its reactor, and what its worker is configured with.

use std::net::SocketAddr;
use std::sync::Arc;

use headgate_whip::Path;

use super::keys::SessionKey;
use super::message::Message;
use super::moved_publish::MovedPublish;
use crate::publish::registry::Publishes;
use crate::transcoding::Transcoders;

/// A request of the switchboard to its reactor.
pub(crate) enum Action {
    /// Open a TCP connection for a push or a pull; answered by `handle_connected` or `handle_connect_failed`.
    Connect { session: SessionKey, address: SocketAddr, tls_host: Option<String> },
    /// Close the session's socket immediately.
    Disconnect(SessionKey),
    /// Read the session's socket although the poll reports nothing.
    Read(SessionKey),
    /// Send a datagram to a WHIP client.
    Send(Path, Vec<u8>),
    /// The path belongs to no session any more: close its TCP connection, if it has one.
    ClosePath(Path),
    /// Hand the session with its socket over to the worker of its stream.
    Move { session: SessionKey, home: usize, moved: Box<MovedPublish> },
    /// Send a message to another worker.
    Tell(usize, Message),
}

/// A worker's place in the process, and its configuration.
#[derive(Clone)]
pub(crate) struct Context {
    /// This worker's number.
    pub(crate) worker: usize,
    /// Number of workers.
    pub(crate) workers: usize,
    /// Whether players that join late start with the cached GOP.
    pub(crate) caches_gop: bool,
    /// Whether pushes without audio get silent AAC (R5).
    pub(crate) pushes_silence: bool,
    /// Whether publishes may be captured from their first byte.
    pub(crate) captures: bool,
    /// All running publishes of the process.
    pub(crate) publishes: Arc<Publishes>,
    /// The audio threads.
    pub(crate) transcoders: Arc<Transcoders>,
}
