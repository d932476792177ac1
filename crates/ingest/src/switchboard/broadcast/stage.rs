//! What a broadcast goes through: on air, without media after a loss, ending; or read from another worker.

use std::sync::Arc;
use std::time::Instant;

use super::super::relay::Relay;
use super::publisher::Publisher;
use crate::publish::end_reason::EndReason;
use crate::publish::hold::HoldGuard;

/// The state of a broadcast.
pub(in crate::switchboard) enum Stage {
    /// Nothing is on air: it has only a publish that stands by, or is about to begin.
    Vacant,
    /// Readers get the publisher's frames.
    OnAir(Publisher),
    /// The publisher was lost: readers get silence, and the broadcast ends at `until`.
    Held { hold: HoldGuard, until: Instant },
    /// A successor took over: readers get silence until its first frame. If it is lost before that, `until` is still
    /// the end.
    Awaited { successor: Publisher, until: Instant },
    /// No more frames come: readers have `until` to take those that wait. Then the guard of the former publish reports
    /// its end.
    Draining { _former: Option<Publisher>, until: Instant },
    /// It lives on another worker and has players here.
    Elsewhere {
        /// Carries its frames.
        relay: Arc<Relay>,
        /// The worker where it lives.
        home: usize,
        /// Whether the frames before those in the relay have arrived.
        is_seeded: bool,
        is_ended: bool,
    },
}

impl Stage {
    /// The publisher that is on air, or will be with its first frame.
    pub(in crate::switchboard) const fn running(&self) -> Option<&Publisher> {
        match self {
            Self::OnAir(publisher) | Self::Awaited { successor: publisher, .. } => Some(publisher),
            Self::Vacant | Self::Held { .. } | Self::Draining { .. } | Self::Elsewhere { .. } => {
                None
            }
        }
    }

    /// See [`Stage::running`].
    pub(super) const fn running_mut(&mut self) -> Option<&mut Publisher> {
        match self {
            Self::OnAir(publisher) | Self::Awaited { successor: publisher, .. } => Some(publisher),
            Self::Vacant | Self::Held { .. } | Self::Draining { .. } | Self::Elsewhere { .. } => {
                None
            }
        }
    }

    /// Whether nothing is on air, and no end is under way.
    pub(in crate::switchboard) const fn is_vacant(&self) -> bool {
        matches!(self, Self::Vacant)
    }

    /// Whether it has no publisher and waits for a successor.
    pub(in crate::switchboard) const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }

    /// Whether readers get silence.
    pub(super) const fn is_silent(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Awaited { .. })
    }

    pub(in crate::switchboard) const fn is_draining(&self) -> bool {
        matches!(self, Self::Draining { .. })
    }

    /// Whether no more frames come.
    pub(super) const fn is_ended(&self) -> bool {
        matches!(self, Self::Draining { .. } | Self::Elsewhere { is_ended: true, .. })
    }

    /// When a hold ends that begins now. A successor without media does not extend the time.
    pub(super) fn hold_until(&self, now: Instant) -> Instant {
        match self {
            Self::Held { until, .. } | Self::Awaited { until, .. } => *until,
            Self::OnAir(of) => now + of.window,
            Self::Vacant | Self::Draining { .. } | Self::Elsewhere { .. } => now,
        }
    }

    /// The publisher is lost: reports the end of its publish. False if there was none.
    pub(super) fn lose(&mut self, reason: EndReason, until: Instant) -> bool {
        let lost = self.take_running();
        let was_running = lost.is_some();
        if let Some(lost) = lost {
            *self = Self::Held { hold: HoldGuard::new(lost.guard, reason), until };
        }
        was_running
    }

    /// Another publish takes over; returns the one that runs on. If the successor is lost before its first frame, the
    /// end is that of the hold, or `limit`.
    pub(super) fn take_over(&mut self, successor: Publisher, limit: Instant) -> Option<Publisher> {
        let until = match self {
            Self::Held { until, .. } | Self::Awaited { until, .. } => *until,
            Self::Vacant | Self::OnAir(_) | Self::Draining { .. } | Self::Elsewhere { .. } => limit,
        };
        let record = successor.guard.record().clone();
        let former = self.take_running();
        if let Self::Held { hold, .. } = std::mem::replace(self, Self::Awaited { successor, until })
        {
            hold.end_by(&record);
        }
        former
    }

    /// The publish is on air from now on, with media.
    pub(super) fn go_on_air(&mut self) {
        if let Some(running) = self.take_running() {
            *self = Self::OnAir(running);
        }
    }

    /// No more frames come, from now on. A hold ends here. `standby` is the publish of a vacant broadcast.
    pub(super) fn drain(&mut self, until: Instant, standby: Option<Publisher>) {
        let former = self.take_running().or(standby);
        *self = Self::Draining { _former: former, until };
    }

    /// Takes the running publisher out, until the caller says what follows. Without one nothing changes.
    fn take_running(&mut self) -> Option<Publisher> {
        self.running()?;
        match std::mem::replace(self, Self::Vacant) {
            Self::OnAir(publisher) | Self::Awaited { successor: publisher, .. } => Some(publisher),
            Self::Vacant | Self::Held { .. } | Self::Draining { .. } | Self::Elsewhere { .. } => {
                None
            }
        }
    }
}
