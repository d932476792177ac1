//! What a stream of this worker goes through: on air, on standby, without media after a loss, ending. What belongs to its
//! publish alone changes hands as a whole.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_transcode::AacBitrate;

use super::keys::SessionKey;
use super::message::Opening;
use crate::publish::end_reason::EndReason;
use crate::publish::hold::HoldGuard;
use crate::publish::registry::PublishGuard;
use crate::publish::upstreams::Upstream;

/// Longest interval between frames of one publish that does not count as a pause.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);
/// How long a standby must have sent frames without a pause to take over from a silent publish, so that two unsteady
/// ones do not alternate.
const STEADY_TIME: Duration = Duration::from_secs(3);

/// A publish as its stream knows it.
pub(super) struct Publication {
    /// Reports the publish's end when it is dropped.
    pub(super) guard: PublishGuard,
    /// The session that sends its frames.
    pub(super) publisher: SessionKey,
    /// Bitrate of the transcoded AAC.
    pub(super) audio_bitrate: AacBitrate,
    /// An AMF0 object for its own upstream's connect command; empty if there is none.
    pub(super) connect_info: Bytes,
    /// How long its stream is held if its publisher is lost; zero disables it.
    pub(super) window: Duration,
}

impl Opening {
    /// The publish of `publisher`, and its upstreams.
    pub(super) fn publication(self, publisher: SessionKey) -> (Publication, Vec<Upstream>) {
        let Self { guard, upstreams, audio_bitrate, connect_info, window, .. } = self;
        (Publication { guard, publisher, audio_bitrate, connect_info, window }, upstreams)
    }
}

/// The state of a stream.
pub(super) enum Stage {
    /// Readers get the publisher's frames.
    OnAir(Publication),
    /// Only previews get the publisher's frames; another publish of its name is on air, or was.
    Standby(Publication, Standby),
    /// The publisher was lost: readers get silence, and the stream ends at `until`.
    Held { hold: HoldGuard, until: Instant },
    /// A successor took over: readers get silence until its first frame. If it is lost before that, `until` is still
    /// the end.
    Awaited { successor: Publication, until: Instant },
    /// No more frames come: readers have `until` to take those that wait. Then the guard of the former publish reports
    /// its end.
    Draining { _former: Option<Publication>, until: Instant },
}

impl Stage {
    /// The running publish.
    pub(super) const fn running(&self) -> Option<&Publication> {
        match self {
            Self::OnAir(publication)
            | Self::Standby(publication, _)
            | Self::Awaited { successor: publication, .. } => Some(publication),
            Self::Held { .. } | Self::Draining { .. } => None,
        }
    }

    /// See [`Stage::running`].
    pub(super) const fn running_mut(&mut self) -> Option<&mut Publication> {
        match self {
            Self::OnAir(publication)
            | Self::Standby(publication, _)
            | Self::Awaited { successor: publication, .. } => Some(publication),
            Self::Held { .. } | Self::Draining { .. } => None,
        }
    }

    /// Whether it has no publisher and waits for a successor.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }

    /// Whether readers get silence.
    pub(super) const fn is_silent(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Awaited { .. })
    }

    pub(super) const fn is_draining(&self) -> bool {
        matches!(self, Self::Draining { .. })
    }

    pub(super) const fn standby(&self) -> Option<&Standby> {
        if let Self::Standby(_, standby) = self { Some(standby) } else { None }
    }

    pub(super) const fn standby_mut(&mut self) -> Option<&mut Standby> {
        if let Self::Standby(_, standby) = self { Some(standby) } else { None }
    }

    /// When a hold of this length ends that begins now. A successor without media does not extend the time.
    pub(super) fn hold_until(&self, now: Instant) -> Instant {
        match self {
            Self::Held { until, .. } | Self::Awaited { until, .. } => *until,
            Self::OnAir(of) | Self::Standby(of, _) => now + of.window,
            Self::Draining { .. } => now,
        }
    }

    /// The publisher is lost: reports the end of its publish. False if there was none.
    pub(super) fn lose(&mut self, reason: EndReason, until: Instant) -> bool {
        let lost = self.take_running(until);
        let was_running = lost.is_some();
        if let Some(lost) = lost {
            *self = Self::Held { hold: HoldGuard::new(lost.guard, reason), until };
        }
        was_running
    }

    /// Another publish takes over; returns the one that runs on.
    pub(super) fn take_over(
        &mut self,
        successor: Publication,
        limit: Instant,
    ) -> Option<Publication> {
        let until = match self {
            Self::Held { until, .. } | Self::Awaited { until, .. } => *until,
            Self::OnAir(_) | Self::Standby(..) | Self::Draining { .. } => limit,
        };
        let record = successor.guard.record().clone();
        let former = self.take_running(until);
        if let Self::Held { hold, .. } = std::mem::replace(self, Self::Awaited { successor, until })
        {
            hold.end_by(&record);
        }
        former
    }

    /// The publish is on air from now on, with media.
    pub(super) fn go_on_air(&mut self, now: Instant) {
        if let Some(running) = self.take_running(now) {
            *self = Self::OnAir(running);
        }
    }

    /// No more frames come, from now on. A hold ends here.
    pub(super) fn drain(&mut self, until: Instant) {
        let former = self.take_running(until);
        *self = Self::Draining { _former: former, until };
    }

    /// Takes the running publish out; then it drains until the caller says what follows. Without one nothing changes.
    fn take_running(&mut self, until: Instant) -> Option<Publication> {
        self.running()?;
        match std::mem::replace(self, Self::Draining { _former: None, until }) {
            Self::OnAir(publication)
            | Self::Standby(publication, _)
            | Self::Awaited { successor: publication, .. } => Some(publication),
            Self::Held { .. } | Self::Draining { .. } => None,
        }
    }
}

/// State of a publish that stands by.
pub(super) struct Standby {
    /// The gateway has ordered a switch to it, and a keyframe is awaited.
    pub(super) is_wanted: bool,
    newest: Instant,
    /// Since when its frames have arrived without a pause.
    steady_since: Instant,
}

impl Standby {
    /// Before its first frame.
    pub(super) const fn new(now: Instant) -> Self {
        Self { is_wanted: false, newest: now, steady_since: now }
    }

    /// Notes a frame. Returns whether frames have arrived without a pause for as long as another publish may be silent.
    pub(super) fn note_frame(&mut self, now: Instant) -> bool {
        if now > self.newest + PAUSE_LIMIT {
            self.steady_since = now;
        }
        self.newest = now;
        now >= self.steady_since + STEADY_TIME
    }
}
