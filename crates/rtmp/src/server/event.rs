//! What a server session reports, and how its driver refuses a request.

use crate::{Dropped, MediaMessage, ReadingState, Target};

/// Why a publish or a play is refused, as reported to encoders and players.
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

/// What the driver has to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A publish was requested. Answer with [`allow`](super::ServerSession::allow),
    /// [`deny`](super::ServerSession::deny) or [`redirect`](super::ServerSession::redirect).
    PublishRequested(Target),
    /// A play was requested. Answer with [`accept_play`](super::ServerSession::accept_play) or
    /// [`refuse_play`](super::ServerSession::refuse_play).
    PlayRequested(Target),
    /// Media of an allowed publish.
    Media(MediaMessage),
    /// Something of an allowed publish was left out.
    Dropped(Dropped),
    /// The boundary requested by [`super::ServerSession::find_boundary`]: everything before it has been reported
    /// already.
    Boundary {
        /// The reading state at this point.
        state: Box<ReadingState>,
        /// The input after this point.
        rest: Vec<u8>,
    },
    /// The broadcaster ended the publish.
    PublishEnded,
    /// The player ended the play.
    PlayEnded,
    /// The peer requested another app and was refused.
    AppRefused,
    /// Write the output, then close within a second.
    Close,
}
