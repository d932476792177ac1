use std::time::{Duration, Instant};

use super::TimePolicy;
use crate::Irregularity::{TimeBackward, TimeMissing, TimeOutlier, TimeStep};
use crate::Track::{Audio, Video};
use crate::flv::WireTime;
use crate::{Irregularity, Track};

/// A frame: track, wire timestamp, arrival in milliseconds.
type Sent = (Track, u32, u64);

/// The timestamps with which frames are passed on, in milliseconds, and what was irregular.
fn run(sent: &[Sent]) -> (Vec<i64>, Vec<(Irregularity, u64)>) {
    let (mut policy, mut wire_time, start) =
        (TimePolicy::default(), WireTime::default(), Instant::now());
    let mut newest = [0; 2];
    let mut counts = crate::IrregularityCounts::default();
    let mut place = |(track, wire, arrival): &Sent| {
        let own = wire_time.extend(*wire, policy.newest(*track));
        let placed = policy.place(*track, own, start + Duration::from_millis(*arrival)).as_millis();
        let before = &mut newest[usize::from(*track == Audio)];
        assert!(placed >= *before, "{track:?} goes back from {before} to {placed}");
        *before = placed;
        for (kind, count) in policy.take_irregularities().iter().flat_map(|noted| noted.iter()) {
            counts.add(kind, count);
        }
        placed
    };
    let placed = sent.iter().map(&mut place).collect();
    (placed, counts.iter().collect())
}

/// Audio and video in real time by this clock for a number of milliseconds: one picture every 40 ms, one audio frame
/// every 21.33 ms. The clock takes the track and the time passed.
fn live(millis: u64, clock: impl Fn(Track, u64) -> u32) -> Vec<Sent> {
    let video = (0..millis / 40).map(|n| (Video, n * 40));
    let audio = (0..millis * 3 / 64).map(|n| (Audio, n * 64 / 3));
    let mut frames: Vec<_> = video.chain(audio).collect();
    frames.sort_by_key(|(track, at)| (*at, *track == Audio));
    frames.into_iter().map(|(track, at)| (track, clock(track, at), at)).collect()
}

/// The wire has 32 bits.
const fn wire(millis: i64) -> u32 {
    millis as u32
}

/// Asserts that what `clock` sends goes on in real time, both tracks alike, to within `limit` milliseconds; returns what
/// was irregular.
fn assert_goes_on(
    name: &str,
    limit: u64,
    clock: impl Fn(Track, u64) -> u32,
) -> Vec<(Irregularity, u64)> {
    let sent = live(30_000, clock);
    let (placed, counts) = run(&sent);
    let first = placed[0] - sent[0].2.cast_signed();
    for ((track, wire, at), placed) in sent.iter().zip(placed) {
        let off = (placed - at.cast_signed() - first).unsigned_abs();
        assert!(off <= limit, "{name}: {track:?} of {at} ({wire}) at {placed}");
    }
    counts
}

fn assert_unchanged(name: &str, sent: &[Sent]) {
    let (placed, counts) = run(sent);
    let wires: Vec<_> = placed.iter().map(|placed| wire(*placed)).collect();
    let want: Vec<_> = sent.iter().map(|(_, wire, _)| *wire).collect();
    assert_eq!(wires, want, "{name}");
    assert_eq!(counts, [], "{name}");
}

