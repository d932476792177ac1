//! ICE of a session that has ended: requests are answered with 403, which revokes the client's consent to send (RFC
//! 7675 5.2). Pure.
//!
//! A browser shows the end of DTLS only in the state of its transport, and the end of ICE in the state of its
//! connection; without these answers that state changes only after its checks have gone unanswered for long enough.

use std::fmt;
use std::sync::Arc;

use rtc_crypto::RTCCryptoProvider;
use rtc_stun::error_code::{CODE_FORBIDDEN, ErrorCodeAttribute};
use rtc_stun::message::BINDING_ERROR;

use super::binding::Generation;
use super::user_name::user_name_of;

/// Requests examined after the end: a client stops at the first answer it gets on each of its paths.
const REQUESTS_LIMIT: u32 = 32;

/// The credentials of a session that has ended, and how many more requests they may answer.
pub struct RevokedConsent {
    provider: Arc<dyn RTCCryptoProvider>,
    generations: Vec<Generation>,
    requests_left: u32,
}

impl RevokedConsent {
    pub(super) const fn new(
        provider: Arc<dyn RTCCryptoProvider>,
        generations: Vec<Generation>,
    ) -> Self {
        Self { provider, generations, requests_left: REQUESTS_LIMIT }
    }

    /// Our halves of the accepted STUN user names.
    pub fn ufrags(&self) -> impl Iterator<Item = &str> {
        self.generations.iter().map(|generation| generation.ufrag.as_str())
    }

    /// Answers a request with our user name and valid message integrity by one response, shorter than the request.
    /// Anything else gets no reply, nor does a client that keeps asking.
    pub fn handle_request(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (ours, theirs) = user_name_of(datagram)?;
        let named = self.generations.iter().find(|own| own.is_named(ours, theirs))?;
        self.requests_left = self.requests_left.checked_sub(1)?;
        let request = named.authenticate(datagram, &self.provider)?;
        let reason = b"Forbidden".to_vec();
        let forbidden = ErrorCodeAttribute { code: CODE_FORBIDDEN, reason };
        named.respond(&request, BINDING_ERROR, forbidden, &self.provider)
    }
}

impl fmt::Debug for RevokedConsent {
    /// Omits the passwords.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RevokedConsent").finish_non_exhaustive()
    }
}
