//! Where the frames of a stream on this worker come from.

use std::sync::Arc;
use std::time::Instant;

use headgate_media::transcode::AacBitrate;

use super::keys::SessionKey;
use super::relay::Relay;
use crate::publish::registry::PublishGuard;
use crate::transcoding::TranscoderRing;

/// The one feeder of a stream.
pub(super) enum Source {
    /// A session of this worker publishes it, or pulls it from another node.
    Local(Box<LocalSource>),
    /// It lives on another worker and has players here.
    Remote {
        /// Its frames.
        relay: Arc<Relay>,
        /// The frames before those in the relay have come.
        is_seeded: bool,
    },
}

/// A stream whose publisher is here, with all that its publish needs besides readers.
pub(super) struct LocalSource {
    /// Reports the publish's end when it is dropped.
    pub(super) guard: PublishGuard,
    /// The name it is live under.
    pub(super) name: Vec<u8>,
    /// Who publishes.
    pub(super) publisher: SessionKey,
    /// Its pushes.
    pub(super) pushes: Vec<SessionKey>,
    /// Opus becomes AAC there, while someone needs it.
    pub(super) transcoder: Option<Arc<TranscoderRing>>,
    /// Of the AAC made, its bitrate.
    pub(super) audio_bitrate: AacBitrate,
    /// The publisher is gone; readers have until then to take what waits for them.
    pub(super) draining_until: Option<Instant>,
}

impl Source {
    /// The local source, if it is one.
    pub(super) const fn local(&self) -> Option<&LocalSource> {
        match self {
            Self::Local(local) => Some(local),
            Self::Remote { .. } => None,
        }
    }

    /// The same, to be changed.
    pub(super) const fn local_mut(&mut self) -> Option<&mut LocalSource> {
        match self {
            Self::Local(local) => Some(local),
            Self::Remote { .. } => None,
        }
    }

    /// A local source whose publisher is still there.
    pub(super) fn live(&self) -> Option<&LocalSource> {
        self.local().filter(|local| local.draining_until.is_none())
    }
}
