//! The life of one publish from allowed to ended, and the one table of endings.
//! Not who is asked (the gateway), not the wire (`rtmp_server`). Pure: it is told the time.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind};

use crate::players::Players;
use crate::tracks::Tracks;
use crate::upstreams::{UpstreamStatus, Upstreams};

/// How long a broadcaster may take to send its first media (W19).
pub(crate) const FIRST_MEDIA_LIMIT: Duration = Duration::from_secs(20);
/// How long a live broadcaster may be silent (W19).
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// Why a publish session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The broadcaster said so: FCUnpublish, deleteStream or closeStream.
    Unpublished,
    /// The connection closed or broke without a word.
    BroadcasterLeft,
    /// Nothing was received for longer than the limit.
    Silent,
    /// The broadcaster sent what RTMP does not allow.
    ProtocolError,
    /// The broadcaster went past a limit.
    LimitExceeded,
    /// A new publish took the name over.
    Replaced,
    /// The customer answered an update with something other than 200.
    RejectedByCustomer,
    /// An operator ended it.
    Kicked,
    /// The service is stopping.
    Shutdown,
    /// ICE or DTLS did not come about.
    HandshakeFailed,
    /// Connected, but no media that we could use came in time.
    NoMedia,
    /// The publish's own stream_url refused it before it ever took it (R4).
    UpstreamRefused,
    /// A bug of ours; the session was given up, the process lives.
    InternalError,
}

/// What an ending does to the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndEffect {
    /// See [`EndReason::code`].
    pub(crate) code: &'static str,
    /// `onStatus` code and description for a broadcaster that is still connected; `None` says nothing.
    pub(crate) status: Option<(&'static str, &'static str)>,
}

impl EndReason {
    /// Stable name: the gateway, its logs and the webhook's records use it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.effect().code
    }

    /// The table of endings. Adding a reason makes the compiler ask for its row.
    #[must_use]
    pub(crate) const fn effect(self) -> EndEffect {
        const fn row(
            code: &'static str,
            status: Option<(&'static str, &'static str)>,
        ) -> EndEffect {
            EndEffect { code, status }
        }
        match self {
            Self::Unpublished => row("unpublished", None),
            Self::BroadcasterLeft => row("broadcaster_left", None),
            Self::Silent => row("silent", Some(("NetStream.Failed", "No media received"))),
            Self::ProtocolError => row("protocol_error", None),
            Self::LimitExceeded => {
                row("limit_exceeded", Some(("NetStream.Failed", "A limit was exceeded")))
            }
            Self::Replaced => {
                row("replaced", Some(("NetStream.Publish.BadName", "Replaced by a new publish")))
            }
            Self::RejectedByCustomer => {
                row("rejected_by_customer", Some(("NetStream.Publish.Denied", "Publish ended")))
            }
            Self::Kicked => row("kicked", Some(("NetStream.Publish.Denied", "Publish ended"))),
            Self::Shutdown => {
                row("shutdown", Some(("NetStream.Failed", "The service is restarting")))
            }
            Self::HandshakeFailed => row("handshake_failed", None),
            Self::NoMedia => row("no_media", None),
            Self::UpstreamRefused => row("upstream_refused", None),
            Self::InternalError => row("internal_error", None),
        }
    }
}

/// Counters of one publish, written by its workers, read by the gateway at any time.
#[derive(Debug)]
pub(crate) struct Counters {
    started: Instant,
    timestamp_ms: AtomicI64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    last_input_ms: AtomicU64,
    subscribers: AtomicI64,
    dropped_frames: AtomicU64,
    /// Read from configurations, of which few pass.
    tracks: Mutex<Tracks>,
    /// Where it is pushed.
    pub(crate) upstreams: Upstreams,
    /// Who plays it.
    pub(crate) players: Players,
}

/// Counters and state of a publish session at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishSnapshot {
    /// Newest frame's timestamp in milliseconds, never negative.
    pub timestamp_ms: i64,
    /// Audio and video payload from the broadcaster.
    pub bytes_in: u64,
    /// The same measure, handed to all upstreams and players.
    pub bytes_out: u64,
    /// Since anything arrived from the broadcaster.
    pub silent: Duration,
    /// Upstreams and players reading now, over all workers.
    pub subscribers: u64,
    /// Frames that slow subscribers lost, summed over them.
    pub dropped_frames: u64,
    /// What it carries.
    pub tracks: Tracks,
    /// Where it is pushed.
    pub upstreams: Vec<UpstreamStatus>,
}

