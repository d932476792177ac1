//! The floor of any server that passes streams on: a relay that reads what is there and writes it out, and knows no
//! protocol. One thread; each connection that comes is passed on to the target and back.

mod epoll;
mod low_water;
mod ring;
mod uring;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ring::Sends;

/// A connection that is read once for each picture is read this often at most, its audio with it.
const PICTURE: Duration = Duration::from_millis(40);
/// More bytes than an audio message and fewer than almost any picture.
const AUDIO_LIMIT: i32 = 1_500;
/// How exactly that is kept.
const TURN: Duration = Duration::from_millis(2);
/// What is passed on at once at the beginning, bytes: handshake and commands, whose answers are waited for.
const BEGINNING: usize = 8 << 10;

/// When a connection is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Whenever it has something.
    AtOnce,
    /// Once for each picture, in a turn that any connection's data begins.
    EachPicture,
    /// Once for each picture, in turns that begin 2 ms after the last one's end.
    EachPictureInTurns,
    /// As soon as a picture comes, with the audio that waits, in such turns.
    PromptlyInTurns,
}

/// Runs until it is killed; `None` for a kind that there is not. It prints `ready`, or `absent` with the reason where
/// the kernel has no io_uring for us.
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
        "uring-at-once" => uring::run(listen, target, Pace::AtOnce, Sends::Copied),
        "uring-each-40-ms-in-turns" => {
            uring::run(listen, target, Pace::EachPictureInTurns, Sends::Copied)
        }
        "uring-zero-copy-each-40-ms-in-turns" => {
            uring::run(listen, target, Pace::EachPictureInTurns, Sends::InPlace)
        }
        _ => return None,
    })
}
