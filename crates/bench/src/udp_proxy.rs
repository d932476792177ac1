//! A UDP hop with a bad network on both sides of it, for one client and one server.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::impairment::{Conditions, Link};

/// The longest wait for a datagram, and thus the precision of delays.
const TURN: Duration = Duration::from_millis(1);
const DATAGRAM_LIMIT: usize = 2_048;

/// A running hop, in its own thread.
pub(crate) struct UdpProxy {
    /// Where the client sends to.
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl UdpProxy {
    /// Both directions have the same conditions but different seeds.
    pub(crate) fn start(
        listen: SocketAddr,
        server: SocketAddr,
        conditions: Conditions,
        seed: u64,
    ) -> io::Result<Self> {
        let front = UdpSocket::bind(listen)?;
        let back = UdpSocket::bind(SocketAddr::new(listen.ip(), 0))?;
        back.connect(server)?;
        front.set_read_timeout(Some(TURN))?;
        back.set_nonblocking(true)?;
        let address = front.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stops = stop.clone();
        let now = Instant::now();
        let links = [Link::new(conditions, seed, now), Link::new(conditions, !seed, now)];
        let thread = thread::spawn(move || forward(&front, &back, links, &stops));
        Ok(Self { address, stop, thread })
    }

    /// Stops it. Returns the number of datagrams lost.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(0)
    }

    /// Runs until the process is ended.
    pub(crate) fn run(self) -> u64 {
        self.thread.join().unwrap_or(0)
    }
}

fn forward(front: &UdpSocket, back: &UdpSocket, links: [Link; 2], stops: &AtomicBool) -> u64 {
    let [mut up, mut down] = links;
    let mut client = None;
    let mut buffer = [0; DATAGRAM_LIMIT];
    while !stops.load(Ordering::Relaxed) {
        if let Ok((length, from)) = front.recv_from(&mut buffer) {
            client = Some(from);
            up.handle_datagram(Instant::now(), buffer.get(..length).unwrap_or_default());
        }
        while let Ok(length) = back.recv(&mut buffer) {
            down.handle_datagram(Instant::now(), buffer.get(..length).unwrap_or_default());
        }
        // A datagram that the kernel refuses is lost, as on any network.
        let now = Instant::now();
        while let Some(datagram) = up.poll(now) {
            let _ = back.send(&datagram);
        }
        while let Some((datagram, client)) = down.poll(now).zip(client) {
            let _ = front.send_to(&datagram, client);
        }
    }
    up.lost + down.lost
}
