//! The layers between the socket and RTP: the gate, ICE-lite, DTLS, SRTP and feedback. The only modules that use
//! webrtc-rs.

mod binding;
mod client_hello;
pub mod dtls;
pub mod feedback;
mod gate;
pub mod handshake_fault;
pub mod handshakes;
pub mod ice_lite;
pub mod identity;
mod p224;
pub mod path;
mod reassembly;
mod record_nonce;
pub mod revoked;
pub mod srtp;
pub mod transport_cc;
pub mod user_name;
