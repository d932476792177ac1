//! What a clock makes of every kind of sender and network.

use super::*;

/// Four pauses of `length`, 10 s apart, from 10 s on.
fn four(length: i64) -> Vec<(i64, i64)> {
    (1..=4).map(|n| (n * 10_000, n * 10_000 + length)).collect()
}

#[test]
fn after_pauses_without_a_clock_both_tracks_are_together_and_not_behind() {
    for reports in ALL_REPORTS {
        for length in [200, 400, 1_000, 3_000, 4_900, 5_100] {
            for jitter in [10, 120] {
                for (of, worlds) in [
                    ("audio", World::new(60).audio_clock(standing(four(length)))),
                    ("video", World::new(60).video_clock(standing(four(length)))),
                    (
                        "both",
                        World::new(60)
                            .audio_clock(standing(four(length)))
                            .video_clock(standing(four(length))),
                    ),
                ] {
                    let outcome = worlds.reports(reports).jitter(jitter).run();
                    let what = format!("{of} {length} ms, {reports:?}, jitter {jitter} ms");
                    outcome.expect_good(&what, |at| {
                        at % 10_000 >= 5_000.max(length + 2_700) && at >= 5_000
                    });
                    if length >= 400 {
                        let stopped = outcome.count(Irregularity::TimeStopped);
                        assert!((4..=12).contains(&stopped), "{what}: {stopped}");
                    }
                    assert_eq!(outcome.count(Irregularity::TimeStep), 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn capture_stalls_do_not_add_up() {
    for reports in ALL_REPORTS {
        for (length, every) in [(500, 4_000), (500, 2_500), (300, 5_000), (100, 6_000), (40, 6_000)]
        {
            let stalls =
                move || (1..60_000 / every).map(|n| (n * every, n * every + length)).collect();
            let what = format!("{length} ms every {every} ms, {reports:?}");
            let audio = World::new(60).audio_clock(standing(stalls())).reports(reports).run();
            // Long ones are inserted at once.
            let settles = if length >= 400 { length + 150 } else { 4_800 };
            audio.expect_good(&what, |at| at > 5_000 && at % every > settles.min(every));
            let both = World::new(60)
                .audio_clock(standing(stalls()))
                .video_clock(standing(stalls()))
                .reports(reports)
                .run();
            let behind = |placed: &[Placed]| placed.last().map_or(0, |last| last.0 - last.1);
            assert!(behind(&both.audio) < 1_500 * MS, "{what}");
            assert!(behind(&both.video) < 1_500 * MS, "{what}");
        }
        let slow = (1..500).map(|n| (n * 2_000, n * 2_000 + 40)).collect();
        let outcome = World::new(60).audio_clock(standing(slow)).reports(reports).run();
        let (captured, placed) = outcome.audio.last().expect("audio");
        assert!(captured - placed < 150 * MS, "a clock that is 2 % slow");
    }
}

/// Silence from 10 s to `until`, of which only a packet every `interval` is sent; each counts 20 ms, or what passed.
fn silence(until: i64, interval: i64, counts: bool) -> impl Fn(i64) -> Option<(u32, i64)> {
    move |at| {
        let (from, until) = (10_000 * MS, until * MS);
        let packets = (at.min(until) - from).max(0) / (interval * MS);
        let counted = if counts { (at.min(until) - from).max(0) } else { packets * 20 * MS };
        let time = match at {
            _ if at < from => at,
            _ if at < until => from + counted,
            _ => at - until + from + counted,
        };
        let is_sent = at < from || at >= until || (at - from) % (interval * MS) == 0;
        is_sent.then_some((1, time))
    }
}

#[test]
fn silence_may_stop_the_clock_or_not() {
    for reports in ALL_REPORTS {
        for (until, interval) in [(13_000, 400), (30_000, 400), (31_000, 1_000), (22_000, 60)] {
            for counts in [false, true] {
                let world = World::new(50).audio_clock(silence(until, interval, counts));
                let outcome = world.reports(reports).run();
                let what = format!("until {until} every {interval} ({counts}), {reports:?}");
                outcome.expect_good(&what, |at| at > 5_000 && at < 10_000 || at > until + 5_000);
                if counts {
                    assert_eq!(outcome.counts.iter().count(), 0, "{what}");
                }
            }
        }
        // Every packet is sent, with the same timestamp.
        let still = |at: i64| Some((1, at.min(10 * SECOND).max(at - 5 * SECOND)));
        let outcome = World::new(40).audio_clock(still).reports(reports).run();
        outcome.expect_good(&format!("{reports:?}"), |at| at > 5_000 && at < 10_000 || at > 20_000);
    }
}

#[test]
fn pauses_that_the_clock_counts_change_nothing() {
    for reports in [Reports::None, Reports::Browser, Reports::Often] {
        let paused = |at: i64| (!(10 * SECOND..16 * SECOND).contains(&at)).then_some((1, at));
        let mut world = World::new(40).audio_clock(paused).reports(reports);
        world.delay = Box::new(|_, _| 5 * MS);
        world.run().expect_exact("audio");
        let mut world = World::new(40).video_clock(paused).reports(reports);
        world.delay = Box::new(|_, _| 5 * MS);
        world.run().expect_exact("video");
    }
}

#[test]
fn a_network_that_delays_inserts_nothing() {
    type Delay = fn(i64, i64) -> i64;
    let delays: [(&str, Delay); 6] = [
        ("jitter", |n, at| if at < SECOND { 0 } else { noise(n) % 251 * MS }),
        ("retransmissions", |n, _| if noise(n) % 10 == 0 { 300 * MS } else { 5 * MS }),
        ("outages of 3 s, then all at once", |_, at| match at % (15 * SECOND) {
            within if within > 12 * SECOND => 15 * SECOND - within,
            _ => 5 * MS,
        }),
        ("a queue that drains in 6 s", |_, at| match at % (20 * SECOND) {
            within if within > 11 * SECOND && within <= 12 * SECOND => 3 * (within - 11 * SECOND),
            within if within > 12 * SECOND && within < 18 * SECOND => (18 * SECOND - within) / 2,
            _ => 5 * MS,
        }),
        (
            "a second of 400 ms",
            |_, at| if at % (9 * SECOND) > 8 * SECOND { 400 * MS } else { 5 * MS },
        ),
        ("growing", |n, at| (at / 1_000 % 250) * MS + noise(n) % 5 * MS),
    ];
    for (what, delay) in delays {
        for reports in [Reports::None, Reports::Often] {
            let mut world = World::new(120).reports(reports);
            world.delay = Box::new(delay);
            if reports == Reports::Often {
                world.run().expect_good(what, |at| at > 5_000);
            } else {
                world.run().expect_exact(what);
            }
        }
    }
}

#[test]
fn reports_are_believed_as_far_as_they_are_possible() {
    type Errors = fn(i64) -> (i64, i64);
    let errors: [(&str, Errors); 11] = [
        ("NTP ahead", |_| (300 * MS, 0)),
        ("NTP behind", |_| (-300 * MS, 0)),
        ("NTP a little ahead", |_| (100 * MS, 0)),
        ("another day", |_| (-86_400 * SECOND, 0)),
        ("NTP zero", |at| (-NTP_START_US - at, 0)),
        ("NTP that stands still", |at| (-at, 0)),
        ("NTP that drifts", |at| (at / 100, 0)),
        ("NTP that jumps", |at| (noise(at) % 4_000 * MS, 0)),
        ("RTP behind", |_| (0, -300 * MS)),
        ("RTP of another clock", |at| (0, noise(at) % 1_000 * SECOND - 500 * SECOND)),
        ("RTP that never counts", |at| (0, -at)),
    ];
    for (what, error) in errors {
        for jitter in [5, 60] {
            let world = || World::new(60).reports(Reports::Often).jitter(jitter);
            let mut of_audio = world();
            of_audio.audio.report_errors = Box::new(error);
            of_audio.run().expect_good(&format!("{what} (audio)"), |at| at > 5_000);
            let mut of_video = world();
            of_video.video.report_errors = Box::new(error);
            of_video.run().expect_good(&format!("{what} (video)"), |at| at > 5_000);
        }
    }
}

#[test]
fn a_single_wrong_report_is_forgotten_even_if_it_is_the_first() {
    for reports in [Reports::Browser, Reports::Often] {
        for at_s in [1, 5, 20] {
            for (ntp, rtp) in
                [(0, 150), (0, 250), (200, 200), (0, 1_000), (0, -290), (3_600_000, 0)]
            {
                for is_audio in [false, true] {
                    let mut world = World::new(60).reports(reports);
                    let sender = if is_audio { &mut world.audio } else { &mut world.video };
                    sender.report_errors = Box::new(move |at| match at == at_s * SECOND {
                        true => (ntp * MS, rtp * MS),
                        false => (0, 0),
                    });
                    let what = format!("{ntp}, {rtp} ms at {at_s} s, {reports:?}, {is_audio}");
                    world.run().expect_good(&what, |at| at > at_s * 1_000 + 16_000);
                }
            }
        }
    }
}

#[test]
fn a_first_report_with_a_wrong_time_moves_nothing() {
    for reports in [Reports::Browser, Reports::Often] {
        for rtp in [400, 1_000, 1_900] {
            for is_audio in [false, true] {
                let mut world = World::new(40).reports(reports);
                let sender = if is_audio { &mut world.audio } else { &mut world.video };
                let is_first = std::cell::Cell::new(true);
                sender.report_errors =
                    Box::new(move |_| (0, if is_first.replace(false) { rtp * MS } else { 0 }));
                let what = format!("{rtp} ms, {reports:?}, {is_audio}");
                world.run().expect_good(&what, |at| at > 5_000);
            }
        }
    }
}

#[test]
fn latencies_that_reports_show_are_corrected_exactly() {
    for (audio, video) in [(20, 300), (300, 100), (40, 900), (5, 120)] {
        for reports in [Reports::Often, Reports::Browser] {
            let mut world = World::new(40).reports(reports);
            (world.audio.latency, world.video.latency) = (audio * MS, video * MS);
            world.video.order = &[0, 3, 1, 2];
            let outcome = world.run();
            outcome.expect_good(&format!("{audio} and {video} ms"), |at| at > 10_000);
            assert_eq!(outcome.withheld, 0);
        }
    }
}

#[test]
fn clocks_that_drift_stay_together_for_hours() {
    for (audio, video) in [(100, -100), (-100, 100), (0, -100)] {
        for reports in [Reports::None, Reports::Browser] {
            let drifting = |ppm: i64| {
                move |at: i64| Some((1, at + at / SECOND * ppm + at % SECOND * ppm / SECOND))
            };
            let mut world =
                World::new(3 * 3_600).audio_clock(drifting(audio)).video_clock(drifting(video));
            (world.audio.interval, world.video.interval) = (60 * MS, 100 * MS);
            let outcome = world.reports(reports).run();
            outcome.expect_good(&format!("{audio} and {video} ppm, {reports:?}"), |at| at > 5_000);
            assert_eq!(outcome.counts.iter().count(), 0);
        }
    }
}

#[test]
fn jumps_and_new_sources_continue_where_the_old_clock_would_be() {
    let jumps = [1_000_i64, 4_000, 20_000, 3_600_000, -150, -2_000, -3_600_000, 20_000_000];
    for reports in ALL_REPORTS {
        for jump in jumps {
            for ssrc in [1, 2] {
                let jumped = move |at: i64| match at >= 10 * SECOND {
                    true => Some((ssrc, at + jump * MS)),
                    false => Some((1, at)),
                };
                let what = format!("{jump} ms, SSRC {ssrc}, {reports:?}");
                let is_settled = |at: i64| at > 5_000 && at < 10_000 || at > 15_000;
                let outcome = World::new(30).audio_clock(jumped).reports(reports).run();
                outcome.expect_good(&format!("audio {what}"), is_settled);
                let steps = u64::from(ssrc == 1 && jump.abs() >= 1_000);
                assert_eq!(outcome.count(Irregularity::TimeStep), steps, "{what}");
                let outcome = World::new(30).video_clock(jumped).reports(reports).run();
                outcome.expect_good(&format!("video {what}"), is_settled);
            }
        }
    }
}

#[test]
fn a_single_outlier_is_not_followed() {
    for reports in ALL_REPORTS {
        for far in [2_000, 3_600_000, -3_600_000, -2_000] {
            let outlier = move |at: i64| {
                let is_outlier = at > 0 && at % (5 * SECOND) == 0;
                Some((1, if is_outlier { at + far * MS } else { at }))
            };
            let outcome =
                World::new(40).audio_clock(outlier).video_clock(outlier).reports(reports).run();
            outcome.expect_good(&format!("{far} ms, {reports:?}"), |at| at > 5_000);
            assert_eq!(outcome.count(Irregularity::TimeOutlier), 14, "{far} ms");
            assert_eq!(outcome.counts.iter().count(), 1);
        }
    }
}

#[test]
fn a_picture_stamped_too_early_or_too_late_leaves_no_skew() {
    for reports in ALL_REPORTS {
        for off in [-900, -300, 80, 130, 300, 499] {
            let outlier = move |at: i64| {
                let is_outlier = at > 0 && at % (5 * SECOND) == 0;
                Some((1, if is_outlier { at + off * MS } else { at }))
            };
            let outcome = World::new(40).video_clock(outlier).reports(reports).run();
            let is_settled = |at: i64| at > 5_500 && !(0..500).contains(&(at % 5_000));
            outcome.expect_good(&format!("{off} ms, {reports:?}"), is_settled);
        }
    }
}

#[test]
fn pictures_stamped_too_early_in_a_row_leave_no_skew() {
    for reports in ALL_REPORTS {
        for off in [80, 130, 300, 490] {
            // Pictures in a row, 40 ms apart; some of a second, or every 25th for ever.
            for (every, count) in [(5_000, 2), (5_000, 7), (5_000, 20), (1_000, 1)] {
                let ahead = move |at: i64| {
                    let is_ahead = at > 6 * SECOND && at % (every * MS) < count * 40 * MS;
                    Some((1, if is_ahead { at + off * MS } else { at }))
                };
                let outcome = World::new(40).video_clock(ahead).reports(reports).run();
                let off_for = count * 40 + 500;
                let is_settled =
                    |at: i64| at > 5_500 && (off_for..every - 40).contains(&(at % every));
                outcome.expect_good(&format!("{count} of {off} ms, {reports:?}"), is_settled);
            }
        }
    }
}

#[test]
fn a_faster_network_is_followed() {
    for reports in ALL_REPORTS {
        for faster in [80, 150, 400] {
            let mut world = World::new(40).reports(reports);
            world.delay = Box::new(move |n, at| {
                n * 7919 % 13 * MS + if at < 15 * SECOND { faster * MS } else { 0 }
            });
            let is_settled = |at: i64| at > 5_000 && !(14_000..22_000).contains(&at);
            world.run().expect_good(&format!("{faster} ms, {reports:?}"), is_settled);
        }
    }
}

#[test]
fn clocks_may_wrap_at_any_time() {
    for base in [u32::MAX - 1_000, u32::MAX / 2, u32::MAX - 2_000_000] {
        let mut world = World::new(60).reports(Reports::Browser);
        world.delay = Box::new(|_, _| 5 * MS);
        (world.audio.base, world.video.base) = (base, base);
        world.run().expect_exact("wraps");
    }
}

#[test]
fn slow_cameras_and_rough_networks_settle_as_well() {
    for reports in ALL_REPORTS {
        for (frame, jitter, rtt) in [(40, 250, 0), (200, 60, 0), (33, 30, 400)] {
            let world = || {
                let mut world = World::new(60).reports(reports).jitter(jitter);
                world.video.interval = frame * MS;
                let delay = world.delay;
                // One packet in fifty is lost, and repeated.
                world.delay = Box::new(move |n, at| {
                    let is_lost = rtt > 0 && noise(n + 1_000_000) % 50 == 0;
                    delay(n, at) + if is_lost { rtt * MS } else { 0 }
                });
                world
            };
            let what = format!("{frame} ms, jitter {jitter} ms, RTT {rtt} ms, {reports:?}");
            world().run().expect_good(&what, |at| at > 5_000);
            let settled = |at: i64| at % 10_000 >= 8_000;
            let paused = || standing(four(3_000));
            world().audio_clock(paused()).run().expect_good(&format!("audio {what}"), settled);
            world().video_clock(paused()).run().expect_good(&format!("video {what}"), settled);
            let both = world().audio_clock(paused()).video_clock(paused());
            both.run().expect_good(&format!("both {what}"), settled);
        }
    }
}

#[test]
fn a_single_track_is_not_behind_after_pauses() {
    for length in [500, 1_000, 3_000, 7_000] {
        let mut only_audio = World::new(60).audio_clock(standing(four(length)));
        only_audio.video.clock = Box::new(|_| None);
        let settled = move |at: i64| at % 10_000 >= length + 2_700 || at < 10_000;
        only_audio.run().expect_good("only audio", settled);
        let mut only_video = World::new(60).video_clock(standing(four(length)));
        only_video.audio.clock = Box::new(|_| None);
        only_video.run().expect_good("only video", settled);
    }
}
