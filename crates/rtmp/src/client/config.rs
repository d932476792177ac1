//! The server a client session connects to, and what it requests.

use bytes::Bytes;

use crate::{ConnectArguments, Credentials, Limits};

/// What we request from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRole {
    /// Publish a stream to the server.
    Publish,
    /// Play a stream from the server.
    Play,
}

/// The server to connect to, and the request.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Publish or play.
    pub role: ClientRole,
    /// App of the connect command.
    pub app: String,
    /// `rtmp://host:port/app`.
    pub tc_url: String,
    /// Stream name with its arguments, unchanged.
    pub name: Vec<u8>,
    /// Makes the handshake's random bytes differ from session to session.
    pub seed: [u8; 8],
    /// The limits of the session.
    pub limits: Limits,
    /// Codecs beyond plain FLV that we announce; if empty, none are announced.
    pub four_cc_list: Vec<String>,
    /// Credentials for an upstream that requires authentication.
    pub credentials: Option<Credentials>,
    /// Arguments requested by the server on the previous connection, from [`ClientEvent::Reconnect`]; otherwise the
    /// default.
    pub arguments: ConnectArguments,
    /// An AMF0 object whose properties are added to the connect command's object unless the name exists there; empty
    /// adds nothing.
    pub connect_info: Bytes,
}

impl ClientConfig {
    /// An empty configuration with this role; for `..ClientConfig::new(role)`.
    #[must_use]
    pub fn new(role: ClientRole) -> Self {
        Self {
            role,
            app: String::new(),
            tc_url: String::new(),
            name: Vec::new(),
            seed: [0; 8],
            limits: Limits::default(),
            four_cc_list: Vec::new(),
            credentials: None,
            arguments: ConnectArguments::default(),
            connect_info: Bytes::new(),
        }
    }
}
