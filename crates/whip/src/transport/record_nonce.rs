//! The explicit nonces of our DTLS records (RFC 5288 3): epoch and counter, as OpenSSL, BoringSSL and NSS use them.
//!
//! The DTLS library draws them at random, which is as secure. But a werift client first parses an encrypted alert as
//! plaintext, with the second byte of the nonce as its "description". If that is a known description (one in ten), it
//! does not decrypt the alert, and misses our close_notify. With the epoch in front, that byte is 1, which is not a
//! known description.
//!
//! The cookie of our HelloVerifyRequest comes from the same source, and is the same for all associations of a session: a
//! client that changes its path in between may return the cookie of one association to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtc_crypto::{CryptoError, RTCCrypto, RTCCryptoProvider, RTCRandom};

/// Length of an explicit nonce; the DTLS library requests random bytes of this length for nothing else.
const NONCE_BYTES: usize = 8;
/// Length of a cookie; the library requests random bytes of this length for nothing else either.
pub(super) const COOKIE_BYTES: usize = 20;
/// Records are protected from epoch 1 on; the epoch is above a 48-bit counter.
const EPOCH_ONE: u64 = 1 << 48;

/// A provider for one DTLS association.
pub(super) struct WithRecordNonces {
    inner: Arc<dyn RTCCryptoProvider>,
    cookie: [u8; COOKIE_BYTES],
    /// No key is used twice with the same nonce: an association has one sending key and one counter.
    next: AtomicU64,
}

impl WithRecordNonces {
    pub(super) fn around(
        inner: Arc<dyn RTCCryptoProvider>,
        cookie: [u8; COOKIE_BYTES],
    ) -> Arc<dyn RTCCryptoProvider> {
        Arc::new(Self { inner, cookie, next: AtomicU64::new(EPOCH_ONE) })
    }
}

impl RTCCryptoProvider for WithRecordNonces {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn crypto(&self) -> &dyn RTCCrypto {
        self.inner.crypto()
    }

    fn random(&self) -> &dyn RTCRandom {
        self
    }
}

impl RTCRandom for WithRecordNonces {
    fn fill(&self, output: &mut [u8]) -> Result<(), CryptoError> {
        match output.len() {
            NONCE_BYTES => {
                let nonce = self.next.fetch_add(1, Ordering::Relaxed);
                output.copy_from_slice(&nonce.to_be_bytes());
            }
            COOKIE_BYTES => output.copy_from_slice(&self.cookie),
            _ => self.inner.random().fill(output)?,
        }
        Ok(())
    }
}
