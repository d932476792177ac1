//! Why a connection to an upstream is given up.

use headgate_rtmp::ConnectArguments;

use crate::publish::upstream_cause::UpstreamCause;
use crate::publish::upstream_url::UpstreamUrl;

/// Why a connection to the upstream was given up.
pub(super) struct Failure {
    pub(super) cause: UpstreamCause,
    pub(super) detail: String,
    pub(super) is_refusal: bool,
    pub(super) next: Next,
}

/// What follows after a connection was given up.
pub(super) enum Next {
    /// A pause, then another attempt.
    Pause,
    /// The same address immediately, with the arguments that the upstream requested.
    Reconnect(ConnectArguments),
    /// The URL of a redirect.
    Follow(Box<UpstreamUrl>),
}

impl Failure {
    pub(super) fn lost(cause: UpstreamCause, detail: impl Into<String>) -> Self {
        Self { cause, detail: detail.into(), is_refusal: false, next: Next::Pause }
    }
}

/// The RTMP session cannot go on.
impl From<headgate_rtmp::Error> for Failure {
    fn from(error: headgate_rtmp::Error) -> Self {
        use headgate_rtmp::Error;
        let cause = match error {
            Error::HandshakeLimit | Error::CommandLimit | Error::AnswerLimit => {
                UpstreamCause::TimedOut
            }
            Error::AnswerBytesLimit => UpstreamCause::TooSlow,
            Error::Version
            | Error::Chunk
            | Error::Answer
            | Error::ChunkStreamLimit
            | Error::PartialLimit => UpstreamCause::Protocol,
        };
        Self::lost(cause, error.to_string())
    }
}
