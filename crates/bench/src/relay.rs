//! The floor of any server that passes streams on: a relay that reads what is there and writes it out, and knows no
//! protocol. One thread; each connection that comes is passed on to the target and back.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);
/// A connection that gathers is read this often at most: once for each picture, its sound with it.
const PICTURE: Duration = Duration::from_millis(40);
/// How exactly that is kept.
const TURN: Duration = Duration::from_millis(2);
/// What is passed on at once at the beginning, bytes: handshake and commands, whose answers are waited for.
const BEGINNING: usize = 8 << 10;

/// One direction's reader, and where it writes.
struct End {
    socket: TcpStream,
    other: usize,
    is_ready: bool,
    next_read: Instant,
    /// Bytes so far.
    passed: usize,
    /// What the other side did not take yet.
    waiting: Vec<u8>,
}

/// Runs until it is killed.
pub(crate) fn run(
    listen: SocketAddr,
    target: SocketAddr,
    is_gathering: bool,
) -> io::Result<String> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(listen)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("ready");
    let mut events = Events::with_capacity(1_024);
    let mut ends: Vec<Option<End>> = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        poll.poll(&mut events, is_gathering.then_some(TURN))?;
        let now = Instant::now();
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, target, &poll, &mut ends)?;
            } else if let Some(Some(end)) = ends.get_mut(event.token().0) {
                end.is_ready |= event.is_readable();
                if !is_gathering || end.passed < BEGINNING {
                    pass(event.token().0, &mut ends, &mut buffer);
                }
            }
        }
        if is_gathering {
            for at in 0..ends.len() {
                let is_due = |end: &End| end.is_ready && now >= end.next_read;
                if ends.get(at).and_then(Option::as_ref).is_some_and(is_due) {
                    pass(at, &mut ends, &mut buffer);
                    if let Some(Some(end)) = ends.get_mut(at) {
                        end.next_read = now + PICTURE;
                    }
                }
            }
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
            ends.push(Some(End { socket, other, is_ready, next_read, passed: 0, waiting }));
        }
    }
    Ok(())
}

/// One read, or as many as fill the buffer, and a write for each.
fn pass(at: usize, ends: &mut [Option<End>], buffer: &mut [u8]) {
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

fn close(at: usize, ends: &mut [Option<End>]) {
    let other = ends.get_mut(at).and_then(Option::take).map(|end| end.other);
    if let Some(slot) = other.and_then(|other| ends.get_mut(other)) {
        *slot = None;
    }
}
