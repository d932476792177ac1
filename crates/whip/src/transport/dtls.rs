//! DTLS 1.2 in both roles: our certificate, the check of the client's fingerprint, and the SRTP keys. Not which
//! datagrams are accepted (`gate`), not what the keys decrypt (`srtp`).

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rtc_crypto::{HashAlgorithm, RTCCryptoProvider};
use rtc_dtls::cipher_suite::CipherSuiteId;
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, ExtendedMasterSecretType, HandshakeConfig};
use rtc_dtls::crypto::Certificate;
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_dtls::extension::extension_use_srtp::SrtpProtectionProfile;
use rtc_shared::TransportProtocol;
use rtc_shared::error::Error;
use rtc_srtp::config::LABEL_EXTRACTOR_DTLS_SRTP;

use super::client_hello::{ClientHello, RECORD_HEADER};
use super::p224::WithP224;
use super::record_nonce::WithRecordNonces;

/// Time allowed from the start of the session to its keys.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Interval after which the library retransmits a flight itself, in new records. The eighth time it fails for good,
/// which is later than the limit above.
const LIBRARY_INTERVAL: Duration = Duration::from_millis(1_300);
/// Least pause before a flight is first retransmitted; it doubles each time.
const FLIGHT_INTERVAL: Duration = Duration::from_millis(120);
/// The longest such pause, which also precedes the first retransmission while the round trip is unknown (RFC 6347
/// 4.2.4.1). A flight that is repeated while the answer is on its way reaches a peer that expects something else: from
/// then on FFmpeg 8 sends one packet of media for each datagram of ours, and werift never connects.
const FLIGHT_INTERVAL_LIMIT: Duration = Duration::from_secs(1);
/// Type of the handshake message with our cookie (RFC 6347 4.3.2).
const HELLO_VERIFY_REQUEST: u8 = 3;
/// Addresses are checked before DTLS, so the library sees a single peer.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
/// AEAD_AES_128_GCM (RFC 7714 14.2).
const GCM: u16 = 0x0007;

/// Our certificate, made once per process, and the cryptography provider behind it.
#[derive(Clone)]
pub struct Identity {
    provider: Arc<dyn RTCCryptoProvider>,
    certificate: Certificate,
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

/// SRTP protection profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrtpProfile {
    /// AEAD_AES_128_GCM.
    Gcm,
    /// AES128_CM_HMAC_SHA1_80.
    Cm,
}

impl SrtpProfile {
    const fn material_len(self) -> usize {
        2 * (16 + self.salt_len())
    }

    /// The name in RFC 5764 and RFC 7714.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcm => "AEAD_AES_128_GCM",
            Self::Cm => "AES128_CM_HMAC_SHA1_80",
        }
    }

    /// Length of the master salt in bytes.
    #[must_use]
    pub const fn salt_len(self) -> usize {
        match self {
            Self::Gcm => 12,
            Self::Cm => 14,
        }
    }
}

/// Master key and salt of one direction.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    /// 16 bytes.
    pub key: Vec<u8>,
    /// 12 or 14 bytes.
    pub salt: Vec<u8>,
}

/// The result of a handshake.
#[derive(Clone, PartialEq, Eq)]
pub struct SrtpKeys {
    /// SRTP protection profile.
    pub profile: SrtpProfile,
    /// Keys for what we send.
    pub ours: MasterKey,
    /// Keys for what the client sends.
    pub theirs: MasterKey,
}

/// What happened in DTLS.
pub enum DtlsEvent {
    /// The handshake is complete and the certificate matches the offer.
    Connected(Box<SrtpKeys>),
    /// The client sent close_notify.
    Closed,
    /// The handshake failed: wrong certificate, no common cipher, or too late.
    Failed,
}

/// The DTLS association of one session.
pub struct Dtls {
    endpoint: Endpoint,
    identity: Identity,
    peer_fingerprint: [u8; 32],
    is_client: bool,
    hello: ClientHello,
    has_started: bool,
    is_connected: bool,
    deadline: Instant,
    outgoing: VecDeque<BytesMut>,
    flight: Flight,
    /// As server, when the HelloVerifyRequest was first sent.
    cookie_sent_at: Option<Instant>,
}

/// The flight we sent last. We retransmit its datagrams unchanged ourselves, because the library forgets its timer when
/// a peer repeats itself or sends half a flight, and stops after seven tries. A receiver drops records it already has;
/// a peer whose own flight was lost repeats that.
struct Flight {
    datagrams: Vec<BytesMut>,
    sent_at: Instant,
    pause: Duration,
}

