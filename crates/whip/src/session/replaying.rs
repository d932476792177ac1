//! A session fed with packets from a capture: without sockets, keys or encryption, otherwise the same.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

use super::WhipSession;
use crate::sdp::Offer;
use crate::transport::dtls::{DtlsEvent, MasterKey, SrtpKeys, SrtpProfile};
use crate::transport::identity::{Identity, IdentityError};
use crate::{Credentials, Path};

impl WhipSession {
    /// A session for the offer of a capture, opened at `now`.
    ///
    /// # Errors
    /// When the system has no randomness; the credentials are needed but not used.
    pub fn replay(offer: &Offer, now: Instant) -> Result<Self, IdentityError> {
        let identity = Identity::generate()?;
        let credentials = Credentials::generate(&identity)?;
        Ok(Self::new(&identity, offer, &credentials, 0, now))
    }

    /// Acts as if ICE and DTLS had completed at `now`. The keys only protect reports that are never sent.
    pub fn replay_connected(&mut self, now: Instant) {
        let path: Path = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0).into();
        self.now = now;
        self.prove(now, path);
        let master = |fill| MasterKey { key: vec![fill; 16], salt: vec![fill; 12] };
        let keys = SrtpKeys { profile: SrtpProfile::Gcm, ours: master(1), theirs: master(2) };
        self.assume_connected(keys);
    }

    /// Takes an RTP or RTCP packet that was decrypted before it was captured.
    pub fn replay_packet(&mut self, now: Instant, packet: &[u8]) {
        if self.is_running() {
            (self.now, self.last_packet) = (now, Some(now));
            self.media.handle_opened(now, packet);
        }
    }

    /// The time of the last input, which is the time of the frames polled next.
    #[must_use]
    pub const fn last_input(&self) -> Instant {
        self.now
    }

    /// Sets the time of the frames polled next, as [`WhipSession::last_input`] returned it.
    pub const fn replay_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// Acts as if `source` had passed an ICE check; a fuzzer cannot sign one.
    pub(crate) fn prove(&mut self, now: Instant, source: Path) {
        self.ice.prove(now, source);
    }

    /// Acts as if the handshake had produced these keys; a fuzzer cannot complete one.
    pub(crate) fn assume_connected(&mut self, keys: SrtpKeys) {
        self.dtls.assume_connected();
        self.handle_dtls_event(DtlsEvent::Connected(Box::new(keys)));
    }
}