#[test]
fn sound_clocks_pass_bit_for_bit() {
    let wall = |_, at: u64| wire(at.cast_signed());
    assert_unchanged("live", &live(20_000, wall));
    for start in [16_777_000, 0x7fff_d000, 0xffff_d000, 3_000_000_000] {
        assert_unchanged(
            "from a late start",
            &live(20_000, |_, at| wire(start + at.cast_signed())),
        );
    }
    for apart in [-700, -40, 300, 900, 3_000] {
        let offset = |track, at: u64| {
            wire(5_000 + at.cast_signed() + if track == Audio { apart } else { 0 })
        };
        assert_unchanged("interleaved", &live(20_000, offset));
    }
    let jitter = |_, at: u64| wire(at.cast_signed() + i64::from(at % 7 > 3));
    assert_unchanged("rounded", &live(20_000, jitter));
    let at_once: Vec<_> =
        live(20_000, wall).iter().map(|(t, w, at)| (*t, *w, at / 1_000)).collect();
    assert_unchanged("a thousand times as fast", &at_once);
    let outage = |at: u64| if (3_000..11_000).contains(&at) { 11_000 + at / 1_000 } else { at };
    let late: Vec<_> = live(20_000, wall).iter().map(|(t, w, at)| (*t, *w, outage(*at))).collect();
    assert_unchanged("after an outage", &late);
    let still: Vec<_> = (0..10).map(|n| (Video, n * 20_000, u64::from(n) * 20_000)).collect();
    assert_unchanged("a picture every 20 s", &still);
    let late: Vec<_> = still.iter().map(|(t, w, at)| (*t, *w, at.max(&900).to_owned())).collect();
    assert_unchanged("a picture every 20 s, the first one late", &late);
    let stalled = |at: u64| if (20_000..80_000).contains(&at) { 80_000 } else { at };
    let late: Vec<_> = still.iter().map(|(t, w, at)| (*t, *w, stalled(*at))).collect();
    assert_unchanged("a picture every 20 s, some late", &late);
    let slides: Vec<_> = (0..20).map(|n| (Video, n * 1_900, u64::from(n) * 4)).collect();
    assert_unchanged("a picture every 1.9 s from a file", &slides);
    let paused: Vec<_> = live(20_000, wall)
        .into_iter()
        .filter(|(track, _, at)| {
            !(*track == Audio && (3_000..9_000).contains(at) || (12_000..15_000).contains(at))
        })
        .collect();
    assert_unchanged("with pauses", &paused);
    let steps = [0, 17, 40, 300, 310, 450, 1_400, 1_420, 3_000, 3_001];
    let uneven: Vec<_> =
        steps.iter().map(|at| (Video, *at, u64::from(*at) + 90 * (u64::from(*at) % 3))).collect();
    assert_unchanged("of variable rate", &uneven);
    let slices: Vec<_> = (0..100).map(|n| (Video, n / 4 * 40, u64::from(n) * 10)).collect();
    assert_unchanged("of four messages a picture", &slices);
    let late_audio: Vec<_> =
        live(20_000, wall).into_iter().filter(|(t, _, at)| *t == Video || *at > 9_000).collect();
    assert_unchanged("whose audio begins late", &late_audio);
}

#[test]
fn small_negative_times_are_negative() {
    for below in [-80, -265, -1_500, -9_000] {
        for mask in [u32::MAX, 0x7fff_ffff] {
            // All of it, or only the audio, which is behind the video.
            assert_goes_on("begins below zero", 0, |_, at| wire(below + at.cast_signed()) & mask);
            let audio = |track, at: u64| {
                wire(at.cast_signed() + if track == Audio { below } else { 0 }) & mask
            };
            let sent = live(20_000, audio);
            let (placed, counts) = run(&sent);
            for ((_, wire, _), placed) in sent.iter().zip(placed) {
                assert_eq!(placed, i64::from(wire.cast_signed() << 1 >> 1).max(0), "{below}");
            }
            assert_eq!(counts, [(TimeBackward, 1)]);
            // It dips below zero in mid-stream.
            let dips = |track, at: u64| match at {
                100..200 if track == Audio => wire(below) & mask,
                _ => wire(at.cast_signed()),
            };
            assert_goes_on("dips below zero", 150, dips);
        }
    }
}

