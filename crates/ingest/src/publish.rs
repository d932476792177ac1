//! A running publish as all threads of the core see it: one record, the registry to find it by, and the events that
//! report it to the gateway. Pure: time is an argument. It contains neither media nor what a worker does with it.

pub(crate) mod capture;
pub(crate) mod end_reason;
pub(crate) mod hold;
pub(crate) mod irregularities;
mod lock;
mod loss_window;
pub(crate) mod mailbox;
pub(crate) mod near;
pub(crate) mod play_guard;
pub(crate) mod players;
pub(crate) mod preview_pipe;
pub(crate) mod pull_record;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod tracks;
pub(crate) mod upstream_cause;
pub(crate) mod upstream_url;
pub(crate) mod upstreams;
mod wall_time;
pub(crate) mod whip_record;
