//! The transfer objects. Same names and order as in `ts/media.ts`; `null` means none.

use std::time::{SystemTime, UNIX_EPOCH};

use headgate_ingest::{Event, PlayerStatus, UpstreamStatus};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::hold::HoldOptions;

/// Settings for starting the core.
#[napi(object)]
pub struct MediaOptions {
    /// IP address to listen on for RTMP.
    pub rtmp_host: String,
    /// RTMP port; 0 takes any free port, and none serves RTMP over TLS alone.
    pub rtmp_port: Option<u16>,
    /// Addresses and networks of the proxies that send a PROXY protocol header.
    pub rtmp_trusted_proxies: Vec<String>,
    /// Sockets that already listen there, as file descriptors of this process; the core duplicates them.
    pub rtmp_socket: Option<i32>,
    pub rtmp_tls_socket: Option<i32>,
    /// Whether RTMP connections are accepted at once, or only after start_accepting.
    pub accepts: bool,
    /// RTMP over TLS: port (0 takes any free one), certificate chain and key as PEM; all three or none.
    pub rtmp_tls_port: Option<u16>,
    pub rtmp_tls_cert: Option<String>,
    pub rtmp_tls_key: Option<String>,
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
    /// Number of transcoding threads; at least one.
    pub audio_workers: u32,
    /// Whether new players start with the cached GOP.
    pub gop_cache: bool,
    /// Whether silence is added to pushes without audio.
    pub push_silence: bool,
    /// Whether publishes may be captured.
    pub captures: bool,
    /// Limit of RTMP connections; 0: as many as the process's descriptors allow.
    pub rtmp_connections: u32,
    /// Limit of RTMP connections from one address; 0 is no limit.
    pub rtmp_connections_per_address: u32,
}

/// An upstream to push a publish to.
#[napi(object)]
pub struct UpstreamOptions {
    /// Unique within the publish, and not secret.
    pub id: String,
    /// A complete RTMP URL.
    pub url: String,
    /// deployment, stream, session or own.
    pub source: String,
}

/// A WHIP publish that was allowed.
#[napi(object)]
pub struct WhipOptions {
    pub client_id: f64,
    /// Stream name without arguments.
    pub name: Buffer,
    pub upstreams: Vec<UpstreamOptions>,
    pub stereo: bool,
    pub start_bitrate_kbps: u32,
    /// Highest bitrate of the sender, kbit/s; 0 is no limit.
    pub max_bitrate_kbps: u32,
    /// Bitrate of the transcoded AAC, bit/s, mono or stereo; none for the default, which is halved for mono.
    pub audio_bitrate: Option<u32>,
    /// AMF0 object whose properties are added to the connect command to the publish's own upstream.
    pub connect_info: Option<Buffer>,
    pub hold: HoldOptions,
}

/// Why an offer or a fragment is refused.
#[napi(object)]
pub struct SdpRefusal {
    pub code: String,
    /// HTTP status.
    pub status: u16,
    /// A description for people; never repeats the SDP.
    pub detail: String,
}

/// One mailbox item as a flat object: `kind` determines which members are set.
#[napi(object)]
pub struct MailboxItem {
    /// publish_requested, publish_ended, hold_ended, on_air_changed, play_requested, play_ended, source_wanted, pull_ended,
    /// connection_refused, address_wanted or upstream_changed.
    pub kind: String,
    pub request: Option<f64>,
    pub app: Option<String>,
    pub name: Option<Buffer>,
    pub arguments: Option<Buffer>,
    pub address: Option<String>,
    pub client_id: Option<f64>,
    pub reason: Option<String>,
    pub bytes_in: Option<f64>,
    pub bytes_out: Option<f64>,
    pub video_frames: Option<f64>,
    pub held: Option<bool>,
    pub successor: Option<f64>,
    pub on_air: Option<bool>,
    pub other: Option<f64>,
    pub cause: Option<String>,
    pub player: Option<f64>,
    pub dropped_frames: Option<f64>,
    pub pull: Option<f64>,
    pub code: Option<String>,
    pub push: Option<f64>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub source: Option<String>,
    pub upstream_id: Option<String>,
    pub upstream: Option<String>,
    pub sending: Option<bool>,
    pub detail: Option<String>,
}

impl MailboxItem {
    fn of(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            request: None,
            app: None,
            name: None,
            arguments: None,
            address: None,
            client_id: None,
            reason: None,
            bytes_in: None,
            bytes_out: None,
            video_frames: None,
            held: None,
            successor: None,
            on_air: None,
            other: None,
            cause: None,
            player: None,
            dropped_frames: None,
            pull: None,
            code: None,
            push: None,
            host: None,
            port: None,
            source: None,
            upstream_id: None,
            upstream: None,
            sending: None,
            detail: None,
        }
    }
}