#[test]
fn wraps_continue() {
    for wrap in [1_i64 << 24, 1 << 31, 1 << 32] {
        let mask = wire(wrap - 1);
        let counts =
            assert_goes_on("wraps", 0, |_, at| wire(wrap - 15_000 + at.cast_signed()) & mask);
        assert_eq!(counts, [], "{wrap}");
    }
}

#[test]
fn restarts_and_jumps_are_taken_out_of_both_tracks_by_the_same_step() {
    let hour = 3_600_000;
    for (name, start, jump) in [
        ("restarts at 0", 500_000, None),
        ("restarts at 0 after a day", 86_400_000, None),
        ("jumps an hour ahead", 0, Some(hour)),
        ("jumps an hour back", 2 * hour, Some(-hour)),
        ("jumps 5 s ahead", 0, Some(5_000)),
        ("jumps 5 s back", 60_000, Some(-5_000)),
        ("jumps 700 ms back", 60_000, Some(-700)),
        ("jumps 20 days ahead", 0, Some(20 * 24 * hour)),
    ] {
        for (video_late, audio_late) in [(0, 0), (0, 160), (160, 0), (0, 400)] {
            let clock = |track, at: u64| {
                let late = if track == Audio { audio_late } else { video_late };
                let base = if at < 10_000 + late {
                    start
                } else {
                    jump.map_or(-10_000, |jump| start + jump)
                };
                wire(base + at.cast_signed())
            };
            let counts = assert_goes_on(name, 45, clock);
            assert_eq!(counts.first(), Some(&(TimeStep, 1)), "{name}: {counts:?}");
        }
    }
}

#[test]
fn a_track_whose_first_frame_after_a_step_comes_late_follows_it() {
    let clock = |_, at: u64| {
        wire(if at < 10_000 { 500_000 + at.cast_signed() } else { at.cast_signed() - 10_000 })
    };
    let sent: Vec<_> = live(30_000, clock)
        .into_iter()
        .filter(|(track, _, at)| *track == Video || !(9_000..16_000).contains(at))
        .collect();
    let (placed, counts) = run(&sent);
    for ((track, _, at), placed) in sent.iter().zip(placed) {
        let off = placed - at.cast_signed() - 500_000;
        assert!(off.abs() <= 45, "{track:?} of {at}: {off}");
    }
    assert_eq!(counts, [(TimeStep, 1)]);
}

#[test]
fn single_outliers_are_not_followed() {
    let hour = 3_600_000;
    for off in [hour, -hour, 10 * hour, 3_000, -3_000, 1_500, 400, -400, 1 << 30, -(1 << 30)] {
        for (track, period) in [(Video, 5_000), (Audio, 1_920), (Video, 120)] {
            let clock = |of, at: u64| {
                let is_off = of == track && at > 1_000 && at % period < 20;
                wire(50_000_000 + at.cast_signed() + if is_off { off } else { 0 })
            };
            let counts = assert_goes_on("outliers", 450, clock);
            assert!(matches!(counts[..], [(TimeOutlier, 5..)]), "{off}: {counts:?}");
        }
    }
    // One frame of each track, of the same moment.
    let both =
        |_, at: u64| wire(at.cast_signed() + if (5_000..5_015).contains(&at) { hour } else { 0 });
    assert_eq!(assert_goes_on("both", 45, both), [(TimeOutlier, 2)]);
    // Garbage in one track, all the time.
    let garbage = |track, at: u64| {
        if track == Audio {
            wire(at.cast_signed())
        } else {
            wire(((at.cast_signed() + 9) * 0x9e37_79b9) >> 3)
        }
    };
    assert_goes_on("garbage", 450, garbage);
}

