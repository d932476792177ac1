//! DTLS 1.2 in both roles: our certificate, the check of the client's fingerprint, and the SRTP keys. Not which
//! datagrams are accepted (`gate`), not what the keys decrypt (`srtp`).

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rtc_dtls::cipher_suite::CipherSuiteId;
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, ExtendedMasterSecretType, HandshakeConfig};
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_dtls::extension::extension_use_srtp::SrtpProtectionProfile;
use rtc_shared::TransportProtocol;
use rtc_shared::error::Error;
use rtc_srtp::config::LABEL_EXTRACTOR_DTLS_SRTP;

use super::client_hello::ClientHello;
use super::gate::RECORD_HEADER;
use super::handshake_fault::{HandshakeFault, WRONG_CERTIFICATE};
use super::identity::{Identity, sha256};
use super::record_nonce::{COOKIE_BYTES, WithRecordNonces};

/// Interval after which the library retransmits a flight itself, in new records. The eighth time it fails for good,
/// which is later than the limit for all handshakes of a session.
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
/// SRTP_AES128_CM_HMAC_SHA1_80 (RFC 5764 4.1.2).
const CM: u16 = 0x0001;
/// A fatal alert in plaintext: insufficient_security (RFC 5246 7.2).
const INSUFFICIENT_SECURITY: [u8; 15] = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 71];

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
    /// The handshake failed.
    Failed(HandshakeFault),
}

/// One DTLS association.
pub struct Dtls {
    endpoint: Endpoint,
    identity: Identity,
    /// Any of them may be that of the peer's certificate.
    fingerprints: Arc<[[u8; 32]]>,
    cookie: [u8; COOKIE_BYTES],
    is_client: bool,
    has_started: bool,
    is_connected: bool,
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
    /// `is_client`: the offer was passive, so we send the ClientHello. `cookie`: for our HelloVerifyRequest.
    #[must_use]
    pub fn new(
        identity: &Identity,
        fingerprints: Arc<[[u8; 32]]>,
        cookie: [u8; COOKIE_BYTES],
        is_client: bool,
        now: Instant,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(PEER, TransportProtocol::UDP, None),
            identity: identity.clone(),
            fingerprints,
            cookie,
            is_client,
            has_started: false,
            is_connected: false,
            outgoing: VecDeque::new(),
            flight: Flight { datagrams: Vec::new(), sent_at: now, pause: FLIGHT_INTERVAL },
            cookie_sent_at: None,
        }
    }

    /// As client, sends the ClientHello.
    pub fn start(&mut self, now: Instant) -> Option<DtlsEvent> {
        self.has_started = true;
        let profiles = vec![
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm,
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80,
        ];
        let outcome = self
            .configure(profiles)
            .and_then(|config| self.endpoint.connect(now, PEER, config, None));
        self.collect(now, None);
        outcome.is_err().then_some(DtlsEvent::Failed(HandshakeFault::Other))
    }

    /// Takes a datagram that passed the gate.
    pub fn handle_datagram(&mut self, now: Instant, datagram: BytesMut) -> Vec<DtlsEvent> {
        if self.has_started {
            return self.read(now, datagram);
        }
        let Some(hello) = ClientHello::read(&datagram) else { return Vec::new() };
        // The library follows the client's order, and browsers list the slower profile first.
        let profile = if hello.profiles.contains(&GCM) {
            SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm
        } else {
            SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80
        };
        // The library connects without SRTP when the client does not ask for it.
        if hello.is_current && !hello.profiles.iter().any(|profile| [GCM, CM].contains(profile)) {
            self.outgoing.push_back(INSUFFICIENT_SECURITY[..].into());
            return vec![DtlsEvent::Failed(HandshakeFault::NoSrtpProfile)];
        }
        match self.configure(vec![profile]) {
            Ok(config) => self.endpoint.set_server_config(Some(config)),
            Err(_) => return vec![DtlsEvent::Failed(HandshakeFault::Other)],
        }
        self.has_started = true;
        self.read(now, datagram)
    }

    fn read(&mut self, now: Instant, datagram: BytesMut) -> Vec<DtlsEvent> {
        let outcome = self.endpoint.read(now, PEER, None, datagram);
        self.collect(now, None);
        match outcome {
            Ok(events) => events.into_iter().filter_map(|event| self.handle_event(event)).collect(),
            // One bad record of a peer that has the keys.
            Err(_) if self.is_connected => Vec::new(),
            // The gate passes only messages that are whole: one of them is not acceptable.
            Err(error) => vec![DtlsEvent::Failed(HandshakeFault::of(&error))],
        }
    }

    /// Retransmits what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_connected {
            return;
        }
        // It fails when it has no tries left, and the deadline comes before that.
        let _ = self.endpoint.handle_timeout(PEER, now);
        self.collect(now, Some(self.flight.pause));
        if self.resend_at().is_some_and(|at| now >= at) {
            self.outgoing.extend(self.flight.datagrams.iter().cloned());
            self.flight.sent_at = now;
            self.flight.pause = (self.flight.pause * 2).min(FLIGHT_INTERVAL_LIMIT);
        }
    }

    /// When [`Dtls::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_connected {
            return None;
        }
        let retransmissions = [self.endpoint.poll_timeout(&PEER), self.resend_at()];
        retransmissions.into_iter().flatten().min()
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
                let failed = DtlsEvent::Failed(HandshakeFault::NoSrtpProfile);
                Some(self.export_keys().map_or(failed, DtlsEvent::Connected))
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
        let (fingerprints, provider) = (self.fingerprints.clone(), self.identity.provider());
        let verify = move |chain: &[Vec<u8>], _: &[_]| {
            let certificate = chain.first().map_or(&[][..], |der| &der[..]);
            match sha256(provider.as_ref(), certificate) {
                Some(found) if fingerprints.contains(&found) => Ok(()),
                Some(_) | None => Err(Error::Other(WRONG_CERTIFICATE.to_owned())),
            }
        };
        ConfigBuilder::default()
            .with_crypto_provider(WithRecordNonces::around(self.identity.provider(), self.cookie))
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
