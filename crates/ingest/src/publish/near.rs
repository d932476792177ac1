//! Which publishes of its name a new publish relates to, and where it lives therefore.

use std::sync::Arc;
use std::time::Instant;

use super::hold::Hold;
use super::mailbox::{Event, OnAirCause, OnAirChanged};
use super::record::{PublishRecord, StreamId};
use super::registry::{PublishGuard, Publishes};
use super::whip_record::WhipRecord;

/// The existing publishes of its name that a new publish relates to; it lives on their worker.
#[derive(Debug, Default)]
pub(crate) struct Near {
    /// The lost publish that it continues.
    held: Option<Arc<PublishRecord>>,
    /// The other publish of its name: while that is on air, it stands by.
    other: Option<Arc<PublishRecord>>,
}

impl Near {
    /// Finds those that the gateway named. If the other one has ended, the gateway is notified that this publish is on
    /// air.
    pub(crate) fn find(publishes: &Publishes, client_id: u64, hold: &Hold) -> Self {
        let held = hold.continues.and_then(|lost| publishes.find_held(lost));
        let other = hold.beside.and_then(|other| publishes.find(other));
        if hold.beside.is_some() && other.is_none() {
            let (is_on_air, cause) = (true, OnAirCause::Began);
            let changed = OnAirChanged { client_id, is_on_air, other: None, cause };
            publishes.mailbox().put(Event::OnAirChanged(changed));
        }
        Self { held, other }
    }

    /// Registers the publish; without others it lives on `worker`.
    pub(crate) fn open(
        &self,
        publishes: &Arc<Publishes>,
        client_id: u64,
        worker: usize,
        whip: Option<WhipRecord>,
        now: Instant,
    ) -> PublishGuard {
        match self.record() {
            Some(near) => publishes.open_successor(near, client_id, whip, now),
            None => publishes.open(client_id, worker, whip, now),
        }
    }

    /// The one with whose stream it lives.
    pub(crate) fn record(&self) -> Option<&PublishRecord> {
        self.held.as_deref().or(self.other.as_deref())
    }

    /// The stream that it continues.
    pub(crate) fn continues(&self) -> Option<StreamId> {
        self.held.as_ref().map(|held| held.stream)
    }

    /// The stream of the other publish.
    pub(crate) fn beside(&self) -> Option<StreamId> {
        self.other.as_ref().map(|other| other.stream)
    }
}
