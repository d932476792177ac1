//! The DTLS handshakes of one session: one association for each path on which a client begins, and the one that is kept.
//! Not what passes into an association (`gate`), not the handshake itself (`dtls`).
//!
//! Who knows the ICE password but not the key of the offer's certificate can begin a handshake, and cannot complete one.
//! Its association fails or waits on its own; the client's is beside it, or follows it until the deadline.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::dtls::{Dtls, DtlsEvent};
use super::gate::{Gate, is_first_flight};
use super::handshake_fault::HandshakeFault;
use super::identity::Identity;
use super::path::Path;
use super::record_nonce::COOKIE_BYTES;

/// Time allowed from the start of the session to its keys.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Associations of one session at the same time. Another one replaces the one that has been silent for longest.
const ASSOCIATIONS_LIMIT: usize = 3;
/// Associations of one session in all: each may cost a key exchange and a signature.
const TRIES_LIMIT: u32 = 16;
/// As client, time without a word from the peer after which a newly selected path gets a ClientHello of its own.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// One association, and where its peer is.
struct Association {
    path: Path,
    gate: Gate,
    dtls: Dtls,
    /// When the peer last sent something, or when the association began.
    active_at: Instant,
    /// The peer has sent something.
    has_heard: bool,
}

/// The DTLS associations of one session.
pub struct Handshakes {
    identity: Identity,
    fingerprints: Arc<[[u8; 32]]>,
    cookie: [u8; COOKIE_BYTES],
    is_client: bool,
    is_connected: bool,
    associations: Vec<Association>,
    tries: u32,
    /// Paths on which a handshake has failed.
    failed: Vec<Path>,
    /// As client, another path that has passed a check since the handshake began.
    other: Option<Path>,
    /// What to report at the deadline.
    fault: HandshakeFault,
    deadline: Instant,
    outgoing: VecDeque<(Path, BytesMut)>,
    /// Datagrams dropped by associations that no longer exist, or by none.
    dropped: u64,
}

impl Handshakes {
    /// `is_client`: the offer was passive, so we send the ClientHello. The certificate of the peer must have one of the
    /// `fingerprints`.
    #[must_use]
    pub fn new(
        identity: &Identity,
        fingerprints: &[[u8; 32]],
        is_client: bool,
        now: Instant,
    ) -> Self {
        let mut cookie = [0; COOKIE_BYTES];
        // ICE has proved the path before; the cookie proves nothing beyond that.
        let _ = identity.fill_random(&mut cookie);
        Self {
            identity: identity.clone(),
            fingerprints: fingerprints.into(),
            cookie,
            is_client,
            is_connected: false,
            associations: Vec::new(),
            tries: 0,
            failed: Vec::new(),
            other: None,
            fault: HandshakeFault::Unreachable,
            deadline: now + HANDSHAKE_LIMIT,
            outgoing: VecDeque::new(),
            dropped: 0,
        }
    }

    /// A check from `path` was valid. As client, sends a ClientHello there if no handshake is in progress, or if that
    /// one is stalled and the client has selected this path since.
    pub fn handle_check(&mut self, now: Instant, path: Path, is_selected: bool) {
        if self.fault == HandshakeFault::Unreachable {
            self.fault = HandshakeFault::Incomplete;
        }
        if !self.is_client || self.is_connected || self.failed.contains(&path) {
            return;
        }
        if let Some(current) = self.associations.first_mut() {
            if current.path == path {
                return;
            }
            self.other = Some(path);
            if !is_selected {
                return;
            }
            if !current.has_heard {
                current.path = path;
                return;
            }
            if now < current.active_at + STALLED_AFTER {
                return;
            }
            self.remove(0);
        }
        self.begin(now, path);
    }

