//! The names that cross the bridge: string enums, in snake case, of the core's own.

use headgate_ingest::HandshakeFault;
use napi_derive::napi;

/// A string enum of one of the core's enums, with the same variants, and then one for each fault of a variant that has
/// faults. Its description is an attribute: napi-derive does not read doc comments that passed through a macro.
macro_rules! names {
    (
        $(#[$doc:meta])* $name:ident of $core:ident { $($variant:ident),* $(,)? }
        $($parent:ident { $($fault:ident as $flat:ident),* $(,)? })?
    ) => {
        $(#[$doc])*
        #[napi(string_enum = "snake_case")]
        #[allow(missing_docs, reason = "the core's enum tells what each means")]
        pub enum $name { $($variant,)* $($($flat,)*)? }

        impl From<headgate_ingest::$core> for $name {
            fn from(of: headgate_ingest::$core) -> Self {
                use headgate_ingest::$core as Core;
                match of {
                    $(Core::$variant => Self::$variant,)*
                    $($(Core::$parent(HandshakeFault::$fault) => Self::$flat,)*)?
                }
            }
        }

        impl From<$name> for headgate_ingest::$core {
            fn from(of: $name) -> Self {
                match of {
                    $($name::$variant => Self::$variant,)*
                    $($($name::$flat => Self::$parent(HandshakeFault::$fault),)*)?
                }
            }
        }
    };
}

names! {
    #[doc = "Where an upstream comes from: the operator's settings, the stream, an API call for this publish only, or the publish's own stream_url."]
    UpstreamSource of UpstreamSource { Deployment, Stream, Session, Own }
}
names! {
    #[doc = "State of a push to an upstream. `waiting`: for the next attempt after a loss; `refused`: the same after a refusal, with longer pauses; `paused`: until it is resumed."]
    UpstreamState of UpstreamState { Connecting, Sending, Waiting, Refused, Paused }
}
names! {
    #[doc = "Why a push stopped, or could not begin."]
    UpstreamCause of UpstreamCause {
        Dns, AddressForbidden, ConnectionRefused, Unreachable, TimedOut, Tls, Rejected, Closed, TooSlow, Protocol,
        CodecUnlisted, NoRoom,
    }
}
names! {
    #[doc = "A step of a push, in the order in which they are taken; `tls` for rtmps alone."]
    PushStep of PushStep { Dns, Tcp, Tls, Handshake, Connect, Publish, Media }
}
names! {
    #[doc = "What the gateway orders for a running push: to end and keep its place, to begin again, to try at once."]
    PushOrder of PushOrder { Pause, Resume, Retry }
}
names! {
    #[doc = "The outcome of adding an upstream; `added` also when the publish already has it."]
    AddedUpstream of AddedUpstream { Added, NotRunning, TooMany }
}
names! {
    #[doc = "Why a publish goes on air or to standby."]
    OnAirCause of OnAirCause { Began, Lost, Silent, Switched }
}
names! {
    #[doc = "State of a pull from another node. `connecting`: until the first frame; `reconnecting`: its connection was lost, and its players wait."]
    PullState of PullState { Connecting, Playing, Reconnecting }
}
names! {
    #[doc = "Why a pull ended."]
    PullEndReason of PullEnd {
        Unread, SourceEnded, Refused, Lost, Invalid, PublishedHere, Shutdown, InternalError,
    }
}
names! {
    #[doc = "Why a preview ended."]
    PreviewEnd of PreviewEnd { PublishEnded, Stalled, Closed, InternalError }
}
names! {
    #[doc = "How a publish or a play is refused."]
    Denial of Denial { Denied, BadName }
}
names! {
    #[doc = "What was irregular about a publisher and was tolerated, repaired or left out."]
    Irregularity of Irregularity {
        TruncatedTag, UnsupportedAudio, UnsupportedVideo, UnreadableMessage, ExcessData, OversizedMessage,
        TimeOutlier, TimeStep, TimeMissing, TimeBackward, TimeStopped, FillerLimited, AudioGap,
        VideoConfigurationMissing, AudioConfigurationMissing, ConfigurationInvalid, ConfigurationRebuilt,
        FramingConverted, FramingInvalid, KeyframeMismarked, RecoveryPoint, MalformedPayload, MarkerMisplaced,
        RetransmissionsMissing, DisposableLost,
    }
}

names! {
    #[doc = "Why a publish session ended."]
    EndReason of EndReason {
        Unpublished, BroadcasterLeft, Silent, ProtocolError, LimitExceeded, Replaced, RejectedByCustomer, Kicked,
        Shutdown, NoMedia, UpstreamRefused, InternalError,
    }
    HandshakeFailed {
        Unreachable as HandshakeFailed, Incomplete as DtlsIncomplete, WrongCertificate as WrongCertificate,
        NoCommonCipher as NoCommonCipher, NoSrtpProfile as NoSrtpProfile, OldVersion as DtlsTooOld,
        RefusedByClient as DtlsRefusedByClient, Other as DtlsInvalid,
    }
}

/// Why the gateway ends a publish.
#[napi(string_enum = "snake_case")]
#[allow(missing_docs, reason = "the core's enum tells what each means")]
pub enum EndRequest {
    RejectedByCustomer,
    Replaced,
    Kicked,
    Unpublished,
    BroadcasterLeft,
}

impl From<EndRequest> for headgate_ingest::EndReason {
    fn from(request: EndRequest) -> Self {
        match request {
            EndRequest::RejectedByCustomer => Self::RejectedByCustomer,
            EndRequest::Replaced => Self::Replaced,
            EndRequest::Kicked => Self::Kicked,
            EndRequest::Unpublished => Self::Unpublished,
            EndRequest::BroadcasterLeft => Self::BroadcasterLeft,
        }
    }
}
