//! Attacks: the process survives, honest handshakes complete, memory does not grow. The tests run one at a time because
//! they read the process's memory.

#[path = "session/world.rs"]
#[allow(dead_code, reason = "shared with the other sessions' tests")]
mod world;

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headgate_peer::{Event, Settings};

use world::{Dice, World};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attacker() -> SocketAddr {
    "203.0.113.66:6666".parse().expect("an address")
}

/// A DTLS record of the handshake kind.
fn record(kind: u8, epoch: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0xfe, 0xfd];
    bytes.extend_from_slice(&epoch.to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&(body.len() as u16).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A one-byte fragment of a handshake message of 40,000 bytes.
fn one_byte_fragment(offset: u32) -> Vec<u8> {
    let three = |value: u32| [(value >> 16) as u8, (value >> 8) as u8, value as u8];
    let header =
        [&[1][..], &three(40_000), &[0, 0], &three(offset), &three(1), &[offset as u8]].concat();
    record(22, 0, offset, &header)
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("pages");
    pages * 4096
}

/// Sends `flood` to a session during its handshake, from the client's own address, which an attacker could spoof.
fn handshake_beside(flood: impl Iterator<Item = Vec<u8>>) {
    let mut world = World::new(Settings::default());
    // ICE is complete, DTLS is not.
    world.publisher.set_dtls_filter(Some(Box::new(|_| Vec::new())));
    world.pass(Duration::from_millis(200));
    let before = resident();
    let client = world.client;
    for datagram in flood {
        world.inject(client, &datagram);
    }
    assert!(resident() < before + (8 << 20), "memory grows with what is dropped");
    assert!(!world.client_events.contains(&Event::Connected));
    // The session may be lost, but not its neighbour or the process.
    let mut neighbour = World::new(Settings::default());
    assert!(neighbour.connect());
}

#[test]
fn forty_thousand_one_byte_fragments_are_dropped() {
    let _alone = alone();
    handshake_beside((0..40_000).map(one_byte_fragment));
}

#[test]
fn twenty_thousand_early_records_are_dropped() {
    let _alone = alone();
    handshake_beside((0..20_000).map(|sequence| record(22, 1, sequence, &[7; 100])));
}

#[test]
fn ten_megabytes_of_junk_are_dropped() {
    let _alone = alone();
    let mut dice = Dice::new(3);
    handshake_beside((0..10_000).map(move |_| {
        let mut junk: Vec<u8> = (0..1000).map(|_| dice.roll(256) as u8).collect();
        junk[0] = 20 + (junk[0] % 44);
        junk
    }));
}

#[test]
fn fragments_records_alerts_and_hellos_of_a_stranger_do_not_disturb_a_handshake() {
    let _alone = alone();
    let mut world = World::new(Settings::default());
    world.delay = Duration::from_millis(20);
    let hello = {
        // A genuine ClientHello from another client.
        let mut other = World::new(Settings::default());
        other.delay = Duration::from_secs(3600);
        let mut found = Vec::new();
        other.pass(Duration::from_millis(1));
        while let Some((_, datagram)) = other.publisher.poll_transmit() {
            found.push(datagram);
        }
        found.into_iter().find(|datagram| datagram[0] == 22)
    };
    for step in 0..100 {
        world.pass(Duration::from_millis(5));
        world.inject(attacker(), &record(21, 0, step, &[2, 40]));
        world.inject(attacker(), &one_byte_fragment(step));
        world.inject(attacker(), &record(22, 1, step, &[7; 100]));
        if let Some(hello) = &hello {
            world.inject(attacker(), hello);
        }
    }
    assert!(world.connect());
    world.publish(10, 2000);
    world.pass(Duration::from_millis(50));
    assert_eq!(world.video_frames().len(), 10);
}

#[test]
fn a_plaintext_alert_from_the_clients_own_address_does_not_end_its_handshake() {
    let _alone = alone();
    let mut world = World::new(Settings::default());
    world.delay = Duration::from_millis(20);
    let client = world.client;
    for step in 0..60 {
        world.pass(Duration::from_millis(3));
        world.inject(client, &record(21, 0, step, &[2, 40]));
    }
    assert!(world.connect());
}

#[test]
fn a_hundred_thousand_mutated_datagrams_do_not_harm_a_live_session_or_its_neighbour() {
    let _alone = alone();
    let (mut world, mut neighbour) =
        (World::new(Settings::default()), World::new(Settings::default()));
    assert!(world.connect() && neighbour.connect());
    world.publish(10, 3000);
    let mut dice = Dice::new(9);
    let before = resident();
    let client = world.client;
    for round in 0..100 {
        world.send_video(3000);
        world.send_audio();
        let mut genuine = Vec::new();
        while let Some((_, datagram)) = world.publisher.poll_transmit() {
            genuine.push(datagram);
        }
        for _ in 0..1000 {
            let mut datagram = genuine[dice.roll(genuine.len())].clone();
            match dice.roll(4) {
                0 => datagram.truncate(dice.roll(datagram.len() + 1)),
                1 => datagram.extend_from_slice(&[7; 40]),
                2 => datagram[0] = dice.roll(256) as u8,
                _ => {}
            }
            for _ in 0..=dice.roll(3) {
                if !datagram.is_empty() {
                    let at = dice.roll(datagram.len());
                    datagram[at] ^= 1 << dice.roll(8);
                }
            }
            let source = if dice.roll(10) == 0 { attacker() } else { client };
            world.inject(source, &datagram);
        }
        for datagram in genuine {
            world.inject(client, &datagram);
        }
        world.pass(Duration::from_millis(40));
        if round % 10 == 0 {
            neighbour.publish(1, 2000);
        }
    }
    world.pass(Duration::from_secs(1));
    assert!(resident() < before + (8 << 20));
    assert_eq!(world.end(), None);
    assert_eq!(world.video_frames().len(), 110);
    assert_eq!(neighbour.video_frames().len(), neighbour.sent_video() as usize);
    assert_eq!(neighbour.audio_packets(), neighbour.sent_audio() as usize);
}

#[test]
fn authentic_but_senseless_media_is_withheld_and_the_session_continues() {
    let _alone = alone();
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    world.publish(5, 2000);
    let payloads: [&[u8]; 5] =
        [&[0x18, 0, 1, 0x65, 0], &[0x78, 0, 2, 0x67, 1, 0x55], &[0x7c, 0x05, 1], &[31, 1], &[0xe5]];
    for (n, payload) in payloads.iter().enumerate() {
        let time = 1_000_000 + n as u32 * 3600;
        world.publisher.send_video_payload(world.now, time, payload, true);
    }
    for bytes in [&[0x80, 200, 0, 6, 0, 0, 0, 1][..], &[0x80, 205, 0xff, 0xff, 0, 0, 0, 1]] {
        world.publisher.send_rtcp(bytes);
    }
    world.pass(Duration::from_millis(600));
    world.publish(30, 2000);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.end(), None);
    assert!(world.video_frames().len() >= 20, "{}", world.video_frames().len());
}

