//! Where the frames of a stream on this worker come from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headgate_media::Frame;
use headgate_media::transcode::AacBitrate;

use super::join_point::JoinPoint;
use super::keys::{SessionKey, StreamKey};
use super::relay::Relay;
use super::timeline::Timeline;
use crate::publish::end_reason::EndReason;
use crate::publish::hold::HoldGuard;
use crate::publish::record::PublishRecord;
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
        /// Where it lives.
        home: usize,
        /// The frames before those in the relay have come.
        is_seeded: bool,
    },
}

/// A stream whose publisher is here, with all that its publish needs besides readers.
pub(super) struct LocalSource {
    /// Reports the publish's end when it is dropped; `None` once that was reported.
    pub(super) guard: Option<PublishGuard>,
    /// The name it is live under.
    pub(super) name: Vec<u8>,
    /// Who publishes, or did.
    pub(super) publisher: Publisher,
    /// Its pushes.
    pub(super) pushes: Vec<SessionKey>,
    /// Opus becomes AAC there, while someone needs it.
    pub(super) transcoder: Option<Arc<TranscoderRing>>,
    /// Of the AAC made, its bitrate.
    pub(super) audio_bitrate: AacBitrate,
    /// The publisher is gone; readers have until then to take what waits for them.
    pub(super) draining_until: Option<Instant>,
    /// How long it is held when its publisher is lost; zero: not at all.
    pub(super) window: Duration,
    /// From the loss of a publisher to its successor's first frame.
    pub(super) interim: Option<Interim>,
    pub(super) timeline: Timeline,
}

/// Who publishes a stream of this worker.
#[derive(Clone)]
pub(super) enum Publisher {
    /// A session of this worker.
    Here(SessionKey),
    /// A session of another worker, the successor of one that was here. RTMP; its frames come by the relay.
    There { worker: usize, relay: Arc<Relay> },
}

impl Publisher {
    /// The session, if it is one of this worker.
    pub(super) const fn here(&self) -> Option<SessionKey> {
        match self {
            Self::Here(key) => Some(*key),
            Self::There { .. } => None,
        }
    }
}

/// A stream between two publishers: its readers get silence.
pub(super) struct Interim {
    /// It has no publisher, and is held until a successor is allowed or this ends it. `None`: a successor was allowed,
    /// and its media is awaited.
    pub(super) hold: Option<HoldGuard>,
    /// When a stream without a publisher ends.
    pub(super) until: Instant,
}

/// A publisher of another worker's stream, in its session's entry.
pub(super) struct Away {
    /// Where the stream lives.
    pub(super) home: usize,
    pub(super) record: Arc<PublishRecord>,
    pub(super) relay: Arc<Relay>,
    /// For a relay that lost some.
    pub(super) headers: JoinPoint,
}

impl Away {
    /// Passes a frame on to the stream's worker, which is to be woken then.
    pub(super) fn pass(&mut self, frame: &Frame) -> Option<usize> {
        let is_new = self.headers.handle_frame(frame);
        is_new.then(|| {
            self.relay.push(frame, self.headers.headers());
            self.home
        })
    }
}

/// The stream that a session publishes.
pub(super) enum Published {
    /// On this worker.
    Here(StreamKey),
    /// On the worker where the publish lived that it continues.
    There(Box<Away>),
}

/// The end of a publish, as its session tells it.
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
    /// It has no publisher, and waits for a successor.
    pub(super) fn is_held(&self) -> bool {
        self.interim.as_ref().is_some_and(|interim| interim.hold.is_some())
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

    /// The same, to be changed.
    pub(super) const fn local_mut(&mut self) -> Option<&mut LocalSource> {
        match self {
            Self::Local(local) => Some(local),
            Self::Remote { .. } => None,
        }
    }

    /// A local source whose publisher is still there.
    pub(super) fn live(&self) -> Option<&LocalSource> {
        self.local().filter(|local| local.draining_until.is_none() && !local.is_held())
    }

    /// The relay that feeds the stream from another worker, once it may be read.
    pub(super) fn relay(&self) -> Option<&Arc<Relay>> {
        match self {
            Self::Local(local) => match &local.publisher {
                Publisher::Here(_) => None,
                Publisher::There { relay, .. } => local.draining_until.is_none().then_some(relay),
            },
            Self::Remote { relay, is_seeded, .. } => is_seeded.then_some(relay),
        }
    }
}
