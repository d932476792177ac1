//! ICE-lite (RFC 8445 2.5): answers STUN requests that prove they know our password, and never asks itself.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rtc_crypto::RTCCryptoProvider;
use rtc_stun::attributes::{ATTR_MESSAGE_INTEGRITY, ATTR_USE_CANDIDATE};
use rtc_stun::fingerprint::{FINGERPRINT, FingerprintAttr};
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_REQUEST, BINDING_SUCCESS, Message, Setter};
use rtc_stun::xoraddr::XorMappedAddress;

use super::path::Path;

/// A binding request has a handful of attributes.
const REQUEST_LIMIT: usize = 548;
/// Paths one session may prove; a client tries a few, then stays.
const PROVEN_LIMIT: usize = 8;
/// A client is followed to another proven path when its old one has been silent for this.
const MOVED_AFTER: Duration = Duration::from_millis(500);

const HEADER: usize = 20;
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const USERNAME: u16 = 0x0006;

/// Our half of one ICE session.
#[derive(Clone, PartialEq, Eq)]
struct Generation {
    ufrag: String,
    password: String,
}

/// What became of the paths; the driver's table follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// The client has shown there that it knows our password.
    Proven(Path),
    /// It has proven too many since.
    Forgotten(Path),
}

/// The pair of a session and its credentials, through restarts.
pub struct IceLite {
    provider: Arc<dyn RTCCryptoProvider>,
    current: Generation,
    /// The one before a restart: valid until the client has nominated a pair of the new one.
    previous: Option<Generation>,
    /// What a restart promised; the client has not used it yet, and may never.
    next: Option<Generation>,
    proven: Vec<Path>,
    selected: Option<Path>,
    /// When the client was last heard on the selected path.
    selected_heard: Option<Instant>,
    last_request: Option<Instant>,
    changes: VecDeque<PathChange>,
}

impl IceLite {
    /// A session that nobody has proven himself to yet.
    #[must_use]
    pub fn new(ufrag: String, password: String, provider: Arc<dyn RTCCryptoProvider>) -> Self {
        Self {
            provider,
            current: Generation { ufrag, password },
            previous: None,
            next: None,
            proven: Vec::new(),
            selected: None,
            selected_heard: None,
            last_request: None,
            changes: VecDeque::new(),
        }
    }

    /// The client restarts ICE (RFC 9725 4.3.3): new credentials beside the old ones, which last until the new ones are
    /// used; a restart that fails leaves everything as it was.
    pub fn restart(&mut self, ufrag: String, password: String) {
        self.next = Some(Generation { ufrag, password });
    }

    /// Our halves of the user names that are answered to.
    pub fn ufrags(&self) -> impl Iterator<Item = &str> {
        let others = self.previous.iter().chain(&self.next);
        std::iter::once(&self.current).chain(others).map(|generation| generation.ufrag.as_str())
    }

    /// Answers a request that carries our name and a valid integrity; everything else gets no byte.
    pub fn handle_request(
        &mut self,
        now: Instant,
        source: Path,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        let name = ufrag_of(datagram)?;
        let generations = [Some(&self.current), self.next.as_ref(), self.previous.as_ref()];
        let named = generations.into_iter().flatten().find(|own| own.ufrag.as_bytes() == name)?;
        let (named, is_next) = (named.clone(), self.next.as_ref() == Some(named));
        let crypto = self.provider.crypto();
        let mut request = Message::new();
        request.unmarshal_binary(datagram).ok()?;
        if request.typ != BINDING_REQUEST || !request.contains(ATTR_MESSAGE_INTEGRITY) {
            return None;
        }
        MessageIntegrity::check(&mut request, named.password.as_bytes(), crypto).ok()?;
        // A sender without a fingerprint is let through (RFC 8445 wants one): integrity says more.
        if request.contains(rtc_stun::attributes::ATTR_FINGERPRINT) {
            FingerprintAttr.check(&request).ok()?;
        }
        if is_next && let Some(next) = self.next.take() {
            self.previous = Some(std::mem::replace(&mut self.current, next));
        }
        self.note_proven(source);
        let is_nominated = request.contains(ATTR_USE_CANDIDATE);
        if named == self.current && is_nominated {
            self.previous = None;
        }
        if is_nominated && self.previous.as_ref() != Some(&named) {
            self.selected = Some(source);
        }
        self.last_request = Some(now);
        self.note_heard(now, source);
        self.answer(&request, &named.password, source.address)
    }

    /// The client was heard on a proven path, by a valid request or by media with a valid tag. One that has moved
    /// without nominating, as behind a NAT that forgot it, is followed.
    pub fn note_heard(&mut self, now: Instant, source: Path) {
        let is_silent = self.selected_heard.is_none_or(|heard| now >= heard + MOVED_AFTER);
        if self.selected.is_none() || (self.selected != Some(source) && is_silent) {
            self.selected = Some(source);
        }
        if self.selected == Some(source) {
            self.selected_heard = Some(now);
        }
    }

