//! Hostile peers at the RTMP port.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::Core;
use super::peer::{Peer, paced, pictures};
use crate::EndReason;

#[test]
fn random_bytes_and_half_open_handshakes_cost_the_running_publish_no_frame() {
    let mut core = Core::start(2);
    let port = core.port();
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send_frame(0, 100_000);
    let mut player = Peer::play(port, "cam");
    player.wait_ready();
    let reader = thread::spawn(move || player.media_to_end());
    let started = Instant::now();
    let half_open: Vec<TcpStream> = (0..50).map(|n| half_open(port, n)).collect();
    let noise = thread::spawn(move || {
        for n in 0..500 {
            send_noise(port, n);
        }
    });
    let mut sent = 1;
    for n in paced(1..u32::MAX, 2) {
        publisher.send_frame(n, 100_000);
        sent = n + 1;
        if noise.is_finished() && sent >= 300 {
            break;
        }
    }
    noise.join().expect("the noise ends");
    // The handshake may take 5 s; a peer that does not finish it is not kept longer.
    for mut socket in half_open {
        socket.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket option");
        let mut rest = Vec::new();
        // A reset is as good as a close.
        let closed = socket.read_to_end(&mut rest);
        assert!(
            closed.is_ok()
                || closed.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    assert!(started.elapsed() < Duration::from_secs(15));
    publisher.say_goodbye();
    let got = reader.join().expect("the player");
    assert_eq!(pictures(&got), (0..sent).collect::<Vec<_>>());
    let ended = core.ended(1);
    assert_eq!(
        (ended.reason, ended.bytes_in),
        (EndReason::Unpublished, u64::from(sent) * Peer::FRAME_BYTES)
    );
}

#[test]
fn a_publisher_that_pings_and_never_reads_gets_few_answers_and_stays_live() {
    let mut core = Core::start(1);
    let mut publisher = core.publisher("cam", 1, &[]);
    let ping = [2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 1, 2, 3, 4];
    for n in 0..100 {
        publisher.send_frame(n, 10);
        publisher.send_bytes(&ping.repeat(1024)).expect("it is read");
    }
    publisher.say_goodbye();
    let ended = core.ended(1);
    assert_eq!((ended.reason, ended.bytes_in), (EndReason::Unpublished, 100 * Peer::FRAME_BYTES));
}

/// Connects and stops somewhere within the handshake.
fn half_open(port: u16, n: usize) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the core listens");
    let mut hello = vec![0_u8; n * 60];
    if let Some(version) = hello.first_mut() {
        *version = 3;
    }
    socket.write_all(&hello).expect("the core reads");
    socket
}

/// Sends random bytes: at once, or after a valid handshake, where the chunk parser reads them.
fn send_noise(port: u16, seed: u64) {
    let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut bytes = vec![0_u8; 64 + usize::try_from(seed).expect("small") * 8];
    for byte in &mut bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state.to_le_bytes()[2];
    }
    if seed.is_multiple_of(2) {
        let mut hello = vec![0_u8; 1 + 2 * 1536];
        hello[0] = 3;
        // The core may close before all of it is written.
        let _ = socket.write_all(&hello);
    }
    let _ = socket.write_all(&bytes);
}
