//! Opus publishers whose timestamps are wrong, in virtual time: what their AAC players hear, and when.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::super::SessionKey;
use super::whip::Client;
use super::world::World;
use crate::sample::picture;

const PACKET: usize = 960;
const STEP: Duration = Duration::from_millis(20);
const PACKETS: i64 = 400;
const AT: i64 = 200;

/// Packet `n`: 20 ms of noise (RFC 6716 3.1: CELT, full band, mono), different from all others.
fn packet(n: i64) -> Vec<u8> {
    let mut state = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise = (0..80).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    std::iter::once(0xf8).chain(noise).collect()
}

/// The time, ms, that a publisher writes on packet `n`; `None` if it sends none.
type SenderClock = fn(i64) -> Option<i64>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    Rtmp { has_video: bool },
    Whip,
}

struct Outcome {
    heard: Vec<i16>,
    /// Of the AAC frames, ms.
    times: Vec<u32>,
    bytes_out: u64,
    bytes_in: u64,
}

fn run(over: Over, clock: SenderClock) -> Outcome {
    let mut world = World::new();
    let (publisher, mut client) = match over {
        Over::Rtmp { .. } => (Some(world.publisher("cam1", 1, &[])), None),
        Over::Whip => (None, Some(Client::connect_with(&mut world, 1, &[]))),
    };
    let player = aac_player(&mut world);
    for n in 0..PACKETS {
        if let Some(publisher) = publisher
            && over == (Over::Rtmp { has_video: true })
            && n % 2 == 0
        {
            let body = picture(n % 50 == 0, n as u32, 0);
            world.send(publisher, MediaKind::Video, (n * 20) as u32, &body);
        }
        if let Some(at) = clock(n) {
            if let Some(publisher) = publisher {
                let body = [&[0x91][..], b"Opus", &packet(n)].concat();
                world.send(publisher, MediaKind::Audio, at as u32, &body);
            }
            if let Some(client) = &mut client {
                client.send_opus(&mut world, (at * 48) as u32, &packet(n));
            }
        }
        world.pass(STEP);
    }
    let media = world.peers[&player].media.iter();
    let frames = media.filter(|of| of.kind == MediaKind::Audio && of.payload[..2] == [0xaf, 1]);
    let times = frames.map(|of| of.timestamp).collect();
    let (bytes_in, bytes_out) = world.publishes.find(1).expect("live").bytes();
    let heard = world.heard.lock().expect("one thread").clone();
    Outcome { heard, times, bytes_in, bytes_out }
}

/// A player that does not list Opus.
fn aac_player(world: &mut World) -> SessionKey {
    world.player("cam1")
}

/// Packets of the reference that are not heard where they belong.
fn lost(reference: &[i16], heard: &[i16]) -> Vec<usize> {
    let windows = reference.chunks_exact(PACKET).enumerate();
    let is_alike = |a: &[i16], b: &[i16]| {
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (f64::from(*a), f64::from(*b));
            (ab, aa, bb) = (ab + a * b, aa + a * a, bb + b * b);
        }
        ab > 0.8 * (aa * bb).sqrt()
    };
    windows
        .filter(|(n, window)| {
            heard.get(n * PACKET..(n + 1) * PACKET).is_none_or(|other| !is_alike(window, other))
        })
        .map(|(n, _)| n)
        .collect()
}

