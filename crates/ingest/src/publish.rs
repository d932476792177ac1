//! What a running publish is to every thread of the core: one record, the registry that finds it, and the events that
//! report it to the gateway. Pure: it is given the time. Not the media, and not what a worker does with it.

pub(crate) mod capture;
pub(crate) mod end_reason;
pub(crate) mod hold;
mod lock;
mod loss_window;
pub(crate) mod mailbox;
pub(crate) mod play_guard;
pub(crate) mod players;
pub(crate) mod preview_pipe;
pub(crate) mod pull_record;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod tracks;
pub(crate) mod upstream_url;
pub(crate) mod upstreams;
mod wall_time;
pub(crate) mod whip_record;
