//! In-memory peers of a worker's connections in tests.

use std::time::Instant;

use headgate_rtmp::{
    ClientEvent, ClientSession, MediaMessage, Output, Refusal, ServerEvent, ServerSession,
};

/// The other side of a session's connection.
pub(super) enum Remote {
    /// A broadcaster or a player.
    Client(Box<ClientSession>),
    /// An upstream, or the source of a pull.
    Upstream(Box<ServerSession>),
    /// A session of another world: the test carries what was `received` from the worker there, and what was `written`
    /// there here.
    World { received: Vec<u8>, written: Vec<u8> },
}

/// A peer, and how much it reads.
pub(super) struct Peer {
    pub(super) remote: Remote,
    /// Bytes that it reads at each tick.
    pub(super) reads: usize,
    /// Media messages that it received.
    pub(super) media: Vec<MediaMessage>,
    /// Other events that it received.
    pub(super) events: Vec<String>,
    /// For upstreams and sources: whether they accept.
    accepts: bool,
}

impl Peer {
    pub(super) const fn new(remote: Remote, reads: usize, accepts: bool) -> Self {
        Self { remote, reads, media: Vec::new(), events: Vec::new(), accepts }
    }

    /// Takes what it wrote for the worker.
    pub(super) fn take_written(&mut self) -> Vec<u8> {
        match &mut self.remote {
            Remote::Client(client) => take(client.output_mut(), usize::MAX),
            Remote::Upstream(server) => take(server.output_mut(), usize::MAX),
            Remote::World { written, .. } => std::mem::take(written),
        }
    }

    /// Handles what the worker wrote for it.
    pub(super) fn read(&mut self, bytes: &[u8], now: Instant) {
        match &mut self.remote {
            Remote::Client(client) => {
                client.begin_turn();
                // Errors show in the events.
                let _ = client.handle_input(bytes, now);
                while let Some(event) = client.poll_event() {
                    match event {
                        ClientEvent::Media(media) => self.media.push(media),
                        other => self.events.push(format!("{other:?}")),
                    }
                }
            }
            Remote::Upstream(server) => {
                server.begin_turn();
                let _ = server.handle_input(bytes, now);
                while server.has_unread_input() {
                    server.begin_turn();
                    let _ = server.handle_input(&[], now);
                }
                while let Some(event) = server.poll_event() {
                    match event {
                        ServerEvent::PublishRequested(_) if self.accepts => server.allow(),
                        ServerEvent::PlayRequested(_) if self.accepts => server.accept_play(),
                        ServerEvent::PlayRequested(_) => {
                            server.refuse_play(Refusal::BadName, "No such stream");
                        }
                        ServerEvent::Media(media) => self.media.push(media),
                        other => self.events.push(format!("{other:?}")),
                    }
                }
            }
            Remote::World { received, .. } => received.extend_from_slice(bytes),
        }
    }
}

/// Takes up to `limit` written bytes.
pub(super) fn take(output: &mut Output, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < limit && !output.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[])];
        let count = output.io_slices(&mut slices);
        let slice = slices[..count].first().map_or(&[][..], |slice| slice);
        let taken = slice.len().min(limit - bytes.len());
        bytes.extend_from_slice(&slice[..taken]);
        output.consume(taken);
    }
    bytes
}
