//! Where the frames of a stream on this worker come from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
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
use crate::transcoding::{AUDIO_BITRATE, TranscoderRing};

/// Frames of one publish that are further apart than this have a pause between them.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);
/// Of a publish that takes over from a silent one frames have come for so long: two that are as slow do not take turns.
const STEADY_TIME: Duration = Duration::from_secs(3);

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
    /// An AMF0 object for its own upstream's connect command; empty for none.
    pub(super) connect_info: Bytes,
    /// The publisher is gone; readers have until then to take what waits for them.
    pub(super) draining_until: Option<Instant>,
    /// How long it is held when its publisher is lost; zero: not at all.
    pub(super) window: Duration,
    /// From the loss of a publisher to its successor's first frame.
    pub(super) interim: Option<Interim>,
    pub(super) timeline: Timeline,
    /// Since when its publisher is on air.
    pub(super) since: Instant,
    /// The other publish of its name, if there is one: one of the two stands by.
    pub(super) partner: Option<StreamKey>,
    /// Its publisher stands by: nobody gets anything of it but previews. `None`: it is on air.
    pub(super) standby: Option<Standby>,
}

/// A publish that waits to take over.
pub(super) struct Standby {
    /// The gateway wants it on air, and a keyframe is awaited.
    pub(super) is_wanted: bool,
    newest: Instant,
    /// Since then its frames came without a pause.
    steady_since: Instant,
}

impl Standby {
    /// One of which nothing has come.
    pub(super) const fn new(now: Instant) -> Self {
        Self { is_wanted: false, newest: now, steady_since: now }
    }

    /// A frame has come. Whether frames have come without a pause for as long as another publish may be silent.
    pub(super) fn note_frame(&mut self, now: Instant) -> bool {
        if now > self.newest + PAUSE_LIMIT {
            self.steady_since = now;
        }
        self.newest = now;
        now >= self.steady_since + STEADY_TIME
    }
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
    /// One without a publish, as it is when it begins.
    pub(super) fn new(publisher: Publisher, now: Instant) -> Self {
        Self {
            guard: None,
            name: Vec::new(),
            publisher,
            pushes: Vec::new(),
            transcoder: None,
            audio_bitrate: AUDIO_BITRATE,
            connect_info: Bytes::new(),
            draining_until: None,
            window: Duration::ZERO,
            interim: None,
            timeline: Timeline::default(),
            since: now,
            partner: None,
            standby: None,
        }
    }

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
