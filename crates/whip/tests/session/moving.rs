use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use headgate_media::{Codec, FrameKind};
use headgate_peer::{Event, Settings};
use headgate_whip::{Path, WhipEvent, ssrc_of};

use crate::world::{Direction, World};

fn elsewhere() -> SocketAddr {
    "198.51.100.7:50123".parse().expect("an address")
}

#[test]
fn a_client_is_followed_to_a_new_address_by_its_media_before_its_next_check() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(50, 2000);
    let old = world.client;
    world.client = elsewhere();
    world.publish(1, 2000);
    assert!(world.events.contains(&WhipEvent::Proven(elsewhere().into())));
    world.publish(149, 2000);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.end(), None);
    assert_eq!(world.video_frames(), (0..200).collect::<Vec<_>>());
    // Feedback also goes to the new address.
    world.client_events.clear();
    world.publish(60, 2000);
    assert!(world.client_events.contains(&Event::KeyframeWanted));
    // Whoever uses the old address is not mistaken for the client.
    world.inject(old, &[0x80; 200]);
    world.publish(5, 2000);
    assert_eq!(world.end(), None);
}

#[test]
fn media_that_the_client_did_not_protect_or_already_sent_proves_no_address() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    let sent = Rc::new(RefCell::new(Vec::new()));
    let copied = Rc::clone(&sent);
    world.loss = Box::new(move |direction, datagram| {
        if direction == Direction::ToServer && ssrc_of(datagram).is_some() {
            copied.borrow_mut().push(datagram.to_vec());
        }
        false
    });
    world.publish(5, 2000);
    for datagram in sent.borrow().iter() {
        let mut forged = datagram.clone();
        *forged.last_mut().expect("a tag") ^= 1;
        // The sequence number is one that has not arrived.
        forged[2] ^= 1;
        world.inject(elsewhere(), datagram);
        world.inject(elsewhere(), &forged);
    }
    assert!(sent.borrow().len() > 10);
    assert!(!world.events.contains(&WhipEvent::Proven(elsewhere().into())));
    world.publish(5, 2000);
    assert_eq!((world.end(), world.video_frames().len()), (None, 10));
}

#[test]
fn the_same_address_over_tcp_is_another_path_and_works_too() {
    let mut world = World::new(Settings::default());
    world.is_tcp = true;
    assert!(world.connect());
    world.publish(25, 2000);
    world.pass(Duration::from_millis(50));
    assert_eq!(world.video_frames().len(), 25);
    assert!(world.events.contains(&WhipEvent::Proven(Path::tcp(world.client))));
    let diagnostics = world.session.diagnostics(world.now);
    assert!(
        diagnostics.problems.iter().any(|problem| problem.contains("over TCP")),
        "{diagnostics:?}"
    );
}

#[test]
fn b_frames_are_passed_on_in_decoding_order_with_their_presentation_times() {
    let mut world = World::new(Settings { audio: false, ..Settings::default() });
    assert!(world.connect());
    // I P B b P B b: two B-frames are shown between the others, undeclared: this SPS contains no reordering
    // information.
    let sps: &[u8] = &[0x67, 0x4d, 0x40, 0x1f, 0xda, 0x02, 0x80, 0xf6, 0x80];
    let order = [0_u32, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11];
    for (n, shown) in order.iter().enumerate() {
        let nal: &[u8] = match n {
            0 => &[0x65, 0x88, 1],
            _ if shown % 3 == 0 => &[0x41, 0x9a, 2],
            _ => &[0x01, 0x9e, 3],
        };
        let sets: &[&[u8]] = &[sps, &[0x68, 0xce, 0x3c, 0x80], nal];
        let nals = if n == 0 { sets } else { &sets[2..] };
        world.publisher.send_video(world.now, 90_000 + shown * 3600, nals);
        world.pass(Duration::from_millis(40));
    }
    let frames: Vec<_> =
        world.frames.iter().filter(|of| of.kind != FrameKind::Configuration).collect();
    assert!(frames.len() >= order.len() - 2, "{}", frames.len());
    let first = frames[0].timestamp.as_millis();
    let mut shown: Vec<_> = frames
        .iter()
        .map(|frame| frame.timestamp.as_millis() + i64::from(frame.composition_ms) - first)
        .collect();
    assert!(frames.windows(2).all(|pair| pair[0].timestamp < pair[1].timestamp));
    assert!(frames.iter().all(|frame| frame.composition_ms >= 0 && frame.codec == Codec::H264));
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), frames.len(), "every frame has a time of its own: {shown:?}");
    let off = |time: &i64| (time % 40).min(40 - time % 40);
    assert!(shown.iter().all(|time| off(time) <= 2), "{shown:?}");
}

#[test]
fn a_missing_keyframe_is_reported_with_advice() {
    let mut world = World::new(Settings { audio: false, ..Settings::default() });
    assert!(world.connect());
    world.publish(25, 2000);
    let _ = world.session.diagnostics(world.now);
    world.publish(25, 2000);
    let diagnostics = world.session.diagnostics(world.now);
    let video = diagnostics.video.expect("video");
    assert_eq!(
        (video.codec, video.profile, video.level.as_str()),
        ("H.264", "Constrained Baseline", "3.1")
    );
    assert!((24.0..=26.0).contains(&video.fps), "{}", video.fps);
    assert!((350..=450).contains(&video.track.kbps), "{}", video.track.kbps);
    assert!(diagnostics.problems.is_empty(), "{:?}", diagnostics.problems);
    // A sender that never responds to requests.
    for _ in 0..300 {
        world.keep_from_keyframes();
        world.publish(1, 2000);
    }
    let diagnostics = world.session.diagnostics(world.now);
    let advice = "set the encoder's keyframe interval to 2 s";
    assert!(
        diagnostics
            .problems
            .iter()
            .any(|problem| problem.starts_with("no keyframe for 1") && problem.ends_with(advice)),
        "{:?}",
        diagnostics.problems
    );
}
