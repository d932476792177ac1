//! Bytes that wait in the kernel: for a decision, or, in the case of audio, for the next video frame.

use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;

use super::Core;
use super::peer::Peer;
use crate::sample::AVC_HEADER;
use crate::{EndReason, Hold};
use headgate_rtmp::ClientEvent;
use headgate_rtmp::MediaKind::{Audio, Video};

/// One video frame as a message in chunks of 65,536 bytes.
fn picture(millis: u32, length: usize) -> Vec<u8> {
    message(millis, &crate::sample::picture(true, 0, length))
}

/// A video message in such chunks.
fn message(millis: u32, body: &[u8]) -> Vec<u8> {
    let [_, t0, t1, t2] = millis.to_be_bytes();
    let [.., l0, l1, l2] = body.len().to_be_bytes();
    let mut bytes = vec![7, t0, t1, t2, l0, l1, l2, 9, 1, 0, 0, 0];
    for (n, chunk) in body.chunks(65_536).enumerate() {
        if n > 0 {
            bytes.push(0xc7);
        }
        bytes.extend_from_slice(chunk);
    }
    bytes
}

#[test]
fn a_relay_that_sends_before_the_decision_waits_and_loses_nothing() {
    const LENGTH: usize = 300_000;
    let mut core = Core::start(1);
    let mut relay = Peer::publish(core.port(), "cam");
    let request = core.request_of(&mut relay);
    let mut socket = relay.socket.try_clone().expect("a descriptor");
    let (shown, written) = channel();
    // Four seconds of 8 Mbit/s.
    let sender = thread::spawn(move || {
        socket.write_all(&message(0, AVC_HEADER)).expect("the connection stays");
        for n in 0..14 {
            socket.write_all(&picture(n * 300, LENGTH)).expect("the connection stays");
            // The receiver is gone once the decision is made.
            let _ = shown.send(n);
        }
    });
    written.recv().expect("the first video frame is sent");
    for _ in 0..20 {
        assert!(relay.step(), "the connection stays");
    }
    assert_eq!(core.ended_count(), 0);
    core.ingest.allow(request.request, 1, Vec::new(), Hold::default());
    relay.wait_ready();
    sender.join().expect("everything is taken");
    core.wait_for_time(1, 13 * 300);
    relay.reset();
    let ended = core.ended(1);
    assert_eq!(
        (ended.reason, ended.bytes_in),
        (EndReason::BroadcasterLeft, 14 * (LENGTH as u64 - 5))
    );
}

#[test]
fn a_relay_that_leaves_before_the_decision_is_not_kept_for_it() {
    let mut core = Core::start(1);
    let mut relay = Peer::publish(core.port(), "cam");
    let request = core.request_of(&mut relay);
    relay.send_bytes(&picture(0, 200_000)).expect("the connection is accepted");
    drop(relay);
    core.ingest.allow(request.request, 1, Vec::new(), Hold::default());
    assert_eq!(core.ended(1).reason, EndReason::BroadcasterLeft);
}

#[test]
fn a_denied_relay_gets_the_reason_whatever_it_sends_meanwhile() {
    let mut core = Core::start(1);
    let mut relay = Peer::publish(core.port(), "cam");
    let request = core.request_of(&mut relay);
    relay.send_bytes(&picture(0, 100_000)).expect("the connection is accepted");
    core.ingest.deny(request.request, crate::Denial::Denied, "Wrong passcode".into());
    let refused = relay.wait_event(|event| matches!(event, ClientEvent::Refused { .. }));
    let ClientEvent::Refused { description, .. } = refused else { unreachable!("just matched") };
    assert_eq!(description, "Wrong passcode");
}

/// A publisher whose steady video frames have arrived, so that audio no longer wakes the worker.
fn steady(core: &mut Core) -> Peer {
    let mut publisher = core.publisher("cam", 1, &[]);
    for n in 0..120 {
        publisher.send_frame(n, 1000);
    }
    core.wait_for_time(1, 119 * 40);
    publisher
}

#[test]
fn audio_without_following_video_arrives_and_so_does_a_video_frame_in_pieces() {
    let mut core = Core::start(1);
    let mut publisher = steady(&mut core);
    for n in 120..125 {
        publisher.send(Audio, n * 40, &[0xaf, 1, 0]);
        core.wait_for_time(1, i64::from(n) * 40);
    }
    let mut publisher_again = || {
        for n in 125..250 {
            publisher.send_frame(n, 1000);
        }
        core.wait_for_time(1, 249 * 40);
    };
    publisher_again();
    let bytes = picture(250 * 40, 50_000);
    for piece in bytes.chunks(700) {
        publisher.send_bytes(piece).expect("the connection stays");
    }
    core.wait_for_time(1, 250 * 40);
    publisher.send(Video, 251 * 40, &crate::sample::picture(false, 0, 0));
    core.wait_for_time(1, 251 * 40);
    publisher.say_goodbye();
    assert_eq!(core.ended(1).reason, EndReason::Unpublished);
}

#[test]
fn a_connection_that_breaks_while_audio_waits_ends_immediately() {
    let mut core = Core::start(1);
    let publisher = steady(&mut core);
    publisher.reset();
    assert_eq!(core.ended(1).reason, EndReason::BroadcasterLeft);
}
