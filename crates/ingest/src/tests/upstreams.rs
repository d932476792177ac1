//! Upstreams that come, go and fail while a publish is live, and what the gateway sees of them.

use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use headgate_rtmp::{MediaKind, ServerConfig, ServerEvent, ServerSession};

use super::peer::{Peer, paced, pictures};
use super::pushes::{redirect_all, wait_for_player};
use super::{Core, PATIENCE, upstream};
use crate::sample::{AVC_HEADER, picture};
use crate::{AddedUpstream, EndReason, Event, Hold, UpstreamState, UpstreamStatus};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Lets the push that asks for an address connect to this machine.
fn dial(core: &mut Core) {
    let wanted = core.address_wanted();
    core.ingest.dial(wanted.push, vec![LOOPBACK]);
}

/// Waits until `pick` accepts the only upstream of publish 1.
fn status(core: &Core, pick: impl Fn(&UpstreamStatus) -> bool) -> UpstreamStatus {
    let until = Instant::now() + PATIENCE;
    loop {
        let snapshot = core.ingest.snapshot(1).expect("live");
        if let Some(found) = snapshot.upstreams.iter().find(|status| pick(status)) {
            return found.clone();
        }
        assert!(Instant::now() < until, "{snapshot:?}");
        thread::sleep(Duration::from_millis(5)); // between two looks
    }
}

#[test]
fn an_added_upstream_starts_at_a_keyframe_and_a_removed_one_gets_the_end() {
    let (mut core, mut other) = (Core::start(2), Core::start(1));
    let url = format!("rtmp://127.0.0.1:{}/live/out?key=1", other.port());
    let mut publisher = core.publisher("cam", 1, &[]);
    for n in 0..15 {
        publisher.send_frame(n, 10);
    }
    while core.ingest.snapshot(1).is_some_and(|s| s.bytes_in < 15 * Peer::FRAME_BYTES) {
        publisher.step();
    }
    assert_eq!(core.ingest.add_upstream(1, upstream(&url)), AddedUpstream::Added);
    assert_eq!(core.ingest.add_upstream(2, upstream(&url)), AddedUpstream::NotRunning);
    dial(&mut core);
    let request = other.request();
    assert_eq!(request.arguments.as_deref(), Some(&b"key=1"[..]));
    other.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    let sending = status(&core, |status| status.state == UpstreamState::Sending);
    assert_eq!(sending.url, format!("rtmp://127.0.0.1:{}/live", other.port()));
    // Added twice, pushed once.
    assert_eq!(core.ingest.add_upstream(1, upstream(&url)), AddedUpstream::Added);
    let mut player = wait_for_player(&other);
    for n in 15..25 {
        publisher.send_frame(n, 10);
    }
    while other.ingest.snapshot(7).is_some_and(|s| s.bytes_in < 15 * Peer::FRAME_BYTES) {
        publisher.step();
    }
    assert_eq!(status(&core, |_| true).bytes_out, 15 * Peer::FRAME_BYTES);
    assert!(core.ingest.remove_upstream(1, &url));
    assert!(!core.ingest.remove_upstream(1, &url));
    let ended = other.ended(7);
    assert_eq!((ended.reason, ended.bytes_in), (EndReason::Unpublished, 15 * Peer::FRAME_BYTES));
    assert_eq!(pictures(&player.media_to_end()), (10..25).collect::<Vec<_>>());
    // The publish continues and may get the upstream again.
    assert!(core.ingest.snapshot(1).is_some_and(|snapshot| snapshot.upstreams.is_empty()));
    assert_eq!(core.ingest.add_upstream(1, upstream(&url)), AddedUpstream::Added);
    dial(&mut core);
    let again = other.request();
    other.ingest.allow(again.request, 8, Vec::new(), Hold::default());
    status(&core, |status| status.state == UpstreamState::Sending && status.bytes_out > 0);
    publisher.say_goodbye();
    core.ended(1);
    other.ended(8);
}

