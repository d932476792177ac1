//! Publishers of Opus whose timestamps are wrong, in virtual time: what players of AAC hear, and when.

use std::ops::Range;
use std::time::Duration;

use headgate_rtmp::MediaKind;

use super::whip::Client;
use super::world::World;
use crate::sample::picture;

const PACKET: usize = 960;
const STEP: Duration = Duration::from_millis(20);
const PACKETS: i64 = 300;
/// The packet whose timestamp is wrong, or from which on they are.
const AT: i64 = 150;
const HOUR: i64 = 3_600_000;

/// The publisher's clock at packet `n`, ms.
type SenderClock = fn(i64) -> i64;

/// Packet `n`: 20 ms of noise (RFC 6716 3.1: CELT, full band, mono) that resembles no other packet.
fn noise(n: i64) -> Vec<u8> {
    let mut state = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bytes = (0..80).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    std::iter::once(0xf8).chain(bytes).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    Rtmp,
    RtmpWithVideo,
    Whip,
}

const ALL: [Over; 3] = [Over::Rtmp, Over::RtmpWithVideo, Over::Whip];

/// The packets that a publisher leaves out.
#[derive(Clone, Debug)]
enum Pause {
    None,
    /// All in this range.
    Muted(Range<i64>),
    /// In discontinuous transmission: all but an empty one every 400 ms.
    Dtx(Range<i64>),
}

impl Pause {
    /// What the publisher sends as packet `n`, if anything.
    fn packet(&self, n: i64) -> Option<Vec<u8>> {
        match self {
            Self::Muted(range) if range.contains(&n) => None,
            Self::Dtx(range) if range.contains(&n) => {
                ((n - range.start) % 20 == 0).then(|| vec![0xf8])
            }
            Self::None | Self::Muted(_) | Self::Dtx(_) => Some(noise(n)),
        }
    }
}

/// What a player got.
struct Outcome {
    heard: Vec<i16>,
    /// Of the frames of AAC and of video, ms.
    times: [Vec<u32>; 2],
    bytes_out: u64,
}

/// `video`: the clock of the video, if there is any.
fn run(over: Over, pause: &Pause, clock: SenderClock, video: impl Fn(i64) -> i64) -> Outcome {
    let mut world = World::new();
    let (publisher, mut client) = match over {
        Over::Rtmp | Over::RtmpWithVideo => (Some(world.publisher("cam1", 1, &[])), None),
        Over::Whip => (None, Some(Client::connect_with(&mut world, 1, &[]))),
    };
    // It does not list Opus.
    let player = world.player("cam1");
    for n in 0..PACKETS {
        if let Some(publisher) = publisher
            && over == Over::RtmpWithVideo
            && n % 2 == 0
        {
            let body = picture(n % 50 == 0, n as u32, 0);
            world.send(publisher, MediaKind::Video, video(n) as u32, &body);
        }
        if let Some(packet) = pause.packet(n) {
            if let Some(publisher) = publisher {
                let body = [&[0x91][..], b"Opus", &packet].concat();
                world.send(publisher, MediaKind::Audio, clock(n) as u32, &body);
            }
            if let Some(client) = &mut client {
                client.send_opus(&mut world, (clock(n) * 48) as u32, &packet);
            }
        }
        world.pass(STEP);
    }
    let times =
        [(MediaKind::Audio, &[0xaf, 1][..]), (MediaKind::Video, &[])].map(|(kind, start)| {
            let media = world.peers[&player].media.iter();
            let of_kind = media.filter(|of| of.kind == kind && of.payload.starts_with(start));
            of_kind.map(|of| of.timestamp).collect()
        });
    let (_, bytes_out) = world.publishes.find(1).expect("live").bytes();
    let heard = world.heard.lock().expect("one thread").clone();
    Outcome { heard, times, bytes_out }
}

/// A clock that is right where this one is not wrong.
fn sound(clock: SenderClock) -> impl Fn(i64) -> i64 {
    let right = AT / 2 + 2;
    let start = clock(right) - right * 20;
    move |n| start + n * 20
}

/// Packets of the reference that are not heard where they belong.
fn lost(reference: &[i16], heard: &[i16]) -> Vec<usize> {
    let is_alike = |a: &[i16], b: &[i16]| {
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (f64::from(*a), f64::from(*b));
            (ab, aa, bb) = (ab + a * b, aa + a * a, bb + b * b);
        }
        ab >= 0.8 * (aa * bb).sqrt()
    };
    let is_lost = |n: usize| {
        let part = n * PACKET..(n + 1) * PACKET;
        heard.get(part.clone()).is_none_or(|other| !is_alike(&reference[part], other))
    };
    (0..reference.len() / PACKET).filter(|n| is_lost(*n)).collect()
}

