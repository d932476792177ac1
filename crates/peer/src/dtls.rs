//! DTLS 1.2 in either role: a temporary certificate, the check of the server's fingerprint, and the keys. Not what the
//! keys protect.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rtc_crypto::{HashAlgorithm, RTCCryptoProvider};
use rtc_dtls::config::{ClientAuthType, ConfigBuilder, ExtendedMasterSecretType, HandshakeConfig};
use rtc_dtls::crypto::Certificate;
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_dtls::extension::extension_use_srtp::SrtpProtectionProfile as Profile;
use rtc_shared::TransportProtocol;
use rtc_shared::error::Error as LibraryError;
use rtc_srtp::config::LABEL_EXTRACTOR_DTLS_SRTP;

use crate::srtp::Srtp;
use crate::{Error, Result, SrtpChoice};

/// Interval after which a browser retransmits a lost flight. The library does so seven times, in new records, and fails
/// the eighth time; it forgets its timer when the server repeats itself or sends half a flight.
const LIBRARY_INTERVAL: Duration = Duration::from_millis(1_300);
/// In between, and when the library has forgotten, the same datagrams are retransmitted after this interval, which then
/// doubles.
const FLIGHT_INTERVAL: Duration = Duration::from_millis(100);
/// There is one server and one key; the library uses the address only to tell associations apart.
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 2);

/// A certificate, and the cryptography provider behind it.
pub(crate) struct Identity {
    pub(crate) provider: Arc<dyn RTCCryptoProvider>,
    certificate: Certificate,
    pub(crate) fingerprint: [u8; 32],
}

impl Identity {
    pub(crate) fn generate() -> Result<Self> {
        let provider = rtc_crypto::default_provider().map_err(crypto)?;
        let names = vec!["peer.invalid".to_owned()];
        let certificate =
            Certificate::generate_self_signed(names, provider.crypto()).map_err(crypto)?;
        let fingerprint = certificate
            .certificate
            .first()
            .and_then(|der| sha256(provider.as_ref(), der))
            .ok_or_else(|| Error::Crypto("no certificate".to_owned()))?;
        Ok(Self { provider, certificate, fingerprint })
    }

    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.provider.random().fill(&mut bytes).map_err(crypto)?;
        Ok(bytes)
    }
}

/// The outcome of DTLS.
pub(crate) enum Outcome {
    Connected(Box<Srtp>),
    Closed,
}

/// The DTLS association with the server.
pub(crate) struct Dtls {
    endpoint: Endpoint,
    provider: Arc<dyn RTCCryptoProvider>,
    config: Arc<HandshakeConfig>,
    is_client: bool,
    is_connected: bool,
    outgoing: VecDeque<Vec<u8>>,
    flight: Vec<Vec<u8>>,
    flight_sent_at: Instant,
    pause: Duration,
}

impl Dtls {
    /// `mtu`: the size to which the library fragments handshake messages; 0 is its own default.
    pub(crate) fn new(
        identity: &Identity,
        server_fingerprint: [u8; 32],
        is_client: bool,
        srtp: SrtpChoice,
        mtu: usize,
    ) -> Result<Self> {
        let provider = identity.provider.clone();
        let verifier = provider.clone();
        let verify = move |chain: &[Vec<u8>], _: &[_]| {
            let found = chain.first().and_then(|der| sha256(verifier.as_ref(), der));
            (found == Some(server_fingerprint))
                .then_some(())
                .ok_or_else(|| LibraryError::Other("not the answer's certificate".to_owned()))
        };
        let config = ConfigBuilder::default()
            .with_crypto_provider(provider.clone())
            .with_certificates(vec![identity.certificate.clone()])
            .with_client_auth(ClientAuthType::RequireAnyClientCert)
            .with_srtp_protection_profiles(match srtp {
                SrtpChoice::Gcm => vec![Profile::Srtp_Aead_Aes_128_Gcm],
                SrtpChoice::Cm => vec![Profile::Srtp_Aes128_Cm_Hmac_Sha1_80],
                SrtpChoice::Both => {
                    vec![Profile::Srtp_Aes128_Cm_Hmac_Sha1_80, Profile::Srtp_Aead_Aes_128_Gcm]
                }
            })
            .with_extended_master_secret(ExtendedMasterSecretType::Require)
            .with_insecure_skip_verify(true)
            .with_verify_peer_certificate(Some(Arc::new(verify)))
            .with_mtu(mtu)
            .with_flight_interval(LIBRARY_INTERVAL)
            .build(is_client, None)
            .map(Arc::new)
            .map_err(|error| Error::Dtls(error.to_string()))?;
        let server_config = (!is_client).then(|| config.clone());
        let endpoint = Endpoint::new(SERVER, TransportProtocol::UDP, server_config);
        Ok(Self {
            endpoint,
            provider,
            config,
            is_client,
            is_connected: false,
            outgoing: VecDeque::new(),
            flight: Vec::new(),
            flight_sent_at: Instant::now(),
            pause: FLIGHT_INTERVAL,
        })
    }

