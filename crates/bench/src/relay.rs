//! The least that a server relaying streams can cost: a relay that copies bytes and knows no protocol. One thread; each
//! connection is relayed to the target and back.

mod epoll;
mod low_water;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Shortest interval between two reads of a connection that is read once for each picture, with its audio.
const PICTURE: Duration = Duration::from_millis(40);
/// More bytes than an audio message and fewer than almost any picture.
const AUDIO_LIMIT: i32 = 1_500;
/// Precision of PICTURE, and length of a turn.
const TURN: Duration = Duration::from_millis(2);
/// First bytes that are relayed immediately: handshake and commands, whose replies the peer waits for.
const BEGINNING: usize = 8 << 10;

/// When a connection is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Whenever it is readable.
    AtOnce,
    /// Once for each picture, in a turn that starts when any connection has data.
    EachPicture,
    /// Once for each picture, in turns that start 2 ms after the previous one ends.
    EachPictureInTurns,
    /// As soon as a picture arrives, together with the audio waiting before it, in the same kind of turns.
    PromptlyInTurns,
}

/// Runs until it is killed; `None` for an unknown kind.
pub(crate) fn run(
    listen: SocketAddr,
    target: SocketAddr,
    kind: &str,
) -> Option<io::Result<String>> {
    Some(match kind {
        "at-once" => epoll::run(listen, target, Pace::AtOnce),
        "each-40-ms" => epoll::run(listen, target, Pace::EachPicture),
        "each-40-ms-in-turns" => epoll::run(listen, target, Pace::EachPictureInTurns),
        "promptly-in-turns" => epoll::run(listen, target, Pace::PromptlyInTurns),
        _ => return None,
    })
}