    /// Takes a datagram from a path that has passed a check.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        path: Path,
        datagram: &[u8],
    ) -> Option<DtlsEvent> {
        let Some(at) = self.association_of(now, path, datagram) else {
            self.dropped += 1;
            return None;
        };
        let association = self.associations.get_mut(at)?;
        (association.path, association.active_at, association.has_heard) = (path, now, true);
        let admitted = association.gate.admit(datagram);
        if let Some(alert) = association.gate.alert()
            && self.fault == HandshakeFault::Incomplete
        {
            self.fault = HandshakeFault::of_alert(alert);
        }
        let events = association.dtls.handle_datagram(now, admitted?);
        self.drain(at);
        let first = events.into_iter().next()?;
        self.handle_event(now, at, first)
    }

    /// Retransmits what is due; fails when the handshake has taken too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<DtlsEvent> {
        if self.is_connected {
            return None;
        }
        if now >= self.deadline {
            return Some(DtlsEvent::Failed(self.fault));
        }
        for at in 0..self.associations.len() {
            self.associations[at].dtls.handle_timeout(now);
            self.drain(at);
        }
        None
    }

    /// When [`Handshakes::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_connected {
            return None;
        }
        let due = self.associations.iter().filter_map(|each| each.dtls.poll_timeout());
        due.chain([self.deadline]).min()
    }

    /// The next datagram to send, and its destination.
    pub fn poll_transmit(&mut self) -> Option<(Path, BytesMut)> {
        self.outgoing.pop_front()
    }

    /// Sends close_notify; after that nothing can be read or sent.
    pub fn close(&mut self, now: Instant) {
        for at in 0..self.associations.len() {
            self.associations[at].dtls.close(now);
            self.drain(at);
        }
    }

    /// Datagrams of which nothing could be used.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped + self.associations.iter().map(|each| each.gate.dropped()).sum::<u64>()
    }

    /// Acts as if a handshake were complete: for fuzzing and replays.
    pub(crate) const fn assume_connected(&mut self) {
        self.is_connected = true;
    }

    /// The association to which a datagram belongs. A client may change its path in the middle of a handshake, so a
    /// path on which none began continues the only one there is.
    fn association_of(&mut self, now: Instant, path: Path, datagram: &[u8]) -> Option<usize> {
        if let Some(at) = self.associations.iter().position(|each| each.path == path) {
            return Some(at);
        }
        let is_begun = !self.is_client && !self.is_connected && is_first_flight(datagram);
        if is_begun {
            return self.open(now, path);
        }
        let is_open = self.is_connected || !self.failed.contains(&path);
        (is_open && self.associations.len() == 1).then_some(0)
    }

    /// A new association, in place of the one that has been silent for longest if there are too many.
    fn open(&mut self, now: Instant, path: Path) -> Option<usize> {
        if self.tries >= TRIES_LIMIT {
            return None;
        }
        self.tries += 1;
        if self.associations.len() >= ASSOCIATIONS_LIMIT {
            let all = self.associations.iter().enumerate();
            let (silent, _) = all.min_by_key(|(_, each)| each.active_at)?;
            self.remove(silent);
        }
        let fingerprints = self.fingerprints.clone();
        let dtls = Dtls::new(&self.identity, fingerprints, self.cookie, self.is_client, now);
        let gate = Gate::new(self.is_client);
        self.associations.push(Association { path, gate, dtls, active_at: now, has_heard: false });
        Some(self.associations.len() - 1)
    }

    /// As client, begins a handshake on `path`.
    fn begin(&mut self, now: Instant, path: Path) {
        let Some(at) = self.open(now, path) else { return };
        self.other = None;
        let failed = self.associations.get_mut(at).and_then(|each| each.dtls.start(now));
        self.drain(at);
        if failed.is_some() {
            self.fault = HandshakeFault::Other;
            self.remove(at);
        }
    }

    /// Keeps the association that is connected and gives up one that failed, which ends nothing.
    fn handle_event(&mut self, now: Instant, at: usize, event: DtlsEvent) -> Option<DtlsEvent> {
        match event {
            DtlsEvent::Connected(keys) => {
                self.is_connected = true;
                let mut kept = self.associations.swap_remove(at);
                kept.gate.complete();
                while let Some(other) = self.associations.pop() {
                    self.dropped += other.gate.dropped();
                }
                self.associations.push(kept);
                Some(DtlsEvent::Connected(keys))
            }
            DtlsEvent::Closed => Some(DtlsEvent::Closed),
            DtlsEvent::Failed(fault) => {
                self.fault = fault;
                let failed = self.associations.get(at)?.path;
                self.remove(at);
                self.failed.push(failed);
                if self.is_client
                    && let Some(other) =
                        self.other.take().filter(|path| !self.failed.contains(path))
                {
                    self.begin(now, other);
                }
                None
            }
        }
    }

    fn remove(&mut self, at: usize) {
        self.dropped += self.associations.swap_remove(at).gate.dropped();
    }

    fn drain(&mut self, at: usize) {
        let Some(association) = self.associations.get_mut(at) else { return };
        while let Some(datagram) = association.dtls.poll_transmit() {
            self.outgoing.push_back((association.path, datagram));
        }
    }
}