#[test]
fn an_upstream_removed_before_it_answered_is_closed_immediately() {
    let mut core = Core::start(1);
    let mute = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!("rtmp://127.0.0.1:{}/live/out", mute.local_addr().expect("bound").port());
    let mut publisher = core.publisher("cam", 1, std::slice::from_ref(&url));
    publisher.send_frame(0, 10);
    dial(&mut core);
    let (mut socket, _) = mute.accept().expect("it connects");
    assert!(core.ingest.remove_upstream(1, &url));
    // Its connection is closed, and nothing is tried again.
    let read = std::io::copy(&mut socket, &mut std::io::sink());
    assert!(read.is_ok() || read.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    publisher.say_goodbye();
    core.ended(1);
    let asked = |event: &Event| matches!(event, Event::AddressWanted(_));
    core.waiting.extend(core.events.try_iter());
    assert!(!core.waiting.iter().any(asked));
}

#[test]
fn a_loss_and_a_refusal_are_described_without_our_secrets() {
    let (mut core, mut other) = (Core::start(1), Core::start(1));
    let url = format!("rtmp://127.0.0.1:{}/live/secret-key?token=abc", other.port());
    let mut publisher = core.publisher("cam", 1, &[url]);
    assert_eq!(status(&core, |_| true).state, UpstreamState::Connecting);
    publisher.send_frame(0, 10);
    dial(&mut core);
    let request = other.request();
    other.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    let sending = status(&core, |status| status.state == UpstreamState::Sending);
    assert_eq!((sending.last_error, sending.reconnects), (None, 0));
    other.ingest.end(7, EndReason::Shutdown, String::new());
    let waiting = status(&core, |status| status.state == UpstreamState::Waiting);
    let words = "NetStream.Failed: The service is restarting";
    assert_eq!(waiting.last_error.as_deref(), Some(words));
    dial(&mut core);
    let request = other.request();
    let words = "Unknown stream secret-key?token=abc".into();
    other.ingest.deny(request.request, crate::Denial::BadName, words);
    let refused = status(&core, |status| status.state == UpstreamState::Refused);
    let words = "NetStream.Publish.BadName: Unknown stream …";
    assert_eq!(refused.last_error.as_deref(), Some(words));
    assert!(refused.since >= waiting.since);
    publisher.say_goodbye();
    core.ended(1);
}

#[test]
fn a_healthy_upstream_beside_dead_ones_loses_nothing() {
    let (mut core, mut healthy) = (Core::start(2), Core::start(1));
    let nobody = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let refuses = nobody.local_addr().expect("bound").port();
    drop(nobody);
    // Accepts the connection and never sends anything.
    let mute = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let ports = [refuses, mute.local_addr().expect("bound").port(), healthy.port()];
    let mut publisher =
        core.publisher("cam", 1, &ports.map(|port| format!("rtmp://127.0.0.1:{port}/live/out")));
    for _ in ports {
        dial(&mut core);
    }
    let request = healthy.request();
    healthy.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    publisher.send_frame(0, 25);
    let mut player = wait_for_player(&healthy);
    // Large enough that frames for the mute one must be dropped: at most 3 s of media may wait.
    let picture = crate::sample::picture(false, 0, 20_000);
    for n in paced(1..200, 2) {
        if n % 25 == 0 {
            publisher.send_frame(n, 25);
        } else {
            publisher.send(MediaKind::Video, n * 40, &picture);
        }
    }
    publisher.say_goodbye();
    let media = player.media_to_end();
    assert_eq!(media.iter().filter(|m| m.kind == MediaKind::Video).count(), 201);
    let (ours, theirs) = (core.ended(1), healthy.ended(7));
    assert_eq!(theirs.bytes_in, ours.bytes_in);
}

/// A redirect to an upstream that has received the publish request and has not answered yet.
fn redirected(core: &mut Core, other: &mut Core) -> (Peer, u64) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    redirect_all(listener, format!("rtmp://moved.test:{}/live", other.port()));
    let mut publisher = core.publisher("cam", 1, &[format!("rtmp://home.test:{port}/live/out")]);
    publisher.send_frame(0, 10);
    dial(core);
    dial(core);
    (publisher, other.request().request)
}

#[test]
fn a_publish_that_ends_while_a_redirected_upstream_accepts_still_reaches_it() {
    let (mut core, mut other) = (Core::start(1), Core::start(1));
    let (mut publisher, request) = redirected(&mut core, &mut other);
    publisher.say_goodbye();
    other.ingest.allow(request, 7, Vec::new(), Hold::default());
    let theirs = other.ended(7);
    assert_eq!((theirs.reason, theirs.bytes_in), (EndReason::Unpublished, Peer::FRAME_BYTES));
    assert_eq!(core.ended(1).bytes_out, Peer::FRAME_BYTES);
}

#[test]
fn a_redirected_upstream_that_accepts_after_the_end_is_closed_promptly() {
    let (mut core, mut other) = (Core::start(1), Core::start(1));
    let (mut publisher, request) = redirected(&mut core, &mut other);
    publisher.say_goodbye();
    core.ended(1);
    let accepted = Instant::now();
    other.ingest.allow(request, 7, Vec::new(), Hold::default());
    other.ended(7);
    // Far below the time that it would wait for its first media.
    assert!(accepted.elapsed() < Duration::from_secs(10));
}

