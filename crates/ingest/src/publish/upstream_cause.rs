//! Why a push to an upstream stopped, or could not begin, by a stable name; and the steps of a push.

/// Why a push stopped, or could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamCause {
    /// The host's name does not resolve, or not in time.
    Dns,
    /// The gateway does not allow any connection to the host's addresses.
    AddressForbidden,
    /// No server listens on the port (RST), on any address.
    ConnectionRefused,
    /// There is no way to the host.
    Unreachable,
    /// An answer did not come in time: to the TCP connect, in the handshake, to a command.
    TimedOut,
    /// TLS failed, such as for the certificate.
    Tls,
    /// The server refused the connect or the publish; its code and words are the description.
    Rejected,
    /// The server ended the publish or closed the connection.
    Closed,
    /// The server reads too slowly, or not at all.
    TooSlow,
    /// What the server sent is not RTMP, or is a redirect to no valid address.
    Protocol,
    /// It is sent a codec that its answer to connect does not list.
    CodecUnlisted,
    /// Our own limit of connections is reached.
    NoRoom,
}

/// A step of a push, in the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PushStep {
    /// The host's addresses are resolved, and checked by the gateway.
    Dns,
    /// The TCP connection is established.
    Tcp,
    /// The handshake of TLS; for rtmps alone.
    Tls,
    /// The handshake of RTMP.
    Handshake,
    /// The command connect.
    Connect,
    /// The commands createStream and publish.
    Publish,
    /// Media is sent.
    Media,
}

/// The result of an upstream's test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTested {
    /// Id of the test, as given.
    pub client_id: u64,
    /// The steps that were begun, in order, and how long each took, ms; the last one failed if `cause` is set.
    pub steps: Vec<(PushStep, u64)>,
    /// Why the last step failed; `None` if all succeeded.
    pub cause: Option<UpstreamCause>,
    /// Description of the cause; empty without one.
    pub detail: String,
}

/// What the gateway orders for a running push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOrder {
    /// It ends; its upstream keeps its place.
    Pause,
    /// A paused one begins again.
    Resume,
    /// One that waits for its next attempt tries at once.
    Retry,
}
