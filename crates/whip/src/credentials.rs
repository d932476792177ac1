//! What a session is identified and authenticated by: its ICE credentials and our SSRC.

use crate::transport::identity::{Identity, IdentityError};

/// The 64 characters of RFC 8839 5.4: six random bits each.
const ICE_CHARS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// 72 bits: unique among all sessions, and not guessable.
const UFRAG_LEN: usize = 12;
/// 192 bits.
const PASSWORD_LEN: usize = 32;

/// Credentials of one session, random and never logged.
#[derive(Clone)]
pub struct Credentials {
    /// `a=ice-ufrag` of the answer.
    pub ufrag: String,
    /// `a=ice-pwd` of the answer.
    pub password: String,
    /// Our SSRC in RTCP.
    pub ssrc: u32,
}

impl Credentials {
    /// Generates new credentials.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn generate(identity: &Identity) -> Result<Self, IdentityError> {
        let mut bytes = [0; UFRAG_LEN + PASSWORD_LEN + 4];
        identity.fill_random(&mut bytes)?;
        let text = |part: &[u8]| -> String {
            part.iter().map(|byte| char::from(ICE_CHARS[usize::from(byte & 63)])).collect()
        };
        let (ufrag, rest) = bytes.split_at(UFRAG_LEN);
        let (password, ssrc) = rest.split_at(PASSWORD_LEN);
        let ssrc = ssrc.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        Ok(Self { ufrag: text(ufrag), password: text(password), ssrc })
    }
}
