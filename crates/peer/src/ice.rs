//! The controlling ICE agent with a single pair (RFC 8445): it sends checks until one is answered, then nominates the
//! pair and keeps it alive. Checks from servers other than ICE-lite ones are answered. Addresses are not collected or trickled: the
//! server learns our address from the check.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rtc_crypto::RTCCryptoProvider;
use rtc_stun::attributes::{
    ATTR_ICE_CONTROLLING, ATTR_PRIORITY, ATTR_USE_CANDIDATE, ATTR_USERNAME,
};
use rtc_stun::fingerprint::FINGERPRINT;
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_REQUEST, BINDING_SUCCESS, Message, Setter, TransactionId};
use rtc_stun::textattrs::TextAttribute;
use rtc_stun::xoraddr::XorMappedAddress;

/// Interval between checks until one is answered.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between checks once the pair works: consent (RFC 7675) and nomination in one.
const KEEP_INTERVAL: Duration = Duration::from_millis(2_500);
/// Outstanding checks whose answer is still accepted.
const PENDING_LIMIT: usize = 64;
/// Priority of a peer-reflexive candidate (RFC 8445 5.1.2.1).
const PRIORITY: u32 = 0x6e7f_00ff;

/// The ICE pair.
pub(crate) struct Ice {
    provider: Arc<dyn RTCCryptoProvider>,
    /// User name for checks to the server: `remote:local`.
    username: String,
    remote_password: String,
    local_password: String,
    tie_breaker: u64,
    pending: VecDeque<[u8; 12]>,
    is_answered: bool,
    next_check: Instant,
}

impl Ice {
    /// Starts the checks at `now`.
    pub(crate) fn new(
        provider: Arc<dyn RTCCryptoProvider>,
        (local_ufrag, local_password): (&str, &str),
        remote_ufrag: &str,
        remote_password: String,
        tie_breaker: u64,
        now: Instant,
    ) -> Self {
        Self {
            provider,
            username: format!("{remote_ufrag}:{local_ufrag}"),
            remote_password,
            local_password: local_password.to_owned(),
            tie_breaker,
            pending: VecDeque::new(),
            is_answered: false,
            next_check: now,
        }
    }

    /// Handles a STUN datagram; true when it is the first answer to one of our checks.
    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let mut response = Message::new();
        if response.unmarshal_binary(datagram).is_err() || response.typ != BINDING_SUCCESS {
            return false;
        }
        let TransactionId(id) = response.transaction_id;
        let Some(at) = self.pending.iter().position(|pending| *pending == id) else { return false };
        let password = self.remote_password.as_bytes();
        if MessageIntegrity::check(&mut response, password, self.provider.crypto()).is_err() {
            return false;
        }
        self.pending.remove(at);
        if self.is_answered {
            return false;
        }
        self.is_answered = true;
        // Nominates the pair immediately.
        self.next_check = now;
        true
    }

    /// The answer to a check from the server (RFC 8445 7.3), if the datagram is authenticated with our password.
    pub(crate) fn answer(&self, server: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let crypto = self.provider.crypto();
        let mut request = Message::new();
        request.unmarshal_binary(datagram).ok()?;
        if request.typ != BINDING_REQUEST {
            return None;
        }
        MessageIntegrity::check(&mut request, self.local_password.as_bytes(), crypto).ok()?;
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
            self.local_password.clone(),
            crypto,
        );
        let seen = XorMappedAddress { ip: server.ip(), port: server.port() };
        let setters: [Box<dyn Setter + '_>; 5] = [
            Box::new(request),
            Box::new(BINDING_SUCCESS),
            Box::new(seen),
            Box::new(integrity),
            Box::new(FINGERPRINT),
        ];
        let mut response = Message::new();
        response.build(&setters).ok()?;
        Some(response.raw)
    }

    /// The check to send, if one is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.next_check {
            return None;
        }
        self.next_check = now + if self.is_answered { KEEP_INTERVAL } else { CHECK_INTERVAL };
        let mut id = [0; 12];
        self.provider.random().fill(&mut id).ok()?;
        if self.pending.len() == PENDING_LIMIT {
            self.pending.pop_front();
        }
        self.pending.push_back(id);
        self.check(id)
    }

    /// When the next check is due.
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.next_check
    }

    fn check(&self, id: [u8; 12]) -> Option<Vec<u8>> {
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(
            self.remote_password.clone(),
            self.provider.crypto(),
        );
        let mut setters: Vec<Box<dyn Setter + '_>> = vec![
            Box::new(TransactionId(id)),
            Box::new(BINDING_REQUEST),
            Box::new(TextAttribute::new(ATTR_USERNAME, self.username.clone())),
            Box::new(Attribute(ATTR_PRIORITY, PRIORITY.to_be_bytes().to_vec())),
            Box::new(Attribute(ATTR_ICE_CONTROLLING, self.tie_breaker.to_be_bytes().to_vec())),
        ];
        if self.is_answered {
            setters.push(Box::new(Attribute(ATTR_USE_CANDIDATE, Vec::new())));
        }
        setters.push(Box::new(integrity));
        setters.push(Box::new(FINGERPRINT));
        let mut message = Message::new();
        message.build(&setters).ok()?;
        Some(message.raw)
    }
}

/// A STUN attribute with its value as bytes.
struct Attribute(rtc_stun::attributes::AttrType, Vec<u8>);

impl Setter for Attribute {
    fn add_to(&self, message: &mut Message) -> rtc_shared::error::Result<()> {
        message.add(self.0, &self.1);
        Ok(())
    }
}
