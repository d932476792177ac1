//! Broadcasters that continue a stream of another worker: their sessions and sockets move there.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::Core;
use super::peer::{Peer, pictures};

#[test]
fn successors_accepted_by_either_worker_continue_the_stream_for_players_of_both() {
    let mut core = Core::start(2);
    core.hold.window = Duration::from_secs(10);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send_frame(0, 25);
    let players = [0, 1].map(|_| {
        let mut player = Peer::play(core.port(), "cam");
        player.wait_ready();
        thread::spawn(move || player.media_to_end())
    });
    // Connections are distributed to both workers in turn: with one more between them, successors reach both.
    let mut others = Vec::new();
    for client_id in 1..=4 {
        for n in 1..10 {
            publisher.send_frame(n, 25);
        }
        core.wait_for_time(client_id, 360);
        drop(publisher);
        assert!(core.ended(client_id).is_held);
        if client_id == 2 {
            others.push(TcpStream::connect(("127.0.0.1", core.port())).expect("it accepts"));
        }
        core.hold.continues = Some(client_id);
        publisher = core.publisher("cam", client_id + 1, &[]);
        publisher.send_frame(0, 25);
    }
    publisher.say_goodbye();
    core.ingest.release(5);
    let ended = core.ended(5);
    assert!(ended.bytes_in > 0);
    core.ingest.release(5);
    for player in players {
        let media = player.join().expect("a player");
        let numbers: Vec<_> = (0..4).flat_map(|_| 0..10).chain([0]).collect();
        assert_eq!(pictures(&media), numbers);
        assert!(media.iter().map(|of| of.timestamp).is_sorted());
    }
}
