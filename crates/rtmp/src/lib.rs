//! RTMP as two state machines that take bytes and time and return bytes and events. No socket, no clock, no knowledge
//! of media.
//!
//! [`ServerSession`] serves a broadcaster or a player; [`ClientSession`] connects us to an upstream.
//! Sources: Adobe RTMP 1.0 (cited as RTMP), AMF0, Enhanced RTMP v2 (cited as E-RTMP).
#![forbid(unsafe_code)]

mod address;
mod aggregate;
mod allowance;
mod amf0;
mod amf3;
mod amf_value;
mod authentication;
mod chunk_header;
mod chunk_reader;
mod chunk_writer;
mod client;
mod dropped;
mod error;
mod four_cc;
mod framed;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod limits;
mod message;
mod metadata;
mod output;
mod proxy_header;
mod rate;
mod script_data;
mod scrub;
mod server;
mod slab;
mod target;
mod unread;
mod wire;

pub use authentication::{ConnectArguments, Credentials};
pub use chunk_reader::ReadingState;
pub use client::{ClientConfig, ClientEvent, ClientRole, ClientSession, ClientStage, RefusalKind};
pub use dropped::Dropped;
pub use error::Error;
pub use four_cc::OUR_FOUR_CCS;
pub use framed::Framed;
pub use limits::Limits;
pub use message::{MediaKind, MediaMessage, encode_metadata};
pub use metadata::{encode_metadata_with, read_metadata};
pub use output::Output;
pub use proxy_header::{PROXY_HEADER_SHOWN_BYTES, ProxyHeader, ProxyHeaderError};
pub use scrub::Scrubber;
pub use server::{Refusal, ServerConfig, ServerEvent, ServerSession};
pub use target::Target;
