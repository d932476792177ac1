//! The upstreams of one publish and the state of each: written by the publish's worker, read by the gateway at any
//! time. Their connections are in `session/rtmp_push.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use headgate_media::Codec;

use super::lock::lock;
use super::upstream_cause::UpstreamCause;
use super::upstream_url::UpstreamUrl;
use super::wall_time::wall_time;

/// Limit of upstreams of one publish, applied when one is added while it is live: each costs a connection and a queue.
const UPSTREAMS_LIMIT: usize = 32;

/// Who requested an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamSource {
    /// The operator, for every publish.
    Deployment,
    /// The stream that is published.
    Stream,
    /// Added for this publish alone while it runs.
    Session,
    /// The publish itself, by its stream_url: a refusal by it may end the publish (R4).
    Own,
}

/// An upstream to push to, and who requested it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Name given when it was requested: unique within the publish, not secret.
    pub id: String,
    /// Complete URL, with name and arguments.
    pub url: UpstreamUrl,
    /// Who requested it.
    pub source: UpstreamSource,
    /// Not connected until the gateway resumes it.
    pub is_paused: bool,
}

/// State of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    /// From the address request to the upstream's Publish.Start.
    Connecting,
    /// Media is being sent.
    Sending,
    /// Waiting for the next attempt.
    Waiting,
    /// Waiting for the next attempt with longer pauses, because the upstream refused.
    Refused,
    /// Not connected until the gateway resumes it.
    Paused,
}

/// One upstream at one moment. It contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// See [`Upstream::id`].
    pub id: String,
    /// Scheme, host, port and app.
    pub url: String,
    /// Who requested it.
    pub source: UpstreamSource,
    /// State of its push.
    pub state: UpstreamState,
    /// When it entered that state.
    pub since: SystemTime,
    /// Description of the last error; or which codec of the stream the upstream does not list.
    pub last_error: Option<String>,
    /// The same by name.
    pub last_cause: Option<UpstreamCause>,
    /// Payload sent to it, over all its connections.
    pub bytes_out: u64,
    /// Frames dropped because it was slow.
    pub dropped_frames: u64,
    /// How often it accepted the stream again after a loss.
    pub reconnects: u64,
}

/// Result of adding an upstream to a running publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedUpstream {
    /// It was added, or is already pushed to.
    Added,
    /// The publish is not running.
    NotRunning,
    /// The publish has reached its limit of upstreams.
    TooMany,
}

/// Counters of what one subscriber was sent and what was dropped for it; one writer, any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    bytes_out: AtomicU64,
    dropped_frames: AtomicU64,
}

impl Delivery {
    pub(crate) fn add_out(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_dropped(&self, frames: u64) {
        self.dropped_frames.fetch_add(frames, Ordering::Relaxed);
    }

    /// Payload bytes and dropped frames.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        (self.bytes_out.load(Ordering::Relaxed), self.dropped_frames.load(Ordering::Relaxed))
    }
}

/// One upstream of a running publish.
#[derive(Debug)]
pub(crate) struct UpstreamRecord {
    /// Its number among all upstreams that the publish has had.
    pub(crate) serial: u64,
    pub(crate) upstream: Upstream,
    pub(crate) delivery: Arc<Delivery>,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    state: UpstreamState,
    since: Instant,
    last_error: Option<(UpstreamCause, String)>,
    /// How often the upstream accepted the stream.
    acceptances: u64,
}

impl UpstreamRecord {
    /// An upstream that nothing has been sent to.
    pub(crate) fn new(serial: u64, upstream: Upstream, now: Instant) -> Self {
        let state =
            if upstream.is_paused { UpstreamState::Paused } else { UpstreamState::Connecting };
        let progress = Progress { state, since: now, last_error: None, acceptances: 0 };
        Self { serial, upstream, delivery: Arc::default(), progress: Mutex::new(progress) }
    }

    /// Whether it is not to be connected for now.
    pub(crate) fn is_paused(&self) -> bool {
        lock(&self.progress).state == UpstreamState::Paused
    }

    pub(crate) fn set_paused(&self, now: Instant) {
        lock(&self.progress).enter(UpstreamState::Paused, now);
    }

    pub(crate) fn set_connecting(&self, now: Instant) {
        lock(&self.progress).enter(UpstreamState::Connecting, now);
    }

    pub(crate) fn set_sending(&self, now: Instant) {
        let mut progress = lock(&self.progress);
        progress.enter(UpstreamState::Sending, now);
        progress.acceptances += 1;
    }

    pub(crate) fn set_failed(
        &self,
        state: UpstreamState,
        cause: UpstreamCause,
        error: &str,
        now: Instant,
    ) {
        let mut progress = lock(&self.progress);
        progress.enter(state, now);
        progress.last_error = Some((cause, error.to_owned()));
    }

    /// Notes that the upstream is sent frames of a codec that its answer to connect does not list and that it may not
    /// accept.
    pub(crate) fn note_unlisted(&self, codec: Codec) {
        let codec = codec.name();
        let words =
            format!("The upstream does not list {codec} (fourCcList): it may not accept it");
        lock(&self.progress).last_error = Some((UpstreamCause::CodecUnlisted, words));
    }

    fn status(&self, now: Instant, wall: SystemTime) -> UpstreamStatus {
        let progress = lock(&self.progress);
        let (bytes_out, dropped_frames) = self.delivery.so_far();
        UpstreamStatus {
            id: self.upstream.id.clone(),
            url: self.upstream.url.shown(),
            source: self.upstream.source,
            state: progress.state,
            since: wall_time(progress.since, now, wall),
            last_error: progress.last_error.as_ref().map(|(_, words)| words.clone()),
            last_cause: progress.last_error.as_ref().map(|(cause, _)| *cause),
            bytes_out,
            dropped_frames,
            reconnects: progress.acceptances.saturating_sub(1),
        }
    }
}

