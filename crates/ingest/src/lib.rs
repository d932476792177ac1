//! The media core: threads, sockets, timers and live streams of publishes. The gateway makes the decisions.

/// One line to standard error. `eprintln!` panics when the pipe behind it is full, and these lines are written when
/// something is wrong already.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

mod ingest;
mod publish;
mod reactor;
mod replay;
mod session;
mod switchboard;
mod transcoding;

pub use headgate_media::{Irregularity, IrregularityCounts};
pub use headgate_whip::sdp::{MediaSummary, OfferError, OfferSummary};
pub use headgate_whip::{
    AudioDiagnostics, Diagnostics, HandshakeFault, TrackDiagnostics, VideoDiagnostics,
};
pub use ingest::{
    CaptureError, CaptureHandle, Ingest, ParsedOffer, WhipError, WhipPublish, own_offer,
    parse_offer, validate_fragment,
};
pub use publish::capture::{CaptureSettings, CaptureStatus};
pub use publish::end_reason::EndReason;
pub use publish::hold::Hold;
pub use publish::irregularities::irregularity_totals;
pub use publish::mailbox::{
    AddressWanted, ConnectionRefused, Denial, Event, HoldEnded, OnAirCause, OnAirChanged,
    PlayEnded, PlayRequested, PublishEnded, PublishRequested, PullEnded, SourceWanted,
    UpstreamChanged,
};
pub use publish::players::PlayerStatus;
pub use publish::preview_pipe::{PreviewEnd, PreviewRead, PreviewReader};
pub use publish::pull_record::{PullEnd, PullSource, PullState, PullStatus};
pub use publish::record::PublishSnapshot;
pub use publish::tracks::{AudioTrack, Tracks, VideoTrack};
pub use publish::upstream_cause::{PushOrder, PushStep, UpstreamCause, UpstreamTested};
pub use publish::upstream_url::UpstreamUrl;
pub use publish::upstreams::{
    AddedUpstream, Upstream, UpstreamSource, UpstreamState, UpstreamStatus,
};
pub use publish::whip_record::{AnswerError, WhipPatchError, WhipPatched};
pub use reactor::config::{IngestConfig, PortUse, RtmpTls, StartError};
pub use reactor::connection_limits::ConnectionCount;
pub use reactor::tls::TlsError;
pub use reactor::worker_load::WorkerStatus;
pub use replay::{Comparison, ReplayError, Replayed, ReplayedTrack, replay};

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
