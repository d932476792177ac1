//! Which publishes of its name a new publish relates to, and where it lives therefore.

use std::sync::Arc;

use super::Ingest;
use crate::publish::hold::Hold;
use crate::publish::mailbox::{Event, OnAirCause, OnAirChanged};
use crate::publish::record::{PublishRecord, StreamId};

/// The existing publishes of its name that a new publish relates to.
pub(super) struct Near {
    /// The lost publish that it continues.
    held: Option<Arc<PublishRecord>>,
    /// The other publish of its name.
    other: Option<Arc<PublishRecord>>,
}

impl Near {
    /// The stream that it continues.
    pub(super) fn continues(&self) -> Option<StreamId> {
        self.held.as_ref().map(|held| held.stream)
    }

    /// The stream of the other publish.
    pub(super) fn beside(&self) -> Option<StreamId> {
        self.other.as_ref().map(|other| other.stream)
    }

    /// The one with whose stream it lives.
    pub(super) fn record(&self) -> Option<&PublishRecord> {
        self.held.as_deref().or(self.other.as_deref())
    }
}

impl Ingest {
    /// Decides where a publish lives: with the lost publish that it continues, or with the other publish of its name.
    /// If that other one has ended, the gateway is notified that this publish is on air.
    pub(super) fn find_near(&self, client_id: u64, hold: &Hold) -> Near {
        let publishes = &self.shared.publishes;
        let held = hold.continues.and_then(|lost| publishes.find_held(lost));
        let other = hold.beside.and_then(|other| publishes.find(other));
        if hold.beside.is_some() && other.is_none() {
            let (is_on_air, cause) = (true, OnAirCause::Began);
            let changed = OnAirChanged { client_id, is_on_air, other: None, cause };
            publishes.mailbox().put(Event::OnAirChanged(changed));
        }
        Near { held, other }
    }
}
