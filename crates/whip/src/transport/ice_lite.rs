//! ICE-lite (RFC 8445 2.5): answers STUN requests that are authenticated with our password, and never sends requests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rtc_crypto::RTCCryptoProvider;
use rtc_stun::attributes::ATTR_USE_CANDIDATE;
use rtc_stun::message::{BINDING_SUCCESS, Message};
use rtc_stun::xoraddr::XorMappedAddress;

use super::binding::Generation;
use super::path::Path;
use super::revoked::RevokedConsent;
use super::user_name::user_name_of;

/// Validated paths kept per session: a client tries each of its addresses with each of ours, then stays with one pair.
const PROVEN_LIMIT: usize = 16;
/// The session switches to another validated path when the selected one has been silent for this long.
const MOVED_AFTER: Duration = Duration::from_millis(500);

/// A change in the set of validated paths; the driver updates its routes accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// An authenticated request arrived on this path. Repeated for each check: another session may have validated the same
    /// path in the meantime.
    Proven(Path),
    /// Too many other paths have been validated since.
    Forgotten(Path),
}

/// ICE state of one session: its credentials, through restarts, and the selected path.
pub struct IceLite {
    provider: Arc<dyn RTCCryptoProvider>,
    current: Generation,
    /// The generation before a restart: valid until the client has nominated a pair with the new one.
    previous: Option<Generation>,
    /// The generation offered by a restart; the client has not used it yet, and may never do so.
    next: Option<Generation>,
    proven: Vec<Path>,
    selected: Option<Path>,
    /// When the client last sent something on the selected path.
    selected_active_at: Option<Instant>,
    /// When something protected with the keys of DTLS last arrived on the selected path. A check can be relayed or
    /// repeated by anyone on its way, or made by anyone who knows the password.
    selected_media_at: Option<Instant>,
    /// A path that the client has nominated since, on which nothing protected has arrived yet.
    nominated: Option<Path>,
    last_request: Option<Instant>,
    changes: VecDeque<PathChange>,
}

impl IceLite {
    /// A session for which no path has been validated yet. `theirs`: the client's half of the user name, one of these.
    #[must_use]
    pub fn new(
        ufrag: String,
        password: String,
        theirs: Vec<String>,
        provider: Arc<dyn RTCCryptoProvider>,
    ) -> Self {
        Self {
            provider,
            current: Generation { ufrag, password, theirs },
            previous: None,
            next: None,
            proven: Vec::new(),
            selected: None,
            selected_active_at: None,
            selected_media_at: None,
            nominated: None,
            last_request: None,
            changes: VecDeque::new(),
        }
    }

    /// The client restarts ICE (RFC 9725 4.3.3): the new credentials are valid beside the old ones, which expire once
    /// the new ones are in use. A failed restart leaves everything as it was.
    pub fn restart(&mut self, ufrag: String, password: String, theirs: Vec<String>) {
        self.next = Some(Generation { ufrag, password, theirs });
    }

    /// Our halves of the accepted STUN user names.
    pub fn ufrags(&self) -> impl Iterator<Item = &str> {
        let others = self.previous.iter().chain(&self.next);
        std::iter::once(&self.current).chain(others).map(|generation| generation.ufrag.as_str())
    }

    /// The object that answers requests after the session ends; `None` if no client was ever authenticated.
    #[must_use]
    pub fn revoke(&self) -> Option<RevokedConsent> {
        self.selected?;
        let others = self.previous.iter().chain(&self.next);
        let generations = std::iter::once(&self.current).chain(others).cloned().collect();
        Some(RevokedConsent::new(self.provider.clone(), generations))
    }

