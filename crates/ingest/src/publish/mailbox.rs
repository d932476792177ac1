//! Events from the core to the gateway. Workers put events in and wake the gateway, which drains them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::end_reason::EndReason;
use super::lock::lock;
use super::pull_record::PullEnd;
use super::tracks::Tracks;
use super::upstream_cause::{UpstreamCause, UpstreamTested};
use super::upstreams::UpstreamSource;

/// Publish requests that may wait for the gateway; further ones are denied immediately.
const REQUESTS_LIMIT: usize = 10_000;
/// Play requests that may wait for the gateway, counted separately; further ones are denied immediately.
const PLAY_REQUESTS_LIMIT: usize = 10_000;
/// Refused connections that are reported per drain; further ones are not reported.
const REFUSALS_LIMIT: usize = 100;

/// A broadcaster sent `publish` and waits for `allow` or `deny`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishRequested {
    /// The core's handle of the request.
    pub request: u64,
    /// First segment of the path.
    pub app: String,
    /// Stream name without arguments, as sent.
    pub name: Vec<u8>,
    /// Bytes after the first `?`, as sent.
    pub arguments: Option<Vec<u8>>,
    /// Address of the broadcaster.
    pub address: IpAddr,
}

/// A player requested a stream and waits for `allow_play`, `pull` or `deny`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayRequested {
    /// The core's handle of the request, and later of the player.
    pub request: u64,
    /// Stream name without arguments, as sent.
    pub name: Vec<u8>,
    /// Client id of this node's live publish of that name, if there is one.
    pub client_id: Option<u64>,
    /// Bytes after the first `?` of the name, as sent.
    pub arguments: Option<Vec<u8>>,
    /// Address of the player.
    pub address: IpAddr,
}

/// An allowed player has ended. Reported exactly once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayEnded {
    /// Handle of its request.
    pub player: u64,
    /// Audio and video payload handed to it.
    pub bytes_out: u64,
    /// Frames dropped because the player was slow.
    pub dropped_frames: u64,
}

/// The connection of a pull was lost, and the core asks where its stream is. Answered by `dial_pull`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceWanted {
    /// The core's handle of the pull.
    pub pull: u64,
    /// Stream name without arguments.
    pub name: Vec<u8>,
    /// The publish that is pulled; any other publish would be another stream.
    pub client_id: u64,
}

/// A pull has ended. Reported exactly once for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullEnded {
    /// The publish at its source.
    pub client_id: u64,
    /// Stream name without arguments.
    pub name: Vec<u8>,
    /// Why it ended.
    pub end: PullEnd,
    /// Description of the reason; may be empty.
    pub detail: String,
    /// Audio and video payload received from the source.
    pub bytes_in: u64,
    /// The same measure, sent to the players.
    pub bytes_out: u64,
}

/// An RTMP connection was refused before it requested a publish or a play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRefused {
    /// Address of the peer.
    pub address: IpAddr,
    /// Stable name of the reason.
    pub code: &'static str,
    /// Description of the reason.
    pub detail: String,
}

/// How a publish or play request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Denied by the customer or by a rule.
    Denied,
    /// The name is unknown, malformed or already live.
    BadName,
}

/// An allowed publish has ended. Reported exactly once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishEnded {
    /// As given with `allow`.
    pub client_id: u64,
    /// Why it ended.
    pub reason: EndReason,
    /// Audio and video payload received from the broadcaster.
    pub bytes_in: u64,
    /// The same measure, sent to all upstreams and players.
    pub bytes_out: u64,
    /// Video frames received from the broadcaster.
    pub video_frames: u64,
    /// Frames dropped for slow subscribers, summed over them.
    pub dropped_frames: u64,
    /// Its audio and video tracks.
    pub tracks: Tracks,
    /// RTP packets that never arrived, as of at most two seconds before; `None` for RTMP.
    pub packets_lost: Option<u64>,
    /// Its stream is held for a successor: [`HoldEnded`] follows.
    pub is_held: bool,
}

/// A stream without publisher is no longer held. Reported exactly once for each [`PublishEnded`] with `is_held`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldEnded {
    /// The publish that was lost.
    pub client_id: u64,
    /// The publish that continues with its upstreams and players; `None` if those have ended.
    pub successor: Option<u64>,
}

/// A publish went on air, so that upstreams and players get it, or went on standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnAirChanged {
    /// Which publish.
    pub client_id: u64,
    /// Whether it is on air.
    pub is_on_air: bool,
    /// The other publish of its name, which it took over from or which took over from it; `None` if there was none.
    pub other: Option<u64>,
    /// Why.
    pub cause: OnAirCause,
}

/// Why a publish goes on air or on standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAirCause {
    /// It begins beside one that is on air.
    Began,
    /// The publish on air was lost.
    Lost,
    /// The publish on air sent nothing for a while.
    Silent,
    /// The gateway ordered the switch.
    Switched,
}

