//! One blocking RTMP connection, for programs with a thread for each.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use headgate_rtmp::{ClientConfig, ClientEvent, ClientRole, ClientSession, Limits, MediaKind};

use crate::chunks::{Chunks, message_type};
use crate::load::{HEADERS, Stamp, due, unit};

/// A server that takes longer to accept has failed.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// What OBS and FFmpeg announce.
const CHUNK_SIZE: u32 = 4_096;
/// Precision of the times at which media is sent.
const TURN: Duration = Duration::from_millis(10);

/// Connects and waits until the publish or play is accepted.
pub(crate) fn open(
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

/// Writes all output of a session.
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

/// Publishes both tracks for `time`.
pub(crate) fn publish_for(socket: &mut TcpStream, time: Duration) -> io::Result<()> {
    let mut out = BytesMut::new();
    let chunks = Chunks::announce(CHUNK_SIZE, &mut out);
    for (kind, body) in HEADERS {
        chunks.write(message_type(kind), 0, body, &mut out);
    }
    let (begun, mut sent) = (Instant::now(), [0_u32; 2]);
    while begun.elapsed() < time {
        for (kind, sent) in [MediaKind::Video, MediaKind::Audio].into_iter().zip(&mut sent) {
            while due(kind, *sent) <= begun.elapsed() {
                let stamp = Stamp { publisher: u32::MAX, number: *sent, sent: Duration::ZERO };
                let timestamp = u32::try_from(due(kind, *sent).as_millis()).unwrap_or(0);
                chunks.write(message_type(kind), timestamp, &unit(kind, stamp), &mut out);
                *sent += 1;
            }
        }
        socket.write_all(&out)?;
        out.clear();
        thread::sleep(TURN);
    }
    Ok(())
}
