//! Threads, polls, sockets, buffers and clocks. Moves bytes between sockets and the switchboard and makes no decisions.

mod accept;
pub(crate) mod capture_file;
pub(crate) mod config;
pub(crate) mod connection_limits;
mod cycle;
mod link;
mod media_tcp;
mod networks;
mod ports;
mod proxied;
pub(crate) mod shared;
mod socket_options;
mod sockets;
mod spare_descriptor;
mod start;
pub(crate) mod tls;
mod tokens;
pub(crate) mod udp;
pub(crate) mod worker_load;

pub(crate) use accept::RtmpPorts;
pub(crate) use cycle::Reactor;
pub(crate) use ports::listen;
pub(crate) use start::{Opened, open};