impl Progress {
    fn enter(&mut self, state: UpstreamState, now: Instant) {
        if self.state != state {
            self.state = state;
            self.since = now;
        }
    }
}

/// The upstreams of one publish.
#[derive(Debug, Default)]
pub(crate) struct Upstreams(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    records: Vec<Arc<UpstreamRecord>>,
    opened: u64,
}

impl Upstreams {
    /// Adds an upstream when the publish starts.
    pub(crate) fn open(&self, upstream: Upstream, now: Instant) -> Arc<UpstreamRecord> {
        lock(&self.0).open(upstream, now)
    }

    /// Adds an upstream to a running publish; `None` if the URL is already in the list, `Err` if there are too many.
    pub(crate) fn add(
        &self,
        upstream: Upstream,
        now: Instant,
    ) -> Result<Option<Arc<UpstreamRecord>>, ()> {
        let mut list = lock(&self.0);
        if list.records.iter().any(|record| record.upstream.url == upstream.url) {
            return Ok(None);
        }
        if list.records.len() >= UPSTREAMS_LIMIT {
            return Err(());
        }
        Ok(Some(list.open(upstream, now)))
    }

    /// The one with this id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<UpstreamRecord>> {
        lock(&self.0).records.iter().find(|record| record.upstream.id == id).cloned()
    }

    /// Removes one and returns its serial number.
    pub(crate) fn remove(&self, id: &str) -> Option<u64> {
        let mut list = lock(&self.0);
        let at = list.records.iter().position(|record| record.upstream.id == id)?;
        Some(list.records.remove(at).serial)
    }

    /// Removes all of them.
    pub(crate) fn clear(&self) {
        lock(&self.0).records.clear();
    }

    /// Removes all of them and returns them.
    pub(crate) fn take(&self) -> Vec<Upstream> {
        let records = std::mem::take(&mut lock(&self.0).records);
        let as_it_is = |record: Arc<UpstreamRecord>| Upstream {
            is_paused: record.is_paused(),
            ..record.upstream.clone()
        };
        records.into_iter().map(as_it_is).collect()
    }

    pub(crate) fn status(&self, now: Instant, wall: SystemTime) -> Vec<UpstreamStatus> {
        lock(&self.0).records.iter().map(|record| record.status(now, wall)).collect()
    }
}

impl List {
    fn open(&mut self, upstream: Upstream, now: Instant) -> Arc<UpstreamRecord> {
        self.opened += 1;
        let record = Arc::new(UpstreamRecord::new(self.opened, upstream, now));
        self.records.push(record.clone());
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    fn status(upstreams: &Upstreams) -> Vec<UpstreamStatus> {
        upstreams.status(now(), SystemTime::now())
    }

    fn upstream(url: &str) -> Upstream {
        let id = url.rsplit('/').next().expect("a name").to_owned();
        let url = UpstreamUrl::parse(url).expect("valid");
        Upstream { id, url, source: UpstreamSource::Session, is_paused: false }
    }

    #[test]
    fn a_url_is_added_once_and_removal_is_by_id() {
        let upstreams = Upstreams::default();
        upstreams.open(upstream("rtmp://a/live/key"), now());
        assert!(upstreams.add(upstream("rtmp://a/live/key"), now()).expect("room").is_none());
        assert!(
            upstreams.add(upstream("rtmp://a:1935/live/other"), now()).expect("room").is_some()
        );
        assert_eq!(upstreams.remove("nobody"), None);
        assert_eq!(upstreams.remove("other"), Some(2), "not the one that looks the same");
        assert_eq!(upstreams.remove("other"), None);
        assert_eq!(status(&upstreams)[0].id, "key");
    }

    #[test]
    fn the_status_contains_neither_key_nor_credentials() {
        let upstreams = Upstreams::default();
        let secret =
            Upstream { id: "1".into(), ..upstream("rtmps://me:word@host/live/key?token=1") };
        upstreams.open(secret, now());
        let shown = format!("{:?}", status(&upstreams));
        assert!(shown.contains("rtmps://host:443/live"), "{shown}");
        for secret in ["me", "word", "key", "token"] {
            assert!(
                !shown.contains(&format!("{secret}:")) && !shown.contains(&format!("/{secret}"))
            );
        }
    }

    #[test]
    fn upstreams_beyond_the_limit_are_rejected() {
        let upstreams = Upstreams::default();
        for n in 0..UPSTREAMS_LIMIT {
            upstreams.add(upstream(&format!("rtmp://a/live/{n}")), now()).expect("room");
        }
        assert!(upstreams.add(upstream("rtmp://a/live/more"), now()).is_err());
    }

    #[test]
    fn an_error_is_shown_until_the_next_one_and_a_reconnect_is_counted() {
        let upstreams = Upstreams::default();
        let record = upstreams.open(upstream("rtmp://a/live/key"), now());
        record.set_sending(now());
        record.set_failed(UpstreamState::Waiting, UpstreamCause::Closed, "closed", now());
        record.set_connecting(now());
        record.set_sending(now());
        record.delivery.add_out(10);
        let [status] = &status(&upstreams)[..] else { panic!("one") };
        assert_eq!((status.state, status.reconnects), (UpstreamState::Sending, 1));
        assert_eq!((status.last_error.as_deref(), status.bytes_out), (Some("closed"), 10));
    }
}
