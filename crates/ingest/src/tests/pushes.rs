//! Streams sent on to an upstream: another core.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use super::Core;
use super::peer::{Peer, pictures};
use crate::{EndReason, Event};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[test]
fn the_upstream_gets_every_frame_and_the_arguments_and_the_end() {
    let (mut core, mut upstream) = (Core::start(2), Core::start(1));
    let url = format!("rtmp://upstream.test:{}/live/out?k=a%20b/c", upstream.port());
    let mut publisher = core.publisher("cam", 1, &[url]);
    let wanted = core.address_wanted();
    assert_eq!((wanted.host.as_str(), wanted.port), ("upstream.test", upstream.port()));
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
    publisher.send_frame(0, 1000);
    let request = upstream.request();
    assert_eq!(request.name, b"out");
    assert_eq!(request.arguments.as_deref(), Some(&b"k=a%20b/c"[..]));
    for n in 1..20 {
        publisher.send_frame(n, 1000);
    }
    upstream.ingest.allow(request.request, 7, Vec::new());
    let mut player = wait_for_player(&upstream);
    for n in 20..50 {
        publisher.send_frame(n, 1000);
    }
    publisher.say_goodbye();
    assert_eq!(pictures(&player.media_to_end()), (0..50).collect::<Vec<_>>());
    let (ours, theirs) = (core.ended(1), upstream.ended(7));
    assert_eq!(ours.bytes_out, ours.bytes_in);
    assert_eq!((theirs.reason, theirs.bytes_in), (EndReason::Unpublished, ours.bytes_in));
}

#[test]
fn a_lost_upstream_is_asked_for_anew_and_resumes_at_a_keyframe() {
    let (mut core, mut upstream) = (Core::start(1), Core::start(1));
    let port = upstream.port();
    let mut publisher = core.publisher("cam", 1, &[format!("rtmp://127.0.0.1:{port}/live/out")]);
    let wanted = core.address_wanted();
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
    let request = upstream.request();
    upstream.ingest.allow(request.request, 7, Vec::new());
    for n in 0..15 {
        publisher.send_frame(n, 10);
    }
    while upstream.ingest.snapshot(7).is_some_and(|s| s.bytes_in < 15 * Peer::FRAME_BYTES) {
        publisher.step();
    }
    upstream.ingest.end(7, EndReason::Kicked, String::new());
    upstream.ended(7);
    let again = core.address_wanted();
    assert_ne!(again.push, wanted.push);
    for n in 15..25 {
        publisher.send_frame(n, 10);
    }
    core.ingest.dial(again.push, vec![LOOPBACK]);
    let request = upstream.request();
    upstream.ingest.allow(request.request, 8, Vec::new());
    let mut player = wait_for_player(&upstream);
    publisher.send_frame(25, 10);
    publisher.say_goodbye();
    assert_eq!(pictures(&player.media_to_end()), (20..26).collect::<Vec<_>>());
}

#[test]
fn an_upstream_that_is_not_there_ends_with_the_stream_and_delays_nothing() {
    let mut core = Core::start(1);
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = nobody.local_addr().expect("bound").port();
    drop(nobody);
    let mut publisher = core.publisher("cam", 1, &[format!("rtmp://127.0.0.1:{port}/live/out")]);
    let wanted = core.address_wanted();
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
    core.wait_for(|event| {
        matches!(event, Event::UpstreamChanged(changed) if !changed.sending).then_some(())
    });
    publisher.send_frame(0, 10);
    let said = Instant::now();
    publisher.say_goodbye();
    assert_eq!(core.ended(1).reason, EndReason::Unpublished);
    assert!(said.elapsed() < Duration::from_secs(5));
}

fn wait_for_player(upstream: &Core) -> Peer {
    let until = Instant::now() + super::PATIENCE;
    loop {
        let mut player = Peer::play(upstream.port(), "out");
        let event = player.wait_event(|_| true);
        if event == headgate_rtmp::ClientEvent::Ready {
            return player;
        }
        assert!(Instant::now() < until, "the stream is live in time");
    }
}