#[test]
fn a_client_that_floods_checks_gets_limited_answers_and_its_media_continues() {
    let _alone = alone();
    let mut world = World::new(Settings::default());
    let mut check = None;
    // Its own valid check, captured from the wire.
    while let Some((_, datagram)) = world.publisher.poll_transmit() {
        check = check.or(Some(datagram.clone()));
        let client = world.client;
        world.inject(client, &datagram);
    }
    assert!(world.connect());
    world.publish(5, 1000);
    let (client, before) = (world.client, world.to_client);
    for _ in 0..10_000 {
        world.inject(client, check.as_ref().expect("a check"));
    }
    world.pass(Duration::from_millis(1));
    let answered = world.to_client - before;
    assert!((1..=100).contains(&answered), "{answered}");
    world.publish(50, 1000);
    world.pass(Duration::from_millis(50));
    assert_eq!((world.end(), world.video_frames().len()), (None, 55));
}

#[test]
fn few_records_of_a_client_that_floods_are_decrypted() {
    let _alone = alone();
    let mut world = World::new(Settings::default());
    assert!(world.connect());
    let (client, before) = (world.client, world.session.counters().rejected);
    for n in 0..10_000 {
        world.inject(client, &record(23, 1, n, &[7; 1000]));
    }
    let rejected = world.session.counters().rejected - before;
    assert!(rejected >= 10_000 - 20, "{rejected}");
    world.publish(5, 1000);
    assert_eq!(world.end(), None);
}
