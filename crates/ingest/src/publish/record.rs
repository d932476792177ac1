//! The one record of a running publish. Its worker writes it, the gateway reads it at any time; everything else that
//! knows the publish (names, sessions, streams, routes) is an index to it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use headgate_media::{Frame, Irregularity, IrregularityCounts};

use super::capture::Tap;
use super::irregularities::Irregularities;
use super::lock::lock;
use super::players::Players;
use super::pull_record::{PullRecord, PullStatus};
use super::tracks::Tracks;
use super::upstreams::{UpstreamStatus, Upstreams};
use super::whip_record::{NetworkNumbers, WhipRecord};

/// Identifies a live stream across all workers for the life of the process: its publish's number in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamId(pub(crate) u64);

/// A publish that was allowed and has not been reported as ended.
#[derive(Debug)]
pub(crate) struct PublishRecord {
    /// Issued by the gateway.
    pub(crate) client_id: u64,
    /// Id that workers use for its stream.
    pub(crate) stream: StreamId,
    /// The media worker it lives on for its whole life.
    pub(crate) worker: usize,
    /// Its upstreams. Shared with the publish that it continues or stands by for, if any.
    pub(crate) upstreams: Arc<Upstreams>,
    /// Its players. Shared likewise.
    pub(crate) players: Arc<Players>,
    /// State and controls of a WHIP publish; `None` for RTMP.
    pub(crate) whip: Option<WhipRecord>,
    /// Set for a stream that is pulled from another node.
    pub(crate) pull: Option<PullRecord>,
    started: Instant,
    is_on_air: AtomicBool,
    timestamp_ms: AtomicI64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    received_bytes: AtomicU64,
    last_input_ms: AtomicU64,
    subscribers: AtomicI64,
    dropped_frames: AtomicU64,
    video_frames: AtomicU64,
    /// Time between the two newest keyframes; 0 means unknown.
    gop_ms: AtomicU64,
    silence_limit_ms: AtomicU64,
    /// When the newest keyframe arrived, or the first video frame until there is one, after `started`.
    keyframe_ms: AtomicU64,
    /// Whether a subscriber has waited for a keyframe since then.
    is_keyframe_awaited: AtomicBool,
    /// Round trip of an RTMP connection; 0 means unknown.
    round_trip_us: AtomicU32,
    /// Read from the decoder configurations, which arrive rarely enough for a lock.
    tracks: Mutex<Tracks>,
    transcoder_error: Mutex<Option<String>>,
    irregularities: Irregularities,
    /// Capture from the beginning, until the publish begins and takes it.
    capture: Mutex<Tap>,
}

/// Counters and state of a publish session at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishSnapshot {
    /// Whether upstreams and players get it; false if it stands by for another publish of its name.
    pub is_on_air: bool,
    /// Newest frame's timestamp in milliseconds, never negative.
    pub timestamp_ms: i64,
    /// Audio and video payload from the broadcaster (W8).
    pub bytes_in: u64,
    /// The same measure, sent to all upstreams and players.
    pub bytes_out: u64,
    /// All bytes received from the broadcaster, including metadata and protocol overhead; bitrate limits apply to this.
    pub received_bytes: u64,
    /// Time since anything was received from the broadcaster.
    pub silent: Duration,
    /// Upstreams and players reading now, over all workers.
    pub subscribers: u64,
    /// Frames dropped for slow subscribers, summed over them.
    pub dropped_frames: u64,
    /// Video frames from the broadcaster; the difference of two readings gives the frame rate.
    pub video_frames: u64,
    /// Time between the two newest keyframes by their timestamps, ms.
    pub gop_ms: Option<u64>,
    /// How long there has been no keyframe while subscribers wait for one; `None` if none waits.
    pub keyframe_awaited: Option<Duration>,
    /// Round trip to the broadcaster, ms: for WHIP measured by answered requests, for RTMP as its TCP connection
    /// reports it.
    pub rtt_ms: Option<f64>,
    /// Percentage of packets lost for good in the last five seconds; `None` for RTMP.
    pub loss_percent: Option<f64>,
    /// Offset between video and audio by the sender's clocks, ms; positive if video is early. `None` for RTMP.
    pub skew_ms: Option<f64>,
    /// Its audio and video tracks.
    pub tracks: Tracks,
    /// State of its upstreams; empty while it stands by.
    pub upstreams: Vec<UpstreamStatus>,
    /// Why its audio is not transcoded to AAC although a subscriber needs that; `None` if there is no error.
    pub transcoder_error: Option<String>,
    /// What was irregular about the publisher, by kind.
    pub irregularities: IrregularityCounts,
}

