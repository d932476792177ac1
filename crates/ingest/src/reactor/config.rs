//! How to start the core, and why it did not.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use super::tls::TlsError;

/// How to start the core.
#[derive(Clone, Debug)]
pub struct IngestConfig {
    /// Where RTMP is served; port 0 takes any free one.
    pub rtmp: SocketAddr,
    /// The socket that listens there already, of whoever started the process.
    pub rtmp_socket: Option<Arc<TcpListener>>,
    /// Whether connections are accepted from the start, or from [`crate::Ingest::start_accepting`] on.
    pub accepts: bool,
    /// RTMP over TLS beside it.
    pub rtmp_tls: Option<RtmpTls>,
    /// Authorities that upstreams' certificates are verified by beside the system's, PEM.
    pub upstream_ca_pem: Option<String>,
    /// UDP port of the first media worker, the next workers' follow; port 0 takes any free ones.
    pub media: SocketAddr,
    /// What answers name, the best first.
    pub public_addresses: Vec<IpAddr>,
    /// Threads that make AAC of Opus; at least one.
    pub audio_workers: usize,
    /// AAC encoders of each kind in demand that are made ahead.
    pub encoders_ahead: usize,
    /// Media workers; at least one.
    pub workers: usize,
    /// Whether late players start with the cached GOP.
    pub caches_gop: bool,
    /// Whether pushes without audio get silence (R5).
    pub pushes_silence: bool,
    /// Whether publishes may be captured: what connections send before that is known is kept meanwhile.
    pub captures: bool,
    /// RTMP connections in all; 0: as many as the process's descriptors allow.
    pub rtmp_connections: usize,
    /// RTMP connections from one address; 0 is no limit.
    pub rtmp_connections_per_address: usize,
}

/// RTMP over TLS.
#[derive(Clone)]
pub struct RtmpTls {
    /// Port 0 takes any free one.
    pub address: SocketAddr,
    /// The socket that listens there already.
    pub socket: Option<Arc<TcpListener>>,
    /// Certificate chain, the own one first.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// The key does not print.
impl std::fmt::Debug for RtmpTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RtmpTls({})", self.address)
    }
}

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUse {
    /// RTMP, plain.
    Rtmp,
    /// RTMP over TLS.
    RtmpTls,
    /// RTMP, plain, for other nodes.
    Pulls,
    /// The media of WebRTC, over UDP and TCP.
    Media,
}

/// Why the core did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program has the port.
    #[error("port {1} is taken")]
    PortTaken(PortUse, u16),
    /// The system refused a socket, a poll or a thread.
    #[error("cannot start the media core: {0}")]
    Io(#[from] io::Error),
    /// The certificate for RTMPS cannot be used.
    #[error("cannot use the certificate for RTMPS: {0}")]
    Tls(#[from] TlsError),
    /// The media certificate could not be made.
    #[error(transparent)]
    Identity(#[from] headgate_whip::IdentityError),
}

impl StartError {
    /// Stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::PortTaken(PortUse::Rtmp, _) => "rtmp_port_taken",
            Self::PortTaken(PortUse::RtmpTls, _) => "rtmp_tls_port_taken",
            Self::PortTaken(PortUse::Pulls, _) => "pull_port_taken",
            Self::PortTaken(PortUse::Media, _) => "media_port_taken",
            Self::Io(_) => "io",
            Self::Tls(_) => "tls",
            Self::Identity(_) => "identity",
        }
    }
}