#[test]
fn a_jump_that_ends_leaves_no_trace() {
    let offs = [3_600_000, 200, 300, 600, 1_900, 5_000, -130, -300, -600, -1_900, -5_000];
    for (off, odd) in offs.into_iter().flat_map(|off| [(off, Video), (off, Audio)]) {
        for (begins, frames) in [2, 3, 5, 50].into_iter().flat_map(|n| [(0, n), (10_000, n)]) {
            // Of more than two seconds at the start, the jump may be the end as well.
            if begins == 0 && !(0..=2_000).contains(&off) {
                continue;
            }
            let away = begins..begins + frames * if odd == Video { 40 } else { 21 };
            let clock = |track, at: u64| {
                wire(
                    9_000
                        + at.cast_signed()
                        + if track == odd && away.contains(&at) { off } else { 0 },
                )
            };
            let sent = live(30_000, clock);
            let (placed, _) = run(&sent);
            let after = sent.iter().zip(placed).filter(|((_, _, at), _)| *at > begins + 5_000);
            after.for_each(|((track, wire, at), placed)| {
                let what = format!("{track:?} at {at}, {frames} of {odd:?} by {off}");
                assert_eq!(placed, i64::from(*wire), "{what}");
            });
        }
    }
}

#[test]
fn timestamps_that_stand_still_are_replaced_by_arrival() {
    for (name, clock) in [
        ("zero", (|_, _| 0) as fn(Track, u64) -> u32),
        ("one value", |_, _| 12_345),
        ("frame numbers", |_, at| wire(at.cast_signed() / 40)),
        ("a clock that stops", |_, at| wire(at.min(5_000).cast_signed())),
        ("a clock that stops for a while", |_, at| {
            wire(if at > 15_000 { at.cast_signed() - 10_000 } else { at.min(5_000).cast_signed() })
        }),
        ("video at zero", |track, at| if track == Video { 0 } else { wire(at.cast_signed()) }),
    ] {
        let counts = assert_goes_on(name, 400, clock);
        let missing = counts.iter().find(|(kind, _)| *kind == TimeMissing);
        assert!(missing.is_some_and(|(_, count)| *count > 200), "{name}: {counts:?}");
    }
}

#[test]
fn steps_back_of_up_to_120_ms_are_raised() {
    for back in [1, 60, 119] {
        let clock = |track, at: u64| {
            let is_back = track == Video && at > 1_000 && at.is_multiple_of(1_000);
            wire(at.cast_signed() - if is_back { 40 + back } else { 0 })
        };
        let counts = assert_goes_on("steps back", 160, clock);
        assert_eq!(counts, [(TimeBackward, 28)], "{back}");
    }
    // Presentation times in place of decode times.
    let order = [0, 160, 80, 40, 120];
    let sent: Vec<_> = (0..100_u32)
        .map(|n| (Video, n / 5 * 200 + order[n as usize % 5], u64::from(n) * 40))
        .collect();
    let (_, counts) = run(&sent);
    assert!(matches!(counts[..], [(TimeBackward, _)]), "{counts:?}");
}

#[test]
fn a_first_frame_that_is_off_does_not_part_the_tracks() {
    for off in [600, 1_000, 5_000, 9_900, 20_000, 3_600_000, -600, -5_000, -3_600_000] {
        for first in [Video, Audio] {
            for (start, late) in [(0, 0), (50_000_000, 0), (50_000_000, 200)] {
                let clock = |of, at: u64| {
                    let is_off = of == first && at < late + 15;
                    wire(start + at.cast_signed() + if is_off { off } else { 0 })
                };
                let sent: Vec<_> = live(20_000, clock)
                    .into_iter()
                    .filter(|(track, _, at)| *track != first || *at >= late)
                    .collect();
                let (placed, _) = run(&sent);
                let newest = |track| {
                    let mut placed = sent.iter().zip(&placed).rev();
                    let newest = placed.find(|((of, ..), _)| *of == track);
                    newest.map(|((.., at), placed)| placed - at.cast_signed()).expect("some")
                };
                let apart = (newest(Video) - newest(Audio)).abs();
                assert!(apart <= 45, "{first:?} by {off}, {late} late: {apart} apart");
            }
        }
    }
}
