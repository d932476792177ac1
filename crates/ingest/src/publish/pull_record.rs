//! What a stream is that another node of the service publishes and that is pulled from there: its source, its state and
//! how it ends. Written by its worker, read by the gateway at any time. Not what connects to it (`session/rtmp_pull.rs`).

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Instant, SystemTime};

use super::end_reason::EndReason;
use super::lock::lock;
use super::upstream_url::UpstreamUrl;
use super::wall_time::wall_time;

/// Where a stream is pulled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullSource {
    /// The publish there.
    pub client_id: u64,
    /// Complete, with name and arguments.
    pub url: UpstreamUrl,
    /// Address of the URL's host.
    pub address: IpAddr,
}

/// State of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    /// From the first player to the first frame.
    Connecting,
    /// Frames come.
    Playing,
    /// The connection was lost; its players wait while it is tried again.
    Reconnecting,
}

impl PullState {
    /// Stable name.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Playing => "playing",
            Self::Reconnecting => "reconnecting",
        }
    }
}

/// Why a pull ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullEnd {
    /// Nobody read its stream for a while.
    Unread,
    /// The stream ended at its source.
    SourceEnded,
    /// The source refused it.
    Refused,
    /// The source could not be reached, or not again, in time.
    Lost,
    /// What the source sent went past a limit or against the protocol.
    Invalid,
    /// The stream is published on this node now.
    PublishedHere,
    /// The service is stopping.
    Shutdown,
    /// A bug of ours; the pull was given up, the process lives.
    InternalError,
}

impl PullEnd {
    /// Stable name.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::SourceEnded => "source_ended",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Invalid => "invalid",
            Self::PublishedHere => "published_here",
            Self::Shutdown => "shutdown",
            Self::InternalError => "internal_error",
        }
    }

    /// When the worker ends the stream of a pull, and not the pull itself.
    pub(crate) const fn of(reason: EndReason) -> Self {
        match reason {
            EndReason::Replaced => Self::PublishedHere,
            EndReason::Shutdown => Self::Shutdown,
            EndReason::Unpublished => Self::SourceEnded,
            EndReason::BroadcasterLeft
            | EndReason::Silent
            | EndReason::ProtocolError
            | EndReason::LimitExceeded
            | EndReason::RejectedByCustomer
            | EndReason::Kicked
            | EndReason::HandshakeFailed
            | EndReason::NoMedia
            | EndReason::UpstreamRefused
            | EndReason::InternalError => Self::InternalError,
        }
    }
}

/// One pull at one moment. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullStatus {
    /// The publish at the source.
    pub client_id: u64,
    /// Stream name without arguments.
    pub name: Vec<u8>,
    /// Scheme, host, port and app.
    pub url: String,
    /// Players that read it here, over all workers.
    pub players: u64,
    /// Audio and video payload from the source.
    pub bytes_in: u64,
    /// The same measure, handed to the players.
    pub bytes_out: u64,
    /// When it began.
    pub since: SystemTime,
    /// State.
    pub state: PullState,
}

/// What a publish's record holds besides when its stream is pulled.
#[derive(Debug)]
pub(crate) struct PullRecord {
    pub(crate) name: Vec<u8>,
    since: Instant,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    /// Scheme, host, port and app: names and arguments may be secret.
    url: String,
    state: PullState,
    /// What is said of its end first holds.
    end: Option<(PullEnd, String)>,
}

impl PullRecord {
    pub(crate) fn new(name: &[u8], source: &PullSource, now: Instant) -> Self {
        let (url, state) = (source.url.tc_url(), PullState::Connecting);
        let progress = Mutex::new(Progress { url, state, end: None });
        Self { name: name.to_vec(), since: now, progress }
    }

    pub(crate) fn set_source(&self, source: &PullSource) {
        lock(&self.progress).url = source.url.tc_url();
    }

    pub(crate) fn set_state(&self, state: PullState) {
        lock(&self.progress).state = state;
    }

    /// The pull ends for this reason, `detail` in words.
    pub(crate) fn set_end(&self, end: PullEnd, detail: String) {
        lock(&self.progress).end.get_or_insert((end, detail));
    }

    /// Why it ended; without a reason, a bug of ours is reported.
    pub(crate) fn end(&self) -> (PullEnd, String) {
        lock(&self.progress).end.clone().unwrap_or((PullEnd::InternalError, String::new()))
    }

    /// Since when, in wall time; where from; and its state.
    pub(crate) fn progress(
        &self,
        now: Instant,
        wall: SystemTime,
    ) -> (SystemTime, String, PullState) {
        let progress = lock(&self.progress);
        (wall_time(self.since, now, wall), progress.url.clone(), progress.state)
    }
}