/// A push is about to connect and needs addresses that passed the gateway's address guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressWanted {
    /// The core's handle of the push.
    pub push: u64,
    /// Client id of the publish that it pushes.
    pub client_id: u64,
    /// Host of the upstream's URL.
    pub host: String,
    /// Port of the upstream's URL.
    pub port: u16,
    /// Who requested the upstream.
    pub source: UpstreamSource,
}

/// A push started or stopped sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamChanged {
    /// Client id of the publish that it pushes.
    pub client_id: u64,
    /// Id of the upstream, as given.
    pub upstream_id: String,
    /// Host and port; the rest of the URL is secret.
    pub upstream: String,
    /// True when it started sending, false when it stopped or failed to start.
    pub sending: bool,
    /// Why it stopped; empty when it sends.
    pub detail: String,
    /// The same by name.
    pub cause: Option<UpstreamCause>,
}

/// An event for the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// See [`PublishRequested`].
    PublishRequested(PublishRequested),
    /// See [`PublishEnded`].
    PublishEnded(PublishEnded),
    /// See [`HoldEnded`].
    HoldEnded(HoldEnded),
    /// See [`OnAirChanged`].
    OnAirChanged(OnAirChanged),
    /// See [`PlayRequested`].
    PlayRequested(PlayRequested),
    /// See [`PlayEnded`].
    PlayEnded(PlayEnded),
    /// See [`SourceWanted`].
    SourceWanted(SourceWanted),
    /// See [`PullEnded`].
    PullEnded(PullEnded),
    /// See [`ConnectionRefused`].
    ConnectionRefused(ConnectionRefused),
    /// See [`AddressWanted`].
    AddressWanted(AddressWanted),
    /// See [`UpstreamChanged`].
    UpstreamChanged(UpstreamChanged),
    /// See [`UpstreamTested`]. Reported at most once for each test.
    UpstreamTested(UpstreamTested),
}

type Wake = Box<dyn Fn() + Send + Sync>;

/// Shared by all workers; the gateway empties it.
pub(crate) struct Mailbox {
    state: Mutex<State>,
    was_woken: AtomicBool,
    wake: Wake,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    requests: usize,
    play_requests: usize,
    refusals: usize,
}

impl Mailbox {
    /// `wake` is called from any thread on the first event after a drain; it must not block.
    pub(crate) fn new(wake: Wake) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), was_woken: AtomicBool::new(false), wake })
    }

    /// Everything since the last drain, oldest first.
    pub(crate) fn drain(&self) -> Vec<Event> {
        self.was_woken.store(false, Ordering::Release);
        let mut state = lock(&self.state);
        std::mem::take(&mut *state).events
    }

    /// Adds a publish request; returns false if too many are waiting.
    pub(crate) fn put_request(&self, request: PublishRequested) -> bool {
        let event = Event::PublishRequested(request);
        self.put_counted(event, REQUESTS_LIMIT, |state| &mut state.requests)
    }

    /// Adds a play request; returns false if too many are waiting.
    pub(crate) fn put_play_request(&self, request: PlayRequested) -> bool {
        let event = Event::PlayRequested(request);
        self.put_counted(event, PLAY_REQUESTS_LIMIT, |state| &mut state.play_requests)
    }

    /// Reports a refused connection, unless too many reports are waiting.
    pub(crate) fn put_refusal(&self, refused: ConnectionRefused) {
        let event = Event::ConnectionRefused(refused);
        self.put_counted(event, REFUSALS_LIMIT, |state| &mut state.refusals);
    }

    fn put_counted(
        &self,
        event: Event,
        limit: usize,
        count_of: impl Fn(&mut State) -> &mut usize,
    ) -> bool {
        let mut state = lock(&self.state);
        let count = count_of(&mut state);
        if *count >= limit {
            return false;
        }
        *count += 1;
        state.events.push(event);
        drop(state);
        self.wake();
        true
    }

    /// Adds any other event; their number is bounded by the running publishes and pulls, their pushes and players.
    pub(crate) fn put(&self, event: Event) {
        lock(&self.state).events.push(event);
        self.wake();
    }

    fn wake(&self) {
        if !self.was_woken.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mailbox")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_limit_are_rejected_until_the_gateway_drains() {
        let mailbox = Mailbox::new(Box::new(|| {}));
        let request = |request| PublishRequested {
            request,
            app: "live".into(),
            name: b"cam".to_vec(),
            arguments: None,
            address: IpAddr::from([192, 0, 2, 1]),
        };
        assert!((0..REQUESTS_LIMIT as u64).all(|n| mailbox.put_request(request(n))));
        assert!(!mailbox.put_request(request(0)));
        assert_eq!(mailbox.drain().len(), REQUESTS_LIMIT);
        assert!(mailbox.put_request(request(0)));
    }
}