/// Asserts that with this clock a player hears what it hears with a sound one, but for `most` packets, in steady frames,
/// and in time with the video.
fn assert_harmless(
    name: &str,
    pause: &Pause,
    most: usize,
    clock: SenderClock,
    video: impl Fn(i64) -> i64,
) {
    for over in ALL {
        let want = run(over, pause, |n| 1_000 + n * 20, |n| 1_000 + n * 20);
        let got = run(over, pause, clock, &video);
        let mut lost = lost(&want.heard, &got.heard);
        // What is concealed in a pause is no sound.
        lost.retain(|n| !matches!(pause, Pause::Dtx(range) if range.contains(&(*n as i64))));
        assert!(lost.len() <= most, "{name} by {over:?}: lost {lost:?}");
        let [times, video] = &got.times;
        let is_steady = times.windows(2).all(|pair| (20..=23).contains(&(pair[1] - pair[0])));
        assert!(is_steady || matches!(pause, Pause::Muted(_)), "{name} by {over:?}: {times:?}");
        assert_eq!(
            times.len(),
            want.times[0].len(),
            "{name} by {over:?} {:?} {:?}",
            times,
            want.times[0]
        );
        if let (Over::RtmpWithVideo, Some(audio), Some(video)) = (over, times.last(), video.last())
        {
            assert!(audio.abs_diff(*video) <= 100, "{name} by {over:?}: {audio} beside {video}");
        }
    }
}

#[test]
fn one_wrong_timestamp_costs_no_sound() {
    let cases: [(&str, SenderClock); 16] = [
        ("an hour ahead", |n| n * 20 + if n == AT { HOUR } else { 0 }),
        ("5 s ahead", |n| n * 20 + if n == AT { 5_000 } else { 0 }),
        ("1 s ahead", |n| n * 20 + if n == AT { 1_000 } else { 0 }),
        ("500 ms ahead", |n| n * 20 + if n == AT { 500 } else { 0 }),
        ("400 ms ahead", |n| n * 20 + if n == AT { 400 } else { 0 }),
        ("200 ms ahead", |n| n * 20 + if n == AT { 200 } else { 0 }),
        ("60 ms ahead", |n| n * 20 + if n == AT { 60 } else { 0 }),
        ("20 ms ahead", |n| n * 20 + if n == AT { 20 } else { 0 }),
        ("10 ms ahead", |n| n * 20 + if n == AT { 10 } else { 0 }),
        ("an hour behind", |n| 2 * HOUR + n * 20 - if n == AT { HOUR } else { 0 }),
        ("5 s behind", |n| 2 * HOUR + n * 20 - if n == AT { 5_000 } else { 0 }),
        ("400 ms behind", |n| 2 * HOUR + n * 20 - if n == AT { 400 } else { 0 }),
        ("100 ms behind", |n| 2 * HOUR + n * 20 - if n == AT { 100 } else { 0 }),
        ("20 ms behind", |n| 2 * HOUR + n * 20 - if n == AT { 20 } else { 0 }),
        ("zero", |n| if n == AT { 0 } else { 5_000 + n * 20 }),
        ("half of the clock ahead", |n| n * 20 + if n == AT { 1 << 31 } else { 0 }),
    ];
    for (name, clock) in cases {
        assert_harmless(name, &Pause::None, 0, clock, sound(clock));
    }
}

#[test]
fn several_wrong_timestamps_cost_no_sound() {
    let cases: [(&str, SenderClock); 10] = [
        ("two alike", |n| n * 20 + if n / 2 == AT / 2 { HOUR } else { 0 }),
        ("two different ones", |n| {
            n * 20 + HOUR * (n + 1 - AT) * i64::from((0..2).contains(&(n - AT)))
        }),
        ("one after another", |n| n * 20 + if n % 50 == 40 { HOUR } else { 0 }),
        ("every tenth", |n| n * 20 + if n % 10 == 9 { 5_000 } else { 0 }),
        ("every tenth a little", |n| n * 20 + if n % 10 == 5 { 70 } else { 0 }),
        ("ahead and behind", |n| {
            2 * HOUR + n * 20 + HOUR * ((n == AT) as i64 - (n == AT + 1) as i64)
        }),
        ("the first", |n| n * 20 + if n == 0 { HOUR } else { 0 }),
        ("the first by 5 s", |n| n * 20 + if n == 0 { 5_000 } else { 0 }),
        ("the first by 1 s", |n| n * 20 + if n == 0 { 1_000 } else { 0 }),
        ("the second", |n| n * 20 + if n == 1 { HOUR } else { 0 }),
    ];
    for (name, clock) in cases {
        assert_harmless(name, &Pause::None, 0, clock, sound(clock));
    }
}

