//! A hostile RTMP publisher: publishes normally, then writes its flood as fast as the server reads.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use headgate_rtmp::{ClientEvent, ClientRole, ClientSession};

use super::flood::{Flood, Source};
use super::{Attempt, Run};
use crate::rtmp_alone::open;

/// Longest wait in one write: the attack overruns its time by at most this while the server does not read.
const WRITE_WAIT: Duration = Duration::from_millis(100);
/// Most bytes in one system call: the kernel may not preempt it, and the honest load shares the core.
const WRITE_BYTES: usize = 64 << 10;
/// How long it sleeps while nothing is due.
const IDLE: Duration = Duration::from_millis(5);

pub(super) fn attack(run: &Run, flood: Flood, until: Instant) -> io::Result<Attempt> {
    let (mut socket, session) = open(run.target, &run.name, ClientRole::Publish)?;
    socket.set_write_timeout(Some(WRITE_WAIT))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (reading, notes) = (socket.try_clone()?, is_over.clone());
    let reader = thread::spawn(move || {
        let ended = read_to_end(reading, session);
        notes.store(true, Ordering::Relaxed);
        ended
    });
    let (mut headers, mut attempt) = (BytesMut::new(), Attempt::default());
    let mut source = Source::begin(flood, &mut headers);
    let is_time = || Instant::now() < until && !is_over.load(Ordering::Relaxed);
    attempt.bytes += write(&mut socket, &headers, is_time);
    let begun = Instant::now();
    while is_time() {
        let (batch, messages) = source.next(begun.elapsed());
        if batch.is_empty() {
            thread::sleep(IDLE);
        }
        let written = write(&mut socket, batch, is_time);
        attempt.bytes += written;
        attempt.messages += u64::from(messages) * written / (batch.len().max(1) as u64);
        if written < batch.len() as u64 {
            break;
        }
    }
    let was_open = Instant::now() >= until && !is_over.load(Ordering::Relaxed);
    if was_open {
        // This ends the reader; what it reports then was caused by us.
        socket.shutdown(Shutdown::Both).ok();
    }
    let ended = reader.join().unwrap_or_default();
    attempt.ended = (!was_open).then_some(ended);
    Ok(attempt)
}

/// Writes all of it unless the time is up or the server closes. Returns the bytes written.
fn write(socket: &mut TcpStream, bytes: &[u8], is_time: impl Fn() -> bool) -> u64 {
    let mut at = 0;
    while at < bytes.len() && is_time() {
        let end = (at + WRITE_BYTES).min(bytes.len());
        match socket.write(bytes.get(at..end).unwrap_or_default()) {
            Ok(written) => at += written,
            Err(error) if is_wait(&error) => {}
            Err(_) => break,
        }
    }
    at as u64
}

/// Reads until the server closes. Returns its last message.
fn read_to_end(mut socket: TcpStream, mut session: ClientSession) -> String {
    let mut buffer = vec![0; 64 << 10];
    let mut said = None;
    socket.set_read_timeout(None).ok();
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return said.unwrap_or_else(|| "closed".to_owned()),
            Ok(length) => {
                let input = buffer.get(..length).unwrap_or_default();
                if session.handle_input(input, Instant::now()).is_err() {
                    return "unreadable".to_owned();
                }
                while let Some(event) = session.poll_event() {
                    if let ClientEvent::Ended { code, description } = event {
                        said = Some(format!("{code} {description}"));
                    }
                }
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return said.unwrap_or_else(|| error.kind().to_string()),
        }
    }
}

pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