impl From<Event> for MailboxItem {
    fn from(event: Event) -> Self {
        match event {
            Event::PublishRequested(asked) => Self {
                request: Some(number(asked.request)),
                app: Some(asked.app),
                name: Some(asked.name.into()),
                arguments: asked.arguments.map(Buffer::from),
                address: Some(asked.address.to_string()),
                ..Self::of("publish_requested")
            },
            Event::PublishEnded(ended) => Self {
                client_id: Some(number(ended.client_id)),
                reason: Some(ended.reason.code().into()),
                bytes_in: Some(number(ended.bytes_in)),
                bytes_out: Some(number(ended.bytes_out)),
                video_frames: Some(number(ended.video_frames)),
                dropped_frames: Some(number(ended.dropped_frames)),
                held: Some(ended.is_held),
                ..Self::of("publish_ended")
            },
            Event::HoldEnded(ended) => Self {
                client_id: Some(number(ended.client_id)),
                successor: ended.successor.map(number),
                ..Self::of("hold_ended")
            },
            Event::OnAirChanged(changed) => Self {
                client_id: Some(number(changed.client_id)),
                on_air: Some(changed.is_on_air),
                other: changed.other.map(number),
                cause: Some(changed.cause.code().into()),
                ..Self::of("on_air_changed")
            },
            Event::PlayRequested(asked) => Self {
                request: Some(number(asked.request)),
                name: Some(asked.name.into()),
                client_id: asked.client_id.map(number),
                arguments: asked.arguments.map(Buffer::from),
                address: Some(asked.address.to_string()),
                ..Self::of("play_requested")
            },
            Event::PlayEnded(ended) => Self {
                player: Some(number(ended.player)),
                bytes_out: Some(number(ended.bytes_out)),
                dropped_frames: Some(number(ended.dropped_frames)),
                ..Self::of("play_ended")
            },
            Event::SourceWanted(wanted) => Self {
                pull: Some(number(wanted.pull)),
                name: Some(wanted.name.into()),
                client_id: Some(number(wanted.client_id)),
                ..Self::of("source_wanted")
            },
            Event::PullEnded(ended) => Self {
                client_id: Some(number(ended.client_id)),
                name: Some(ended.name.into()),
                reason: Some(ended.end.code().into()),
                detail: Some(ended.detail),
                bytes_in: Some(number(ended.bytes_in)),
                bytes_out: Some(number(ended.bytes_out)),
                ..Self::of("pull_ended")
            },
            Event::ConnectionRefused(refused) => Self {
                address: Some(refused.address.to_string()),
                code: Some(refused.code.into()),
                detail: Some(refused.detail),
                ..Self::of("connection_refused")
            },
            Event::AddressWanted(wanted) => Self {
                push: Some(number(wanted.push)),
                client_id: Some(number(wanted.client_id)),
                host: Some(wanted.host),
                port: Some(wanted.port),
                source: Some(wanted.source.code().into()),
                ..Self::of("address_wanted")
            },
            Event::UpstreamChanged(changed) => Self {
                client_id: Some(number(changed.client_id)),
                upstream_id: Some(changed.upstream_id),
                upstream: Some(changed.upstream),
                sending: Some(changed.sending),
                detail: Some(changed.detail),
                ..Self::of("upstream_changed")
            },
        }
    }
}

/// Counters and state of one upstream of a running publish.
#[napi(object)]
pub struct UpstreamCounters {
    /// The id given in its options.
    pub id: String,
    /// Scheme, host, port and app.
    pub url: String,
    /// deployment, stream, session or own.
    pub source: String,
    /// connecting, sending, waiting or refused.
    pub state: String,
    /// When it entered this state, epoch ms.
    pub since: f64,
    pub last_error: Option<String>,
    pub bytes_out: f64,
    pub dropped_frames: f64,
    pub reconnects: f64,
}

impl From<UpstreamStatus> for UpstreamCounters {
    fn from(status: UpstreamStatus) -> Self {
        Self {
            id: status.id,
            url: status.url,
            source: status.source.code().into(),
            state: status.state.code().into(),
            since: epoch_ms(status.since),
            last_error: status.last_error,
            bytes_out: number(status.bytes_out),
            dropped_frames: number(status.dropped_frames),
            reconnects: number(status.reconnects),
        }
    }
}

/// Counters of one player of a running publish.
#[napi(object)]
pub struct PlayerCounters {
    /// Address of the player.
    pub address: String,
    /// When it joined, epoch ms.
    pub since: f64,
    pub bytes_out: f64,
    pub dropped_frames: f64,
}

impl From<PlayerStatus> for PlayerCounters {
    fn from(status: PlayerStatus) -> Self {
        Self {
            address: status.address.to_string(),
            since: epoch_ms(status.since),
            bytes_out: number(status.bytes_out),
            dropped_frames: number(status.dropped_frames),
        }
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
