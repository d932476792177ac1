//! TLS for RTMPS in both directions: our certificate, and the verification of upstreams. Sockets are in `link`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};

/// Plaintext that may wait in one connection for encryption; the rest stays in the session's output, where it is
/// counted.
const PLAINTEXT_LIMIT: usize = 256 * 1024;

/// A certificate, key or authority that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The text is not PEM, or not of the expected kind.
    #[error("the PEM cannot be used: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// Certificate and key do not match, or the library rejects them.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The PEM contains no certificate.
    #[error("the PEM contains no certificate")]
    Empty,
    /// The upstream's host is neither a domain name nor an address.
    #[error("the host cannot be the name in a certificate")]
    Name,
}

/// Configuration for RTMPS connections to us.
fn server_config(cert_pem: &str, key_pem: &str) -> Result<Arc<ServerConfig>, TlsError> {
    let chain =
        CertificateDer::pem_slice_iter(cert_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    if chain.is_empty() {
        return Err(TlsError::Empty);
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(Arc::new(config))
}

/// Configuration for connections to upstreams, verified by the system's authorities and `extra_pem`.
fn client_config(extra_pem: Option<&str>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    // One invalid file among the system's does not invalidate the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(extra_pem.unwrap_or_default().as_bytes()) {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Our side of a connection to us.
fn accept(config: Arc<ServerConfig>) -> Result<Box<Connection>, TlsError> {
    let mut connection = ServerConnection::new(config)?;
    connection.set_buffer_limit(Some(PLAINTEXT_LIMIT));
    Ok(Box::new(Connection::Server(connection)))
}

/// Our side of a connection to `host`.
fn connect(config: Arc<ClientConfig>, host: &str) -> Result<Box<Connection>, TlsError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name)?;
    let mut connection = ClientConnection::new(config, name)?;
    connection.set_buffer_limit(Some(PLAINTEXT_LIMIT));
    Ok(Box::new(Connection::Client(connection)))
}

/// Stable name of the reason why a handshake failed.
pub(super) const fn fault_code(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::PeerIncompatible(_) => "tls_incompatible",
        rustls::Error::AlertReceived(_) => "tls_refused_by_peer",
        // RTMP without TLS, among others.
        rustls::Error::InvalidMessage(_) => "tls_not_tls",
        _ => "tls_invalid",
    }
}

/// TLS state shared by all connections: our certificate, which can be replaced while running, and the trusted
/// authorities.
pub(crate) struct TlsContext {
    server: Mutex<Option<Arc<ServerConfig>>>,
    client: OnceLock<Arc<ClientConfig>>,
    extra_pem: Option<String>,
}

impl TlsContext {
    pub(crate) const fn new(extra_pem: Option<String>) -> Self {
        Self { server: Mutex::new(None), client: OnceLock::new(), extra_pem }
    }

    /// New connections use this certificate; existing ones keep theirs.
    pub(crate) fn set_certificate(&self, cert_pem: &str, key_pem: &str) -> Result<(), TlsError> {
        let config = server_config(cert_pem, key_pem)?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
        Ok(())
    }

    /// Loads the authorities, so that no worker has to; call it before the first push over RTMPS.
    pub(crate) fn prepare(&self) -> Result<(), TlsError> {
        if self.client.get().is_none() {
            let config = client_config(self.extra_pem.as_deref())?;
            // If another thread was faster, it loaded the same.
            let _ = self.client.set(config);
        }
        Ok(())
    }

    /// Our side of a connection to us.
    pub(crate) fn accept(&self) -> Result<Box<Connection>, TlsError> {
        let config = self.server.lock().unwrap_or_else(PoisonError::into_inner).clone();
        accept(config.ok_or(TlsError::Empty)?)
    }

    /// Our side of a connection to `host`.
    pub(crate) fn connect(&self, host: &str) -> Result<Box<Connection>, TlsError> {
        self.prepare()?;
        connect(self.client.get().cloned().ok_or(TlsError::Empty)?, host)
    }
}
