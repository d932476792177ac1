use std::time::Duration;

use headgate_peer::Settings;

use crate::world::{Dice, Direction, World};

/// Loses `per_mille` of all datagrams in both directions once media flows.
fn lossy(per_mille: usize, delay_ms: u64, seed: u64) -> World {
    let mut world = World::new(Settings::default());
    world.delay = Duration::from_millis(delay_ms);
    assert!(world.connect());
    let mut dice = Dice::new(seed);
    world.loss = Box::new(move |_, _| dice.roll(1000) < per_mille);
    world
}

#[test]
fn at_five_percent_loss_nearly_everything_arrives_and_nothing_is_corrupt() {
    for (seed, delay_ms) in [(1, 5), (2, 25), (3, 50)] {
        let mut world = lossy(50, delay_ms, seed);
        world.publish(500, 8000);
        world.pass(Duration::from_secs(1));
        let arrived = world.video_frames().len();
        assert!(arrived >= 495, "{arrived} of 500 at {delay_ms} ms");
    }
}

#[test]
fn at_twenty_percent_loss_nothing_is_corrupt() {
    let mut world = lossy(200, 50, 4);
    world.publish(500, 8000);
    world.pass(Duration::from_secs(1));
    // All frames are complete and in order: `video_frames` checks that.
    assert!(world.video_frames().len() > 250, "{}", world.video_frames().len());
}

#[test]
fn after_an_unfilled_gap_a_requested_keyframe_arrives_within_two_seconds() {
    let mut world = lossy(0, 10, 5);
    world.publish(20, 3000);
    // The outage is longer than the sender's retransmission history.
    world.loss = Box::new(|direction, _| direction == Direction::ToServer);
    world.publish(30, 3000);
    world.loss = Box::new(|_, _| false);
    let before = world.video_frames().len();
    world.publish(50, 3000);
    world.pass(Duration::from_millis(100));
    assert!(world.video_frames().len() > before + 20);
}

#[test]
fn reordered_and_duplicate_packets_change_nothing() {
    let mut world = lossy(0, 5, 6);
    // The first packet defines where the sequence begins, so it arrives in order.
    world.publish(1, 1000);
    let mut dice = Dice::new(7);
    for _ in 0..100 {
        world.send_video(6000);
        world.send_audio();
        world.send_audio();
        let mut datagrams = Vec::new();
        while let Some((_, datagram)) = world.publisher.poll_transmit() {
            datagrams.push(datagram);
        }
        for _ in 0..datagrams.len() {
            let (from, to) = (dice.roll(datagrams.len()), dice.roll(datagrams.len()));
            datagrams.swap(from, to);
        }
        datagrams.extend(datagrams.clone());
        let client = world.client;
        for datagram in datagrams {
            world.inject(client, &datagram);
        }
        world.pass(Duration::from_millis(40));
    }
    assert_eq!(world.video_frames().len(), 101);
    assert_eq!(world.audio_packets(), 202);
}

/// Loses the `nth` video packet from now on, including its retransmissions.
fn lose_packet(world: &mut World, nth: usize) {
    let (mut seen, mut lost) = (Vec::new(), None);
    world.loss = Box::new(move |direction, datagram| {
        let &[128..=191, kind, high, low, ..] = datagram else { return false };
        // The video's payload type, with or without the marker; not RTCP.
        if direction != Direction::ToServer || kind & 0x7f != headgate_peer::VIDEO_PAYLOAD_TYPE {
            return false;
        }
        let sequence = [high, low];
        if !seen.contains(&sequence) {
            seen.push(sequence);
            if seen.len() == nth + 1 {
                lost = Some(sequence);
            }
        }
        lost == Some(sequence)
    });
}

#[test]
fn an_incomplete_keyframe_is_never_passed_on() {
    // One packet of parameter sets and three fragments.
    for nth in 0..4 {
        let mut world = World::new(Settings::default());
        assert!(world.connect());
        lose_packet(&mut world, nth);
        world.publish(1, 3000);
        world.publish(40, 1000);
        world.pass(Duration::from_millis(100));
        // `video_frames` fails on a frame that differs from the one sent.
        let frames = world.video_frames();
        assert!(!frames.contains(&0), "{nth}: {frames:?}");
        assert!(frames.last() == Some(&40), "{nth}: {frames:?}");
    }
}

#[test]
fn without_any_retransmission_most_pictures_arrive_and_it_is_named() {
    for delay_ms in [5, 40] {
        let mut world = World::new(Settings::default());
        world.delay = Duration::from_millis(delay_ms);
        assert!(world.connect());
        let (mut dice, mut seen) = (Dice::new(8), std::collections::HashSet::new());
        // One in forty is lost, and so is every packet that is sent again, as if it failed authentication.
        world.loss = Box::new(move |direction, datagram| {
            let &[128..=191, kind, high, low, ..] = datagram else { return false };
            let is_video = kind & 0x7f == headgate_peer::VIDEO_PAYLOAD_TYPE;
            direction == Direction::ToServer
                && is_video
                && (!seen.insert([high, low]) || dice.roll(1000) < 27)
        });
        world.publish(500, 3000);
        world.pass(Duration::from_secs(1));
        let arrived = world.video_frames().len();
        println!("{arrived} of 500 at {delay_ms} ms");
        assert!(arrived >= 330, "{arrived} of 500 at {delay_ms} ms");
        let counts = world.session.take_irregularities();
        assert!(counts.count(headgate_media::Irregularity::RetransmissionsMissing) > 0);
        let problems = world.session.diagnostics(world.now).problems;
        assert!(problems.iter().any(|of| of.contains("never arrive")), "{problems:?}");
        assert_eq!(world.session.take_irregularities().iter().count(), 0, "each is taken once");
    }
}

#[test]
fn a_sound_sender_counts_nothing() {
    let mut world = lossy(50, 25, 9);
    world.publish(250, 8000);
    assert_eq!(world.session.take_irregularities().iter().count(), 0);
    assert!(world.session.diagnostics(world.now).problems.iter().all(|of| !of.contains("RTP")));
}
