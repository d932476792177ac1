//! SRTP and SRTCP with the library's contexts, one per direction.

use rtc_crypto::RTCCrypto;
use rtc_srtp::config::Config;
use rtc_srtp::context::Context;
use rtc_srtp::protection_profile::ProtectionProfile;

use crate::SrtpChoice;

/// The contexts of both directions of a connected session.
pub(crate) struct Srtp {
    profile: SrtpChoice,
    outgoing: Context,
    incoming: Context,
}

impl Srtp {
    /// `export` returns that many bytes from the DTLS exporter (RFC 5764 4.2).
    pub(crate) fn new(
        profile: SrtpChoice,
        is_client: bool,
        crypto: &dyn RTCCrypto,
        export: impl FnOnce(usize) -> Option<Vec<u8>>,
    ) -> Option<Self> {
        let library_profile = match profile {
            SrtpChoice::Gcm => ProtectionProfile::AeadAes128Gcm,
            SrtpChoice::Cm | SrtpChoice::Both => ProtectionProfile::Aes128CmHmacSha1_80,
        };
        let mut config = Config { profile: library_profile, ..Config::default() };
        let material = export(config.keying_material_len())?;
        config.set_session_keys_from_keying_material(&material, is_client).ok()?;
        let context = |key, salt| Context::new(key, salt, library_profile, None, None, crypto).ok();
        let keys = &config.keys;
        Some(Self {
            profile,
            outgoing: context(&keys.local_master_key, &keys.local_master_salt)?,
            incoming: context(&keys.remote_master_key, &keys.remote_master_salt)?,
        })
    }

    /// The negotiated profile.
    pub(crate) const fn profile(&self) -> SrtpChoice {
        self.profile
    }

    pub(crate) fn protect_rtp(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.outgoing.encrypt_rtp(packet).ok().map(Into::into)
    }

    pub(crate) fn protect_rtcp(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.outgoing.encrypt_rtcp(packet).ok().map(Into::into)
    }

    pub(crate) fn open_rtcp(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.incoming.decrypt_rtcp(packet).ok().map(Into::into)
    }

    /// For the server that the tests implement.
    #[cfg(test)]
    pub(crate) fn open_rtp(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.incoming.decrypt_rtp(packet).ok().map(Into::into)
    }
}
