//! The end of a session on the wire: our close_notify and its repetition, for UDP may lose it, and what answers the
//! client's checks afterwards. Pure.

use std::time::{Duration, Instant};

use super::WhipSession;
use crate::transport::path::Path;
use crate::transport::revoked::RevokedConsent;

/// Pauses before each repetition: four datagrams within a second outlast a burst of losses, and a second is what a driver
/// can keep a closed session for. A receiver drops those records that it has (RFC 6347 4.1.2.6).
const PAUSES: [Duration; 3] =
    [Duration::from_millis(150), Duration::from_millis(350), Duration::from_millis(500)];

/// What is sent again, and when.
#[derive(Debug)]
pub(super) struct Closing {
    to: Path,
    datagrams: Vec<Vec<u8>>,
    repeated: usize,
    sent_at: Instant,
}

impl Closing {
    /// `datagrams` went out for the first time at `now`.
    pub(super) const fn new(now: Instant, to: Path, datagrams: Vec<Vec<u8>>) -> Self {
        Self { to, datagrams, repeated: 0, sent_at: now }
    }

    /// What is due now; nothing when it is too early.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> impl Iterator<Item = (Path, Vec<u8>)> {
        let is_due = self.poll_timeout().is_some_and(|at| now >= at);
        if is_due {
            self.repeated += 1;
            self.sent_at = now;
        }
        let datagrams = self.datagrams.iter().filter(move |_| is_due);
        datagrams.map(|datagram| (self.to, datagram.clone()))
    }

    /// When the next repetition is due; `None` after the last.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        PAUSES.get(self.repeated).map(|pause| self.sent_at + *pause)
    }
}

impl WhipSession {
    /// What answers the client's STUN requests from the end on; `None` when no client ever came.
    #[must_use]
    pub fn revoke(&self) -> Option<RevokedConsent> {
        self.ice.revoke()
    }
}
