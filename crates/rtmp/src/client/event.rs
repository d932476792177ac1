//! What a client session reports.

use super::RefusalKind;
use crate::{ConnectArguments, MediaMessage};

/// What the driver must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Publishing or playing has started.
    Ready,
    /// Media of the stream we play.
    Media(MediaMessage),
    /// The server will not have us.
    Refused {
        /// Its status code.
        code: String,
        /// Its words.
        description: String,
        /// What they mean.
        kind: RefusalKind,
    },
    /// The server asks who we are: dial the same address at once, with these arguments and the same credentials.
    /// Happens on two connections in a row at most.
    Reconnect {
        /// For [`ClientConfig::arguments`](crate::ClientConfig::arguments).
        arguments: ConnectArguments,
    },
    /// The server sends us elsewhere. Whether to follow, and how often, is the driver's decision.
    Redirected {
        /// The tcUrl to go to (`rtmp://host:port/app`, `rtmps://` likewise); the name stays.
        url: String,
    },
    /// The server ended what had started.
    Ended {
        /// Its status code.
        code: String,
        /// Its words; empty when it has none.
        description: String,
    },
    /// Write the output, then close.
    Close,
}