    /// As if `source` had sent a valid request.
    pub(crate) fn prove(&mut self, now: Instant, source: Path) {
        self.note_proven(source);
        self.note_heard(now, source);
    }

    /// Whether `source` has shown that it knows our password.
    #[must_use]
    pub fn is_proven(&self, source: Path) -> bool {
        self.proven.contains(&source)
    }

    /// Where the client is.
    #[must_use]
    pub const fn selected(&self) -> Option<Path> {
        self.selected
    }

    /// When the last valid request came.
    #[must_use]
    pub const fn last_request(&self) -> Option<Instant> {
        self.last_request
    }

    /// What became of the paths since.
    pub fn poll_change(&mut self) -> Option<PathChange> {
        self.changes.pop_front()
    }

    fn note_proven(&mut self, source: Path) {
        if self.is_proven(source) {
            return;
        }
        if self.proven.len() >= PROVEN_LIMIT
            && let Some(oldest) = self.proven.iter().position(|path| Some(*path) != self.selected)
        {
            self.changes.push_back(PathChange::Forgotten(self.proven.remove(oldest)));
        }
        self.proven.push(source);
        self.changes.push_back(PathChange::Proven(source));
    }

    fn answer(&self, request: &Message, password: &str, source: SocketAddr) -> Option<Vec<u8>> {
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
            password.to_owned(),
            self.provider.crypto(),
        );
        // A dual-stack socket writes an IPv4 client as IPv4-mapped IPv6: it is answered in its own family.
        let mapped = XorMappedAddress { ip: source.ip().to_canonical(), port: source.port() };
        let setters: [Box<dyn Setter + '_>; 5] = [
            Box::new(request.clone()),
            Box::new(BINDING_SUCCESS),
            Box::new(mapped),
            Box::new(integrity),
            Box::new(FINGERPRINT),
        ];
        let mut response = Message::new();
        response.build(&setters).ok()?;
        Some(response.raw)
    }
}

