//! Why a publish ended, and the one table of what each ending sends to the broadcaster.

use headgate_whip::HandshakeFault;

/// Why a publish session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The broadcaster ended it by FCUnpublish, deleteStream or closeStream.
    Unpublished,
    /// The connection closed or broke without such a command.
    BroadcasterLeft,
    /// Nothing was received for longer than the limit.
    Silent,
    /// The broadcaster violated the protocol.
    ProtocolError,
    /// The broadcaster exceeded a limit.
    LimitExceeded,
    /// A new publish took over the name.
    Replaced,
    /// The customer answered an update with something other than 200.
    RejectedByCustomer,
    /// An operator ended it.
    Kicked,
    /// The service is stopping.
    Shutdown,
    /// ICE or DTLS did not complete.
    HandshakeFailed(HandshakeFault),
    /// ICE and DTLS completed, but no usable media arrived in time.
    NoMedia,
    /// The publish's own stream_url refused it before ever accepting it (R4).
    UpstreamRefused,
    /// A bug in the service; only this session is given up.
    InternalError,
}

/// What an ending sends on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndEffect {
    /// See [`EndReason::code`].
    pub(crate) code: &'static str,
    /// `onStatus` code and description for a broadcaster that is still connected; `None` sends nothing.
    pub(crate) status: Option<(&'static str, &'static str)>,
}

impl EndReason {
    /// Stable name, used by the gateway, its logs and the webhook's records.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.effect().code
    }

    /// The table of endings; the compiler demands a row for each new reason.
    #[must_use]
    pub(crate) const fn effect(self) -> EndEffect {
        const fn row(
            code: &'static str,
            status: Option<(&'static str, &'static str)>,
        ) -> EndEffect {
            EndEffect { code, status }
        }
        match self {
            Self::Unpublished => row("unpublished", None),
            Self::BroadcasterLeft => row("broadcaster_left", None),
            Self::Silent => row("silent", Some(("NetStream.Failed", "No media received"))),
            Self::ProtocolError => row("protocol_error", None),
            Self::LimitExceeded => {
                row("limit_exceeded", Some(("NetStream.Failed", "A limit was exceeded")))
            }
            Self::Replaced => {
                row("replaced", Some(("NetStream.Publish.BadName", "Replaced by a new publish")))
            }
            Self::RejectedByCustomer => {
                row("rejected_by_customer", Some(("NetStream.Publish.Denied", "Publish ended")))
            }
            Self::Kicked => row("kicked", Some(("NetStream.Publish.Denied", "Publish ended"))),
            Self::Shutdown => {
                row("shutdown", Some(("NetStream.Failed", "The service is restarting")))
            }
            Self::HandshakeFailed(HandshakeFault::Unreachable) => row("handshake_failed", None),
            Self::HandshakeFailed(HandshakeFault::Incomplete) => row("dtls_incomplete", None),
            Self::HandshakeFailed(HandshakeFault::WrongCertificate) => {
                row("wrong_certificate", None)
            }
            Self::HandshakeFailed(HandshakeFault::NoCommonCipher) => row("no_common_cipher", None),
            Self::HandshakeFailed(HandshakeFault::NoSrtpProfile) => row("no_srtp_profile", None),
            Self::HandshakeFailed(HandshakeFault::OldVersion) => row("dtls_too_old", None),
            Self::HandshakeFailed(HandshakeFault::RefusedByClient) => {
                row("dtls_refused_by_client", None)
            }
            Self::HandshakeFailed(HandshakeFault::Other) => row("dtls_invalid", None),
            Self::NoMedia => row("no_media", None),
            Self::UpstreamRefused => row("upstream_refused", None),
            Self::InternalError => row("internal_error", None),
        }
    }

    /// Whether a publish standing by takes over: yes if this one was lost or failed, because the other encoder need not
    /// have the same fault. An intended end applies to both publishes, and a publish that replaces another one
    /// continues its stream itself.
    #[must_use]
    pub(crate) const fn passes_on(self) -> bool {
        match self {
            Self::BroadcasterLeft
            | Self::Silent
            | Self::HandshakeFailed(_)
            | Self::NoMedia
            | Self::ProtocolError
            | Self::LimitExceeded
            | Self::InternalError => true,
            Self::Replaced
            | Self::Unpublished
            | Self::RejectedByCustomer
            | Self::Kicked
            | Self::Shutdown
            | Self::UpstreamRefused => false,
        }
    }

    /// Whether the publisher may come back, so that its subscribers are held for a while (`switchboard/broadcast/takeover.rs`).
    /// All other endings are intended, or a fault that would recur.
    #[must_use]
    pub(crate) const fn is_loss(self) -> bool {
        match self {
            Self::BroadcasterLeft
            | Self::Silent
            | Self::Replaced
            | Self::HandshakeFailed(_)
            | Self::NoMedia => true,
            Self::Unpublished
            | Self::ProtocolError
            | Self::LimitExceeded
            | Self::RejectedByCustomer
            | Self::Kicked
            | Self::Shutdown
            | Self::UpstreamRefused
            | Self::InternalError => false,
        }
    }
}

/// The end of a publish, as its session reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) reason: EndReason,
    /// The publisher was lost and may come back.
    pub(crate) is_loss: bool,
}

impl From<EndReason> for Ending {
    fn from(reason: EndReason) -> Self {
        Self { reason, is_loss: reason.is_loss() }
    }
}
