//! A WebRTC publisher for tests and load; sans-I/O; never shipped. It offers H.264 and Opus as a browser does and shares
//! no line with the server it talks to, so that neither hides the other's mistakes.
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

/// The most RTP payload in one packet.
pub const PAYLOAD_LIMIT: usize = 1_200;
/// Sent packets of a track that are kept for a NACK.
pub const HISTORY_LIMIT: usize = 1_024;

/// How the publisher presents itself.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Offer Opus.
    pub audio: bool,
    /// Offer H.264.
    pub video: bool,
    /// What `use_srtp` lists.
    pub srtp: SrtpChoice,
    /// Offer `setup:passive`: the server sends the first hello (FFmpeg does that).
    pub dtls_server: bool,
    /// Offer the transport-wide sequence number and send it when it is answered.
    pub transport_cc: bool,
    /// Offer `stereo=1`.
    pub stereo: bool,
    /// By its sender reports a picture was captured so much later than a sound that is sent with it.
    pub video_clock_ahead: Duration,
}

impl Default for Settings {
    /// Audio and video, GCM, `actpass`, transport-cc, mono, one clock.
    fn default() -> Self {
        Self {
            audio: true,
            video: true,
            srtp: SrtpChoice::Gcm,
            dtls_server: false,
            transport_cc: true,
            stereo: false,
            video_clock_ahead: Duration::ZERO,
        }
    }
}

/// SRTP protection profiles (RFC 5764 4.1.2, RFC 7714 14.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrtpChoice {
    /// AEAD_AES_128_GCM alone.
    Gcm,
    /// AES128_CM_HMAC_SHA1_80 alone.
    Cm,
    /// Both, CM first, as Chromium lists them.
    Both,
}

/// What a test or a bench may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// ICE and DTLS are done: media may flow.
    Connected,
    /// PLI or FIR.
    KeyframeWanted,
    /// Sequence numbers of one track that were asked for again; those still kept are already on their way.
    Nack(Vec<u16>),
    /// A transport-wide feedback packet.
    TransportFeedback,
    /// The server said goodbye, or DTLS failed. Nothing follows.
    Closed,
}

/// Why the publisher cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cryptography refused.
    #[error("cryptography: {0}")]
    Crypto(String),
    /// The answer lacks something, or it came twice.
    #[error("the answer has no usable {0}")]
    Answer(&'static str),
    /// DTLS refused to start.
    #[error("DTLS: {0}")]
    Dtls(String),
}

/// A result with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;