impl PublishRecord {
    /// A publish that was allowed at `now`.
    #[must_use]
    pub(crate) fn new(
        client_id: u64,
        stream: StreamId,
        worker: usize,
        whip: Option<WhipRecord>,
        now: Instant,
    ) -> Self {
        Self {
            client_id,
            stream,
            worker,
            upstreams: Arc::default(),
            players: Arc::default(),
            whip,
            pull: None,
            started: now,
            is_on_air: AtomicBool::new(true),
            timestamp_ms: AtomicI64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            last_input_ms: AtomicU64::new(0),
            subscribers: AtomicI64::new(0),
            dropped_frames: AtomicU64::new(0),
            video_frames: AtomicU64::new(0),
            gop_ms: AtomicU64::new(0),
            silence_limit_ms: AtomicU64::new(0),
            keyframe_ms: AtomicU64::new(0),
            is_keyframe_awaited: AtomicBool::new(false),
            round_trip_us: AtomicU32::new(0),
            tracks: Mutex::default(),
            transcoder_error: Mutex::default(),
            irregularities: Irregularities::new(),
            capture: Mutex::default(),
        }
    }

    /// Makes this a publish that continues `lost` or stands by for it: it shares its upstreams and players.
    pub(super) fn continuing(self, lost: &Self) -> Self {
        Self { upstreams: lost.upstreams.clone(), players: lost.players.clone(), ..self }
    }

    /// A stream pulled from another node, where its publish has this client id.
    pub(crate) fn of_pull(
        client_id: u64,
        stream: StreamId,
        worker: usize,
        pull: PullRecord,
        now: Instant,
    ) -> Self {
        Self { pull: Some(pull), ..Self::new(client_id, stream, worker, None, now) }
    }

    /// Sets whether upstreams and players get it.
    pub(crate) fn set_on_air(&self, is_on_air: bool) {
        self.is_on_air.store(is_on_air, Ordering::Relaxed);
    }

    /// Sets the capture that starts when the publish begins.
    pub(crate) fn put_capture(&self, tap: Tap) {
        *lock(&self.capture) = tap;
    }

    /// Takes that capture, once.
    pub(crate) fn take_capture(&self) -> Tap {
        std::mem::take(&mut lock(&self.capture))
    }

