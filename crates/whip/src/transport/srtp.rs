//! Decrypts SRTP and SRTCP in place, in one pass per packet without allocation; the library protects our own reports.
//!
//! The library's own decryption accepts SRTCP flagged as unencrypted without checking its tag, and keeps state for
//! every sender that a forged packet names. Sources: RFC 3711, RFC 7714.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use bytes::BytesMut;
use rtc_crypto::{BlockCipherAlgorithm, RTCCryptoProvider};
use rtc_srtp::context::Context;
use rtc_srtp::protection_profile::ProtectionProfile;

use super::dtls::{MasterKey, SrtpKeys, SrtpProfile};
use crate::rtp::{RtpHeader, step_to};

/// Packets that may arrive late and can still be checked for replay.
const REPLAY_WINDOW: u64 = 1024;
const REPLAY_WORDS: usize = (REPLAY_WINDOW / 64) as usize;
/// Sources whose state is kept: two tracks, their layers and retransmissions, and new ones when a browser replaces
/// them. When full, the least recently used is dropped with its window, after which only that sender's packets can be
/// replayed.
const SSRC_LIMIT: usize = 16;
const GCM_TAG: usize = 16;
const CM_TAG: usize = 10;

/// The header of an RTCP packet up to its SSRC, which is not encrypted.
const RTCP_HEADER: usize = 8;
/// The E flag and the index at the end of an SRTCP packet.
const SRTCP_INDEX: usize = 4;

// RFC 3711 4.3.2; the labels for SRTCP are these plus three.
const LABEL_ENCRYPTION: u8 = 0;
const LABEL_AUTHENTICATION: u8 = 1;
const LABEL_SALT: u8 = 2;
const SRTCP_LABELS: u8 = 3;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Not an RTP packet.
    Malformed,
    /// Received before, or too old to tell.
    Replayed,
    /// The authentication tag is wrong.
    Forged,
}

#[allow(
    clippy::large_enum_variant,
    reason = "the larger one is what browsers agree on; one per session"
)]
enum Cipher {
    Gcm { key: LessSafeKey, salt: [u8; 12] },
    Cm { key: EncryptingKey, authentication: hmac::Key, salt: [u8; 16] },
}

/// The replay state of one sender (RFC 3711 3.3.1, 3.3.2).
struct Sender {
    ssrc: u32,
    highest: u64,
    window: [u64; REPLAY_WORDS],
    last_used: u64,
}

/// The senders of one kind of packet (RTP or RTCP).
#[derive(Default)]
struct Senders {
    known: Vec<Sender>,
    /// Counts authenticated packets, to find the least recently used sender.
    uses: u64,
}

/// Decrypts what the client sends, and protects our reports.
pub struct Srtp {
    media: Cipher,
    media_senders: Senders,
    reports: Cipher,
    report_senders: Senders,
    outgoing: Context,
}

impl Srtp {
    /// Derives the session keys from those of the handshake. `None` when the cryptography provider rejects them.
    #[must_use]
    pub fn new(keys: &SrtpKeys, provider: &Arc<dyn RTCCryptoProvider>) -> Option<Self> {
        let profile = match keys.profile {
            SrtpProfile::Gcm => ProtectionProfile::AeadAes128Gcm,
            SrtpProfile::Cm => ProtectionProfile::Aes128CmHmacSha1_80,
        };
        let MasterKey { key, salt } = &keys.ours;
        let outgoing = Context::new(key, salt, profile, None, None, provider.crypto()).ok()?;
        let cipher = |labels| Cipher::new(keys.profile, &keys.theirs, labels, provider.as_ref());
        Some(Self {
            media: cipher(0)?,
            media_senders: Senders::default(),
            reports: cipher(SRTCP_LABELS)?,
            report_senders: Senders::default(),
            outgoing,
        })
    }

    /// Decrypts an RTP packet in place and returns its length without the tag.
    ///
    /// # Errors
    /// Why the packet is to be dropped; its contents are then undefined.
    pub fn open(&mut self, packet: &mut [u8]) -> Result<usize, Rejected> {
        let (header, header_len) = RtpHeader::read_clear(packet).ok_or(Rejected::Malformed)?;
        let index = self.media_senders.index_of(header.ssrc, |sender| {
            // RFC 3711 3.3.1 divides the numbers in halves; a number that would be a replay is never one behind.
            let step = step_to(sender.highest, header.sequence, REPLAY_WINDOW);
            sender.highest.checked_add_signed(step)
        });
        let index = index?.unwrap_or_else(|| u64::from(header.sequence));
        let length = self.media.open(packet, header_len, header.ssrc, index)?;
        self.media_senders.note(header.ssrc, index);
        Ok(length)
    }

    /// Decrypts an RTCP packet in place and returns its length without index and tag.
    ///
    /// # Errors
    /// As [`Srtp::open`].
    pub fn open_rtcp(&mut self, packet: &mut [u8]) -> Result<usize, Rejected> {
        let &[_, _, _, _, s0, s1, s2, s3, ..] = &*packet else { return Err(Rejected::Malformed) };
        let ssrc = u32::from_be_bytes([s0, s1, s2, s3]);
        let index = self.reports.srtcp_index(packet)?;
        let _ = self.report_senders.index_of(ssrc, |_| Some(index))?;
        let length = self.reports.open_rtcp(packet, ssrc, index)?;
        self.report_senders.note(ssrc, index);
        Ok(length)
    }