impl Dtls {
    /// `is_client`: the offer was passive, so we send the ClientHello.
    #[must_use]
    pub fn new(
        identity: &Identity,
        peer_fingerprint: [u8; 32],
        is_client: bool,
        now: Instant,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(PEER, TransportProtocol::UDP, None),
            identity: identity.clone(),
            peer_fingerprint,
            is_client,
            hello: ClientHello::default(),
            has_started: false,
            is_connected: false,
            deadline: now + HANDSHAKE_LIMIT,
            outgoing: VecDeque::new(),
            flight: Flight { datagrams: Vec::new(), sent_at: now, pause: FLIGHT_INTERVAL },
            cookie_sent_at: None,
        }
    }

    /// A pair was validated: if we are the client, sends the ClientHello.
    pub fn start(&mut self, now: Instant) -> Option<DtlsEvent> {
        if self.has_started || !self.is_client {
            return None;
        }
        self.has_started = true;
        let profiles = vec![
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm,
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80,
        ];
        let outcome = self
            .configure(profiles)
            .and_then(|config| self.endpoint.connect(now, PEER, config, None));
        self.collect(now, None);
        outcome.is_err().then_some(DtlsEvent::Failed)
    }

    /// Takes a datagram that passed the gate.
    pub fn handle_datagram(&mut self, now: Instant, datagram: BytesMut) -> Vec<DtlsEvent> {
        if self.has_started {
            return self.read(now, datagram);
        }
        if self.is_client {
            return Vec::new();
        }
        let Some(hello) = self.hello.handle_datagram(datagram) else { return Vec::new() };
        // The library follows the client's order, and browsers list the slower profile first.
        let profile = if hello.profiles.contains(&GCM) {
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm
        } else {
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80
        };
        match self.configure(vec![profile]) {
            Ok(config) => self.endpoint.set_server_config(Some(config)),
            Err(_) => return vec![DtlsEvent::Failed],
        }
        self.has_started = true;
        hello.datagrams.into_iter().flat_map(|datagram| self.read(now, datagram)).collect()
    }

    fn read(&mut self, now: Instant, datagram: BytesMut) -> Vec<DtlsEvent> {
        // An error means an alert of ours or a malformed datagram: the deadline ends the handshake, not one bad packet.
        let events = self.endpoint.read(now, PEER, None, datagram).unwrap_or_default();
        self.collect(now, None);
        events.into_iter().filter_map(|event| self.handle_event(event)).collect()
    }

    /// Retransmits what is due; fails when the handshake has taken too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<DtlsEvent> {
        if self.is_connected {
            return None;
        }
        if now >= self.deadline {
            return Some(DtlsEvent::Failed);
        }
        // It fails when it has no tries left, and the deadline comes before that.
        let _ = self.endpoint.handle_timeout(PEER, now);
        self.collect(now, Some(self.flight.pause));
        if self.resend_at().is_some_and(|at| now >= at) {
            self.outgoing.extend(self.flight.datagrams.iter().cloned());
            self.flight.sent_at = now;
            self.flight.pause = (self.flight.pause * 2).min(FLIGHT_INTERVAL_LIMIT);
        }
        None
    }

    /// When [`Dtls::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_connected {
            return None;
        }
        let retransmissions = [self.endpoint.poll_timeout(&PEER), self.resend_at()];
        retransmissions.into_iter().flatten().chain([self.deadline]).min()
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<BytesMut> {
        self.outgoing.pop_front()
    }

    /// Sends close_notify; after that nothing can be read or sent. Does nothing without an association or when it is
    /// closed.
    pub fn close(&mut self, now: Instant) {
        self.endpoint.stop(now, PEER);
        self.collect(now, None);
    }

    /// Acts as if the handshake were complete: for fuzzing.
    pub(crate) const fn assume_connected(&mut self) {
        self.is_connected = true;
    }

    /// When our last flight is to be retransmitted.
    fn resend_at(&self) -> Option<Instant> {
        let has_one = !self.flight.datagrams.is_empty();
        has_one.then(|| self.flight.sent_at + self.flight.pause)
    }

    /// Queues the library's output; it becomes the last flight. `again`: the pause when the library repeats itself.
    fn collect(&mut self, now: Instant, again: Option<Duration>) {
        let mut datagrams = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit() {
            datagrams.push(transmit.message);
        }
        if !datagrams.is_empty() {
            let pause = again.unwrap_or_else(|| self.first_pause(now, &datagrams));
            self.outgoing.extend(datagrams.iter().cloned());
            self.flight = Flight { datagrams, sent_at: now, pause };
        }
    }

    /// The pause before a new flight is first retransmitted: as server, twice the time in which the client returned our
    /// cookie. As client we wait the limit: the peer computes longest before it answers our last flight.
    fn first_pause(&mut self, now: Instant, datagrams: &[BytesMut]) -> Duration {
        if self.is_client {
            return FLIGHT_INTERVAL_LIMIT;
        }
        let message = datagrams.first().and_then(|datagram| datagram.get(RECORD_HEADER));
        if message == Some(&HELLO_VERIFY_REQUEST) {
            self.cookie_sent_at.get_or_insert(now);
            return FLIGHT_INTERVAL_LIMIT;
        }
        let round_trip = self.cookie_sent_at.map_or(FLIGHT_INTERVAL_LIMIT, |at| now - at);
        (round_trip * 2).clamp(FLIGHT_INTERVAL, FLIGHT_INTERVAL_LIMIT)
    }

    fn handle_event(&mut self, event: EndpointEvent) -> Option<DtlsEvent> {
        match event {
            EndpointEvent::HandshakeComplete => {
                self.is_connected = true;
                Some(self.export_keys().map_or(DtlsEvent::Failed, DtlsEvent::Connected))
            }
            EndpointEvent::PeerClosed => Some(DtlsEvent::Closed),
            // No data channel was negotiated.
            _ => None,
        }
    }

    fn export_keys(&self) -> Option<Box<SrtpKeys>> {
        let state = self.endpoint.get_connection_state(PEER)?;
        let profile = match state.srtp_protection_profile() {
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm => SrtpProfile::Gcm,
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80 => SrtpProfile::Cm,
            _ => return None,
        };
        let material = state
            .export_keying_material(LABEL_EXTRACTOR_DTLS_SRTP, &[], profile.material_len())
            .ok()?;
        // RFC 5764 4.2: client key, server key, client salt, server salt.
        let (keys, salts) = material.as_ref().split_at_checked(32)?;
        let (client_key, server_key) = keys.split_at_checked(16)?;
        let (client_salt, server_salt) = salts.split_at_checked(profile.salt_len())?;
        let client = MasterKey { key: client_key.to_vec(), salt: client_salt.to_vec() };
        let server = MasterKey { key: server_key.to_vec(), salt: server_salt.to_vec() };
        let (ours, theirs) = if self.is_client { (client, server) } else { (server, client) };
        Some(Box::new(SrtpKeys { profile, ours, theirs }))
    }

    fn configure(
        &self,
        profiles: Vec<SrtpProtectionProfile>,
    ) -> Result<Arc<HandshakeConfig>, Error> {
        let (expected, provider) = (self.peer_fingerprint, self.identity.provider());
        let verify = move |chain: &[Vec<u8>], _: &[_]| {
            let certificate = chain.first().map_or(&[][..], |der| &der[..]);
            if sha256(provider.as_ref(), certificate) == Some(expected) {
                Ok(())
            } else {
                Err(Error::Other("the certificate does not match the offer".to_owned()))
            }
        };
        ConfigBuilder::default()
            .with_crypto_provider(WithRecordNonces::around(self.identity.provider()))
            .with_certificates(vec![self.identity.certificate.clone()])
            .with_cipher_suites(vec![CipherSuiteId::Tls_Ecdhe_Ecdsa_With_Aes_128_Gcm_Sha256])
            .with_srtp_protection_profiles(profiles)
            .with_client_auth(ClientAuthType::RequireAnyClientCert)
            .with_extended_master_secret(ExtendedMasterSecretType::Require)
            .with_insecure_skip_verify(true)
            .with_verify_peer_certificate(Some(Arc::new(verify)))
            .with_flight_interval(LIBRARY_INTERVAL)
            .build(self.is_client, None)
            .map(Arc::new)
    }
}

fn sha256(provider: &dyn RTCCryptoProvider, bytes: &[u8]) -> Option<[u8; 32]> {
    provider.crypto().hash(HashAlgorithm::Sha256, bytes).ok()?.try_into().ok()
}
