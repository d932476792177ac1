//! ICE-lite (RFC 8445 2.5): answers STUN requests that prove they know our password, and never asks itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rtc_crypto::RTCCryptoProvider;
use rtc_stun::attributes::{ATTR_MESSAGE_INTEGRITY, ATTR_USE_CANDIDATE};
use rtc_stun::fingerprint::{FINGERPRINT, FingerprintAttr};
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_REQUEST, BINDING_SUCCESS, Message, Setter};
use rtc_stun::xoraddr::XorMappedAddress;

/// A binding request has a handful of attributes.
const REQUEST_LIMIT: usize = 548;
/// Addresses one session may prove; a client tries a few, then stays.
const PROVEN_LIMIT: usize = 8;

const HEADER: usize = 20;
const MAGIC_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const USERNAME: u16 = 0x0006;

/// The pair of a session and its credentials.
pub struct IceLite {
    ufrag: String,
    password: String,
    provider: Arc<dyn RTCCryptoProvider>,
    proven: Vec<SocketAddr>,
    selected: Option<SocketAddr>,
    last_request: Option<Instant>,
}

impl IceLite {
    /// A session that nobody has proven himself to yet.
    #[must_use]
    pub fn new(ufrag: String, password: String, provider: Arc<dyn RTCCryptoProvider>) -> Self {
        let (proven, selected, last_request) = (Vec::new(), None, None);
        Self { ufrag, password, provider, proven, selected, last_request }
    }

    /// Our half of the user name.
    #[must_use]
    pub fn ufrag(&self) -> &str {
        &self.ufrag
    }

    /// Answers a request that carries our name and a valid integrity; everything else gets no byte.
    pub fn handle_request(
        &mut self,
        now: Instant,
        source: SocketAddr,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        if ufrag_of(datagram)? != self.ufrag.as_bytes() {
            return None;
        }
        let crypto = self.provider.crypto();
        let mut request = Message::new();
        request.unmarshal_binary(datagram).ok()?;
        if request.typ != BINDING_REQUEST || !request.contains(ATTR_MESSAGE_INTEGRITY) {
            return None;
        }
        MessageIntegrity::check(&mut request, self.password.as_bytes(), crypto).ok()?;
        // A sender without a fingerprint is let through (RFC 8445 wants one): integrity says more.
        if request.contains(rtc_stun::attributes::ATTR_FINGERPRINT) {
            FingerprintAttr.check(&request).ok()?;
        }
        if !self.proven.contains(&source) {
            if self.proven.len() >= PROVEN_LIMIT {
                self.proven.remove(0);
            }
            self.proven.push(source);
        }
        if self.selected.is_none() || request.contains(ATTR_USE_CANDIDATE) {
            self.selected = Some(source);
        }
        self.last_request = Some(now);
        self.answer(&request, source)
    }

    /// Whether `source` has shown that it knows our password.
    #[must_use]
    pub fn is_proven(&self, source: SocketAddr) -> bool {
        self.proven.contains(&source)
    }

    /// Where the client is.
    #[must_use]
    pub const fn selected(&self) -> Option<SocketAddr> {
        self.selected
    }

    /// When the last valid request came.
    #[must_use]
    pub const fn last_request(&self) -> Option<Instant> {
        self.last_request
    }

    fn answer(&self, request: &Message, source: SocketAddr) -> Option<Vec<u8>> {
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
            self.password.clone(),
            self.provider.crypto(),
        );
        let mapped = XorMappedAddress { ip: source.ip(), port: source.port() };
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

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
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
    fn nomination_moves_the_pair_and_a_mere_check_does_not() {
        let (mut ice, now) = (ice(), Instant::now());
        ice.handle_request(now, address(9), &request("server:client", PASSWORD, true));
        ice.handle_request(now, address(10), &request("server:client", PASSWORD, false));
        assert_eq!(ice.selected(), Some(address(9)));
        ice.handle_request(now, address(10), &request("server:client", PASSWORD, true));
        assert_eq!(ice.selected(), Some(address(10)));
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
