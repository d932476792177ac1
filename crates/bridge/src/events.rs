//! The events that JavaScript drains from the core's mailbox.

use headgate_ingest::Event;
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::counters::PublishTracks;
use crate::names::{EndReason, OnAirCause, PullEndReason, UpstreamCause, UpstreamSource};
use crate::transfer::{TestedStep, number};

/// An event of the core. Bytes are audio and video payload, without RTMP and FLV.
#[napi(
    discriminant = "kind",
    discriminant_case = "snake_case",
    use_nullable = true,
    object_from_js = false
)]
pub enum MediaEvent {
    /// A broadcaster has sent `publish` and waits. Answer with `allow` or `deny`; no answer in 12 s is a denial.
    PublishRequested {
        /// The core's own handle of this request; never shown to a customer.
        request: f64,
        /// First segment of the RTMP path, `live`.
        app: String,
        /// Stream name as sent, without arguments.
        #[napi(ts_type = "Uint8Array")]
        name: Buffer,
        /// Bytes after the first `?` of the name, untouched; null when there was no `?`.
        #[napi(ts_type = "Uint8Array")]
        arguments: Option<Buffer>,
        /// IP address of the broadcaster.
        address: String,
    },
    /// Sent exactly once for every `allow`, whatever happens to the session.
    PublishEnded {
        client_id: f64,
        reason: EndReason,
        /// From the broadcaster.
        bytes_in: f64,
        /// Sent to all upstreams and players.
        bytes_out: f64,
        /// Video frames from the broadcaster.
        video_frames: f64,
        /// Frames that slow upstreams and players lost, summed over them.
        dropped_frames: f64,
        tracks: PublishTracks,
        /// RTP packets that never arrived, as of at most two seconds before; null for RTMP.
        packets_lost: Option<f64>,
        /// Its publisher was lost, and its upstreams and players are held: a `hold_ended` follows.
        held: bool,
    },
    /// The upstreams and players of a lost publish are no longer held.
    HoldEnded {
        client_id: f64,
        /// The publish that takes them over; null: they have ended.
        successor: Option<f64>,
    },
    /// A publish has gone on air, so that upstreams and players receive it, or has gone on standby.
    OnAirChanged {
        client_id: f64,
        on_air: bool,
        /// The other publish of its name: the one it took over from, or the one on air; null for none.
        other: Option<f64>,
        cause: OnAirCause,
    },
    /// A player has requested a stream and waits. Answer with `allowPlay`, `pull` or `deny`; no answer in 12 s is a
    /// refusal.
    PlayRequested {
        /// The core's own handle of this request, and afterwards of the player.
        request: f64,
        /// Stream name as sent, without arguments.
        #[napi(ts_type = "Uint8Array")]
        name: Buffer,
        /// The publish of this node that is live under that name; null when there is none.
        client_id: Option<f64>,
        /// Bytes after the first `?` of the name, untouched; null when there was no `?`.
        #[napi(ts_type = "Uint8Array")]
        arguments: Option<Buffer>,
        /// IP address of the player.
        address: String,
    },
    /// Sent exactly once for every `allowPlay`, whatever happens to the player.
    PlayEnded {
        /// Handle of its request.
        player: f64,
        bytes_out: f64,
        /// Frames dropped because it was slow.
        dropped_frames: f64,
    },
    /// The connection of a pull was lost: answer with `dialPull` and the present source of its stream.
    SourceWanted {
        /// The core's own handle of the pull.
        pull: f64,
        /// Stream name without arguments.
        #[napi(ts_type = "Uint8Array")]
        name: Buffer,
        /// The pulled publish; another publish of that name is another stream.
        client_id: f64,
    },
    /// Sent exactly once for every pull that was started.
    PullEnded {
        /// The publish at the source.
        client_id: f64,
        /// Stream name without arguments.
        #[napi(ts_type = "Uint8Array")]
        name: Buffer,
        reason: PullEndReason,
        /// The reason in words; may be empty.
        detail: String,
        /// From the source.
        bytes_in: f64,
        /// Sent to the players.
        bytes_out: f64,
    },
    /// An RTMP connection was refused before it requested a publish or a play.
    ConnectionRefused {
        /// IP address of the peer.
        address: String,
        /// Stable code of the reason: the codes of `Error` in crates/rtmp/src/error.rs, `app`, or `tls_…` of a failed
        /// handshake (crates/ingest/src/reactor/tls.rs).
        code: String,
        /// The reason in words.
        detail: String,
    },
    /// A push is about to connect; answer with `dial`. Sent again before every reconnect.
    AddressWanted {
        push: f64,
        client_id: f64,
        host: String,
        port: u16,
        /// Who configured the upstream, which determines the addresses it may use.
        source: UpstreamSource,
    },
    /// A change of a push, for the operator.
    UpstreamChanged {
        client_id: f64,
        /// The id given when the upstream was added.
        upstream_id: String,
        /// Host and port; the rest of the URL is secret.
        upstream: String,
        sending: bool,
        /// Why it stopped; empty while it is sending.
        detail: String,
        /// The same by name; null while it is sending.
        cause: Option<UpstreamCause>,
    },
    /// The test of an upstream is over; at most once for every `testUpstream`, and not when the core stops before.
    UpstreamTested {
        /// The id given to the test.
        client_id: f64,
        /// The steps that were begun, in order; the last one failed if there is a cause.
        steps: Vec<TestedStep>,
        /// Why it failed; null when it did not.
        cause: Option<UpstreamCause>,
        /// The same in words; empty when it did not.
        detail: String,
    },
}

