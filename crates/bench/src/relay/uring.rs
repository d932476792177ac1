//! The relay on io_uring. `AtOnce`: each socket has one receive in force, and what a turn received is sent in the
//! system call that waits for the next turn. Once for each picture: one system call submits the receives that are due,
//! and a second one sends what they received and waits for the turn's end. Bytes are never copied in between.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use super::ring::{BUFFER_BYTES, Buffer, Event, Receive, Received, Ring, Sends};
use super::{BEGINNING, PICTURE, Pace, TURN};

/// More completions than one turn has: a wait for this many lasts until the timeout.
const NEVER: usize = 8_192;

/// The reader of one direction, and where it writes.
struct End {
    socket: TcpStream,
    other: usize,
    is_receiving: bool,
    is_sending: bool,
    is_closed: bool,
    next_read: Instant,
    /// Bytes so far.
    passed: usize,
    /// What is sent once the current send has completed.
    waiting: VecDeque<Buffer>,
}

struct Relay {
    ring: Ring,
    pace: Pace,
    target: SocketAddr,
    listener: TcpListener,
    ends: Vec<Option<End>>,
    /// Sends since the last system call.
    sends: usize,
    /// Sockets that found no buffer.
    starved: Vec<usize>,
}

/// Runs until it is killed.
pub(super) fn run(
    listen: SocketAddr,
    target: SocketAddr,
    pace: Pace,
    sends: Sends,
) -> io::Result<String> {
    let mut ring = match Ring::new(sends) {
        Ok(ring) => ring,
        Err(error) => {
            println!("absent: {error}");
            return Ok(String::new());
        }
    };
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    ring.listen(&listener)?;
    println!("ready");
    let (ends, starved) = (Vec::new(), Vec::new());
    let mut relay = Relay { ring, pace, target, listener, ends, sends: 0, starved };
    let mut events = Vec::new();
    loop {
        match pace {
            // Usually the sends of the turn have completed by then, so one more completion is a new event. If one has
            // not, the turn starts one event later.
            Pace::AtOnce => relay.ring.submit(relay.sends + 1, None)?,
            Pace::EachPicture | Pace::EachPictureInTurns | Pace::PromptlyInTurns => {
                // Without connections there is nothing to wait for but a new one.
                if relay.ends.is_empty() {
                    relay.ring.submit(1, None)?;
                } else {
                    relay.ring.submit(NEVER, Some(TURN))?;
                }
                relay.sends = 0;
                relay.handle_events(&mut events)?;
                relay.receive_due()?;
                relay.ring.submit(0, None)?;
            }
        }
        relay.sends = 0;
        relay.handle_events(&mut events)?;
    }
}

impl Relay {
    fn handle_events(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        self.ring.take_events(events);
        let mut has_room = false;
        for event in events.drain(..) {
            match event {
                Event::Connection => self.accept()?,
                Event::Received { socket, received, is_armed } => {
                    self.handle_received(socket, received, is_armed)?;
                }
                Event::Sent { socket } => {
                    has_room = true;
                    self.handle_sent(socket)?;
                }
            }
        }
        if has_room {
            for at in std::mem::take(&mut self.starved) {
                self.receive(at)?;
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((socket, _)) = self.listener.accept() {
            let at = self.ends.len();
            for (socket, other) in [(socket, at + 1), (TcpStream::connect(self.target)?, at)] {
                socket.set_nodelay(true)?;
                let at = self.ends.len();
                self.ring.add(at, &socket)?;
                self.ends.push(Some(End {
                    socket,
                    other,
                    is_receiving: false,
                    is_sending: false,
                    is_closed: false,
                    next_read: Instant::now(),
                    passed: 0,
                    waiting: VecDeque::new(),
                }));
                self.receive(at)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, at: usize) -> io::Result<()> {
        let Some(Some(end)) = self.ends.get_mut(at) else { return Ok(()) };
        if end.is_receiving || end.is_closed {
            return Ok(());
        }
        end.is_receiving = true;
        let receive = if self.pace == Pace::AtOnce { Receive::Many } else { Receive::Once };
        self.ring.receive(at, receive)
    }

    /// Receives from all connections whose next picture is due.
    fn receive_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        for at in 0..self.ends.len() {
            let is_due = |end: &End| !end.is_receiving && now >= end.next_read;
            if self.ends.get(at).and_then(Option::as_ref).is_some_and(is_due) {
                self.receive(at)?;
            }
        }
        Ok(())
    }

    fn handle_received(&mut self, at: usize, received: Received, is_armed: bool) -> io::Result<()> {
        let Some(Some(end)) = self.ends.get_mut(at) else { return Ok(()) };
        end.is_receiving = is_armed;
        let other = end.other;
        match received {
            Received::Bytes(buffer) => {
                end.passed += buffer.length as usize;
                // A full buffer means that there is more.
                if end.passed >= BEGINNING && buffer.length < BUFFER_BYTES {
                    end.next_read = Instant::now() + PICTURE;
                }
                self.send(other, buffer)?;
                if self.pace == Pace::AtOnce {
                    self.receive(at)?;
                }
            }
            Received::Starved => self.starved.push(at),
            Received::Closed => {
                for at in [at, other] {
                    if let Some(Some(end)) = self.ends.get_mut(at) {
                        end.is_closed = true;
                        // Ends the requests in force; an error means that the socket is already closed.
                        let _ = end.socket.shutdown(Shutdown::Both);
                    }
                    self.settle(at)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, at: usize, buffer: Buffer) -> io::Result<()> {
        match self.ends.get_mut(at) {
            Some(Some(end)) if end.is_closed => self.ring.discard(buffer),
            Some(Some(end)) if end.is_sending => end.waiting.push_back(buffer),
            Some(Some(end)) => {
                end.is_sending = true;
                self.sends += 1;
                self.ring.send(at, buffer)?;
            }
            _ => self.ring.discard(buffer),
        }
        Ok(())
    }

    fn handle_sent(&mut self, at: usize) -> io::Result<()> {
        let Some(Some(end)) = self.ends.get_mut(at) else { return Ok(()) };
        end.is_sending = false;
        if let Some(buffer) = end.waiting.pop_front() {
            self.send(at, buffer)?;
        }
        self.settle(at)
    }

    /// Forgets an end that is closed and has no request in force.
    fn settle(&mut self, at: usize) -> io::Result<()> {
        let Some(slot) = self.ends.get_mut(at) else { return Ok(()) };
        let is_over = |end: &mut End| end.is_closed && !end.is_receiving && !end.is_sending;
        if let Some(mut end) = slot.take_if(is_over) {
            for buffer in end.waiting.drain(..) {
                self.ring.discard(buffer);
            }
            self.ring.remove(at)?;
        }
        // Otherwise a relay that serves many runs would iterate over all ends of the past.
        while self.ends.last().is_some_and(Option::is_none) {
            self.ends.pop();
        }
        Ok(())
    }
}
