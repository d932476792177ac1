//! Handshakes whose datagrams arrive in other parts than they were made in, and with a rival who has another
//! certificate.

use std::net::SocketAddr;
use std::time::Duration;

use headgate_peer::{Publisher, Settings};
use headgate_whip::WhipEvent;

use crate::world::{Dice, Direction, World};

const RECORD: usize = 13;
const MESSAGE: usize = 12;

fn be24(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn three(value: usize) -> [u8; 3] {
    [(value >> 16) as u8, (value >> 8) as u8, value as u8]
}

/// A record with the header of another.
fn record(like: &[u8], content: &[u8]) -> Vec<u8> {
    [&like[..11], &(content.len() as u16).to_be_bytes(), content].concat()
}

/// Splits the plaintext handshake messages of a datagram into parts of any size, repeats some with another split, and
/// sends all of it in any order, several fragments in a record and several records in a datagram.
fn resplit(dice: &mut Dice, least: usize, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut records: Vec<Vec<u8>> = Vec::new();
    let mut rest = datagram;
    while rest.len() >= RECORD {
        let end = RECORD + usize::from(u16::from_be_bytes([rest[11], rest[12]]));
        let (whole, after) = rest.split_at(end);
        rest = after;
        if whole[0] != 22 || whole[4] != 0 {
            records.push(whole.to_vec());
            continue;
        }
        let mut content = &whole[RECORD..];
        while content.len() >= MESSAGE {
            let (offset, length) = (be24(&content[6..9]), be24(&content[9..12]));
            let body = &content[MESSAGE..MESSAGE + length];
            let part = |from: usize, to: usize| {
                [&content[..6], &three(offset + from), &three(to - from), &body[from..to]].concat()
            };
            let mut parts = Vec::new();
            let mut at = 0;
            loop {
                let to = (at + least + dice.roll(400)).min(length);
                parts.push(part(at, to));
                if dice.roll(3) == 0 && length > 0 {
                    let from = dice.roll(length);
                    parts.push(part(from, (from + 1 + dice.roll(300)).min(length)));
                }
                at = to;
                if at == length {
                    break;
                }
            }
            while !parts.is_empty() {
                let count = (1 + dice.roll(3)).min(parts.len());
                records.push(record(whole, &parts.drain(..count).collect::<Vec<_>>().concat()));
            }
            content = &content[MESSAGE + length..];
        }
    }
    for at in (1..records.len()).rev() {
        records.swap(at, dice.roll(at + 1));
    }
    if let Some(again) = records.first().cloned() {
        records.push(again);
    }
    let mut datagrams = Vec::new();
    while !records.is_empty() {
        let count = (1 + dice.roll(3)).min(records.len());
        datagrams.push(records.drain(..count).collect::<Vec<_>>().concat());
    }
    datagrams
}

fn is_dtls(datagram: &[u8]) -> bool {
    matches!(datagram, [20..=63, ..])
}

#[test]
fn any_split_of_an_honest_handshake_connects_without_a_retransmission() {
    for dtls_server in [false, true] {
        for seed in 1..=60 {
            let mut dice = Dice::new(seed);
            let mut world = World::new(Settings { dtls_server, ..Settings::default() });
            let least = [1, 16, 200][seed as usize % 3];
            world.split = Box::new(move |datagram| match is_dtls(&datagram) {
                true => resplit(&mut dice, least, &datagram),
                false => vec![datagram],
            });
            world.pass(Duration::from_millis(900));
            assert!(world.events.contains(&WhipEvent::Connected), "{dtls_server} {seed}");
        }
    }
}

#[test]
fn tiny_fragments_in_a_datagram_each_connect() {
    for dtls_server in [false, true] {
        let mut world = World::new(Settings { dtls_server, ..Settings::default() });
        world.split = Box::new(|datagram| {
            if !is_dtls(&datagram) || datagram[0] != 22 || datagram[4] != 0 {
                return vec![datagram];
            }
            let (header, body) = datagram[RECORD..].split_at(MESSAGE);
            if body.len() != be24(&header[9..12]) {
                return vec![datagram];
            }
            let parts = body.chunks(20).enumerate().map(|(n, part)| {
                let head = [&header[..6], &three(n * 20), &three(part.len())].concat();
                record(&datagram, &[&head[..], part].concat())
            });
            parts.collect()
        });
        assert!(world.connect(), "{dtls_server}");
    }
}

#[test]
fn any_split_connects_over_a_network_that_loses_a_tenth() {
    for dtls_server in [false, true] {
        for seed in 1..=20 {
            let (mut dice, mut losses) = (Dice::new(seed), Dice::new(seed + 1_000));
            let mut world = World::new(Settings { dtls_server, ..Settings::default() });
            world.split = Box::new(move |datagram| {
                let mut parts = match is_dtls(&datagram) {
                    true => resplit(&mut dice, 100, &datagram),
                    false => vec![datagram],
                };
                parts.retain(|_| losses.roll(10) > 0);
                parts
            });
            assert!(world.connect(), "{dtls_server} {seed}");
        }
    }
}

/// A session whose rival knows both halves of the user name and the password.
fn with_rival(settings: Settings, rival_settings: Settings) -> World {
    let mut rival = Publisher::new(rival_settings).expect("a publisher");
    let offer = rival.offer();
    let theirs =
        offer.lines().find(|line| line.starts_with("a=ice-ufrag")).expect("one").to_owned();
    let mut world = World::with_fingerprint(settings, |offer| {
        offer.replacen("m=", &format!("{theirs}\r\nm="), 1)
    });
    rival.handle_answer(world.now, &world.answer).expect("an acceptable answer");
    let address: SocketAddr = "203.0.113.66:6666".parse().expect("an address");
    world.rival = Some((address, rival));
    world
}

#[test]
fn who_comes_first_with_another_certificate_does_not_shut_the_client_out() {
    for dtls_server in [false, true] {
        let settings = || Settings { dtls_server, ..Settings::default() };
        let mut world = with_rival(settings(), settings());
        world.loss = Box::new(|_, _| true);
        world.pass(Duration::from_secs(1));
        assert!(!world.events.contains(&WhipEvent::Connected));
        world.loss = Box::new(|_, _| false);
        assert!(world.connect(), "{dtls_server}");
        world.publish(60, 2_000);
        assert_eq!(world.video_frames(), (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn who_comes_first_and_stops_in_the_middle_does_not_shut_the_client_out() {
    for dtls_server in [false, true] {
        for rounds in 1..6 {
            let settings = || Settings { dtls_server, ..Settings::default() };
            let mut world = with_rival(settings(), settings());
            world.loss = Box::new(|_, _| true);
            for _ in 0..rounds {
                world.pass(Duration::from_millis(20));
            }
            // The rival says nothing more.
            world.rival = None;
            world.loss = Box::new(|_, _| false);
            assert!(world.connect(), "{dtls_server} {rounds}");
        }
    }
}

#[test]
fn both_at_once_end_with_the_client() {
    for delay in [0, 1, 5, 30] {
        let mut world = with_rival(Settings::default(), Settings::default());
        world.delay = Duration::from_millis(delay);
        assert!(world.connect(), "{delay}");
    }
}

#[test]
fn a_client_that_changes_its_path_during_the_handshake_connects() {
    for at_ms in (1..40).step_by(4) {
        let mut world = World::new(Settings::default());
        world.delay = Duration::from_millis(5);
        world.pass(Duration::from_millis(at_ms));
        // Its checks arrive from both addresses: one of them is repeated from the new one.
        let old = world.client;
        let check = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let copied = check.clone();
        world.loss = Box::new(move |direction, datagram| {
            if direction == Direction::ToServer && datagram.first() == Some(&0) {
                *copied.borrow_mut() = datagram.to_vec();
            }
            false
        });
        world.pass(Duration::from_millis(1));
        world.client = "198.51.100.7:41000".parse().expect("an address");
        let datagram = check.borrow().clone();
        if datagram.is_empty() {
            world.client = old;
        } else {
            world.inject(world.client, &datagram);
        }
        assert!(world.connect(), "{at_ms}");
    }
}
