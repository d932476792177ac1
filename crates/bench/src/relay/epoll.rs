//! The relay on epoll: a system call for each read and each write.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::{AUDIO_LIMIT, BEGINNING, PICTURE, Pace, TURN, low_water};

const LISTENER: Token = Token(usize::MAX);

/// The reader of one direction, and where it writes.
struct End {
    socket: TcpStream,
    other: usize,
    is_ready: bool,
    next_read: Instant,
    /// Bytes so far.
    passed: usize,
    /// It is read when a picture arrives, not for audio alone.
    is_marked: bool,
    /// What the other side has not accepted yet.
    waiting: Vec<u8>,
}

/// Runs until it is killed.
pub(super) fn run(listen: SocketAddr, target: SocketAddr, pace: Pace) -> io::Result<String> {
    let is_batching = matches!(pace, Pace::EachPicture | Pace::EachPictureInTurns);
    let is_in_turns = matches!(pace, Pace::EachPictureInTurns | Pace::PromptlyInTurns);
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(listen)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("ready");
    let mut events = Events::with_capacity(1_024);
    let mut ends: Vec<Option<End>> = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        // Without connections there is nothing to wait for but a new one.
        let timeout = match pace {
            _ if ends.is_empty() => None,
            Pace::AtOnce => None,
            Pace::EachPicture => Some(TURN),
            Pace::EachPictureInTurns => Some(Duration::ZERO),
            // No picture follows the last audio, so nothing else would wake the poll for it.
            Pace::PromptlyInTurns => Some(PICTURE),
        };
        poll.poll(&mut events, timeout)?;
        let now = Instant::now();
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, target, &poll, &mut ends)?;
            } else if let Some(Some(end)) = ends.get_mut(event.token().0) {
                end.is_ready |= event.is_readable();
                if !is_batching || end.passed < BEGINNING {
                    pass(event.token().0, &mut ends, &mut buffer);
                }
                if pace == Pace::PromptlyInTurns {
                    await_picture(event.token().0, &mut ends, now);
                }
            }
        }
        if pace != Pace::AtOnce {
            for at in 0..ends.len() {
                let is_due = |end: &End| (end.is_ready || end.is_marked) && now >= end.next_read;
                if ends.get(at).and_then(Option::as_ref).is_some_and(is_due) {
                    pass(at, &mut ends, &mut buffer);
                    if let Some(Some(end)) = ends.get_mut(at) {
                        end.next_read = now + PICTURE;
                    }
                }
            }
        }
        if is_in_turns && !ends.is_empty() {
            thread::sleep(TURN);
        }
    }
}

fn accept(
    listener: &TcpListener,
    target: SocketAddr,
    poll: &Poll,
    ends: &mut Vec<Option<End>>,
) -> io::Result<()> {
    while let Ok((socket, _)) = listener.accept() {
        let at = ends.len();
        for (mut socket, other) in [(socket, at + 1), (TcpStream::connect(target)?, at)] {
            socket.set_nodelay(true)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut socket, Token(ends.len()), interest)?;
            let (is_ready, next_read, waiting) = (false, Instant::now(), Vec::new());
            let (passed, is_marked) = (0, false);
            ends.push(Some(End { socket, other, is_ready, next_read, passed, is_marked, waiting }));
        }
    }
    Ok(())
}

/// One read, or as many as fill the buffer, and a write for each.
fn pass(at: usize, ends: &mut Vec<Option<End>>, buffer: &mut [u8]) {
    if let Some(Some(end)) = ends.get_mut(at) {
        let waiting = std::mem::take(&mut end.waiting);
        send(end, &waiting);
    }
    loop {
        let Some(Some(end)) = ends.get_mut(at) else { return };
        let other = end.other;
        match end.socket.read(buffer) {
            Ok(0) => return close(at, ends),
            Ok(length) => {
                end.passed += length;
                let bytes = buffer.get(..length).unwrap_or_default();
                if let Some(Some(other)) = ends.get_mut(other) {
                    send(other, bytes);
                }
                // A short read has emptied the socket.
                if length < buffer.len() {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return close(at, ends),
        }
    }
    if let Some(Some(end)) = ends.get_mut(at) {
        end.is_ready = false;
    }
}

/// After a connection's first bytes, the publisher's side is reported only for pictures. Without one,
/// whatever waits is read after a while.
fn await_picture(at: usize, ends: &mut [Option<End>], now: Instant) {
    let Some(Some(end)) = ends.get_mut(at) else { return };
    end.next_read = now + PICTURE * 2;
    if end.passed >= BEGINNING && !end.is_marked {
        end.is_marked = true;
        low_water::set(&end.socket, AUDIO_LIMIT);
    }
}

fn send(end: &mut End, bytes: &[u8]) {
    let mut rest = bytes;
    while end.waiting.is_empty() && !rest.is_empty() {
        match end.socket.write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(_) => break,
        }
    }
    end.waiting.extend_from_slice(rest);
}

fn close(at: usize, ends: &mut Vec<Option<End>>) {
    let other = ends.get_mut(at).and_then(Option::take).map(|end| end.other);
    if let Some(slot) = other.and_then(|other| ends.get_mut(other)) {
        *slot = None;
    }
    // Otherwise a relay that serves many runs would iterate over all ends of the past.
    while ends.last().is_some_and(Option::is_none) {
        ends.pop();
    }
}
