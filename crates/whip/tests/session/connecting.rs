use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use headgate_media::{Codec, FrameKind};
use headgate_peer::{Event, Settings, SrtpChoice};

use crate::world::{Direction, World};

#[test]
fn every_role_and_profile_connects_and_every_frame_arrives_unchanged() {
    for srtp in [SrtpChoice::Gcm, SrtpChoice::Cm, SrtpChoice::Both] {
        for dtls_server in [false, true] {
            let mut world = World::new(Settings { srtp, dtls_server, ..Settings::default() });
            assert!(world.connect(), "{srtp:?} {dtls_server}");
            world.publish(60, 5000);
            world.pass(Duration::from_millis(100));
            assert_eq!(world.video_frames(), (0..60).collect::<Vec<_>>());
            assert_eq!(world.audio_packets(), 120);
        }
    }
}

#[test]
fn the_faster_profile_is_chosen_when_the_client_lists_both() {
    let mut world = World::new(Settings { srtp: SrtpChoice::Both, ..Settings::default() });
    assert!(world.connect());
    assert_eq!(world.publisher.srtp(), Some(SrtpChoice::Gcm));
}

#[test]
fn configurations_precede_the_first_frame_of_their_track_once() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(30, 2000);
    for codec in [Codec::H264, Codec::Opus] {
        let frames: Vec<_> = world.frames.iter().filter(|frame| frame.codec == codec).collect();
        assert_eq!(frames.first().map(|frame| frame.kind), Some(FrameKind::Configuration));
        let count = frames.iter().filter(|frame| frame.kind == FrameKind::Configuration).count();
        assert_eq!(count, 1);
    }
}

#[test]
fn one_track_alone_is_a_publish() {
    for (audio, video) in [(true, false), (false, true)] {
        let mut world = World::new(Settings { audio, video, ..Settings::default() });
        assert!(world.connect());
        world.publish(10, 1000);
        world.pass(Duration::from_millis(100));
        assert_eq!(world.video_frames().len(), if video { 10 } else { 0 });
        assert_eq!(world.audio_packets(), if audio { 20 } else { 0 });
    }
}

#[test]
fn a_keyframe_is_requested_before_two_seconds_have_passed() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(250, 1000);
    let keys: Vec<_> = world
        .frames
        .iter()
        .filter(|frame| frame.kind == FrameKind::Keyframe)
        .map(|frame| frame.timestamp.as_millis())
        .collect();
    assert!(keys.len() >= 5, "{keys:?}");
    assert!(keys.windows(2).all(|two| two[1] - two[0] <= 2000), "{keys:?}");
}

#[test]
fn transport_wide_feedback_goes_only_to_a_sender_that_offered_it() {
    for transport_cc in [true, false] {
        let mut world = World::new(Settings { transport_cc, ..Settings::default() });
        assert!(world.connect());
        world.publish(25, 5000);
        let count = world.client_events.iter().filter(|e| **e == Event::TransportFeedback).count();
        assert_eq!(count > 5, transport_cc, "{count}");
    }
}

#[test]
fn handshakes_complete_over_a_network_that_loses_a_fifth() {
    for dtls_server in [false, true] {
        let fails = |seed: &u64| {
            let mut dice = crate::world::Dice::new(*seed);
            let mut world = World::new(Settings { dtls_server, ..Settings::default() });
            world.loss = Box::new(move |_, _| dice.roll(5) == 0);
            !world.connect()
        };
        let failed: Vec<u64> = (1..=40).filter(fails).collect();
        assert!(failed.is_empty(), "server role: {dtls_server}, seeds {failed:?}");
    }
}

#[test]
fn a_handshake_survives_a_network_outage_of_four_seconds() {
    for dtls_server in [false, true] {
        for at_ms in [6, 11, 16, 21, 26, 31] {
            let mut world = World::new(Settings { dtls_server, ..Settings::default() });
            world.pass(Duration::from_millis(at_ms));
            world.loss = Box::new(|_, _| true);
            world.pass(Duration::from_secs(4));
            world.loss = Box::new(|_, _| false);
            assert!(world.connect(), "server role: {dtls_server}, after {at_ms} ms");
        }
    }
}

/// A flight that arrives again when its peer is further on stops FFmpeg 8 and werift.
#[test]
fn no_flight_is_repeated_while_its_answer_can_be_on_its_way() {
    for dtls_server in [false, true] {
        for delay_ms in [50, 150, 400] {
            let mut world = World::new(Settings { dtls_server, ..Settings::default() });
            world.delay = Duration::from_millis(delay_ms);
            let records = Rc::new(RefCell::new(Vec::new()));
            let sent = records.clone();
            world.loss = Box::new(move |direction, datagram| {
                // DTLS (RFC 7983 7).
                if direction == Direction::ToClient && (20..64).contains(&datagram[0]) {
                    sent.borrow_mut().push(datagram.to_vec());
                }
                false
            });
            assert!(world.connect(), "server role: {dtls_server}, {delay_ms} ms");
            world.pass(Duration::from_secs(3));
            let records = records.borrow();
            let distinct: HashSet<_> = records.iter().collect();
            assert_eq!(distinct.len(), records.len(), "server role: {dtls_server}, {delay_ms} ms");
        }
    }
}

#[test]
fn decode_times_never_go_back_and_both_tracks_start_together() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(100, 3000);
    for codec in [Codec::H264, Codec::Opus] {
        let times: Vec<_> =
            world.frames.iter().filter(|f| f.codec == codec).map(|f| f.timestamp).collect();
        assert!(times.is_sorted());
        assert!(times[0].as_millis() < 100);
    }
}

#[test]
fn audio_with_a_stopped_clock_is_sent_after_two_seconds_without_video() {
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    let send = |world: &mut World, millis: u64| {
        for _ in 0..millis / 20 {
            world.publisher.send_audio(world.now, 7, &[0xfc, 1, 2, 3]);
            world.pass(Duration::from_millis(20));
        }
    };
    send(&mut world, 1_900);
    assert_eq!(world.audio_packets(), 0);
    send(&mut world, 200);
    assert!(world.audio_packets() > 95, "{}", world.audio_packets());
    // Nothing more arrives: only the timer releases the held audio.
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    send(&mut world, 100);
    world.pass(Duration::from_millis(2_100));
    assert_eq!(world.audio_packets(), 5);
}
