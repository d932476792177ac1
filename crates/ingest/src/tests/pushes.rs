//! Streams pushed to an upstream, which is another core.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Core;
use super::peer::{Peer, pictures};
use crate::{EndReason, Event, Hold};

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
    upstream.ingest.allow(request.request, 7, Vec::new(), Hold::default());
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

/// A publish that is pushed to another core under client id 7, with fifteen video frames sent; and the number of its
/// push.
fn pushing_fifteen_pictures() -> (Core, Core, Peer, u64) {
    let (mut core, mut upstream) = (Core::start(1), Core::start(1));
    let port = upstream.port();
    let mut publisher = core.publisher("cam", 1, &[format!("rtmp://127.0.0.1:{port}/live/out")]);
    let wanted = core.address_wanted();
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
    let request = upstream.request();
    upstream.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    for n in 0..15 {
        publisher.send_frame(n, 10);
    }
    (core, upstream, publisher, wanted.push)
}

#[test]
fn a_lost_upstream_is_dialled_again_and_resumes_at_a_keyframe() {
    let (mut core, mut upstream, mut publisher, first) = pushing_fifteen_pictures();
    while upstream.ingest.snapshot(7).is_some_and(|s| s.bytes_in < 15 * Peer::FRAME_BYTES) {
        publisher.step();
    }
    upstream.ingest.end(7, EndReason::Kicked, String::new());
    upstream.ended(7);
    let again = core.address_wanted();
    assert_ne!(again.push, first);
    for n in 15..25 {
        publisher.send_frame(n, 10);
    }
    core.ingest.dial(again.push, vec![LOOPBACK]);
    let request = upstream.request();
    upstream.ingest.allow(request.request, 8, Vec::new(), Hold::default());
    let mut player = wait_for_player(&upstream);
    publisher.send_frame(25, 10);
    publisher.say_goodbye();
    assert_eq!(pictures(&player.media_to_end()), (20..26).collect::<Vec<_>>());
}

#[test]
fn a_lost_upstream_gets_no_frame_twice_and_time_never_goes_back() {
    let (mut core, mut upstream, mut publisher, _) = pushing_fifteen_pictures();
    upstream.wait_for_time(7, 14 * 40);
    upstream.ingest.end(7, EndReason::Kicked, String::new());
    upstream.ended(7);
    let again = core.address_wanted();
    // The current GOP began before the loss.
    for n in 15..18 {
        publisher.send_frame(n, 10);
    }
    core.wait_for_time(1, 17 * 40);
    core.ingest.dial(again.push, vec![LOOPBACK]);
    let request = upstream.request();
    upstream.ingest.allow(request.request, 8, Vec::new(), Hold::default());
    let mut player = wait_for_player(&upstream);
    for n in 18..22 {
        publisher.send_frame(n, 10);
    }
    publisher.say_goodbye();
    let media = player.media_to_end();
    assert_eq!(pictures(&media), [20, 21]);
    let is_sound = |body: &[u8]| body.starts_with(&[0xaf, 1]);
    let sounds = media.iter().filter(|message| is_sound(&message.payload));
    let times: Vec<_> = sounds.map(|message| message.timestamp / 40).collect();
    assert!(times.first().is_some_and(|first| *first > 14) && times.is_sorted(), "{times:?}");
}

#[test]
fn an_unreachable_upstream_ends_with_the_stream_and_delays_nothing() {
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

pub(super) fn wait_for_player(upstream: &Core) -> Peer {
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

/// An upstream that answers every connect with a redirect to `url`; returns the count of connections.
pub(super) fn redirect_all(listener: TcpListener, url: String) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            counted.fetch_add(1, Ordering::Relaxed);
            let mut hello = [0; 1537];
            if socket.read_exact(&mut hello).is_err() {
                continue;
            }
            let _ = socket.write_all(&[&[3][..], &[0; 1536], &hello[1..]].concat());
            let mut connect = [0; 1700];
            let _ = socket.read_exact(&mut connect);
            let _ = socket.write_all(&redirect_message(&url));
            // Read to the end; otherwise a reset could discard the redirect.
            while socket.read(&mut connect).is_ok_and(|length| length > 0) {}
        }
    });
    count
}

/// `_error` of connect with `ex.code` 302, in chunks of 128 bytes.
fn redirect_message(url: &str) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat();
    let string = |value: &str| [&[2][..], &text(value)].concat();
    let number = |value: f64| [&[0][..], &value.to_be_bytes()].concat();
    let end = [0, 0, 9];
    let body = [
        string("_error"),
        number(1.0),
        vec![5, 3],
        text("level"),
        string("error"),
        text("code"),
        string("NetConnection.Connect.Rejected"),
        text("ex"),
        vec![3],
        text("code"),
        number(302.0),
        text("redirect"),
        string(url),
        end.to_vec(),
        end.to_vec(),
    ]
    .concat();
    let [_, a, b, c] = (body.len() as u32).to_be_bytes();
    let mut bytes = vec![3, 0, 0, 0, a, b, c, 20, 0, 0, 0, 0];
    for (n, chunk) in body.chunks(128).enumerate() {
        if n > 0 {
            bytes.push(0xc3);
        }
        bytes.extend_from_slice(chunk);
    }
    bytes
}

#[test]
fn a_redirect_is_followed_once_the_gateway_has_resolved_the_new_host() {
    let (mut core, mut upstream) = (Core::start(1), Core::start(1));
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    redirect_all(listener, format!("rtmp://moved.test:{}/live", upstream.port()));
    let mut publisher =
        core.publisher("cam", 1, &[format!("rtmp://home.test:{port}/live/out?k=1")]);
    let wanted = core.address_wanted();
    assert_eq!(wanted.host, "home.test");
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
    let moved = core.address_wanted();
    assert_eq!((moved.host.as_str(), moved.port), ("moved.test", upstream.port()));
    core.ingest.dial(moved.push, vec![LOOPBACK]);
    let request = upstream.request();
    assert_eq!((&request.name[..], request.arguments.as_deref()), (&b"out"[..], Some(&b"k=1"[..])));
    upstream.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    publisher.send_frame(0, 10);
    while upstream.ingest.snapshot(7).is_some_and(|s| s.bytes_in < Peer::FRAME_BYTES) {
        publisher.step();
    }
    publisher.say_goodbye();
    assert_eq!(upstream.ended(7).bytes_in, Peer::FRAME_BYTES);
    core.ended(1);
}

#[test]
fn a_redirect_loop_is_given_up_after_three_hops() {
    let mut core = Core::start(1);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let count = redirect_all(listener, format!("rtmp://round.test:{port}/live"));
    let _publisher = core.publisher("cam", 1, &[format!("rtmp://home.test:{port}/live/out")]);
    for host in ["home.test", "round.test", "round.test", "round.test"] {
        let wanted = core.address_wanted();
        assert_eq!(wanted.host, host);
        core.ingest.dial(wanted.push, vec![LOOPBACK]);
    }
    let lost = core.wait_for(|event| match event {
        Event::UpstreamChanged(changed) => Some(changed.detail.clone()),
        _ => None,
    });
    assert_eq!((lost.as_str(), count.load(Ordering::Relaxed)), ("redirected", 4));
    // The next attempt begins at the original host again.
    assert_eq!(core.address_wanted().host, "home.test");
}
