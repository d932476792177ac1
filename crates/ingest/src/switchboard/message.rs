//! What the gateway and other workers ask of a worker.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use headgate_media::Frame;
use headgate_media::transcode::AacBitrate;
use headgate_whip::WhipSession;

use super::relay::Relay;
use super::source::Ending;
use crate::publish::capture::Tap;
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::Denial;
use crate::publish::play_guard::PlayGuard;
use crate::publish::preview_pipe::{PreviewEnd, PreviewWriter};
use crate::publish::pull_record::PullSource;
use crate::publish::record::{PublishRecord, StreamId};
use crate::publish::registry::PublishGuard;
use crate::publish::upstreams::{Upstream, UpstreamRecord};
use crate::session::whip_publisher::WhipOrder;

/// What opens a WHIP publish on its worker.
pub(crate) struct WhipOpening {
    pub(crate) session: Box<WhipSession>,
    /// The offer was ours: the session is replaced by the one that the client's answer leads to.
    pub(crate) awaits_answer: bool,
    pub(crate) name: Vec<u8>,
    pub(crate) guard: PublishGuard,
    pub(crate) upstreams: Vec<Upstream>,
    /// Of AAC made of its audio.
    pub(crate) audio_bitrate: AacBitrate,
    /// An AMF0 object for its own upstream's connect command; empty for none.
    pub(crate) connect_info: Bytes,
    /// See [`PublishOpening::window`].
    pub(crate) window: Duration,
    /// See [`PublishOpening::continues`].
    pub(crate) continues: Option<StreamId>,
    /// See [`PublishOpening::beside`].
    pub(crate) beside: Option<StreamId>,
}

/// What opens an RTMP publish that was allowed.
pub(crate) struct PublishOpening {
    pub(crate) guard: PublishGuard,
    pub(crate) upstreams: Vec<Upstream>,
    /// How long its stream is held when its publisher is lost.
    pub(crate) window: Duration,
    /// The held stream that it goes on with.
    pub(crate) continues: Option<StreamId>,
    /// The stream of the other publish of its name: while that is on air, this one stands by.
    pub(crate) beside: Option<StreamId>,
}

/// One thing to do, in the order of arrival.
pub(crate) enum Message {
    /// The gateway allowed a publish request.
    Allow { request: u64, opening: PublishOpening },
    /// The same, and the stream that it continues, or that it is opened beside, lives on worker `home`.
    AllowAway { request: u64, home: usize, relay: Arc<Relay>, record: Arc<PublishRecord> },
    /// The same to that worker: the publisher is one of `worker`.
    OpenForAway { worker: usize, relay: Arc<Relay>, name: Vec<u8>, opening: PublishOpening },
    /// The publisher of a stream that lives here, from its own worker: it is gone.
    PublisherGone { stream: StreamId, ending: Ending },
    /// The other way: it is to end.
    EndPublisher { stream: StreamId, reason: EndReason, description: String },
    /// A stream that is read here is that of another publish from now on.
    Succeeded { stream: StreamId, record: Arc<PublishRecord> },
    /// This publish is to be on air.
    SwitchTo(StreamId),
    /// Nobody is to continue a held stream.
    Release(StreamId),
    /// The gateway allowed a play request.
    AllowPlay { request: u64, guard: PlayGuard, is_counted: bool },
    /// The gateway allowed a play request of a stream that is live on another node.
    Pull { request: u64, guard: PlayGuard, source: PullSource },
    /// The gateway's answer to a pull that lost its source.
    DialPull { pull: u64, source: Option<PullSource> },
    /// The gateway denied a publish or play request.
    Deny { request: u64, denial: Denial, description: String },
    /// The gateway refused a publish request here, and knows where another server takes it.
    Redirect { request: u64, tc_urls: Vec<String>, description: String },
    /// The gateway's answer to a push that asked for addresses.
    Dial { push: u64, addresses: Vec<IpAddr> },
    /// A WHIP publish was allowed and its offer answered.
    OpenWhip(Box<WhipOpening>),
    /// An order for a running WHIP publish.
    Order { stream: StreamId, order: WhipOrder },
    /// The gateway ends a running publish.
    End { stream: StreamId, reason: EndReason, description: String },
    /// One more upstream of a running publish.
    AddUpstream { stream: StreamId, record: Arc<UpstreamRecord> },
    /// One upstream less.
    RemoveUpstream { stream: StreamId, serial: u64 },
    /// Worker `reader` has players of a stream that lives here.
    Attach { stream: StreamId, reader: usize, relay: Arc<Relay> },
    /// The answer: where the relay starts. `None` when the stream is gone.
    Seed { stream: StreamId, relay: Arc<Relay>, burst: Option<Vec<Frame>> },
    /// Worker `reader` has no players of it any more.
    Detach { stream: StreamId, relay: Arc<Relay> },
    /// Someone on another worker begins to read a stream that lives here.
    WantKeyframe(StreamId),
    /// A stream's transcoder has something to say.
    Transcoded(StreamId),
    /// Someone looks at a stream that lives here.
    OpenPreview { stream: StreamId, writer: PreviewWriter },
    /// The running publish of a stream is to be captured.
    Capture { stream: StreamId, tap: Tap },
}

impl Message {
    /// The worker serves no more: what would have begun a publish ends it.
    pub(crate) fn refuse(self) {
        match self {
            Self::Allow { mut opening, .. } | Self::OpenForAway { mut opening, .. } => {
                opening.guard.set_reason(EndReason::Shutdown);
            }
            Self::OpenWhip(mut opening) => opening.guard.set_reason(EndReason::Shutdown),
            Self::OpenPreview { mut writer, .. } => writer.set_end(PreviewEnd::PublishEnded),
            Self::AllowPlay { .. }
            | Self::Pull { .. }
            | Self::DialPull { .. }
            | Self::Deny { .. }
            | Self::Redirect { .. }
            | Self::Dial { .. }
            | Self::Order { .. }
            | Self::End { .. }
            | Self::AllowAway { .. }
            | Self::PublisherGone { .. }
            | Self::EndPublisher { .. }
            | Self::Succeeded { .. }
            | Self::SwitchTo(_)
            | Self::Release(_)
            | Self::AddUpstream { .. }
            | Self::RemoveUpstream { .. }
            | Self::Attach { .. }
            | Self::Seed { .. }
            | Self::Detach { .. }
            | Self::WantKeyframe(_)
            | Self::Capture { .. }
            | Self::Transcoded(_) => {}
        }
    }
}
