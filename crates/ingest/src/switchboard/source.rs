//! Where the frames of a stream on this worker come from.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::Frame;
use headgate_transcode::AacBitrate;

use super::join_point::JoinPoint;
use super::keys::{SessionKey, StreamKey};
use super::relay::Relay;
use super::timeline::Timeline;
use crate::publish::end_reason::EndReason;
use crate::publish::hold::HoldGuard;
use crate::publish::record::PublishRecord;
use crate::publish::registry::PublishGuard;
use crate::transcoding::{AUDIO_BITRATE, TranscoderRing};

/// Longest interval between frames of one publish that does not count as a pause.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);
/// How long a standby must have sent frames without a pause to take over from a silent publish, so that two unsteady
/// ones do not alternate.
const STEADY_TIME: Duration = Duration::from_secs(3);

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
    /// Reports the publish's end when it is dropped; `None` once that was reported.
    pub(super) guard: Option<PublishGuard>,
    /// The name it is live under.
    pub(super) name: Vec<u8>,
    /// The current publisher, or the last one.
    pub(super) publisher: Publisher,
    /// Its pushes.
    pub(super) pushes: Vec<SessionKey>,
    /// Transcodes Opus to AAC while a subscriber needs it.
    pub(super) transcoder: Option<Arc<TranscoderRing>>,
    /// Bitrate of the transcoded AAC.
    pub(super) audio_bitrate: AacBitrate,
    /// An AMF0 object for its own upstream's connect command; empty if there is none.
    pub(super) connect_info: Bytes,
    /// Set once the publisher has ended: subscribers have until then to take the waiting frames.
    pub(super) draining_until: Option<Instant>,
    /// How long it is held if its publisher is lost; zero disables it.
    pub(super) window: Duration,
    /// Set from the loss of a publisher to its successor's first frame.
    pub(super) interim: Option<Interim>,
    pub(super) timeline: Timeline,
    /// Since when its publisher is on air.
    pub(super) since: Instant,
    /// The other publish of its name, if there is one: one of the two stands by.
    pub(super) partner: Option<StreamKey>,
    /// Set while its publisher stands by, and only previews get its frames; `None` while it is on air.
    pub(super) standby: Option<Standby>,
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

/// The publisher of a stream of this worker.
#[derive(Clone)]
pub(super) enum Publisher {
    /// A session of this worker.
    Here(SessionKey),
    /// A session of another worker, the successor of one that was here. Always RTMP; its frames come through the relay.
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

/// A stream between two publishers: its subscribers get silence.
pub(super) struct Interim {
    /// Set while the stream is held and has no publisher; `None` once a successor was allowed and its media is awaited.
    pub(super) hold: Option<HoldGuard>,
    /// When a stream without publisher ends.
    pub(super) until: Instant,
}

/// For a session whose stream lives on another worker.
pub(super) struct Away {
    /// The worker where the stream lives.
    pub(super) home: usize,
    pub(super) record: Arc<PublishRecord>,
    pub(super) relay: Arc<Relay>,
    /// Repeated after the relay has dropped some.
    pub(super) headers: JoinPoint,
}

impl Away {
    /// Passes a frame on to the stream's worker; returns that worker if it must be woken.
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
    /// A new source, still without its publish.
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

    /// Whether it has no publisher and waits for a successor.
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

    /// See [`Source::local`].
    pub(super) const fn local_mut(&mut self) -> Option<&mut LocalSource> {
        match self {
            Self::Local(local) => Some(local),
            Self::Remote { .. } => None,
        }
    }

    /// The local source, if its publisher is still connected.
    pub(super) fn live(&self) -> Option<&LocalSource> {
        self.local().filter(|local| local.draining_until.is_none() && !local.is_held())
    }

    /// The relay that feeds the stream from another worker, if it may be read already.
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