    /// Protects an RTP packet. We send none; the fuzz bodies do, with the keys swapped.
    #[doc(hidden)]
    pub fn protect_rtp(&mut self, packet: &[u8]) -> Option<BytesMut> {
        self.outgoing.encrypt_rtp(packet).ok()
    }

    /// Protects an RTCP packet.
    pub fn protect_rtcp(&mut self, packet: &[u8]) -> Option<BytesMut> {
        self.outgoing.encrypt_rtcp(packet).ok()
    }
}

impl Cipher {
    fn new(
        profile: SrtpProfile,
        master: &MasterKey,
        labels: u8,
        provider: &dyn RTCCryptoProvider,
    ) -> Option<Self> {
        let derive = |label, length| derive(provider, master, labels + label, length);
        let key = derive(LABEL_ENCRYPTION, 16)?;
        let salt = derive(LABEL_SALT, profile.salt_len())?;
        match profile {
            SrtpProfile::Gcm => {
                let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
                Some(Self::Gcm { key, salt: salt.try_into().ok()? })
            }
            SrtpProfile::Cm => {
                let authentication = derive(LABEL_AUTHENTICATION, 20)?;
                let algorithm = hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY;
                let mut padded = [0; 16];
                padded.get_mut(..salt.len())?.copy_from_slice(&salt);
                Some(Self::Cm {
                    key: EncryptingKey::ctr(UnboundCipherKey::new(&AES_128, &key).ok()?).ok()?,
                    authentication: hmac::Key::new(algorithm, &authentication),
                    salt: padded,
                })
            }
        }
    }

    fn open(
        &self,
        packet: &mut [u8],
        header_len: usize,
        ssrc: u32,
        index: u64,
    ) -> Result<usize, Rejected> {
        let length = packet.len().checked_sub(self.tag_len()).ok_or(Rejected::Malformed)?;
        if length < header_len {
            return Err(Rejected::Malformed);
        }
        match self {
            Self::Gcm { key, salt } => {
                let (header, body) = packet.split_at_mut(header_len);
                let nonce = gcm_nonce(salt, ssrc, index);
                key.open_in_place(nonce, Aad::from(&*header), body)
                    .map_err(|_| Rejected::Forged)?;
            }
            Self::Cm { key, authentication, salt } => {
                let (covered, tag) = packet.split_at_mut(length);
                let rollover = ((index >> 16) as u32).to_be_bytes();
                check_tag(authentication, &[covered, &rollover], tag)?;
                let body = covered.get_mut(header_len..).unwrap_or_default();
                apply_cm(key, salt, ssrc, index, body)?;
            }
        }
        Ok(length)
    }

    /// The 31-bit index; an unencrypted packet is rejected (RFC 5764 requires encryption).
    fn srtcp_index(&self, packet: &[u8]) -> Result<u64, Rejected> {
        let least = RTCP_HEADER + SRTCP_INDEX + self.tag_len();
        let behind = match self {
            Self::Gcm { .. } => 0,
            Self::Cm { .. } => CM_TAG,
        };
        let end = packet.len().checked_sub(behind).filter(|_| packet.len() >= least);
        let end = end.ok_or(Rejected::Malformed)?;
        let word = packet.get(end - SRTCP_INDEX..end).unwrap_or_default();
        let word = u32::from_be_bytes(word.try_into().map_err(|_| Rejected::Malformed)?);
        if word >> 31 == 0 {
            return Err(Rejected::Forged);
        }
        Ok(u64::from(word & 0x7fff_ffff))
    }

    /// `packet` has room for header, index and tag, as [`Cipher::srtcp_index`] has checked.
    fn open_rtcp(&self, packet: &mut [u8], ssrc: u32, index: u64) -> Result<usize, Rejected> {
        let length = packet.len() - SRTCP_INDEX - self.tag_len();
        match self {
            Self::Gcm { key, salt } => {
                // RFC 7714 9.2: the header and the index word are authenticated; the tag precedes the word.
                let (sealed, word) = packet.split_at_mut(length + GCM_TAG);
                let (header, body) = sealed.split_at_mut(RTCP_HEADER);
                let mut covered = [0; RTCP_HEADER + SRTCP_INDEX];
                covered[..RTCP_HEADER].copy_from_slice(header);
                covered[RTCP_HEADER..].copy_from_slice(word);
                let nonce = gcm_nonce(salt, ssrc, index);
                key.open_in_place(nonce, Aad::from(covered), body).map_err(|_| Rejected::Forged)?;
            }
            Self::Cm { key, authentication, salt } => {
                let (covered, tag) = packet.split_at_mut(length + SRTCP_INDEX);
                check_tag(authentication, &[covered], tag)?;
                let body = covered.get_mut(RTCP_HEADER..length).unwrap_or_default();
                apply_cm(key, salt, ssrc, index, body)?;
            }
        }
        Ok(length)
    }

