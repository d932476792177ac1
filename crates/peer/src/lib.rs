//! A WebRTC publisher for tests and load generation; sans-I/O; never shipped. It offers H.264 and Opus as a browser
//! does and shares no code with the server under test, so that neither hides the other's errors.
#![forbid(unsafe_code)]

mod dtls;
mod ice;
mod media;
mod offer;
mod packetizer;
mod publisher;
mod reports;
mod srtp;
#[cfg(test)]
mod tests;
mod track;

use std::time::Duration;

pub use offer::VIDEO_PAYLOAD_TYPE;
pub use publisher::{DatagramFilter, Publisher};

/// Most bytes of RTP payload in one packet.
pub const PAYLOAD_LIMIT: usize = 1_200;
/// Sent packets of a track kept to answer NACKs.
pub const HISTORY_LIMIT: usize = 1_024;

/// Properties of the publisher.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Offer Opus.
    pub audio: bool,
    /// Offer H.264.
    pub video: bool,
    /// Profiles listed in `use_srtp`.
    pub srtp: SrtpChoice,
    /// Offer `setup:passive`, as FFmpeg does: the server sends the ClientHello.
    pub dtls_server: bool,
    /// Offer the transport-wide sequence number, and send it if the answer accepts it.
    pub transport_cc: bool,
    /// Offer `stereo=1`.
    pub stereo: bool,
    /// How much earlier audio is captured than video that is sent at the same time; its sender reports show it.
    pub audio_latency: Duration,
}

impl Default for Settings {
    /// Audio and video, GCM, `actpass`, transport-cc, mono, one clock for both tracks.
    fn default() -> Self {
        Self {
            audio: true,
            video: true,
            srtp: SrtpChoice::Gcm,
            dtls_server: false,
            transport_cc: true,
            stereo: false,
            audio_latency: Duration::ZERO,
        }
    }
}

/// SRTP protection profiles (RFC 5764 4.1.2, RFC 7714 14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrtpChoice {
    /// Only AEAD_AES_128_GCM.
    Gcm,
    /// Only AES128_CM_HMAC_SHA1_80.
    Cm,
    /// Both, CM first, as Chromium lists them.
    Both,
}

/// Events of interest to a test or a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// ICE and DTLS are complete: media may flow.
    Connected,
    /// PLI or FIR was received.
    KeyframeWanted,
    /// Sequence numbers of one track that were requested again; packets still kept have already been queued.
    Nack(Vec<u16>),
    /// A transport-wide feedback packet was received.
    TransportFeedback,
    /// The server closed DTLS, or the handshake failed. No further event follows.
    Closed,
}

/// Why the publisher cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cryptography provider failed.
    #[error("cryptography: {0}")]
    Crypto(String),
    /// The answer lacks something, or is the second one.
    #[error("unusable answer: {0}")]
    Answer(&'static str),
    /// DTLS could not be started.
    #[error("DTLS: {0}")]
    Dtls(String),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
