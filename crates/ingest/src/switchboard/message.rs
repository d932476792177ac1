//! Messages of the gateway and other workers to a worker.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use headgate_transcode::AacBitrate;

use super::relay::Relay;
use crate::publish::capture::Tap;
use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::Denial;
use crate::publish::near::Near;
use crate::publish::play_guard::PlayGuard;
use crate::publish::preview_pipe::{PreviewEnd, PreviewWriter};
use crate::publish::pull_record::PullSource;
use crate::publish::record::StreamId;
use crate::publish::registry::PublishGuard;
use crate::publish::upstream_cause::PushOrder;
use crate::publish::upstreams::{Upstream, UpstreamRecord};
use crate::session::whip_publisher::{WhipOrder, WhipPublisher};
use crate::transcoding::AUDIO_BITRATE;

/// Everything needed to open an allowed publish on the worker of its stream.
pub(crate) struct Opening {
    pub(crate) guard: PublishGuard,
    pub(crate) upstreams: Vec<Upstream>,
    /// Bitrate of AAC transcoded from its audio.
    pub(crate) audio_bitrate: AacBitrate,
    /// An AMF0 object for its own upstream's connect command; empty if there is none.
    pub(crate) connect_info: Bytes,
    /// How long its stream is held if its publisher is lost.
    pub(crate) window: Duration,
    /// The publishes of its name that it continues or is opened beside.
    pub(crate) near: Near,
}

impl Opening {
    /// A publish that relates to no other and is not held.
    pub(crate) fn new(guard: PublishGuard, upstreams: Vec<Upstream>) -> Self {
        let (audio_bitrate, connect_info) = (AUDIO_BITRATE, Bytes::new());
        let (window, near) = (Duration::ZERO, Near::default());
        Self { guard, upstreams, audio_bitrate, connect_info, window, near }
    }
}

/// One message, handled in order of arrival.
pub(crate) enum Message {
    /// The gateway allowed a publish request. If the stream that it continues, or that it is opened beside, lives on
    /// another worker, the session moves there.
    Allow { request: u64, opening: Opening },
    /// A publish was allowed whose stream lives here and whose broadcaster is connected to another worker: that worker
    /// sends it, or says that it will not come.
    Expect(StreamId),
    /// It will not come.
    Forgo(StreamId),
    /// Put this publish on air.
    SwitchTo(StreamId),
    /// Stop holding a stream: no successor will come.
    Release(StreamId),
    /// The gateway allowed a play request.
    AllowPlay { request: u64, guard: PlayGuard, is_counted: bool },
    /// The gateway allowed a play request for a stream that is live on another node.
    Pull { request: u64, guard: PlayGuard, source: PullSource },
    /// The gateway's answer to a pull that lost its source.
    DialPull { pull: u64, source: Option<PullSource> },
    /// The gateway denied a publish or play request.
    Deny { request: u64, denial: Denial, description: String },
    /// The gateway redirects a publish request to other servers.
    Redirect { request: u64, tc_urls: Vec<String>, description: String },
    /// The gateway's answer to a push that requested addresses.
    Dial { push: u64, addresses: Vec<IpAddr> },
    /// Its other answer: no connection to the push's host is allowed.
    Forbid { push: u64 },
    /// A WHIP publish was allowed and its offer answered.
    OpenWhip { whip: Box<WhipPublisher>, name: Vec<u8>, opening: Opening },
    /// An order for a running WHIP publish.
    Order { stream: StreamId, order: WhipOrder },
    /// The gateway ends a running publish.
    End { stream: StreamId, reason: EndReason, description: String },
    /// One more upstream of a running publish.
    AddUpstream { stream: StreamId, record: Arc<UpstreamRecord> },
    /// Remove one upstream.
    RemoveUpstream { stream: StreamId, serial: u64 },
    /// Pause or resume the push to one upstream, or let it try at once.
    OrderPush { stream: StreamId, serial: u64, order: PushOrder },
    /// Test an upstream; [`crate::UpstreamTested`] follows, unless the worker ends before.
    TestUpstream { test: u64, upstream: Upstream },
    /// Worker `reader` has its first players of a stream that lives here.
    Attach { stream: StreamId, reader: usize, relay: Arc<Relay> },
    /// A stream's transcoder has new output or a new failure.
    Transcoded(StreamId),
    /// Open a preview of a stream that lives here.
    OpenPreview { stream: StreamId, writer: PreviewWriter },
    /// Capture the running publish of a stream.
    Capture { stream: StreamId, tap: Tap },
}

impl Message {
    /// The publish that must have opened before this message is handled.
    pub(super) const fn about(&self) -> Option<StreamId> {
        match self {
            Self::SwitchTo(stream)
            | Self::Release(stream)
            | Self::Order { stream, .. }
            | Self::End { stream, .. }
            | Self::AddUpstream { stream, .. }
            | Self::RemoveUpstream { stream, .. }
            | Self::OrderPush { stream, .. }
            | Self::Attach { stream, .. }
            | Self::OpenPreview { stream, .. }
            | Self::Capture { stream, .. } => Some(*stream),
            Self::Allow { .. }
            | Self::AllowPlay { .. }
            | Self::Pull { .. }
            | Self::DialPull { .. }
            | Self::Deny { .. }
            | Self::Redirect { .. }
            | Self::Dial { .. }
            | Self::Forbid { .. }
            | Self::TestUpstream { .. }
            | Self::OpenWhip { .. }
            | Self::Expect(_)
            | Self::Forgo(_)
            | Self::Transcoded(_) => None,
        }
    }

    /// The worker has ended: a publish that this message would have opened ends with [`EndReason::Shutdown`].
    pub(crate) fn refuse(self) {
        match self {
            Self::Allow { mut opening, .. } | Self::OpenWhip { mut opening, .. } => {
                opening.guard.set_reason(EndReason::Shutdown);
            }
            Self::OpenPreview { mut writer, .. } => writer.set_end(PreviewEnd::PublishEnded),
            Self::AllowPlay { .. }
            | Self::Pull { .. }
            | Self::DialPull { .. }
            | Self::Deny { .. }
            | Self::Redirect { .. }
            | Self::Dial { .. }
            | Self::Forbid { .. }
            | Self::OrderPush { .. }
            | Self::TestUpstream { .. }
            | Self::Order { .. }
            | Self::End { .. }
            | Self::Expect(_)
            | Self::Forgo(_)
            | Self::SwitchTo(_)
            | Self::Release(_)
            | Self::AddUpstream { .. }
            | Self::RemoveUpstream { .. }
            | Self::Attach { .. }
            | Self::Capture { .. }
            | Self::Transcoded(_) => {}
        }
    }
}
