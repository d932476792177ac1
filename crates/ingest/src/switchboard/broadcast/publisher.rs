//! The publishers of a broadcast: at most one on air, and one that stands by with its own join point.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Codec, Frame};
use headgate_transcode::AacBitrate;

use super::super::join_point::{JoinPoint, is_header};
use super::super::keys::SessionKey;
use super::super::message::Opening;
use super::super::timeline::Timeline;
use crate::publish::registry::PublishGuard;
use crate::publish::upstreams::Upstream;

/// Longest interval between frames of one publish that does not count as a pause.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);
/// How long a standby must have sent frames without a pause to take over from a silent publish, so that two unsteady
/// ones do not alternate.
const STEADY_TIME: Duration = Duration::from_secs(3);
/// A GOP whose newest frame is older than this is not used at a takeover: the next keyframe is awaited.
const FRESH_LIMIT: Duration = Duration::from_secs(1);

/// A publish as its broadcast knows it.
pub(in crate::switchboard) struct Publisher {
    /// Reports the publish's end when it is dropped.
    pub(in crate::switchboard) guard: PublishGuard,
    /// The session that sends its frames.
    pub(in crate::switchboard) session: SessionKey,
    /// Bitrate of the transcoded AAC.
    pub(in crate::switchboard) audio_bitrate: AacBitrate,
    /// An AMF0 object for its own upstream's connect command; empty if there is none.
    pub(in crate::switchboard) connect_info: Bytes,
    /// How long its broadcast is held if it is lost; zero disables it.
    pub(in crate::switchboard) window: Duration,
}

impl Opening {
    /// The publish that `session` sends, and its upstreams.
    pub(in crate::switchboard) fn publisher(
        self,
        session: SessionKey,
    ) -> (Publisher, Vec<Upstream>) {
        let Self { guard, upstreams, audio_bitrate, connect_info, window, .. } = self;
        (Publisher { guard, session, audio_bitrate, connect_info, window }, upstreams)
    }
}

/// A publish that stands by: nobody but previews gets its frames, and its newest GOP is kept in any case.
pub(in crate::switchboard) struct Standby {
    pub(in crate::switchboard) publisher: Publisher,
    pub(in crate::switchboard) join: JoinPoint,
    pub(in crate::switchboard) timeline: Timeline,
    /// The gateway has ordered a switch to it, and a keyframe is awaited.
    pub(in crate::switchboard) is_wanted: bool,
    newest: Instant,
    /// Since when its frames have arrived without a pause.
    steady_since: Instant,
}

impl Standby {
    /// Before its first frame.
    pub(super) fn new(publisher: Publisher, now: Instant) -> Self {
        publisher.guard.record().set_on_air(false);
        Self {
            publisher,
            join: JoinPoint::new(true),
            timeline: Timeline::default(),
            is_wanted: false,
            newest: now,
            steady_since: now,
        }
    }

    /// Notes a frame. Returns whether frames have arrived without a pause for as long as another publish may be silent.
    pub(super) fn note_frame(&mut self, now: Instant) -> bool {
        if now > self.newest + PAUSE_LIMIT {
            self.steady_since = now;
        }
        self.newest = now;
        now >= self.steady_since + STEADY_TIME
    }

    /// Whether it has a recent GOP to begin with, or no video.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.timeline.newest_at().is_some_and(|at| now <= at + FRESH_LIMIT) && self.join.can_begin()
    }

    /// What it begins with on air: its headers, and its newest GOP if that is recent.
    pub(super) fn kept(&self, now: Instant) -> Vec<Frame> {
        let is_ready = self.is_ready(now);
        own_frames(&self.join).filter(|frame| is_ready || is_header(frame.kind)).collect()
    }
}

/// The frames of a publisher itself at a join point.
pub(super) fn own_frames(join: &JoinPoint) -> impl Iterator<Item = Frame> + '_ {
    // AAC in a stream with Opus was transcoded here.
    join.burst().filter(|frame| !(join.has_opus() && frame.codec == Codec::Aac))
}