impl From<Event> for MediaEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::PublishRequested(of) => Self::PublishRequested {
                request: number(of.request),
                app: of.app,
                name: of.name.into(),
                arguments: of.arguments.map(Buffer::from),
                address: of.address.to_string(),
            },
            Event::PublishEnded(of) => Self::PublishEnded {
                client_id: number(of.client_id),
                reason: of.reason.into(),
                bytes_in: number(of.bytes_in),
                bytes_out: number(of.bytes_out),
                video_frames: number(of.video_frames),
                dropped_frames: number(of.dropped_frames),
                tracks: of.tracks.into(),
                packets_lost: of.packets_lost.map(number),
                held: of.is_held,
            },
            Event::HoldEnded(of) => Self::HoldEnded {
                client_id: number(of.client_id),
                successor: of.successor.map(number),
            },
            Event::OnAirChanged(of) => Self::OnAirChanged {
                client_id: number(of.client_id),
                on_air: of.is_on_air,
                other: of.other.map(number),
                cause: of.cause.into(),
            },
            Event::PlayRequested(of) => Self::PlayRequested {
                request: number(of.request),
                name: of.name.into(),
                client_id: of.client_id.map(number),
                arguments: of.arguments.map(Buffer::from),
                address: of.address.to_string(),
            },
            Event::PlayEnded(of) => Self::PlayEnded {
                player: number(of.player),
                bytes_out: number(of.bytes_out),
                dropped_frames: number(of.dropped_frames),
            },
            Event::SourceWanted(of) => Self::SourceWanted {
                pull: number(of.pull),
                name: of.name.into(),
                client_id: number(of.client_id),
            },
            Event::PullEnded(of) => Self::PullEnded {
                client_id: number(of.client_id),
                name: of.name.into(),
                reason: of.end.into(),
                detail: of.detail,
                bytes_in: number(of.bytes_in),
                bytes_out: number(of.bytes_out),
            },
            Event::ConnectionRefused(of) => Self::ConnectionRefused {
                address: of.address.to_string(),
                code: of.code.into(),
                detail: of.detail,
            },
            Event::AddressWanted(of) => Self::AddressWanted {
                push: number(of.push),
                client_id: number(of.client_id),
                host: of.host,
                port: of.port,
                source: of.source.into(),
            },
            Event::UpstreamChanged(of) => Self::UpstreamChanged {
                client_id: number(of.client_id),
                upstream_id: of.upstream_id,
                upstream: of.upstream,
                sending: of.sending,
                detail: of.detail,
                cause: of.cause.map(UpstreamCause::from),
            },
            Event::UpstreamTested(of) => Self::UpstreamTested {
                client_id: number(of.client_id),
                steps: of.steps.into_iter().map(TestedStep::from).collect(),
                cause: of.cause.map(UpstreamCause::from),
                detail: of.detail,
            },
        }
    }
}
