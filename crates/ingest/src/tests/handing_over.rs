//! Two cores that listen on one port, one after the other: new connections meanwhile, and what runs at the first core.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use super::Core;
use super::peer::{Peer, pictures};

/// A core on a socket that another core may inherit.
fn first() -> (Core, TcpListener) {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let core = Core::start_after(2, socket.try_clone().expect("a descriptor"));
    core.ingest.start_accepting();
    (core, socket)
}

#[test]
fn sessions_of_the_first_core_continue_and_new_connections_reach_the_second() {
    let (mut first, socket) = first();
    let mut publisher = first.publisher("cam", 1, &[]);
    let mut second = Core::start_after(2, socket);
    assert_eq!(second.port(), first.port());
    second.ingest.start_accepting();
    first.ingest.stop_accepting();
    // Connections are accepted in order: one that the first core still accepted has ended before the next one reaches
    // its successor.
    super::whip::wait_until("the second accepts", || {
        let mut other = Peer::publish(first.port(), "other");
        loop {
            if second.take(super::asked).is_some() {
                return true;
            }
            if first.take(super::asked).is_some() || !other.step() {
                return false;
            }
        }
    });
    let later = second.publisher("later", 7, &[]);
    for n in 0..10 {
        publisher.send_frame(n, 100);
    }
    publisher.say_goodbye();
    assert!(first.ended(1).bytes_in > 0);
    drop(later);
    second.ended(7);
}

#[test]
fn connections_made_before_the_second_core_accepts_wait_for_it() {
    let (first, socket) = first();
    let mut second = Core::start_after(1, socket);
    first.ingest.stop_accepting();
    first.ingest.stop();
    let made = std::net::TcpStream::connect(("127.0.0.1", second.port())).expect("in the queue");
    let waits = std::thread::spawn(move || Peer::publish_on(made, "cam"));
    second.ingest.start_accepting();
    let mut publisher = waits.join().expect("a publisher");
    let request = second.request_of(&mut publisher);
    assert_eq!(request.name, b"cam");
}

#[test]
fn other_nodes_play_from_a_core_that_accepts_no_other_connections() {
    let (mut first, _socket) = first();
    let mut publisher = first.publisher("cam", 1, &[]);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let port = first.ingest.accept_pulls(any).expect("a free port");
    first.ingest.stop_accepting();
    publisher.send_frame(0, 100);
    let mut player = Peer::play(port, "cam");
    player.wait_ready();
    publisher.send_frame(1, 100);
    publisher.say_goodbye();
    assert_eq!(pictures(&player.media_to_end()), [0, 1]);
}