impl Counters {
    /// Fresh counters of a publish that starts `now`.
    #[must_use]
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            started: now,
            timestamp_ms: AtomicI64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            last_input_ms: AtomicU64::new(0),
            subscribers: AtomicI64::new(0),
            dropped_frames: AtomicU64::new(0),
            tracks: Mutex::default(),
            upstreams: Upstreams::default(),
            players: Players::default(),
        }
    }

    /// Payload handed to one subscriber.
    pub(crate) fn add_out(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Frames one slow subscriber lost.
    pub(crate) fn add_dropped(&self, frames: u64) {
        self.dropped_frames.fetch_add(frames, Ordering::Relaxed);
    }

    /// A subscriber came (+1) or went (-1).
    pub(crate) fn add_subscribers(&self, change: i64) {
        self.subscribers.fetch_add(change, Ordering::Relaxed);
    }

    /// Payload bytes in and out so far.
    #[must_use]
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in.load(Ordering::Relaxed), self.bytes_out.load(Ordering::Relaxed))
    }

    /// Everything, at `now`.
    #[must_use]
    pub(crate) fn snapshot(&self, now: Instant) -> PublishSnapshot {
        let (bytes_in, bytes_out) = self.bytes();
        let last_input = Duration::from_millis(self.last_input_ms.load(Ordering::Relaxed));
        PublishSnapshot {
            timestamp_ms: self.timestamp_ms.load(Ordering::Relaxed).max(0),
            bytes_in,
            bytes_out,
            silent: now.saturating_duration_since(self.started).saturating_sub(last_input),
            subscribers: u64::try_from(self.subscribers.load(Ordering::Relaxed)).unwrap_or(0),
            dropped_frames: self.dropped_frames.load(Ordering::Relaxed),
            tracks: *self.tracks.lock().unwrap_or_else(PoisonError::into_inner),
            upstreams: self.upstreams.status(),
        }
    }

    fn handle_configuration(&self, frame: &Frame) {
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner).handle_configuration(frame);
    }
}

/// A publish that was allowed and has not ended.
#[derive(Debug)]
pub(crate) struct PublishSession {
    counters: Arc<Counters>,
    last_input: Instant,
    has_media: bool,
}

impl PublishSession {
    /// A publish allowed at `now`.
    #[must_use]
    pub(crate) fn new(counters: Arc<Counters>, now: Instant) -> Self {
        Self { counters, last_input: now, has_media: false }
    }

    /// Audio and video payload so far.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.counters.bytes().0
    }

    /// Bytes came from the broadcaster, whatever they were.
    pub(crate) fn handle_input(&mut self, now: Instant) {
        self.last_input = now;
        let since = now.saturating_duration_since(self.counters.started);
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self.counters.last_input_ms.store(millis, Ordering::Relaxed);
    }

    /// A frame was accepted from the broadcaster.
    pub(crate) fn handle_frame(&mut self, frame: &Frame) {
        let bytes = frame.payload_bytes();
        if bytes == 0 {
            if frame.kind == FrameKind::Configuration {
                self.counters.handle_configuration(frame);
            }
            return;
        }
        self.has_media = true;
        self.counters.bytes_in.fetch_add(bytes, Ordering::Relaxed);
        self.counters.timestamp_ms.fetch_max(frame.timestamp.as_millis(), Ordering::Relaxed);
    }

    /// When the session ends as [`EndReason::Silent`] unless something arrives.
    #[must_use]
    pub(crate) fn silence_deadline(&self) -> Instant {
        self.last_input + if self.has_media { SILENCE_LIMIT } else { FIRST_MEDIA_LIMIT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use headgate_media::{Codec, Timestamp};

    fn frame(kind: FrameKind, millis: i64) -> Frame {
        let timestamp = Timestamp::from_millis(millis);
        Frame {
            codec: Codec::H264,
            kind,
            timestamp,
            composition_ms: 0,
            data: Bytes::from_static(b"12345"),
        }
    }

    #[test]
    fn counts_pictures_and_sound_but_not_configurations() {
        let now = Instant::now();
        let mut session = PublishSession::new(Arc::new(Counters::new(now)), now);
        session.handle_frame(&frame(FrameKind::Configuration, 0));
        session.handle_frame(&frame(FrameKind::Keyframe, 40));
        session.handle_frame(&frame(FrameKind::Inter, 20));
        let snapshot = session.counters.snapshot(now);
        assert_eq!((snapshot.bytes_in, snapshot.timestamp_ms), (10, 40));
    }

    #[test]
    fn silence_is_longer_before_the_first_media() {
        let now = Instant::now();
        let mut session = PublishSession::new(Arc::new(Counters::new(now)), now);
        assert_eq!(session.silence_deadline(), now + FIRST_MEDIA_LIMIT);
        session.handle_frame(&frame(FrameKind::Keyframe, 0));
        session.handle_input(now + Duration::from_secs(3));
        assert_eq!(session.silence_deadline(), now + Duration::from_secs(3) + SILENCE_LIMIT);
        let later = session.counters.snapshot(now + Duration::from_secs(5));
        assert_eq!(later.silent, Duration::from_secs(2));
    }
}
