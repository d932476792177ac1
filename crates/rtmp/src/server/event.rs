//! What a server session reports, and how its driver refuses.

use crate::{MediaMessage, ReadingState, Target};

/// Why a publish or a play is refused, as encoders and players know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `NetStream.Publish.Denied`, `NetStream.Play.Failed`.
    Denied,
    /// `NetStream.Publish.BadName`, `NetStream.Play.StreamNotFound`.
    BadName,
}

impl Refusal {
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Denied => "NetStream.Publish.Denied",
            Self::BadName => "NetStream.Publish.BadName",
        }
    }

    pub(super) const fn play_code(self) -> &'static str {
        match self {
            Self::Denied => "NetStream.Play.Failed",
            Self::BadName => "NetStream.Play.StreamNotFound",
        }
    }
}

/// What the driver must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// Answer with [`ServerSession::allow`] or [`ServerSession::deny`].
    PublishRequested(Target),
    /// Answer with [`ServerSession::accept_play`] or [`ServerSession::refuse_play`].
    PlayRequested(Target),
    /// Media of an allowed publish.
    Media(MediaMessage),
    /// The place that [`super::ServerSession::find_boundary`] asked for: everything before it was reported before.
    Boundary {
        /// What is known there.
        state: Box<ReadingState>,
        /// The bytes that were handed in and stand behind it.
        rest: Vec<u8>,
    },
    /// The broadcaster says that it is done.
    PublishEnded,
    /// The player says that it is done.
    PlayEnded,
    /// It asked for another app than ours and was told so.
    AppRefused,
    /// Write the output, then close within a second.
    Close,
}
