//! STUN binding requests authenticated with an ICE password, and signed responses to them (RFC 8445 7.3). Pure.

use std::sync::Arc;

use rtc_crypto::RTCCryptoProvider;
use rtc_stun::attributes::{ATTR_FINGERPRINT, ATTR_MESSAGE_INTEGRITY};
use rtc_stun::fingerprint::{FINGERPRINT, FingerprintAttr};
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_REQUEST, Message, MessageType, Setter};

/// What checks of one ICE generation are made with.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) ufrag: String,
    pub(super) password: String,
    /// The client's half of the user name is one of these; none if it is not known.
    pub(super) theirs: Vec<String>,
}

impl Generation {
    /// Whether both halves of a user name are those of this generation (RFC 8445 7.3).
    pub(super) fn is_named(&self, ours: &[u8], theirs: &[u8]) -> bool {
        let is_known = self.theirs.iter().any(|ufrag| ufrag.as_bytes() == theirs);
        self.ufrag.as_bytes() == ours && (is_known || self.theirs.is_empty())
    }

    /// The request in `datagram` if it is signed with our password; the caller checks the user name in it.
    pub(super) fn authenticate(
        &self,
        datagram: &[u8],
        provider: &Arc<dyn RTCCryptoProvider>,
    ) -> Option<Message> {
        let mut request = Message::new();
        request.unmarshal_binary(datagram).ok()?;
        if request.typ != BINDING_REQUEST || !request.contains(ATTR_MESSAGE_INTEGRITY) {
            return None;
        }
        let password = self.password.as_bytes();
        MessageIntegrity::check(&mut request, password, provider.crypto()).ok()?;
        // A request without a fingerprint is accepted although RFC 8445 requires one: message integrity is stronger.
        if request.contains(ATTR_FINGERPRINT) {
            FingerprintAttr.check(&request).ok()?;
        }
        Some(request)
    }

    /// A signed response of type `kind` to `request`, with one attribute.
    pub(super) fn respond(
        &self,
        request: &Message,
        kind: MessageType,
        attribute: impl Setter,
        provider: &Arc<dyn RTCCryptoProvider>,
    ) -> Option<Vec<u8>> {
        let password = self.password.clone();
        let integrity =
            MessageIntegrity::new_short_term_integrity_with_provider(password, provider.crypto());
        let setters: [Box<dyn Setter + '_>; 5] = [
            Box::new(request.clone()),
            Box::new(kind),
            Box::new(attribute),
            Box::new(integrity),
            Box::new(FINGERPRINT),
        ];
        let mut response = Message::new();
        response.build(&setters).ok()?;
        Some(response.raw)
    }
}
