//! Complete sessions in memory on virtual time: our publisher, which shares no code with the server, on one side, and
//! in between a network that loses what a test specifies.

mod clocks;
mod connecting;
mod endings;
mod handshakes;
mod loss;
mod moving;
#[allow(dead_code, reason = "shared with the hostile tests")]
mod world;