    /// Counts bytes of any kind from the broadcaster.
    pub(crate) fn note_input(&self, bytes: usize, now: Instant) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last_input_ms.store(self.millis_at(now), Ordering::Relaxed);
    }

    /// A keyframe has arrived, or the first video frame.
    pub(crate) fn note_keyframe(&self, now: Instant) {
        self.keyframe_ms.store(self.millis_at(now), Ordering::Relaxed);
        self.is_keyframe_awaited.store(false, Ordering::Relaxed);
    }

    /// A video frame has arrived that a subscriber cannot use because it waits for a keyframe.
    pub(crate) fn note_keyframe_awaited(&self) {
        self.is_keyframe_awaited.store(true, Ordering::Relaxed);
    }

    /// Counts audio or video payload of a frame with this timestamp.
    pub(crate) fn add_in(&self, bytes: u64, timestamp_ms: i64) {
        self.bytes_in.fetch_add(bytes, Ordering::Relaxed);
        self.timestamp_ms.fetch_max(timestamp_ms, Ordering::Relaxed);
    }

    /// Counts a video frame.
    pub(crate) fn add_video_frame(&self) {
        self.video_frames.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the media time between the two newest keyframes.
    pub(crate) fn note_gop(&self, millis: u64) {
        self.gop_ms.store(millis, Ordering::Relaxed);
    }

    /// Sets how long its RTMP publisher may send nothing; `None`: the default.
    pub(crate) fn set_silence_limit(&self, limit: Option<Duration>) {
        let millis = limit.map_or(0, |limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self.silence_limit_ms.store(millis, Ordering::Relaxed);
    }

    /// See [`PublishRecord::set_silence_limit`].
    pub(crate) fn silence_limit(&self) -> Option<Duration> {
        let millis = self.silence_limit_ms.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Whether the two newest keyframes are known to be at most this far apart.
    pub(crate) fn has_gop_within(&self, millis: u64) -> bool {
        (1..=millis).contains(&self.gop_ms.load(Ordering::Relaxed))
    }

    /// Notes the round trip of the broadcaster's TCP connection.
    pub(crate) fn note_round_trip(&self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.round_trip_us.store(micros, Ordering::Relaxed);
    }

    /// Counts payload sent to one subscriber.
    pub(crate) fn add_out(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts frames that were dropped for a slow subscriber.
    pub(crate) fn add_dropped(&self, frames: u64) {
        self.dropped_frames.fetch_add(frames, Ordering::Relaxed);
    }

    /// Counts a subscriber that joined (+1) or left (-1).
    pub(crate) fn add_subscribers(&self, change: i64) {
        self.subscribers.fetch_add(change, Ordering::Relaxed);
    }

    /// Notes a decoder configuration from the broadcaster.
    pub(crate) fn note_configuration(&self, frame: &Frame) {
        lock(&self.tracks).handle_configuration(frame);
    }

    /// Sets why the stream's audio cannot be transcoded; `None` once it can.
    pub(crate) fn set_transcoder_error(&self, error: Option<String>) {
        *lock(&self.transcoder_error) = error;
    }

    /// See [`PublishSnapshot::transcoder_error`].
    pub(crate) fn transcoder_error(&self) -> Option<String> {
        lock(&self.transcoder_error).clone()
    }

    /// Counts something irregular about the publisher.
    pub(crate) fn note_irregularity(&self, kind: Irregularity, times: u64) {
        self.irregularities.note(kind, times);
    }

    /// Counts several kinds at once.
    pub(crate) fn note_irregularities(&self, counts: &IrregularityCounts) {
        for (kind, times) in counts.iter() {
            self.note_irregularity(kind, times);
        }
    }

    /// Payload bytes in and out so far.
    #[must_use]
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_in.load(Ordering::Relaxed), self.bytes_out.load(Ordering::Relaxed))
    }

    /// Video frames in, and frames dropped for slow subscribers, so far.
    #[must_use]
    pub(crate) fn frames(&self) -> (u64, u64) {
        let (video, dropped) = (&self.video_frames, &self.dropped_frames);
        (video.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed))
    }

    /// A snapshot at `now`; `wall` is the same moment on the wall clock.
    #[must_use]
    pub(crate) fn snapshot(&self, now: Instant, wall: SystemTime) -> PublishSnapshot {
        let (bytes_in, bytes_out) = self.bytes();
        let (video_frames, dropped_frames) = self.frames();
        let last_input = Duration::from_millis(self.last_input_ms.load(Ordering::Relaxed));
        let NetworkNumbers { rtt_ms, loss_percent, skew_ms } = self.network();
        let is_on_air = self.is_on_air.load(Ordering::Relaxed);
        PublishSnapshot {
            is_on_air,
            timestamp_ms: self.timestamp_ms.load(Ordering::Relaxed).max(0),
            bytes_in,
            bytes_out,
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            silent: now.saturating_duration_since(self.started).saturating_sub(last_input),
            subscribers: u64::try_from(self.subscribers.load(Ordering::Relaxed)).unwrap_or(0),
            dropped_frames,
            video_frames,
            gop_ms: Some(self.gop_ms.load(Ordering::Relaxed)).filter(|millis| *millis > 0),
            keyframe_awaited: self.keyframe_awaited(now),
            rtt_ms,
            loss_percent,
            skew_ms,
            tracks: self.tracks(),
            upstreams: if is_on_air { self.upstreams.status(now, wall) } else { Vec::new() },
            transcoder_error: self.transcoder_error(),
            irregularities: self.irregularities.read(),
        }
    }

    /// State of a pull at `now`; `wall` is the same moment on the wall clock. `None` for a publish of this node.
    pub(crate) fn pull_status(&self, now: Instant, wall: SystemTime) -> Option<PullStatus> {
        let pull = self.pull.as_ref()?;
        let (since, url, state) = pull.progress(now, wall);
        let (bytes_in, bytes_out) = self.bytes();
        let (client_id, name) = (self.client_id, pull.name.clone());
        let players = u64::try_from(self.subscribers.load(Ordering::Relaxed)).unwrap_or(0);
        Some(PullStatus { client_id, name, url, players, bytes_in, bytes_out, since, state })
    }

    /// Its audio and video tracks.
    pub(super) fn tracks(&self) -> Tracks {
        *lock(&self.tracks)
    }

    /// Milliseconds from the start of the publish.
    fn millis_at(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn keyframe_awaited(&self, now: Instant) -> Option<Duration> {
        let is_awaited = self.is_keyframe_awaited.load(Ordering::Relaxed)
            && self.subscribers.load(Ordering::Relaxed) > 0;
        let since = self.millis_at(now).saturating_sub(self.keyframe_ms.load(Ordering::Relaxed));
        is_awaited.then(|| Duration::from_millis(since))
    }

    fn network(&self) -> NetworkNumbers {
        if let Some(whip) = &self.whip {
            return whip.network();
        }
        let micros = self.round_trip_us.load(Ordering::Relaxed);
        let rtt_ms = (micros > 0).then(|| f64::from(micros) / 1_000.0);
        NetworkNumbers { rtt_ms, ..NetworkNumbers::default() }
    }
}
