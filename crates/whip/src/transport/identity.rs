//! Our certificate, and the cryptography provider behind it.

use std::sync::Arc;

use rtc_crypto::{HashAlgorithm, RTCCryptoProvider};
use rtc_dtls::crypto::Certificate;

use super::p224::WithP224;

/// Our certificate, made once per process, and the cryptography provider behind it.
#[derive(Clone)]
pub struct Identity {
    provider: Arc<dyn RTCCryptoProvider>,
    pub(super) certificate: Certificate,
    fingerprint: [u8; 32],
}

/// The certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the media certificate: {0}")]
pub struct IdentityError(String);

impl Identity {
    /// Makes a key (ECDSA P-256) and its certificate.
    ///
    /// # Errors
    /// When the cryptography provider fails.
    pub fn generate() -> Result<Self, IdentityError> {
        let provider = rtc_crypto::default_provider().map_err(|e| IdentityError(e.to_string()))?;
        let provider = WithP224::around(provider);
        let certificate =
            Certificate::generate_self_signed(vec!["headgate".to_owned()], provider.crypto())
                .map_err(|e| IdentityError(e.to_string()))?;
        let der = certificate.certificate.first().map_or(&[][..], |der| &der[..]);
        let fingerprint =
            sha256(provider.as_ref(), der).ok_or_else(|| IdentityError("no SHA-256".to_owned()))?;
        Ok(Self { provider, certificate, fingerprint })
    }

    /// SHA-256 of the certificate: `a=fingerprint` of the answer.
    #[must_use]
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// The cryptography provider.
    #[must_use]
    pub fn provider(&self) -> Arc<dyn RTCCryptoProvider> {
        self.provider.clone()
    }

    /// Fills `bytes` with unpredictable bytes.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn fill_random(&self, bytes: &mut [u8]) -> Result<(), IdentityError> {
        self.provider.random().fill(bytes).map_err(|error| IdentityError(error.to_string()))
    }
}

/// SHA-256 of `bytes`; `None` when the provider fails.
pub(super) fn sha256(provider: &dyn RTCCryptoProvider, bytes: &[u8]) -> Option<[u8; 32]> {
    provider.crypto().hash(HashAlgorithm::Sha256, bytes).ok()?.try_into().ok()
}
