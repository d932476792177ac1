//! What a session wants of the switchboard it belongs to. A session is handed bytes and time and pushes its effects, in
//! order, to the list it is given; it never calls back.

use std::net::SocketAddr;

use headgate_media::{Codec, Frame, Timestamp};
use headgate_rtmp::Target;
use headgate_whip::{Path, RevokedConsent};

use crate::publish::end_reason::EndReason;
use crate::publish::mailbox::UpstreamChanged;

/// One thing that a session wants done.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A broadcaster reached `publish`: the gateway decides. Answered by `allow` or `deny`.
    Ask(Target),
    /// The question is closed: an answer would come too late.
    WithdrawQuestion,
    /// A frame of the stream that this session publishes.
    Publish(Frame),
    /// The publish is over; the connection goes on until its last words are written.
    EndPublish(EndReason),
    /// The same, without having been ended by anybody: the publisher may come back, whatever the reason says.
    LosePublish(EndReason),
    /// A player wants a stream: the gateway decides. Answered by `accept_play`, `await_stream` or `deny`.
    AskToPlay(Target),
    /// The connection is refused before anybody was asked for a publish or a play.
    ReportRefusal(Refused),
    /// A push wants the frames of its stream, none up to `after` again.
    Read {
        /// In which form its upstream takes Opus audio.
        form: AudioForm,
        /// Decode time of the newest frame that the upstream has.
        after: Option<Timestamp>,
    },
    /// The reader has learnt in which form its peer takes Opus audio.
    DecideForm(AudioForm),
    /// No more frames, please; those that wait are dropped.
    StopReading,
    /// The gateway resolves a push's host. Answered by `handle_addresses`.
    Resolve {
        /// Name or address literal.
        host: String,
        /// Port of the upstream's URL.
        port: u16,
    },
    /// The gateway says where a pulled stream is now. Answered by `handle_source`.
    Locate,
    /// A connection to an upstream, or to the source of a pull. Answered by `handle_connected` or `handle_connect_failed`.
    Connect {
        /// Where to.
        address: SocketAddr,
        /// Over TLS, with a certificate for this host.
        tls_host: Option<String>,
    },
    /// That connection is given up at once.
    Disconnect,
    /// The socket is to be read although too few bytes may wait for it to say so.
    ReadSocket,
    /// News of an upstream for the operator.
    Report(UpstreamChanged),
    /// The publish's own upstream refused it before it ever accepted: the publish ends (R4).
    RefusePublish,
    /// A datagram for the client.
    Send(Path, Vec<u8>),
    /// Datagrams from this path belong to this session.
    Route(Path),
    /// They no longer do.
    Unroute(Path),
    /// From now on the client's STUN requests are answered by this.
    Revoke(RevokedConsent),
    /// The session is over; a publish on it ends for this reason.
    Close(EndReason),
}

/// Why a connection was refused before it asked for a publish or a play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It asked for another app than ours.
    App,
    /// It broke the protocol or a limit.
    Error(headgate_rtmp::Error),
}

/// In which form a subscriber takes the audio of a stream that comes as Opus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AudioForm {
    /// Not known yet: both are kept for it, and nothing is transcoded on its account.
    Undecided,
    /// As it comes.
    Opus,
    /// Transcoded.
    Aac,
}

impl AudioForm {
    /// Whether a frame is for such a subscriber; `has_opus`: the stream's AAC, if any, is transcoded.
    pub(crate) const fn takes(self, codec: Codec, has_opus: bool) -> bool {
        match (self, codec) {
            (Self::Aac, Codec::Opus) => false,
            (Self::Opus, Codec::Aac) => !has_opus,
            (Self::Undecided | Self::Opus | Self::Aac, _) => true,
        }
    }
}
