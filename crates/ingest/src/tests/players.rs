//! One publisher, many players, over several workers.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use headgate_rtmp::{ClientEvent, MediaKind};

use super::Core;
use super::peer::{Peer, paced, pictures};

#[test]
fn ten_players_over_two_workers_get_every_frame_beside_one_that_never_reads() {
    let mut core = Core::start(2);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send_frame(0, 1000);
    let stalled: Vec<Peer> = (0..2).map(|_| ready_player(&core)).collect();
    let players: Vec<_> = (0..10).map(|_| ready_player(&core)).collect();
    let readers: Vec<_> = players
        .into_iter()
        .map(|mut player| thread::spawn(move || player.media_to_end()))
        .collect();
    for n in paced(1..150, 4) {
        publisher.send_frame(n, 1000);
    }
    publisher.say_goodbye();
    for reader in readers {
        let media = reader.join().expect("a player");
        assert_eq!(pictures(&media), (0..150).collect::<Vec<_>>());
        assert_eq!(media.iter().filter(|m| m.kind == MediaKind::Audio).count(), 151);
        assert!(media.iter().map(|m| m.timestamp).is_sorted());
    }
    let ended = core.ended(1);
    assert_eq!(ended.bytes_in, 150 * Peer::FRAME_BYTES);
    // The two stalled players were sent at most what fits in their sockets.
    assert!(ended.bytes_out >= 10 * ended.bytes_in, "{ended:?}");
    assert!(ended.bytes_out <= 12 * ended.bytes_in, "{ended:?}");
    drop(stalled);
}

#[test]
fn dropped_frames_of_a_stalled_player_are_counted_and_others_lose_nothing() {
    let mut core = Core::start(2);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send_frame(0, 25);
    let stalled = [ready_player(&core), ready_player(&core)];
    let reader = {
        let mut player = ready_player(&core);
        thread::spawn(move || player.media_to_end())
    };
    // 40 s of media at 2 kB a frame would fit in a socket's buffer: use large frames.
    let picture = crate::sample::picture(false, 0, 60_000);
    for n in paced(1..400, 2) {
        if n % 25 == 0 {
            publisher.send_frame(n, 25)
        } else {
            publisher.send(MediaKind::Video, n * 40, &picture)
        }
    }
    let dropped = core.ingest.snapshot(1).map_or(0, |snapshot| snapshot.dropped_frames);
    assert!(dropped > 0, "what the stalled players lose is counted");
    publisher.say_goodbye();
    let media = reader.join().expect("the player");
    assert_eq!(media.iter().filter(|m| m.kind == MediaKind::Video).count(), 401);
    core.ended(1);
    drop(stalled);
}

#[test]
fn a_player_that_joins_late_starts_with_header_and_keyframe_on_any_worker() {
    let mut core = Core::start(2);
    let mut publisher = core.publisher("cam", 1, &[]);
    for n in 0..40 {
        publisher.send_frame(n, 15);
    }
    // The players are distributed to both workers in turn.
    let readers: Vec<_> = (0..4)
        .map(|_| ready_player(&core))
        .map(|mut player| thread::spawn(move || player.media_to_end()))
        .collect();
    for n in 40..50 {
        publisher.send_frame(n, 15);
    }
    publisher.say_goodbye();
    for reader in readers {
        let media = reader.join().expect("a player");
        let first = media.iter().find(|m| m.kind == MediaKind::Video).expect("a picture");
        assert_eq!(first.payload.get(..2), Some(&[0x17, 0][..]));
        assert_eq!(pictures(&media).first(), Some(&30));
        assert_eq!(pictures(&media).last(), Some(&49));
    }
}

#[test]
fn a_player_that_joins_late_gets_metadata_then_headers_then_the_cached_pictures() {
    let mut core = Core::start(1);
    let mut publisher = core.publisher("cam", 1, &[]);
    let metadata = b"\x02\0\x0aonMetaData\x08\0\0\0\0\0\0\x09";
    publisher.send(MediaKind::Script, 0, metadata);
    for n in 0..13 {
        publisher.send_frame(n, 10);
    }
    core.wait_for_time(1, 12 * 40);
    let mut player = ready_player(&core);
    publisher.say_goodbye();
    let media = player.media_to_end();
    let starts: Vec<_> = media
        .iter()
        .filter(|m| m.payload.get(2..) != Some(&[0; 100]))
        .map(|m| (m.kind, m.payload.get(..2).unwrap_or_default().to_vec()))
        .collect();
    let (script, video) = (MediaKind::Script, MediaKind::Video);
    let want: [(MediaKind, &[u8]); 6] = [
        (script, &metadata[..2]),
        (video, &[0x17, 0]),
        (MediaKind::Audio, &[0xaf, 0]),
        (video, &[0x17, 1]),
        (video, &[0x27, 1]),
        (video, &[0x27, 1]),
    ];
    assert_eq!(starts, want.map(|(kind, bytes)| (kind, bytes.to_vec())));
    assert_eq!(pictures(&media), [10, 11, 12]);
    assert_eq!(media.first().map(|m| &m.payload[..]), Some(&metadata[..]));
    core.ended(1);
}

#[test]
fn an_unknown_name_is_refused_immediately() {
    let core = Core::start(1);
    let mut player = Peer::play(core.port(), "nobody");
    let refused = player.wait_event(|event| matches!(event, ClientEvent::Refused { .. }));
    let ClientEvent::Refused { code, .. } = refused else { unreachable!("just matched") };
    assert_eq!(code, "NetStream.Play.StreamNotFound");
}

fn ready_player(core: &Core) -> Peer {
    let mut player = Peer::play(core.port(), "cam");
    player.wait_ready();
    player
}

#[test]
fn only_a_player_that_reads_ten_kilobytes_a_second_loses_frames() {
    const PICTURES: u32 = 400;
    let mut core = Core::start(2);
    let mut publisher = core.publisher("cam", 1, &[]);
    publisher.send_frame(0, 25);
    let slow = ready_player(&core);
    // A small receive buffer, so that the kernel does not absorb the backlog.
    socket2::SockRef::from(&slow.socket).set_recv_buffer_size(8 * 1024).expect("a socket option");
    let stop = Arc::new(AtomicBool::new(false));
    let reading = {
        let (mut socket, stop) = (slow.socket.try_clone().expect("a handle"), stop.clone());
        thread::spawn(move || {
            let mut buffer = [0; 1000];
            while !stop.load(Ordering::Relaxed) {
                let _ = socket.read(&mut buffer);
                thread::sleep(Duration::from_millis(100)); // a player that reads slowly
            }
        })
    };
    let fast = {
        let mut player = ready_player(&core);
        thread::spawn(move || player.media_to_end())
    };
    let picture = crate::sample::picture(false, 0, 60_000);
    for n in paced(1..PICTURES, 10) {
        if n % 25 == 0 {
            publisher.send_frame(n, 25)
        } else {
            publisher.send(MediaKind::Video, n * 40, &picture)
        }
    }
    let snapshot = core.ingest.snapshot(1).expect("live");
    publisher.say_goodbye();
    let media = fast.join().expect("the player");
    let pictures = media.iter().filter(|m| m.kind == MediaKind::Video).count();
    assert_eq!(pictures, PICTURES as usize + 1);
    assert!((1..u64::from(PICTURES)).contains(&snapshot.dropped_frames), "{snapshot:?}");
    core.ended(1);
    stop.store(true, Ordering::Relaxed);
    reading.join().expect("the reader");
}
