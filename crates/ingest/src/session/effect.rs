//! Requests of a session to its switchboard. A session is given bytes and time and appends its effects, in order, to
//! the list that it is given; it never calls back.

use std::net::{IpAddr, SocketAddr};

use headgate_media::{Codec, Frame, Timestamp};
use headgate_rtmp::Target;
use headgate_whip::{Path, RevokedConsent};

use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::{ConnectionRefused, UpstreamChanged};
use crate::publish::upstream_cause::UpstreamTested;
use crate::publish::upstreams::UpstreamSource;

/// One request.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A broadcaster at this address sent `publish`: the gateway decides. Answered by `allow` or `deny`.
    Ask(Target, IpAddr),
    /// The pending request is closed: an answer would come too late.
    WithdrawQuestion,
    /// A frame of the stream that this session publishes.
    Publish(Frame),
    /// The publish has ended; the connection stays until its remaining output is written.
    EndPublish(EndReason),
    /// The same, but unintended: the publisher may come back, whatever the reason says.
    LosePublish(EndReason),
    /// A player requests a stream: the gateway decides. Answered by `accept_play`, `await_stream` or `deny`.
    AskToPlay(Target, IpAddr),
    /// The connection was refused before it requested a publish or a play.
    ReportRefusal(ConnectionRefused),
    /// A push requests the frames of its stream that come after `after`.
    Read {
        /// How its upstream takes Opus audio.
        form: AudioForm,
        /// Decode timestamp of the newest frame that the upstream has.
        after: Option<Timestamp>,
    },
    /// The upstream of a push that already reads has accepted the stream, and takes Opus audio in this form.
    Accepted(AudioForm),
    /// Stop delivering frames; queued ones are dropped.
    StopReading,
    /// Resolve a push's host. The gateway answers by `handle_addresses`.
    Resolve {
        client_id: u64,
        source: UpstreamSource,
        /// Host name or address literal.
        host: String,
        /// Port of the upstream's URL.
        port: u16,
    },
    /// Ask the gateway where a pulled stream of this name is. Answered by `handle_source`.
    Locate { client_id: u64, name: Vec<u8> },
    /// Connect to an upstream, or to the source of a pull. Answered by `handle_connected` or `handle_connect_failed`.
    Connect {
        /// Address to connect to.
        address: SocketAddr,
        /// Use TLS, with a certificate for this host.
        tls_host: Option<String>,
    },
    /// Close that connection immediately.
    Disconnect,
    /// Read the socket although fewer bytes may wait than raise a read event.
    ReadSocket,
    /// Report a change of an upstream to the operator.
    Report(UpstreamChanged),
    /// Report the result of a test of an upstream.
    ReportTest(UpstreamTested),
    /// The publish's own upstream refused it before ever accepting it: the publish ends (R4).
    RefusePublish,
    /// Send a datagram to the client.
    Send(Path, Vec<u8>),
    /// Datagrams from this path belong to this session.
    Route(Path),
    /// Datagrams from this path no longer belong to this session.
    Unroute(Path),
    /// Media with this SSRC from an unknown path may belong to this session.
    RouteSource(u32),
    /// From this moment on, answer the client's STUN requests with this.
    Revoke(RevokedConsent),
    /// The session has ended; its publish, if any, ends for this reason.
    Close(EndReason),
}

/// How a subscriber takes the audio of a stream whose broadcaster sends Opus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AudioForm {
    /// Not known yet: both forms are queued for it, and it does not cause transcoding.
    Undecided,
    /// Unchanged, as Opus.
    Opus,
    /// Transcoded to AAC.
    Aac,
}

impl AudioForm {
    /// Whether such a subscriber takes frames of this codec; with `has_opus`, the stream's AAC is transcoded.
    pub(crate) const fn takes(self, codec: Codec, has_opus: bool) -> bool {
        match (self, codec) {
            (Self::Aac, Codec::Opus) => false,
            (Self::Opus, Codec::Aac) => !has_opus,
            (Self::Undecided | Self::Opus | Self::Aac, _) => true,
        }
    }
}