#[test]
fn upstreams_of_a_stream_without_audio_get_silence_and_players_do_not() {
    let (mut core, mut other) = (Core::start(1), Core::start(1));
    let url = format!("rtmp://127.0.0.1:{}/live/out", other.port());
    let mut publisher = core.publisher("cam", 1, &[url]);
    publisher.send(MediaKind::Video, 0, AVC_HEADER);
    publisher.send(MediaKind::Video, 0, &picture(true, 0, 0));
    dial(&mut core);
    let request = other.request();
    other.ingest.allow(request.request, 7, Vec::new(), Hold::default());
    let mut far = wait_for_player(&other);
    let mut near = Peer::play(core.port(), "cam");
    near.wait_ready();
    // Two seconds of the wall clock: the wait for audio starts with the first video frame that the upstream gets.
    for n in paced(1..100, 20) {
        publisher.send(MediaKind::Video, n * 40, &picture(false, n, 0));
    }
    publisher.say_goodbye();
    let far = far.media_to_end();
    let sound: Vec<_> = far.iter().filter(|m| m.kind == MediaKind::Audio).collect();
    assert_eq!(sound.first().map(|m| &m.payload[..]), Some(&[0xaf, 0, 0x11, 0x90][..]));
    assert!(sound.len() > 10, "{}", sound.len());
    assert!(far.iter().map(|m| m.timestamp).is_sorted());
    assert!(near.media_to_end().iter().all(|m| m.kind != MediaKind::Audio));
    // Inserted silence does not count as payload of the publish.
    assert_eq!(core.ended(1).bytes_in, other.ended(7).bytes_in - 6 * (sound.len() as u64 - 1));
}

/// An upstream that accepts one publish and whose answer to connect does not list HEVC.
fn without_hevc() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a push");
        let mut session = ServerSession::new(ServerConfig::default(), Instant::now());
        let mut buffer = [0; 65_536];
        while let Ok(length @ 1..) = socket.read(&mut buffer) {
            session.handle_input(&buffer[..length], Instant::now()).expect("we speak RTMP");
            while let Some(event) = session.poll_event() {
                if matches!(event, ServerEvent::PublishRequested(_)) {
                    session.allow();
                }
            }
            while !session.output().is_empty() {
                let mut slices = [IoSlice::new(&[])];
                session.output().io_slices(&mut slices);
                let mut said = slices[0].to_vec();
                while let Some(at) = said.windows(4).position(|four_cc| four_cc == b"hvc1") {
                    said[at..at + 4].copy_from_slice(b"none");
                }
                socket.write_all(&said).expect("the push reads");
                session.output_mut().consume(said.len());
            }
        }
    });
    port
}

#[test]
fn an_unlisted_codec_is_sent_to_the_upstream_and_reported_to_the_operator() {
    let mut core = Core::start(1);
    let mut publisher =
        core.publisher("cam", 1, &[format!("rtmp://127.0.0.1:{}/live/out", without_hevc())]);
    dial(&mut core);
    publisher.send(MediaKind::Video, 0, b"\x90hvc1the decoder's configuration");
    publisher.send(MediaKind::Video, 0, b"\x91hvc1\0\0\0a picture");
    let shown = status(&core, |status| status.last_error.is_some() && status.bytes_out > 0);
    let words = "The upstream does not list hevc (fourCcList): it may not accept it";
    assert_eq!((shown.state, shown.last_error.as_deref()), (UpstreamState::Sending, Some(words)));
    publisher.say_goodbye();
    core.ended(1);
}

#[test]
fn an_upstream_that_does_not_answer_times_out_with_a_description() {
    // Its backlog is full: further connections get no answer.
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let full = full.expect("a socket");
    full.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    full.listen(0).expect("it listens");
    let busy = full.local_addr().expect("bound").as_socket().expect("IPv4");
    let before = Duration::from_millis(100);
    let mut waiting = Vec::new();
    while let Ok(socket) = TcpStream::connect_timeout(&busy, before) {
        waiting.push(socket);
        assert!(waiting.len() < 10, "the queue has an end");
    }
    // This one accepts the connection and never sends anything over TLS.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let silent_port = silent.local_addr().expect("bound").port();
    for (url, words) in [
        (format!("rtmp://127.0.0.1:{}/live/out", busy.port()), "no connection in time"),
        (format!("rtmps://127.0.0.1:{silent_port}/live/out"), "the handshake took too long"),
    ] {
        let mut core = Core::start(1);
        let _publisher = core.publisher("cam", 1, &[url]);
        dial(&mut core);
        let shown = status(&core, |status| status.state == UpstreamState::Waiting);
        assert_eq!(shown.last_error.as_deref(), Some(words));
    }
}
