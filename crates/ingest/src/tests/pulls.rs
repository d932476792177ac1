//! Two cores on one machine: a stream published at one is played from the other.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use headgate_rtmp::{ClientEvent, MediaKind, MediaMessage};

use super::Core;
use super::peer::{Peer, paced, pictures};
use crate::{Event, PullEnd, PullSource, UpstreamUrl};

/// A core with a live stream "cam" of client id 1, its publisher, and a core that pulls the stream from it.
fn nodes() -> (Core, Peer, Core) {
    let mut first = Core::start(2);
    let publisher = first.publisher("cam", 1, &[]);
    let second = Core::start_beside(2, Some(source(first.port())));
    (first, publisher, second)
}

fn source(port: u16) -> PullSource {
    let url = format!("rtmp://127.0.0.1:{port}/live/cam?{}", super::NODE_ARGUMENT);
    let url = UpstreamUrl::parse(&url).expect("valid");
    PullSource { client_id: 1, url, address: IpAddr::from(Ipv4Addr::LOCALHOST) }
}

/// A player without listed codecs that has begun to play.
fn player(core: &Core) -> Peer {
    let mut player = Peer::play(core.port(), "cam");
    player.wait_ready();
    player
}

/// Only audio and video messages.
fn media(messages: Vec<MediaMessage>) -> Vec<MediaMessage> {
    messages.into_iter().filter(|message| message.kind != MediaKind::Script).collect()
}

#[test]
fn players_at_both_nodes_get_the_same_messages_by_one_connection_between_them() {
    let (mut first, mut publisher, mut second) = nodes();
    publisher.send_frame(0, 1000);
    let at_first = player(&first);
    let at_second: Vec<_> = (0..4).map(|_| player(&second)).collect();
    let readers: Vec<_> = [at_first]
        .into_iter()
        .chain(at_second)
        .map(|mut player| thread::spawn(move || media(player.media_to_end())))
        .collect();
    let pulls = second.ingest.pulls();
    assert_eq!(pulls.iter().map(|pull| pull.players).collect::<Vec<_>>(), [4]);
    for n in paced(1..100, 4) {
        publisher.send_frame(n, 1000);
    }
    publisher.say_goodbye();
    let seen: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("a player")).collect();
    assert_eq!(pictures(&seen[0]), (0..100).collect::<Vec<_>>());
    for other in &seen {
        // Audio may wait for video: only the order within each track counts.
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let of_kind = |all: &[MediaMessage]| -> Vec<MediaMessage> {
                all.iter().filter(|message| message.kind == kind).cloned().collect()
            };
            assert!(of_kind(other) == of_kind(&seen[0]), "{kind:?}");
        }
    }
    let ended = first.ended(1);
    assert_eq!(
        (ended.bytes_in, ended.bytes_out),
        (100 * Peer::FRAME_BYTES, 100 * Peer::FRAME_BYTES)
    );
    let pulled = second.wait_for(|event| match event {
        Event::PullEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    assert_eq!((pulled.end, pulled.client_id), (PullEnd::SourceEnded, 1));
    assert_eq!(pulled.bytes_in, 100 * Peer::FRAME_BYTES);
    assert_eq!(pulled.bytes_out, 400 * Peer::FRAME_BYTES);
    assert!(second.ingest.pulls().is_empty());
}

/// Median and 99th percentile of a track's delays from sending to arrival.
fn percentiles(mut delays: Vec<Duration>) -> (Duration, Duration) {
    assert_eq!(delays.len(), 124);
    delays.sort_unstable();
    (delays[61], delays[122])
}

/// Reads to the end of the stream; the first frame is left out, because it was sent before the player joined.
fn delays_of(mut player: Peer, sent: &Mutex<Vec<Instant>>) -> [(Duration, Duration); 2] {
    let seen = [MediaKind::Video, MediaKind::Audio].map(|kind| (kind, Mutex::new(Vec::new())));
    player.watch_to_end(|message| {
        let number = usize::try_from(message.timestamp / 40).expect("small");
        let sent = sent.lock().expect("no thread panics").get(number).copied();
        let of_kind = seen.iter().find(|(kind, _)| *kind == message.kind);
        if let (Some(sent), Some((_, delays))) = (sent.filter(|_| number > 0), of_kind) {
            delays.lock().expect("one thread").push(sent.elapsed());
        }
    });
    seen.map(|(_, delays)| percentiles(delays.into_inner().expect("one thread")))
}

#[test]
fn a_player_of_the_other_node_is_at_most_ten_milliseconds_behind_one_at_the_source() {
    const MORE_LIMIT: Duration = Duration::from_millis(10);
    let (first, mut publisher, second) = nodes();
    publisher.send_frame(0, 25);
    let sent = Mutex::new(vec![Instant::now()]);
    let players = [player(&first), player(&second)];
    let [at_first, at_second] = thread::scope(|scope| {
        let sent = &sent;
        let watched = players.map(|player| scope.spawn(move || delays_of(player, sent)));
        // In real time: audio waits for the next video frame at either node.
        for n in paced(1..125, 40) {
            sent.lock().expect("no thread panics").push(Instant::now());
            publisher.send_frame(n, 25);
        }
        publisher.say_goodbye();
        watched.map(|watched| watched.join().expect("a player"))
    });
    println!("video and audio at the source {at_first:?}, at the other node {at_second:?}");
    for (at_first, at_second) in at_first.iter().zip(&at_second) {
        assert!(at_second.0 <= at_first.0 + MORE_LIMIT, "{at_first:?} {at_second:?}");
    }
}

#[test]
fn a_name_that_is_not_live_at_the_source_either_is_refused_immediately() {
    let source_core = Core::start(1);
    let core = Core::start_beside(1, Some(source(source_core.port())));
    let mut player = Peer::play(core.port(), "cam");
    let since = Instant::now();
    let refused = player.wait_event(|event| matches!(event, ClientEvent::Refused { .. }));
    let ClientEvent::Refused { code, description, .. } = refused else { unreachable!("matched") };
    assert_eq!((&code[..], &description[..]), ("NetStream.Play.StreamNotFound", "No such stream"));
    assert!(since.elapsed() < Duration::from_secs(4));
    assert!(core.ingest.pulls().is_empty());
}
