//! Signatures over NIST P-224, which the underlying provider does not support: FFmpeg built on GnuTLS (Debian's,
//! PyAV's) makes its DTLS certificate on that curve. Everything else is delegated.

use std::sync::Arc;

use p224::ecdsa::signature::hazmat::PrehashVerifier;
use p224::ecdsa::{Signature, VerifyingKey};
use rtc_crypto::{
    ActiveKeyExchange, AeadAlgorithm, AeadCipher, BlockCipherAlgorithm, CbcAlgorithm, CbcCipher,
    CryptoAlgorithm, CryptoError, HashAlgorithm, HmacAlgorithm, KeyExchangeAlgorithm, Mac,
    PublicKey, PublicKeyEncoding, RTCCrypto, RTCCryptoProvider, RTCRandom, SignatureScheme,
    SigningKey, StreamCipher, StreamCipherAlgorithm,
};

/// Length of an uncompressed point on the curve; no other curve in use has this length.
const POINT_BYTES: usize = 57;

/// A provider that can also verify P-224 signatures.
pub(super) struct WithP224(Arc<dyn RTCCryptoProvider>);

impl WithP224 {
    pub(super) fn around(inner: Arc<dyn RTCCryptoProvider>) -> Arc<dyn RTCCryptoProvider> {
        Arc::new(Self(inner))
    }
}

impl RTCCryptoProvider for WithP224 {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn crypto(&self) -> &dyn RTCCrypto {
        self
    }

    fn random(&self) -> &dyn RTCRandom {
        self.0.random()
    }
}

impl RTCCrypto for WithP224 {
    fn verify_signature(
        &self,
        scheme: SignatureScheme,
        public_key: PublicKey<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        // TLS 1.2 names only hash and algorithm; rtc-dtls treats "ECDSA with SHA-256" as P-256.
        let is_p224 = matches!(public_key.encoding, PublicKeyEncoding::EcUncompressedPoint)
            && public_key.bytes.len() == POINT_BYTES;
        if !is_p224 || scheme != SignatureScheme::EcdsaP256Sha256 {
            return self.0.crypto().verify_signature(scheme, public_key, message, signature);
        }
        let hash = self.hash(HashAlgorithm::Sha256, message)?;
        let refused = |_| CryptoError::InvalidSignature;
        let key = VerifyingKey::from_sec1_bytes(public_key.bytes).map_err(refused)?;
        let signature = Signature::from_der(signature).map_err(refused)?;
        key.verify_prehash(&hash, &signature).map_err(refused)
    }

    fn supports(&self, algorithm: CryptoAlgorithm) -> bool {
        self.0.crypto().supports(algorithm)
    }

    fn hash(&self, algorithm: HashAlgorithm, data: &[u8]) -> Result<Vec<u8>, CryptoError> {
        self.0.crypto().hash(algorithm, data)
    }

    fn block_encrypt(
        &self,
        algorithm: BlockCipherAlgorithm,
        key: &[u8],
        block: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.0.crypto().block_encrypt(algorithm, key, block)
    }

    fn new_hmac(&self, algorithm: HmacAlgorithm, key: &[u8]) -> Result<Box<dyn Mac>, CryptoError> {
        self.0.crypto().new_hmac(algorithm, key)
    }

    fn new_stream_cipher(
        &self,
        algorithm: StreamCipherAlgorithm,
        key: &[u8],
    ) -> Result<Box<dyn StreamCipher>, CryptoError> {
        self.0.crypto().new_stream_cipher(algorithm, key)
    }

    fn new_aead(
        &self,
        algorithm: AeadAlgorithm,
        key: &[u8],
    ) -> Result<Box<dyn AeadCipher>, CryptoError> {
        self.0.crypto().new_aead(algorithm, key)
    }

    fn new_cbc(
        &self,
        algorithm: CbcAlgorithm,
        key: &[u8],
    ) -> Result<Box<dyn CbcCipher>, CryptoError> {
        self.0.crypto().new_cbc(algorithm, key)
    }

    fn start_key_exchange(
        &self,
        algorithm: KeyExchangeAlgorithm,
    ) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        self.0.crypto().start_key_exchange(algorithm)
    }

    fn generate_signing_key(
        &self,
        scheme: SignatureScheme,
    ) -> Result<Arc<dyn SigningKey>, CryptoError> {
        self.0.crypto().generate_signing_key(scheme)
    }

    fn import_signing_key(
        &self,
        scheme: SignatureScheme,
        pkcs8_der: &[u8],
    ) -> Result<Arc<dyn SigningKey>, CryptoError> {
        self.0.crypto().import_signing_key(scheme, pkcs8_der)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `openssl dgst -sha256 -sign` with a key of `openssl ecparam -name secp224r1`.
    const POINT: &str = "0479eefd137dff04f4041185e5b1763b36ca01b612225bdc647fc53479e699702d98b06917235a5c\
        3d30ee8d15276d3788c9d678d19d111ad0";
    const SIGNATURE: &str = "303e021d008309069b20c9885e80f2a3519cb02bad4797744c295091e894311c9c021d00cca6c3d1\
        c58ae736c05e2c03f5e4743352a494fa2a6f65e421590b7e";
    const MESSAGE: &[u8] = b"key exchange";

    fn bytes(hex: &str) -> Vec<u8> {
        let pairs = hex.as_bytes().chunks(2);
        let digits = |pair| str::from_utf8(pair).expect("hexadecimal digits");
        pairs.map(|pair| u8::from_str_radix(digits(pair), 16).expect("two of them")).collect()
    }

    fn verify(message: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let provider = WithP224::around(rtc_crypto::default_provider().expect("one is built in"));
        let point = bytes(POINT);
        let key = PublicKey { encoding: PublicKeyEncoding::EcUncompressedPoint, bytes: &point };
        let scheme = SignatureScheme::EcdsaP256Sha256;
        provider.crypto().verify_signature(scheme, key, message, signature)
    }

    #[test]
    fn a_signature_is_valid_only_for_its_message() {
        assert!(verify(MESSAGE, &bytes(SIGNATURE)).is_ok());
        assert!(verify(b"another one", &bytes(SIGNATURE)).is_err());
    }

    #[test]
    fn invalid_signatures_are_rejected() {
        let mut broken = bytes(SIGNATURE);
        *broken.last_mut().expect("long") ^= 1;
        for signature in [broken, Vec::new(), vec![0x30; 62]] {
            assert!(verify(MESSAGE, &signature).is_err());
        }
    }
}
