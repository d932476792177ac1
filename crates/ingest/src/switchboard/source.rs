//! Where the frames of a stream on this worker come from.

use std::sync::Arc;
use std::time::Instant;

use super::keys::{SessionKey, StreamKey};
use super::relay::Relay;
use super::stage::Stage;
use super::timeline::Timeline;
use crate::publish::end_reason::EndReason;
use crate::transcoding::TranscoderRing;

/// The one source of a stream's frames.
pub(super) enum Source {
    /// A session of this worker publishes it, or pulls it from another node.
    Local(Box<LocalSource>),
    /// It lives on another worker and has players here.
    Remote {
        /// Carries its frames.
        relay: Arc<Relay>,
        /// The worker where it lives.
        home: usize,
        /// Whether the frames before those in the relay have arrived.
        is_seeded: bool,
    },
}

/// A stream whose publisher's frames arrive here, with everything that the publish needs besides subscribers.
pub(super) struct LocalSource {
    /// The name it is live under.
    pub(super) name: Vec<u8>,
    pub(super) stage: Stage,
    /// Its pushes.
    pub(super) pushes: Vec<SessionKey>,
    /// Transcodes Opus to AAC while a subscriber needs it.
    pub(super) transcoder: Option<Arc<TranscoderRing>>,
    pub(super) timeline: Timeline,
    /// Since when its publisher is on air.
    pub(super) since: Instant,
    /// The other publish of its name, if there is one: one of the two stands by.
    pub(super) partner: Option<StreamKey>,
}

/// The end of a publish, as its session reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) reason: EndReason,
    /// The publisher was lost and may come back.
    pub(crate) is_loss: bool,
}

impl From<EndReason> for Ending {
    fn from(reason: EndReason) -> Self {
        Self { reason, is_loss: reason.is_loss() }
    }
}

impl LocalSource {
    /// A new source.
    pub(super) fn new(name: Vec<u8>, stage: Stage, now: Instant) -> Self {
        Self {
            name,
            stage,
            pushes: Vec::new(),
            transcoder: None,
            timeline: Timeline::default(),
            since: now,
            partner: None,
        }
    }
}

impl Source {
    /// The local source, if it is one.
    pub(super) const fn local(&self) -> Option<&LocalSource> {
        match self {
            Self::Local(local) => Some(local),
            Self::Remote { .. } => None,
        }
    }

    /// See [`Source::local`].
    pub(super) const fn local_mut(&mut self) -> Option<&mut LocalSource> {
        match self {
            Self::Local(local) => Some(local),
            Self::Remote { .. } => None,
        }
    }

    /// The relay that feeds the stream from another worker, if it may be read already.
    pub(super) fn relay(&self) -> Option<&Arc<Relay>> {
        match self {
            Self::Local(_) => None,
            Self::Remote { relay, is_seeded, .. } => is_seeded.then_some(relay),
        }
    }
}
