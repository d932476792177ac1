//! A stream pulled from another node: its source, its state and how it ended. Its worker writes it, the gateway reads
//! it at any time. The connection itself is in `session/rtmp_pull.rs`.

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
    /// Client id of the publish at the source.
    pub client_id: u64,
    /// Complete URL, with name and arguments.
    pub url: UpstreamUrl,
    /// Address of the URL's host.
    pub address: IpAddr,
}

/// State of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    /// Before the first frame.
    Connecting,
    /// Frames are arriving.
    Playing,
    /// The connection was lost; players wait while it is retried.
    Reconnecting,
}

/// Why a pull ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullEnd {
    /// It had no readers for a while.
    Unread,
    /// The stream ended at its source.
    SourceEnded,
    /// The source refused it.
    Refused,
    /// The source could not be reached, or not reached again, in time.
    Lost,
    /// What the source sent exceeded a limit or violated the protocol.
    Invalid,
    /// The stream is being published on this node.
    PublishedHere,
    /// The service is stopping.
    Shutdown,
    /// A bug in the service; only this pull is given up.
    InternalError,
}

impl PullEnd {
    /// Maps the reason of a stream that the worker ended, when the pull itself set none.
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
            | EndReason::HandshakeFailed(_)
            | EndReason::NoMedia
            | EndReason::UpstreamRefused
            | EndReason::InternalError => Self::InternalError,
        }
    }
}

/// One pull at one moment. It contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullStatus {
    /// The publish at the source.
    pub client_id: u64,
    /// Stream name without arguments.
    pub name: Vec<u8>,
    /// Scheme, host, port and app.
    pub url: String,
    /// Number of players on this node, over all workers.
    pub players: u64,
    /// Audio and video payload received from the source.
    pub bytes_in: u64,
    /// The same measure, sent to the players.
    pub bytes_out: u64,
    /// When it began.
    pub since: SystemTime,
    /// State.
    pub state: PullState,
}

/// The part of a publish's record that only pulled streams have.
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
    /// The first reason that was set, with its description.
    end: Option<(PullEnd, String)>,
}

impl PullRecord {
    pub(crate) fn new(name: &[u8], source: &PullSource, now: Instant) -> Self {
        let (url, state) = (source.url.shown(), PullState::Connecting);
        let progress = Mutex::new(Progress { url, state, end: None });
        Self { name: name.to_vec(), since: now, progress }
    }

    pub(crate) fn set_source(&self, source: &PullSource) {
        lock(&self.progress).url = source.url.shown();
    }

    pub(crate) fn set_state(&self, state: PullState) {
        lock(&self.progress).state = state;
    }

    /// Sets the reason of the end, with a description; only the first call counts.
    pub(crate) fn set_end(&self, end: PullEnd, detail: String) {
        lock(&self.progress).end.get_or_insert((end, detail));
    }

    /// Why it ended; [`PullEnd::InternalError`] if no reason was set.
    pub(crate) fn end(&self) -> (PullEnd, String) {
        lock(&self.progress).end.clone().unwrap_or((PullEnd::InternalError, String::new()))
    }

    /// Start in wall time, URL of the source, and state.
    pub(crate) fn progress(
        &self,
        now: Instant,
        wall: SystemTime,
    ) -> (SystemTime, String, PullState) {
        let progress = lock(&self.progress);
        (wall_time(self.since, now, wall), progress.url.clone(), progress.state)
    }
}
