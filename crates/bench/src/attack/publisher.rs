//! A hostile RTMP publisher: publishes as it should, then writes its flood as fast as the server reads.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use headgate_rtmp::{ClientConfig, ClientEvent, ClientRole, ClientSession, Limits};

use super::flood::{Flood, Source};
use super::{Attempt, Run};

/// A server that takes longer to accept has failed the attempt.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// How exactly the end of the time is kept while the server does not read.
const WRITE_WAIT: Duration = Duration::from_millis(100);
/// At most this in one system call: the kernel may not be interrupted in it, and honest load has the same core.
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
        // The reader ends with it; what it says then is our own doing.
        socket.shutdown(Shutdown::Both).ok();
    }
    let ended = reader.join().unwrap_or_default();
    attempt.ended = (!was_open).then_some(ended);
    Ok(attempt)
}

/// Writes all of it unless the time ends before or the server closes; how much it was.
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

/// Connects and waits until the publish or play is accepted.
pub(super) fn open(
    target: SocketAddr,
    name: &str,
    role: ClientRole,
) -> io::Result<(TcpStream, ClientSession)> {
    let mut socket = TcpStream::connect(target)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(READY_LIMIT))?;
    let config = ClientConfig {
        app: "live".into(),
        tc_url: format!("rtmp://{target}/live"),
        name: name.as_bytes().to_vec(),
        seed: [9; 8],
        limits: Limits { turn_work: u32::MAX, ..Limits::default() },
        ..ClientConfig::new(role)
    };
    let mut session = ClientSession::new(config, Instant::now());
    let mut buffer = [0; 4096];
    loop {
        write_output(&mut socket, &mut session)?;
        let length = socket.read(&mut buffer)?;
        if length == 0 {
            return Err(io::Error::other("closed before it was accepted"));
        }
        let input = buffer.get(..length).unwrap_or_default();
        session.handle_input(input, Instant::now()).map_err(io::Error::other)?;
        while let Some(event) = session.poll_event() {
            match event {
                ClientEvent::Ready => return Ok((socket, session)),
                ClientEvent::Refused { code, description, .. } => {
                    return Err(io::Error::other(format!("refused: {code} {description}")));
                }
                _ => {}
            }
        }
    }
}

/// Writes all that a session has to say.
fn write_output(socket: &mut TcpStream, session: &mut ClientSession) -> io::Result<()> {
    let output = session.output_mut();
    while !output.is_empty() {
        let mut slices = [io::IoSlice::new(&[]); 16];
        let count = output.io_slices(&mut slices);
        let written = socket.write_vectored(slices.get(..count).unwrap_or_default())?;
        output.consume(written);
    }
    Ok(())
}

/// Reads until the server closes; what it said last.
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
