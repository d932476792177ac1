//! The sessions of a media worker: RTMP broadcasters and players, pushes, pulls, WHIP broadcasters, previews. Pure:
//! bytes and time in, [`effect::Effect`]s and output bytes out.

mod audio_pause;
mod captured;
pub(crate) mod effect;
pub(crate) mod flv_preview;
mod frame_rates;
mod keep_alive;
pub(crate) mod publish_session;
mod receive_mark;
mod retry;
mod rtmp_frames;
pub(crate) mod rtmp_pull;
pub(crate) mod rtmp_push;
pub(crate) mod rtmp_server;
pub(crate) mod shared_frame;
mod silence;
pub(crate) mod silence_budget;
pub(crate) mod whip_publisher;

use std::time::Instant;

use headgate_rtmp::Output;

use effect::Effect;
use flv_preview::FlvPreview;
use rtmp_pull::RtmpPull;
use rtmp_push::RtmpPush;
use rtmp_server::RtmpServer;
use shared_frame::SharedFrame;
use whip_publisher::WhipPublisher;

/// A session of any kind that a worker serves.
pub(crate) enum Session {
    /// A broadcaster or a player connected to the RTMP port.
    Server(Box<RtmpServer>),
    /// A broadcaster connected by WHIP.
    Whip(Box<WhipPublisher>),
    /// Sends a stream to an upstream.
    Push(Box<RtmpPush>),
    /// Receives a stream from another node.
    Pull(Box<RtmpPull>),
    /// Sends a stream to the gateway; its bytes go to no socket of the worker.
    Preview(Box<FlvPreview>),
}

impl Session {
    /// Begins a new turn of the worker.
    pub(crate) fn begin_turn(&mut self) {
        match self {
            Self::Server(server) => server.begin_turn(),
            Self::Push(push) => push.begin_turn(),
            Self::Pull(pull) => pull.begin_turn(),
            Self::Whip(_) | Self::Preview(_) => {}
        }
    }

    /// Whether its socket may be read.
    pub(crate) fn takes_input(&self) -> bool {
        match self {
            Self::Server(server) => server.takes_input(),
            Self::Push(push) => !push.has_unread_input(),
            Self::Pull(pull) => !pull.has_unread_input(),
            Self::Whip(_) | Self::Preview(_) => false,
        }
    }

    /// Whether bytes that were read are still to be handled.
    pub(crate) fn has_unread_input(&self) -> bool {
        match self {
            Self::Server(server) => server.has_unread_input(),
            Self::Push(push) => push.has_unread_input(),
            Self::Pull(pull) => pull.has_unread_input(),
            Self::Whip(_) | Self::Preview(_) => false,
        }
    }

    /// Handles bytes from its socket.
    pub(crate) fn handle_input(&mut self, input: &[u8], now: Instant, effects: &mut Vec<Effect>) {
        match self {
            Self::Server(server) => server.handle_input(input, now, effects),
            Self::Push(push) => push.handle_input(input, now, effects),
            Self::Pull(pull) => pull.handle_input(input, now, effects),
            Self::Whip(_) | Self::Preview(_) => {}
        }
    }

    /// Its socket was closed by the peer or broke; `fault` is why TLS failed.
    pub(crate) fn handle_closed(
        &mut self,
        fault: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match self {
            Self::Server(server) => server.handle_closed(now, effects),
            Self::Push(push) => push.handle_closed(fault, now, effects),
            Self::Pull(pull) => pull.handle_closed(fault, now, effects),
            Self::Whip(_) | Self::Preview(_) => {}
        }
    }

    /// Its socket accepted bytes, or there were none to write.
    pub(crate) fn handle_written(&mut self, now: Instant) {
        match self {
            Self::Server(server) => server.handle_written(now),
            Self::Push(push) => push.handle_written(now),
            Self::Pull(_) | Self::Whip(_) | Self::Preview(_) => {}
        }
    }

    /// When [`Session::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Server(server) => server.deadline(),
            Self::Push(push) => push.deadline(),
            Self::Pull(pull) => pull.deadline(),
            Self::Whip(whip) => whip.deadline(),
            Self::Preview(preview) => Some(preview.deadline()),
        }
    }

    /// Performs what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self {
            Self::Server(server) => server.handle_timeout(now, effects),
            Self::Push(push) => push.handle_timeout(now, effects),
            Self::Pull(pull) => pull.handle_timeout(now, effects),
            Self::Whip(whip) => {
                whip.handle_timeout(now);
                whip.settle(now, effects);
            }
            Self::Preview(preview) => preview.handle_timeout(now, effects),
        }
    }

    /// Whether frames may be written to it.
    pub(crate) const fn takes_frames(&self) -> bool {
        match self {
            Self::Server(server) => !server.awaits_stream(),
            Self::Push(push) => push.takes_frames(),
            Self::Pull(_) | Self::Whip(_) | Self::Preview(_) => false,
        }
    }

    /// Writes the next frame of the stream that it reads.
    pub(crate) fn write_frame(&mut self, frame: &SharedFrame, now: Instant) {
        match self {
            Self::Server(server) => server.write_frame(frame),
            Self::Push(push) => push.write_frame(frame, now),
            Self::Pull(_) | Self::Whip(_) | Self::Preview(_) => {}
        }
    }

    /// The stream that it reads has ended, and every frame is written.
    pub(crate) fn finish_reading(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self {
            Self::Server(server) => server.finish_play(now, effects),
            Self::Push(push) => push.finish(now, effects),
            Self::Pull(_) | Self::Whip(_) | Self::Preview(_) => {}
        }
    }

    /// Bytes to write to its socket; `None` if it has none.
    pub(crate) fn output_mut(&mut self) -> Option<&mut Output> {
        match self {
            Self::Server(server) => Some(server.output_mut()),
            Self::Push(push) => push.output_mut(),
            Self::Pull(pull) => pull.output_mut(),
            Self::Whip(_) | Self::Preview(_) => None,
        }
    }

    /// Whether the write side of its socket shuts down once the remaining output is written.
    pub(crate) const fn is_closing(&self) -> bool {
        match self {
            Self::Server(server) => server.is_closing(),
            Self::Push(push) => push.is_closing(),
            Self::Pull(pull) => pull.is_closing(),
            Self::Whip(_) | Self::Preview(_) => false,
        }
    }

    /// Number of bytes that must wait in its socket before it is read.
    pub(crate) fn receive_mark(&self) -> usize {
        match self {
            Self::Server(server) => server.receive_mark(),
            Self::Push(_) | Self::Pull(_) | Self::Whip(_) | Self::Preview(_) => 1,
        }
    }
}
