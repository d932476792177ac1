//! The layers between the socket and RTP: the gate, ICE-lite, DTLS, SRTP and feedback. The only modules that use
//! webrtc-rs.

mod binding;
mod client_hello;
pub mod dtls;
pub mod feedback;
pub mod gate;
pub mod ice_lite;
mod p224;
pub mod path;
mod record_nonce;
pub mod revoked;
pub mod srtp;
pub mod transport_cc;
