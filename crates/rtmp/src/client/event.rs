//! What a client session reports.

use super::RefusalKind;
use crate::{ConnectArguments, MediaMessage};

/// What the driver has to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Publishing or playing has started.
    Ready,
    /// Media from the stream we play.
    Media(MediaMessage),
    /// The server refused the request.
    Refused {
        /// The server's status code.
        code: String,
        /// The server's description.
        description: String,
        /// The kind of refusal they mean.
        kind: RefusalKind,
    },
    /// The server requires authentication: dial the same address immediately, with these arguments and the same
    /// credentials. Occurs on at most two consecutive connections.
    Reconnect {
        /// For [`ClientConfig::arguments`](crate::ClientConfig::arguments).
        arguments: ConnectArguments,
    },
    /// The server redirects us. Whether and how often to follow is the driver's decision.
    Redirected {
        /// The tcUrl to connect to (`rtmp://host:port/app` or `rtmps://…`); the stream name stays the same.
        url: String,
    },
    /// The server ended the running publish or play.
    Ended {
        /// The server's status code.
        code: String,
        /// The server's description; empty when there is none.
        description: String,
    },
    /// Write the output, then close.
    Close,
}
