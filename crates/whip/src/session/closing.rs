//! The end of a session on the wire: our close_notify, its repetition because UDP may lose it, and the object that
//! answers the client's checks afterwards. Pure.

use std::time::{Duration, Instant};

use super::{State, WhipSession};
use crate::transport::path::Path;
use crate::transport::revoked::RevokedConsent;

/// Pauses before each repetition: four datagrams within a second outlast a burst of losses, and a driver can keep a
/// closed session for about a second. A receiver drops records it already has (RFC 6347 4.1.2.6).
const PAUSES: [Duration; 3] =
    [Duration::from_millis(150), Duration::from_millis(350), Duration::from_millis(500)];

/// The datagrams that are repeated, and when.
#[derive(Debug)]
pub(super) struct Closing {
    to: Path,
    datagrams: Vec<Vec<u8>>,
    repeated: usize,
    sent_at: Instant,
}

impl Closing {
    /// `datagrams` were first sent at `now`.
    pub(super) const fn new(now: Instant, to: Path, datagrams: Vec<Vec<u8>>) -> Self {
        Self { to, datagrams, repeated: 0, sent_at: now }
    }

    /// The datagrams due at `now`; none when it is too early.
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
    /// Sends close_notify and starts repeating it; [`WhipSession`] describes what the driver does next.
    pub fn close(&mut self, now: Instant) {
        if matches!(self.state, State::Closing(_) | State::Closed) {
            return;
        }
        self.dtls.close(now);
        let goodbyes: Vec<_> = std::iter::from_fn(|| self.dtls.poll_transmit()).collect();
        // Once media is protected, the client is where it sends from.
        let to = if self.media.is_started() { self.ice.selected() } else { None };
        let to = to.or_else(|| goodbyes.first().map(|(path, _)| *path));
        let datagrams: Vec<Vec<u8>> =
            goodbyes.into_iter().map(|(_, datagram)| datagram.into()).collect();
        self.state = match to {
            Some(to) if !datagrams.is_empty() => {
                self.transmits.extend(datagrams.iter().map(|datagram| (to, datagram.clone())));
                // TCP does not lose it.
                if to.is_tcp {
                    State::Closed
                } else {
                    State::Closing(Closing::new(now, to, datagrams))
                }
            }
            // No client is connected, or close_notify was already sent in reply to the client's own.
            Some(_) | None => State::Closed,
        };
    }

    /// The object that answers the client's STUN requests after the end; `None` if no client ever connected.
    #[must_use]
    pub fn revoke(&self) -> Option<RevokedConsent> {
        self.ice.revoke()
    }
}
