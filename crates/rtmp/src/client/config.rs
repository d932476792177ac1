//! Whom a client session talks to, and about what.

use bytes::Bytes;

use crate::{ConnectArguments, Credentials, Limits};

/// What we want of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRole {
    /// Send a stream there.
    Publish,
    /// Read a stream from there.
    Play,
}

/// Whom to talk to, and about what.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Publish or play.
    pub role: ClientRole,
    /// App of the connect command.
    pub app: String,
    /// `rtmp://host:port/app`.
    pub tc_url: String,
    /// Stream name with its arguments, verbatim.
    pub name: Vec<u8>,
    /// Makes the handshake's random bytes differ from session to session.
    pub seed: [u8; 8],
    /// Bounds.
    pub limits: Limits,
    /// Codecs beyond plain FLV that we announce; empty announces nothing.
    pub four_cc_list: Vec<String>,
    /// For an upstream that asks who we are.
    pub credentials: Option<Credentials>,
    /// What the server asked to be added on the connection before this one, from [`ClientEvent::Reconnect`]; else the default.
    pub arguments: ConnectArguments,
    /// An AMF0 object whose properties join the connect command's, where it has no such name itself; empty adds nothing.
    pub connect_info: Bytes,
}

impl ClientConfig {
    /// Nothing filled in but the role; for `..ClientConfig::new(role)`.
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
