//! Configuration of the core, and errors of its start.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use super::tls::TlsError;

/// Configuration of the core.
#[derive(Clone, Debug)]
pub struct IngestConfig {
    /// Address that serves plain RTMP; port 0 picks a free port. `None` serves RTMPS alone.
    pub rtmp: Option<SocketAddr>,
    /// Addresses and networks (`10.0.0.0/8`) of the proxies that send a PROXY protocol header on both ports, and must.
    pub trusted_proxies: Vec<String>,
    /// A socket that already listens there, inherited from the process that started this one.
    pub rtmp_socket: Option<Arc<TcpListener>>,
    /// Whether connections are accepted from the start, or only after [`crate::Ingest::start_accepting`].
    pub accepts: bool,
    /// RTMP over TLS, in addition.
    pub rtmp_tls: Option<RtmpTls>,
    /// PEM certificates of authorities trusted for upstreams, in addition to the system's.
    pub upstream_ca_pem: Option<String>,
    /// UDP port of the first media worker; the other workers take the following ports. Port 0 picks free ones.
    pub media: SocketAddr,
    /// Addresses named in answers, best first.
    pub public_addresses: Vec<IpAddr>,
    /// Threads that transcode Opus to AAC; at least one.
    pub audio_workers: usize,
    /// Media workers; at least one.
    pub workers: usize,
    /// Whether players that join late start with the cached GOP.
    pub caches_gop: bool,
    /// Whether pushes without audio get silent AAC (R5).
    pub pushes_silence: bool,
    /// Whether publishes may be captured: if so, what a connection sends before its publish is known is kept.
    pub captures: bool,
    /// Limit of all RTMP connections; 0 allows as many as the process's file descriptors permit.
    pub rtmp_connections: usize,
    /// Limit of RTMP connections from one address; 0 means no limit.
    pub rtmp_connections_per_address: usize,
}

/// RTMP over TLS.
#[derive(Clone)]
pub struct RtmpTls {
    /// Address that serves it; port 0 picks a free port.
    pub address: SocketAddr,
    /// A socket that already listens there.
    pub socket: Option<Arc<TcpListener>>,
    /// Certificate chain, with the server's own certificate first.
    pub cert_pem: String,
    /// The private key of that certificate.
    pub key_pem: String,
}

/// Leaves out the key.
impl std::fmt::Debug for RtmpTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RtmpTls({})", self.address)
    }
}

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUse {
    /// Plain RTMP.
    Rtmp,
    /// RTMP over TLS.
    RtmpTls,
    /// Plain RTMP for other nodes.
    Pulls,
    /// WebRTC media, over UDP and TCP.
    Media,
}

/// Why the core did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another program uses the port.
    #[error("port {1} is taken")]
    PortTaken(PortUse, u16),
    /// The system refused a socket, a poll or a thread.
    #[error("cannot start the media core: {0}")]
    Io(#[from] io::Error),
    /// The certificate for RTMPS cannot be used.
    #[error("cannot use the certificate for RTMPS: {0}")]
    Tls(#[from] TlsError),
    /// The media certificate could not be created.
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
