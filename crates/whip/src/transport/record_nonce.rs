//! The explicit nonces of our DTLS records (RFC 5288 3): epoch and a counter, as OpenSSL, BoringSSL and NSS write them.
//!
//! The DTLS library draws them at random, which is as safe. But a werift client first reads an encrypted alert as if it
//! were in clear: its "description" is then the second byte of the nonce, and for the one in ten that is a known
//! description it does not decrypt, and misses our close_notify. Behind the epoch that byte is 1, which is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtc_crypto::{CryptoError, RTCCrypto, RTCCryptoProvider, RTCRandom};

/// Bytes of an explicit nonce: the DTLS library draws nothing else of that length.
const NONCE_BYTES: usize = 8;
/// Records are protected from epoch 1 on; its number stands above 48 bits of counter.
const EPOCH_ONE: u64 = 1 << 48;

/// A provider for one DTLS association.
pub(super) struct WithRecordNonces {
    inner: Arc<dyn RTCCryptoProvider>,
    /// No key ever sees a number twice: an association has one key for what it sends, and one counter.
    next: AtomicU64,
}

impl WithRecordNonces {
    pub(super) fn around(inner: Arc<dyn RTCCryptoProvider>) -> Arc<dyn RTCCryptoProvider> {
        Arc::new(Self { inner, next: AtomicU64::new(EPOCH_ONE) })
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
        if output.len() != NONCE_BYTES {
            return self.inner.random().fill(output);
        }
        let nonce = self.next.fetch_add(1, Ordering::Relaxed);
        output.copy_from_slice(&nonce.to_be_bytes());
        Ok(())
    }
}
