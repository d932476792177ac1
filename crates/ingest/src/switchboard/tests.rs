//! A whole worker in virtual time: RTMP peers of our own protocol crate, in memory; no socket, no clock, no thread.

mod backup;
mod backup_away;
mod backup_random;
mod bounds;
mod holding;
mod holding_away;
mod instructions;
mod keep_alive;
mod panics;
mod peer;
mod plays;
mod previews;
mod pulls;
mod strangers;
mod upstreams;
mod whip;
mod world;