#[test]
fn probe() {
    const HOUR: i64 = 3_600_000;
    let wrong: &[(&str, SenderClock)] = &[
        ("one +1h", |n| Some(n * 20 + if n == AT { HOUR } else { 0 })),
        ("one +5s", |n| Some(n * 20 + if n == AT { 5_000 } else { 0 })),
        ("one +4.9s", |n| Some(n * 20 + if n == AT { 4_900 } else { 0 })),
        ("one +2s", |n| Some(n * 20 + if n == AT { 2_000 } else { 0 })),
        ("one +1s", |n| Some(n * 20 + if n == AT { 1_000 } else { 0 })),
        ("one +500ms", |n| Some(n * 20 + if n == AT { 500 } else { 0 })),
        ("one +400ms", |n| Some(n * 20 + if n == AT { 400 } else { 0 })),
        ("one +200ms", |n| Some(n * 20 + if n == AT { 200 } else { 0 })),
        ("one +100ms", |n| Some(n * 20 + if n == AT { 100 } else { 0 })),
        ("one +60ms", |n| Some(n * 20 + if n == AT { 60 } else { 0 })),
        ("one +40ms", |n| Some(n * 20 + if n == AT { 40 } else { 0 })),
        ("one +20ms", |n| Some(n * 20 + if n == AT { 20 } else { 0 })),
        ("one +10ms", |n| Some(n * 20 + if n == AT { 10 } else { 0 })),
        ("one -1h", |n| Some(10 * HOUR + n * 20 - if n == AT { HOUR } else { 0 })),
        ("one -5s", |n| Some(10 * HOUR + n * 20 - if n == AT { 5_000 } else { 0 })),
        ("one -1s", |n| Some(10 * HOUR + n * 20 - if n == AT { 1_000 } else { 0 })),
        ("one -400ms", |n| Some(10 * HOUR + n * 20 - if n == AT { 400 } else { 0 })),
        ("one -100ms", |n| Some(10 * HOUR + n * 20 - if n == AT { 100 } else { 0 })),
        ("one -20ms", |n| Some(10 * HOUR + n * 20 - if n == AT { 20 } else { 0 })),
        ("one zero", |n| Some(if n == AT { 0 } else { 1_000 + n * 20 })),
        ("restart", |n| Some(if n < AT { 500_000 + n * 20 } else { (n - AT) * 20 })),
        ("jump +1h stays", |n| Some(n * 20 + if n >= AT { HOUR } else { 0 })),
        ("jump +5s stays", |n| Some(n * 20 + if n >= AT { 5_000 } else { 0 })),
        ("jump +1s stays", |n| Some(n * 20 + if n >= AT { 1_000 } else { 0 })),
        ("jump -1s stays", |n| Some(10 * HOUR + n * 20 - if n >= AT { 1_000 } else { 0 })),
        ("jump -300ms stays", |n| Some(10 * HOUR + n * 20 - if n >= AT { 300 } else { 0 })),
        ("first +1h", |n| Some(n * 20 + if n == 0 { HOUR } else { 0 })),
        ("first +5s", |n| Some(n * 20 + if n == 0 { 5_000 } else { 0 })),
        ("first +1s", |n| Some(n * 20 + if n == 0 { 1_000 } else { 0 })),
        ("first two +1h", |n| Some(n * 20 + if n < 2 { HOUR } else { 0 })),
        ("second +1h", |n| Some(n * 20 + if n == 1 { HOUR } else { 0 })),
        ("two +1h", |n| Some(n * 20 + if n / 2 == AT / 2 { HOUR } else { 0 })),
        ("two different", |n| {
            Some(
                n * 20
                    + match n - AT {
                        0 => HOUR,
                        1 => 2 * HOUR,
                        _ => 0,
                    },
            )
        }),
        ("two apart", |n| {
            Some(
                n * 20
                    + match n - AT {
                        0 | 50 => HOUR,
                        _ => 0,
                    },
            )
        }),
        ("wrap +1h", |n| Some((1 << 32) - 4_000 + n * 20 + if n == AT - 1 { HOUR } else { 0 })),
        ("before wrap +1h", |n| {
            Some((1 << 32) - 4_010 + n * 20 + if n == AT - 5 { HOUR } else { 0 })
        }),
        ("wrap -1h", |n| Some((1 << 32) - 4_000 + n * 20 - if n == AT + 1 { HOUR } else { 0 })),
        ("jumps to across wrap", |n| {
            Some(if n < AT { 1_000_000 + n * 20 } else { (1 << 32) - 1_000 + n * 20 })
        }),
        ("steps by 1s", |n| Some(n * 1_000)),
        ("steps by 500ms", |n| Some(n * 500)),
        ("steps by 200ms", |n| Some(n * 200)),
        ("steps by 40ms", |n| Some(n * 40)),
        ("alternates", |n| Some(n * 20 + (n % 2) * 500)),
        ("zero", |_| Some(0)),
        ("grouped by 5", |n| Some(n / 5 * 100)),
        ("grouped by 2", |n| Some(n / 2 * 40)),
    ];
    for over in [Over::Rtmp { has_video: false }, Over::Rtmp { has_video: true }, Over::Whip] {
        let reference = run(over, |n| Some(n * 20));
        println!(
            "{over:?} ref {} {:?}..{:?} out {} in {}",
            reference.heard.len() / PACKET,
            reference.times.first(),
            reference.times.last(),
            reference.bytes_out,
            reference.bytes_in
        );
        for (name, clock) in wrong {
            let o = run(over, *clock);
            let l = lost(&reference.heard, &o.heard);
            let widest =
                o.times.windows(2).map(|p| i64::from(p[1]) - i64::from(p[0])).max().unwrap_or(0);
            let narrow =
                o.times.windows(2).map(|p| i64::from(p[1]) - i64::from(p[0])).min().unwrap_or(0);
            println!(
                "{name:22} lost {:4} {:?} heard {} frames {} widest {widest} least {narrow} first {:?} last {:?} out {} in {}",
                l.len(),
                &l[..l.len().min(4)],
                o.heard.len() / PACKET,
                o.times.len(),
                o.times.first(),
                o.times.last(),
                o.bytes_out,
                o.bytes_in
            );
        }
    }
}
