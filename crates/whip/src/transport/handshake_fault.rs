//! Why no DTLS handshake of a session completed.

use rtc_shared::error::Error;

/// The error of our own check of the certificate.
pub(super) const WRONG_CERTIFICATE: &str = "the certificate does not match the offer";

/// Why a session was never connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeFault {
    /// No valid ICE check arrived: the network between the client and us lets none through.
    Unreachable,
    /// ICE checks arrived, but DTLS did not complete in time.
    Incomplete,
    /// The client has no certificate, another one than in its offer, or not its key.
    WrongCertificate,
    /// The client's cipher suites, curves, signatures or extensions have nothing in common with ours.
    NoCommonCipher,
    /// The client does not ask for SRTP, or for none of our profiles.
    NoSrtpProfile,
    /// The client has only versions of DTLS before 1.2.
    OldVersion,
    /// The client refused our handshake by an alert.
    RefusedByClient,
    /// Any other violation of the protocol.
    Other,
}

impl HandshakeFault {
    /// The fault behind an error of the DTLS library.
    pub(super) fn of(error: &Error) -> Self {
        match error {
            Error::ErrUnsupportedProtocolVersion => Self::OldVersion,
            Error::ErrServerNoMatchingSrtpProfile
            | Error::ErrClientNoMatchingSrtpProfile
            | Error::ErrRequestedButNoSrtpExtension => Self::NoSrtpProfile,
            Error::ErrCipherSuiteNoIntersection
            | Error::ErrInvalidCipherSuite
            | Error::ErrNoSupportedEllipticCurves
            | Error::ErrNoAvailableSignatureSchemes
            | Error::ErrServerRequiredButNoClientEms
            | Error::ErrClientRequiredButNoServerEms => Self::NoCommonCipher,
            Error::ErrClientCertificateRequired
            | Error::ErrClientCertificateNotVerified
            | Error::ErrCertificateVerifyNoCertificate
            | Error::ErrInvalidCertificate
            | Error::ErrKeySignatureMismatch => Self::WrongCertificate,
            Error::Other(text) if text == WRONG_CERTIFICATE => Self::WrongCertificate,
            _ => Self::Other,
        }
    }

    /// The fault that the description of a plaintext alert stands for (RFC 5246 7.2).
    pub(super) const fn of_alert(description: u8) -> Self {
        match description {
            // handshake_failure, insufficient_security.
            40 | 71 => Self::NoCommonCipher,
            // protocol_version.
            70 => Self::OldVersion,
            _ => Self::RefusedByClient,
        }
    }
}