    /// Answers a request with our user name and valid message integrity; anything else gets no reply.
    pub fn handle_request(
        &mut self,
        now: Instant,
        source: Path,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        let (ours, theirs) = user_name_of(datagram)?;
        let generations = [Some(&self.current), self.next.as_ref(), self.previous.as_ref()];
        let named = generations.into_iter().flatten().find(|own| own.is_named(ours, theirs))?;
        let (named, is_next) = (named.clone(), self.next.as_ref() == Some(named));
        let request = named.authenticate(datagram, &self.provider)?;
        if is_next && let Some(next) = self.next.take() {
            self.previous = Some(std::mem::replace(&mut self.current, next));
        }
        self.note_proven(source);
        let is_nominated = request.contains(ATTR_USE_CANDIDATE);
        if named == self.current && is_nominated {
            self.previous = None;
        }
        if is_nominated && self.previous.as_ref() != Some(&named) {
            self.nominate(source);
        }
        self.last_request = Some(now);
        self.note_check(now, source);
        self.answer(&request, &named, source.address)
    }

    /// Notes media with a valid tag, or the end of a DTLS handshake, on a validated path. The session follows a client
    /// to a path that it nominated, back from one on which nothing but checks arrived, and away from one that has
    /// become silent, for example because a NAT dropped its mapping.
    pub fn note_media(&mut self, now: Instant, source: Path) {
        if self.selected != Some(source) {
            let is_flowing = self.selected_media_at.is_some_and(|at| now < at + MOVED_AFTER);
            if is_flowing && self.nominated != Some(source) {
                return;
            }
            self.selected = Some(source);
            self.nominated = None;
        }
        (self.selected_media_at, self.selected_active_at) = (Some(now), Some(now));
    }

    /// Notes media with a valid tag on a path without a check.
    pub(crate) fn prove_by_media(&mut self, now: Instant, source: Path) {
        self.note_proven(source);
        self.note_media(now, source);
    }

    /// Acts as if `source` had sent a valid request.
    pub(crate) fn prove(&mut self, now: Instant, source: Path) {
        self.note_proven(source);
        self.note_check(now, source);
    }

    /// Whether an authenticated request arrived from `source`.
    #[must_use]
    pub fn is_proven(&self, source: Path) -> bool {
        self.proven.contains(&source)
    }

    /// The path on which the client is reached.
    #[must_use]
    pub const fn selected(&self) -> Option<Path> {
        self.selected
    }

    /// When the last valid request arrived.
    #[must_use]
    pub const fn last_request(&self) -> Option<Instant> {
        self.last_request
    }

    /// The next change of the validated paths.
    pub fn poll_change(&mut self) -> Option<PathChange> {
        self.changes.pop_front()
    }

    /// A path that carries media is not left for a nomination alone.
    fn nominate(&mut self, source: Path) {
        if self.selected_media_at.is_some() {
            self.nominated = (self.selected != Some(source)).then_some(source);
        } else {
            self.selected = Some(source);
        }
    }

    /// A silent path is left for one on which checks arrive, until media shows where the client is.
    fn note_check(&mut self, now: Instant, source: Path) {
        let is_silent = self.selected_active_at.is_none_or(|at| now >= at + MOVED_AFTER);
        if self.selected.is_none() || (self.selected != Some(source) && is_silent) {
            (self.selected, self.selected_media_at) = (Some(source), None);
        }
        if self.selected == Some(source) {
            self.selected_active_at = Some(now);
        }
    }

    fn note_proven(&mut self, source: Path) {
        self.changes.push_back(PathChange::Proven(source));
        if self.is_proven(source) {
            return;
        }
        if self.proven.len() >= PROVEN_LIMIT
            && let Some(oldest) = self.proven.iter().position(|path| Some(*path) != self.selected)
        {
            self.changes.push_back(PathChange::Forgotten(self.proven.remove(oldest)));
        }
        self.proven.push(source);
    }

    fn answer(&self, request: &Message, named: &Generation, source: SocketAddr) -> Option<Vec<u8>> {
        // A dual-stack socket reports an IPv4 client as IPv4-mapped IPv6; the answer uses the client's own family.
        let mapped = XorMappedAddress { ip: source.ip().to_canonical(), port: source.port() };
        named.respond(request, BINDING_SUCCESS, mapped, &self.provider)
    }
}

#[cfg(test)]
#[path = "ice_lite_tests.rs"]
mod tests;
