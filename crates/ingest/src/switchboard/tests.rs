//! Whole workers in virtual time, with RTMP peers in memory built on our own protocol crate; no socket, no clock, no
//! thread.

mod allowing;
mod audio_clocks;
mod backup;
mod backup_away;
mod backup_random;
mod bounds;
mod clocks;
mod findings;
mod holding;
mod holding_away;
mod instructions;
mod joining_upstreams;
mod keep_alive;
mod odd_messages;
mod panics;
mod passes_through;
mod peer;
mod plays;
mod previews;
mod pulls;
mod pulls_quiet;
mod push_orders;
pub(super) mod recorder;
mod repairs;
mod strangers;
mod upstreams;
mod whip;
mod workers;
mod world;