    const fn tag_len(&self) -> usize {
        match self {
            Self::Gcm { .. } => GCM_TAG,
            Self::Cm { .. } => CM_TAG,
        }
    }
}

/// RFC 7714 8.1: two zero bytes, SSRC and 48-bit index, XORed with the salt.
fn gcm_nonce(salt: &[u8; 12], ssrc: u32, index: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[2..6].copy_from_slice(&ssrc.to_be_bytes());
    nonce[6..].copy_from_slice(&index.to_be_bytes()[2..]);
    for (byte, salt) in nonce.iter_mut().zip(salt) {
        *byte ^= salt;
    }
    Nonce::assume_unique_for_key(nonce)
}

fn check_tag(key: &hmac::Key, parts: &[&[u8]], tag: &[u8]) -> Result<(), Rejected> {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    let expected = context.sign();
    let expected = expected.as_ref().get(..CM_TAG).unwrap_or_default();
    verify_slices_are_equal(expected, tag).map_err(|_| Rejected::Forged)
}

/// RFC 3711 4.1.1: the key stream from salt · 2^16 ⊕ SSRC · 2^64 ⊕ index · 2^16.
fn apply_cm(
    key: &EncryptingKey,
    salt: &[u8; 16],
    ssrc: u32,
    index: u64,
    body: &mut [u8],
) -> Result<(), Rejected> {
    let mut iv = *salt;
    for (byte, part) in iv[4..8].iter_mut().zip(ssrc.to_be_bytes()) {
        *byte ^= part;
    }
    for (byte, part) in iv[8..14].iter_mut().zip(&index.to_be_bytes()[2..]) {
        *byte ^= part;
    }
    key.less_safe_encrypt(body, EncryptionContext::Iv128(FixedLength::from(iv)))
        .map(|_| ())
        .map_err(|_| Rejected::Forged)
}

impl Senders {
    /// The packet's index, computed by `index` for a known sender and checked for replay; `None` for a new sender.
    fn index_of(
        &self,
        ssrc: u32,
        index: impl FnOnce(&Sender) -> Option<u64>,
    ) -> Result<Option<u64>, Rejected> {
        match self.known.iter().find(|sender| sender.ssrc == ssrc) {
            Some(sender) => {
                let index = index(sender).ok_or(Rejected::Replayed)?;
                if sender.is_replay(index) { Err(Rejected::Replayed) } else { Ok(Some(index)) }
            }
            None => Ok(None),
        }
    }

    /// Called with authenticated packets only: nothing else may move a window or add a sender.
    fn note(&mut self, ssrc: u32, index: u64) {
        self.uses += 1;
        let last_used = self.uses;
        if let Some(sender) = self.known.iter_mut().find(|sender| sender.ssrc == ssrc) {
            sender.last_used = last_used;
            sender.note(index);
            return;
        }
        let mut sender = Sender { ssrc, highest: index, window: [0; REPLAY_WORDS], last_used };
        sender.note(index);
        let is_full = self.known.len() >= SSRC_LIMIT;
        match self.known.iter_mut().min_by_key(|known| known.last_used) {
            Some(oldest) if is_full => *oldest = sender,
            Some(_) | None => self.known.push(sender),
        }
    }
}

impl Sender {
    /// Received before, or too old to tell.
    fn is_replay(&self, index: u64) -> bool {
        let is_new = index > self.highest;
        !is_new && (self.highest - index >= REPLAY_WINDOW || self.bit(index))
    }

    fn bit(&self, index: u64) -> bool {
        let at = index % REPLAY_WINDOW;
        self.window.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn note(&mut self, index: u64) {
        if index > self.highest {
            if index - self.highest >= REPLAY_WINDOW {
                self.window = [0; REPLAY_WORDS];
            } else {
                for passed in self.highest + 1..=index {
                    self.set(passed, false);
                }
            }
            self.highest = index;
        }
        self.set(index, true);
    }

    fn set(&mut self, index: u64, seen: bool) {
        let at = index % REPLAY_WINDOW;
        if let Some(word) = self.window.get_mut((at / 64) as usize) {
            *word = *word & !(1 << (at % 64)) | u64::from(seen) << (at % 64);
        }
    }
}

/// AES-CM key derivation with a key derivation rate of 0 (RFC 3711 4.3.1, 4.3.3).
fn derive(
    provider: &dyn RTCCryptoProvider,
    master: &MasterKey,
    label: u8,
    length: usize,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for counter in 0_u8..2 {
        let mut block = [0_u8; 16];
        block.get_mut(..master.salt.len())?.copy_from_slice(&master.salt);
        block[7] ^= label;
        block[15] = counter;
        provider
            .crypto()
            .block_encrypt(BlockCipherAlgorithm::Aes128, &master.key, &mut block)
            .ok()?;
        out.extend_from_slice(&block);
    }
    out.truncate(length);
    Some(out)
}

#[cfg(test)]
#[path = "srtp_tests.rs"]
mod tests;