#[test]
fn a_clock_that_is_set_or_wraps_costs_no_sound() {
    let cases: [(&str, SenderClock); 10] = [
        ("restarts", |n| if n < AT { 500_000 + n * 20 } else { (n - AT) * 20 }),
        ("restarts twice", |n| 1_000 + n % 100 * 20),
        ("an hour ahead", |n| n * 20 + if n < AT { 0 } else { HOUR }),
        ("5 s ahead", |n| n * 20 + if n < AT { 0 } else { 5_000 }),
        ("an hour back", |n| 2 * HOUR + n * 20 - if n < AT { 0 } else { HOUR }),
        ("1 s back", |n| 2 * HOUR + n * 20 - if n < AT { 0 } else { 1_000 }),
        ("300 ms back", |n| 2 * HOUR + n * 20 - if n < AT { 0 } else { 300 }),
        ("wraps", |n| (1 << 32) - AT * 20 + n * 20),
        ("an hour ahead before it wraps", |n| {
            (1 << 32) - AT * 20 + n * 20 + if n == AT - 1 { HOUR } else { 0 }
        }),
        ("an hour behind after it wraps", |n| {
            (1 << 32) - AT * 20 + n * 20 - if n == AT { HOUR } else { 0 }
        }),
    ];
    for (name, clock) in cases {
        assert_harmless(name, &Pause::None, 0, clock, clock);
    }
}

#[test]
fn packets_stamped_alike_are_all_heard() {
    let cases: [(&str, SenderClock); 3] =
        [("two", |n| n / 2 * 40), ("five", |n| n / 5 * 100), ("ten", |n| n / 10 * 200)];
    for (name, clock) in cases {
        assert_harmless(name, &Pause::None, 0, clock, |n| n * 20);
    }
}

#[test]
fn a_wrong_timestamp_beside_a_pause_costs_no_sound() {
    let during = 100..200;
    let cases: [(&str, SenderClock); 5] = [
        ("just before", |n| n * 20 + if n == 99 { HOUR } else { 0 }),
        ("at its beginning", |n| n * 20 + if n == 100 { 5_000 } else { 0 }),
        ("in it", |n| n * 20 + if n == 140 { 5_000 } else { 0 }),
        ("just after", |n| n * 20 + if n == 200 { HOUR } else { 0 }),
        ("the second after", |n| n * 20 + if n == 201 { 400 } else { 0 }),
    ];
    for (name, clock) in cases {
        for pause in [Pause::Dtx(during.clone()), Pause::Muted(during.clone())] {
            assert_harmless(&format!("{name} {pause:?}"), &pause, 1, clock, sound(clock));
        }
    }
}

#[test]
fn holes_between_timestamps_are_filled_within_the_time_passed_and_5_s_and_counted() {
    let cases: [(&str, SenderClock); 5] = [
        ("by 1 s", |n| n * 1_000),
        ("by 500 ms", |n| n * 500),
        ("by 200 ms", |n| n * 200),
        ("by 40 ms", |n| n * 40),
        ("at random", |n| n * 20 + n * 7_919 % 911),
    ];
    for over in ALL {
        let sound = run(over, &Pause::None, |n| n * 20, |n| n * 20);
        for (name, clock) in cases {
            let got = run(over, &Pause::None, clock, |n| n * 20);
            let made_ms = (got.heard.len() / 48) as i64;
            let limit = 2 * PACKETS * 20 + 5_000;
            assert!(made_ms <= limit, "steps {name} by {over:?}: {made_ms} ms");
            let frames = got.times[0].len() - sound.times[0].len();
            let counted = got.bytes_out - sound.bytes_out;
            assert!(counted.abs_diff(frames as u64 * 171) <= 342, "{name} by {over:?}: {counted}");
        }
    }
}
