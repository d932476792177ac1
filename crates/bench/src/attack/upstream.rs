//! The attacker's own upstream: takes every publish and drops its media, or writes pings and media back as fast as it can.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bytes::BytesMut;
use headgate_rtmp::{Limits, ServerConfig, ServerEvent, ServerSession};

use crate::chunks::{AUDIO, Chunks, USER_CONTROL};

/// Bytes of one write of the flood.
const BATCH_BYTES: usize = 64 << 10;
const CHUNK_SIZE: u32 = 65_536;

/// Listens in threads that end with the process; how many bytes have been written back.
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
fn serve(mut socket: TcpStream, mut floods: Option<Arc<AtomicU64>>) -> io::Result<()> {
    let limits = Limits { turn_work: u32::MAX, ..Limits::default() };
    let mut session =
        ServerSession::new(ServerConfig { limits, ..ServerConfig::default() }, Instant::now());
    let mut buffer = vec![0; 64 << 10];
    let mut is_flooding = false;
    loop {
        let length = socket.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        let input = buffer.get(..length).unwrap_or_default();
        session.handle_input(input, Instant::now()).map_err(io::Error::other)?;
        let mut is_allowed = false;
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
            // Beside a flood nothing else fits between two chunks; the flood says enough.
            let slices = slices.get(..count).unwrap_or_default();
            let written = if is_flooding {
                slices.iter().map(|slice| slice.len()).sum()
            } else {
                socket.write_vectored(slices)?
            };
            output.consume(written);
        }
        if is_allowed && let Some(counter) = floods.take() {
            is_flooding = true;
            let socket = socket.try_clone()?;
            thread::spawn(move || flood(socket, &counter));
        }
    }
}

/// One media message and one ping in turn.
fn flood(mut socket: TcpStream, written: &AtomicU64) -> io::Result<()> {
    let mut out = BytesMut::new();
    let chunks = Chunks::announce(CHUNK_SIZE, &mut out);
    loop {
        while out.len() < BATCH_BYTES {
            chunks.write(AUDIO, 0, &[0xaf, 1, 0x21, 0x10], &mut out);
            chunks.write(USER_CONTROL, 0, &[0, 6, 1, 2, 3, 4], &mut out);
        }
        socket.write_all(&out)?;
        written.fetch_add(out.len() as u64, Ordering::Relaxed);
        out.clear();
    }
}
