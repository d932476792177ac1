//! The attacker's upstream: accepts every publish and drops its media, or writes pings and media back at full speed.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bytes::BytesMut;
use headgate_rtmp::{Limits, ServerConfig, ServerEvent, ServerSession};

use crate::chunks::{AUDIO, Chunks, USER_CONTROL};

/// Bytes of one read whose content is dropped.
const BUFFER_BYTES: usize = 1 << 20;
/// Bytes of one write of the flood.
const BATCH_BYTES: usize = 64 << 10;
const CHUNK_SIZE: u32 = 65_536;

/// Listens in threads that end with the process. Returns the counter of bytes written back.
pub(super) fn start(listen: SocketAddr, floods: bool) -> io::Result<Arc<AtomicU64>> {
    let listener = TcpListener::bind(listen)?;
    let written = Arc::new(AtomicU64::new(0));
    let counter = written.clone();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let counter = counter.clone();
            thread::spawn(move || serve(socket, floods.then_some(counter)));
        }
    });
    Ok(written)
}

/// Until the server closes. `floods` counts what is written back.
fn serve(mut socket: TcpStream, floods: Option<Arc<AtomicU64>>) -> io::Result<()> {
    accept(&mut socket)?;
    if let Some(counter) = floods {
        let socket = socket.try_clone()?;
        thread::spawn(move || flood(socket, &counter));
    }
    // Not parsed: the attack shares its core with the server.
    let mut buffer = vec![0; BUFFER_BYTES];
    while socket.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Reads until a publish request arrives, and allows it.
fn accept(socket: &mut TcpStream) -> io::Result<()> {
    let limits = Limits { turn_work: u32::MAX, ..Limits::default() };
    let mut session =
        ServerSession::new(ServerConfig { limits, ..ServerConfig::default() }, Instant::now());
    let mut buffer = [0; 4096];
    let mut is_allowed = false;
    while !is_allowed {
        let length = socket.read(&mut buffer)?;
        if length == 0 {
            return Err(io::Error::other("closed before it published"));
        }
        let input = buffer.get(..length).unwrap_or_default();
        session.handle_input(input, Instant::now()).map_err(io::Error::other)?;
        while let Some(event) = session.poll_event() {
            if matches!(event, ServerEvent::PublishRequested(_)) {
                session.allow();
                is_allowed = true;
            }
        }
        let output = session.output_mut();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let count = output.io_slices(&mut slices);
            let written = socket.write_vectored(slices.get(..count).unwrap_or_default())?;
            output.consume(written);
        }
    }
    Ok(())
}

/// Media, and as many pings as a peer may send without being ended for the answers they cause.
fn flood(mut socket: TcpStream, written: &AtomicU64) -> io::Result<()> {
    let mut out = BytesMut::new();
    let chunks = Chunks::announce(CHUNK_SIZE, &mut out);
    loop {
        while out.len() < BATCH_BYTES {
            chunks.write(AUDIO, 0, &[0xaf, 1, 0x21, 0x10], &mut out);
        }
        chunks.write(USER_CONTROL, 0, &[0, 6, 1, 2, 3, 4], &mut out);
        socket.write_all(&out)?;
        written.fetch_add(out.len() as u64, Ordering::Relaxed);
        out.clear();
    }
}