    /// The ICE pair works: if we are the client, sends the ClientHello.
    pub(crate) fn start(&mut self, now: Instant) -> Option<Outcome> {
        if !self.is_client {
            return None;
        }
        let started = self.endpoint.connect(now, SERVER, self.config.clone(), None);
        self.collect(now, FLIGHT_INTERVAL);
        started.is_err().then_some(Outcome::Closed)
    }

    pub(crate) fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Option<Outcome> {
        let read = self.endpoint.read(now, SERVER, None, BytesMut::from(datagram));
        self.collect(now, FLIGHT_INTERVAL);
        let events = match read {
            Ok(events) => events,
            // Until there are keys, an error is an alert, ours or the server's; after that, one bad record.
            Err(_) if !self.is_connected => return Some(Outcome::Closed),
            Err(_) => return None,
        };
        events.into_iter().find_map(|event| match event {
            EndpointEvent::HandshakeComplete => {
                self.is_connected = true;
                Some(self.keys().map_or(Outcome::Closed, Outcome::Connected))
            }
            EndpointEvent::PeerClosed => Some(Outcome::Closed),
            _ => None,
        })
    }

    /// Retransmits a lost flight.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<Outcome> {
        if self.is_connected {
            return None;
        }
        let failed = self.endpoint.handle_timeout(SERVER, now).is_err();
        self.collect(now, self.pause);
        if self.resend_at().is_some_and(|at| now >= at) {
            self.outgoing.extend(self.flight.iter().cloned());
            self.flight_sent_at = now;
            self.pause *= 2;
        }
        (failed && !self.flight.is_empty()).then_some(Outcome::Closed)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.endpoint.poll_timeout(&SERVER), self.resend_at()];
        timers.into_iter().flatten().min().filter(|_| !self.is_connected)
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front()
    }

    /// When the last flight is to be retransmitted.
    fn resend_at(&self) -> Option<Instant> {
        (!self.flight.is_empty()).then(|| self.flight_sent_at + self.pause)
    }

    /// Queues the library's output; it becomes the last flight, to be retransmitted after `pause`.
    fn collect(&mut self, now: Instant, pause: Duration) {
        let datagrams: Vec<_> =
            std::iter::from_fn(|| Some(self.endpoint.poll_transmit()?.message.to_vec())).collect();
        if !datagrams.is_empty() {
            self.outgoing.extend(datagrams.iter().cloned());
            (self.flight, self.flight_sent_at, self.pause) = (datagrams, now, pause);
        }
    }

    /// Sends close_notify.
    pub(crate) fn close(&mut self, now: Instant) {
        self.endpoint.stop(now, SERVER);
        self.collect(now, FLIGHT_INTERVAL);
    }

    fn keys(&self) -> Option<Box<Srtp>> {
        let state = self.endpoint.get_connection_state(SERVER)?;
        let profile = match state.srtp_protection_profile() {
            Profile::Srtp_Aead_Aes_128_Gcm => SrtpChoice::Gcm,
            Profile::Srtp_Aes128_Cm_Hmac_Sha1_80 => SrtpChoice::Cm,
            _ => return None,
        };
        let export =
            |length| state.export_keying_material(LABEL_EXTRACTOR_DTLS_SRTP, &[], length).ok();
        Srtp::new(profile, self.is_client, self.provider.crypto(), |length| {
            export(length).map(|material| material.as_ref().to_vec())
        })
        .map(Box::new)
    }
}

fn crypto(error: impl ToString) -> Error {
    Error::Crypto(error.to_string())
}

fn sha256(provider: &dyn RTCCryptoProvider, bytes: &[u8]) -> Option<[u8; 32]> {
    provider.crypto().hash(HashAlgorithm::Sha256, bytes).ok()?.try_into().ok()
}
