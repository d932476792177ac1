//! The transfer objects; `null` means none.

use std::fmt::Display;
use std::time::{SystemTime, UNIX_EPOCH};

use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::accepting::RtmpSockets;
use crate::hold::Hold;
use crate::names::{PushStep, UpstreamCause, UpstreamSource, UpstreamState};

/// Settings for starting the core.
#[napi(object, use_nullable = true, object_to_js = false)]
pub struct MediaOptions {
    /// IP address to listen on for RTMP.
    pub rtmp_host: String,
    /// RTMP port; 0 takes any free port, and null serves RTMP over TLS alone.
    pub rtmp_port: Option<u16>,
    /// Addresses and networks of the proxies that send a PROXY protocol header.
    pub rtmp_trusted_proxies: Vec<String>,
    /// RTMP over TLS on the same host; null without a certificate.
    pub rtmp_tls: Option<RtmpTlsOptions>,
    /// Sockets that already listen there; the core duplicates them.
    pub rtmp_sockets: RtmpSockets,
    /// Whether RTMP connections are accepted at once, or only after startAccepting.
    pub accepts: bool,
    /// Authorities for upstreams' certificates in addition to the system's, PEM.
    pub upstream_ca: Option<String>,
    /// IP address to listen on for media.
    pub media_host: String,
    /// UDP port of the first media worker; 0 takes any free ones.
    pub media_port: u16,
    /// IP addresses written into answers, the best first.
    pub public_addresses: Vec<String>,
    /// Number of media workers; at least one.
    pub workers: u32,
    /// Number of threads that transcode Opus to AAC; at least one.
    pub audio_workers: u32,
    /// Whether players that join late start with the cached GOP.
    pub gop_cache: bool,
    /// Whether silence is added to pushes without audio (R5).
    pub push_silence: bool,
    /// Whether publishes may be captured.
    pub captures: bool,
    /// RTMP connections in total, upstreams included; 0: as many as the process's descriptors allow.
    pub rtmp_connections: u32,
    /// RTMP connections from one address; 0 is no limit.
    pub rtmp_connections_per_address: u32,
}

/// RTMP over TLS: port (0 takes any free one), certificate chain and key as PEM.
#[napi(object, object_to_js = false)]
pub struct RtmpTlsOptions {
    pub port: u16,
    pub cert: String,
    pub key: String,
}

/// An upstream to push a publish to.
#[napi(object, object_to_js = false)]
pub struct Upstream {
    /// Unique within the publish, and not secret.
    pub id: String,
    /// A complete RTMP URL: it may contain secrets.
    pub url: String,
    pub source: UpstreamSource,
    /// Not connected until it is resumed; absent: connected at once.
    pub paused: Option<bool>,
}

/// A WHIP publish that was allowed.
#[napi(object, use_nullable = true, object_to_js = false)]
pub struct WhipOptions {
    pub client_id: f64,
    /// Stream name without arguments.
    pub name: String,
    pub upstreams: Vec<Upstream>,
    pub stereo: bool,
    pub start_bitrate_kbps: u32,
    /// Highest bitrate of the sender, kbit/s; 0 is no limit.
    pub max_bitrate_kbps: u32,
    /// Bitrate of the transcoded AAC, bit/s, mono or stereo; null for the default, which is halved for mono.
    pub audio_bitrate: Option<u32>,
    /// AMF0 object whose properties are added to the connect command to the publish's own upstream.
    #[napi(ts_type = "Uint8Array")]
    pub connect_info: Option<Uint8Array>,
    pub hold: Hold,
}

/// Why an offer, an answer or a fragment is refused.
#[napi(object, object_from_js = false)]
pub struct SdpRefused {
    #[napi(ts_type = "'refused'")]
    pub outcome: &'static str,
    pub code: String,
    /// HTTP status.
    #[napi(ts_type = "400 | 422")]
    pub status: u16,
    /// A description for people; never repeats the SDP.
    pub detail: String,
}

/// The state of one upstream of a running publish.
#[napi(object, use_nullable = true, object_from_js = false)]
pub struct UpstreamStatus {
    /// The id given when it was added.
    pub id: String,
    /// `rtmp[s]://host:port/app`: without credentials, stream key and arguments.
    pub url: String,
    pub source: UpstreamSource,
    pub state: UpstreamState,
    /// When it entered this state, epoch ms.
    pub since: f64,
    /// Why it last stopped, in words; null when it never did.
    pub last_error: Option<String>,
    /// The same by name; null when it never did.
    pub last_cause: Option<UpstreamCause>,
    /// Audio and video payload bytes sent to it, over all its connections.
    pub bytes_out: f64,
    pub dropped_frames: f64,
    /// How often it was reconnected.
    pub reconnects: f64,
}

impl From<headgate_ingest::UpstreamStatus> for UpstreamStatus {
    fn from(status: headgate_ingest::UpstreamStatus) -> Self {
        Self {
            id: status.id,
            url: status.url,
            source: status.source.into(),
            state: status.state.into(),
            since: epoch_ms(status.since),
            last_error: status.last_error,
            last_cause: status.last_cause.map(UpstreamCause::from),
            bytes_out: number(status.bytes_out),
            dropped_frames: number(status.dropped_frames),
            reconnects: number(status.reconnects),
        }
    }
}

/// A step of an upstream's test.
#[napi(object, object_from_js = false)]
pub struct TestedStep {
    pub step: PushStep,
    /// How long it took, ms.
    pub ms: f64,
}

impl From<(headgate_ingest::PushStep, u64)> for TestedStep {
    fn from((step, ms): (headgate_ingest::PushStep, u64)) -> Self {
        Self { step: step.into(), ms: number(ms) }
    }
}

/// The state of one player of a running publish.
#[napi(object, object_from_js = false)]
pub struct PlayerStatus {
    /// IP address it reads from.
    pub address: String,
    /// When it joined, epoch ms.
    pub since: f64,
    /// Audio and video payload bytes sent to it.
    pub bytes_out: f64,
    /// Frames dropped because it was slow.
    pub dropped_frames: f64,
}

impl From<headgate_ingest::PlayerStatus> for PlayerStatus {
    fn from(status: headgate_ingest::PlayerStatus) -> Self {
        Self {
            address: status.address.to_string(),
            since: epoch_ms(status.since),
            bytes_out: number(status.bytes_out),
            dropped_frames: number(status.dropped_frames),
        }
    }
}

impl SdpRefused {
    pub(crate) fn new(code: &str, status: u16, error: &dyn Display) -> Self {
        Self { outcome: "refused", code: code.into(), status, detail: error.to_string() }
    }
}

pub(crate) fn epoch_ms(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    number(u64::try_from(since.as_millis()).unwrap_or(0))
}

/// Handles, client ids and byte counts are far below 2^53, up to which a JavaScript number is exact.
#[allow(clippy::cast_precision_loss, reason = "below 2^53, see above")]
pub(crate) const fn number(value: u64) -> f64 {
    value as f64
}