/// Our half of the USERNAME of a STUN binding request: the worker finds the session by it. Bounds checked, no
/// allocation.
#[must_use]
pub fn ufrag_of(datagram: &[u8]) -> Option<&[u8]> {
    if datagram.len() > REQUEST_LIMIT || datagram.get(..2)? != [0, 1] {
        return None;
    }
    let header = datagram.get(..HEADER)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[4..8] != MAGIC_COOKIE || length != datagram.len() - HEADER {
        return None;
    }
    let mut rest = datagram.get(HEADER..)?;
    while let Some(head) = rest.get(..4) {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let value = rest.get(4..4 + length)?;
        if u16::from_be_bytes([head[0], head[1]]) == USERNAME {
            let colon = value.iter().position(|byte| *byte == b':')?;
            return value.get(..colon);
        }
        rest = rest.get(4 + length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtc_stun::attributes::ATTR_USERNAME;
    use rtc_stun::message::TransactionId;
    use rtc_stun::textattrs::TextAttribute;

    const PASSWORD: &str = "0123456789abcdefghijklmn";

    fn provider() -> Arc<dyn RTCCryptoProvider> {
        rtc_crypto::default_provider().expect("a provider is built in")
    }

    fn address(port: u16) -> Path {
        SocketAddr::from(([127, 0, 0, 1], port)).into()
    }

    fn request(user: &str, password: &str, nominates: bool) -> Vec<u8> {
        let provider = provider();
        let mut message = Message::new();
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
            password.into(),
            provider.crypto(),
        );
        let mut setters: Vec<Box<dyn Setter + '_>> = vec![
            Box::new(TransactionId([7; 12])),
            Box::new(BINDING_REQUEST),
            Box::new(TextAttribute::new(ATTR_USERNAME, user.into())),
        ];
        if nominates {
            setters.push(Box::new(Nominate));
        }
        setters.push(Box::new(integrity));
        setters.push(Box::new(FINGERPRINT));
        message.build(&setters).expect("builds");
        message.raw
    }

    struct Nominate;

    impl Setter for Nominate {
        fn add_to(&self, message: &mut Message) -> rtc_shared::error::Result<()> {
            message.add(ATTR_USE_CANDIDATE, &[]);
            Ok(())
        }
    }

    fn ice() -> IceLite {
        IceLite::new("server".into(), PASSWORD.into(), provider())
    }

    #[test]
    fn a_valid_request_is_answered_and_proves_its_source() {
        let (mut ice, now) = (ice(), Instant::now());
        let answer =
            ice.handle_request(now, address(9), &request("server:client", PASSWORD, false));
        let mut response = Message::new();
        response.unmarshal_binary(&answer.expect("answered")).expect("valid");
        assert_eq!(response.typ, BINDING_SUCCESS);
        assert_eq!(response.transaction_id, TransactionId([7; 12]));
        let provider = provider();
        MessageIntegrity::check(&mut response, PASSWORD.as_bytes(), provider.crypto())
            .expect("signed");
        assert!(ice.is_proven(address(9)) && !ice.is_proven(address(10)));
        assert_eq!(ice.selected(), Some(address(9)));
    }

    #[test]
    fn an_ipv4_client_on_a_dual_stack_socket_is_told_its_ipv4_address() {
        use rtc_stun::message::Getter;
        let (mut ice, now) = (ice(), Instant::now());
        let source: SocketAddr = "[::ffff:198.51.100.7]:4000".parse().expect("an address");
        let datagram = request("server:client", PASSWORD, true);
        let answer = ice.handle_request(now, source.into(), &datagram).expect("answered");
        let mut response = Message::new();
        response.unmarshal_binary(&answer).expect("valid");
        let mut mapped = XorMappedAddress::default();
        mapped.get_from(&response).expect("there");
        assert_eq!((mapped.ip.to_string(), mapped.port), ("198.51.100.7".to_owned(), 4000));
        assert_eq!(ice.selected(), Some(source.into()), "packets still go to where it came from");
    }

    #[test]
    fn nomination_moves_the_pair_and_a_mere_check_does_not() {
        let (mut ice, now) = (ice(), Instant::now());
        ice.handle_request(now, address(9), &request("server:client", PASSWORD, true));
        ice.handle_request(now, address(10), &request("server:client", PASSWORD, false));
        assert_eq!(ice.selected(), Some(address(9)));
        ice.handle_request(now, address(10), &request("server:client", PASSWORD, true));
        assert_eq!(ice.selected(), Some(address(10)));
    }

    #[test]
    fn a_client_that_moved_is_followed_once_its_old_path_is_silent() {
        let (mut ice, start) = (ice(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        ice.handle_request(start, address(9), &request("server:client", PASSWORD, true));
        ice.note_heard(at(900), address(9));
        ice.handle_request(at(1000), address(10), &request("server:client", PASSWORD, false));
        assert_eq!(ice.selected(), Some(address(9)));
        ice.note_heard(at(1401), address(10));
        assert_eq!(ice.selected(), Some(address(10)));
    }

    #[test]
    fn a_restart_changes_the_pair_only_when_the_client_uses_it() {
        const NEW: &str = "abcdefghijklmnopqrstuvwx";
        let (mut ice, now) = (ice(), Instant::now());
        ice.handle_request(now, address(9), &request("server:client", PASSWORD, true));
        ice.restart("renewed".into(), NEW.into());
        // The old session goes on until the new one is proven, and until then a later restart replaces the earlier.
        assert!(
            ice.handle_request(now, address(9), &request("server:client", PASSWORD, true))
                .is_some()
        );
        ice.restart("again".into(), NEW.into());
        assert!(
            ice.handle_request(now, address(9), &request("renewed:other", NEW, true)).is_none()
        );
        assert!(
            ice.handle_request(now, address(10), &request("again:other", NEW, false)).is_some()
        );
        assert_eq!(ice.selected(), Some(address(9)));
        assert!(
            ice.handle_request(now, address(9), &request("server:client", PASSWORD, true))
                .is_some()
        );
        assert!(ice.handle_request(now, address(10), &request("again:other", NEW, true)).is_some());
        assert_eq!(ice.selected(), Some(address(10)));
        assert!(
            ice.handle_request(now, address(9), &request("server:client", PASSWORD, true))
                .is_none()
        );
        assert_eq!(ice.ufrags().collect::<Vec<_>>(), ["again"]);
    }

    #[test]
    fn many_paths_are_forgotten_but_never_the_one_in_use() {
        let (mut ice, now) = (ice(), Instant::now());
        for port in 1..=30 {
            let datagram = request("server:client", PASSWORD, port == 1);
            ice.handle_request(now, address(port), &datagram);
        }
        assert_eq!(ice.selected(), Some(address(1)));
        assert!(
            ice.is_proven(address(1)) && ice.is_proven(address(30)) && !ice.is_proven(address(2))
        );
        let changes: Vec<_> = std::iter::from_fn(|| ice.poll_change()).collect();
        let proven =
            changes.iter().filter(|change| matches!(change, PathChange::Proven(_))).count();
        assert_eq!((proven, changes.len() - proven), (30, 22));
    }

    #[test]
    fn what_does_not_know_the_password_or_is_malformed_gets_no_answer() {
        let valid = request("server:client", PASSWORD, false);
        let mut table = vec![
            request("other:client", PASSWORD, false),
            request("server:client", "wrong wrong wrong wrong", false),
            [&valid[..], &[0; 600]].concat(),
        ];
        table.extend((0..valid.len()).map(|length| valid[..length].to_vec()));
        // The fingerprint behind the integrity is not covered by it; without one a request is still valid.
        for at in 0..valid.len() - 8 {
            let mut flipped = valid.clone();
            flipped[at] ^= 0x40;
            table.push(flipped);
        }
        for datagram in table {
            let mut ice = ice();
            assert_eq!(ice.handle_request(Instant::now(), address(9), &datagram), None);
            assert!(!ice.is_proven(address(9)));
        }
    }
}
