//! A sender with its clocks, a network, and the time: what was captured when is known, so every timestamp can be checked.

use headgate_media::Irregularity;

use super::*;
use crate::reorder::Reorder;

const MS: i64 = 1_000;
const SECOND: i64 = 1_000 * MS;
/// The tracks may be this far apart from 5 s after whatever happened.
const APART_LIMIT: i64 = 45 * MS;
/// And behind by this: less than the jitter buffer.
const BEHIND_LIMIT: i64 = 250 * MS;
/// The sender's wall clock at its start.
const NTP_START_US: i64 = 3_900_000_000 * SECOND;

/// What the sender's clock says at a time of capture, and its SSRC; `None`: nothing is captured.
type SenderClock = Box<dyn Fn(i64) -> Option<(u32, i64)>>;
/// The errors of a report sent at a time, of its NTP and its RTP time.
type ReportErrors = Box<dyn Fn(i64) -> (i64, i64)>;

struct Sender {
    interval: i64,
    rate: i64,
    latency: i64,
    clock: SenderClock,
    /// RTP time at the sender's time 0.
    base: u32,
    reports_every: Option<i64>,
    report_errors: ReportErrors,
    /// Whether reports name the newest packet's RTP time instead of that of the report.
    reports_last_packet: bool,
    /// The order in which groups of pictures are sent.
    order: &'static [i64],
}

impl Sender {
    fn new(interval: i64, rate: u32) -> Self {
        Self {
            interval,
            rate: i64::from(rate),
            latency: 20 * MS,
            clock: Box::new(|at| Some((1, at))),
            base: 3_000_000_000,
            reports_every: None,
            report_errors: Box::new(|_| (0, 0)),
            reports_last_packet: false,
            order: &[0],
        }
    }

    fn rtp(&self, sender_time: i64) -> u32 {
        self.base.wrapping_add((sender_time * self.rate / SECOND) as u32)
    }
}

#[derive(Clone, Copy)]
enum What {
    Packet { captured: i64, ssrc: u32, rtp: u32, arrived: i64 },
    Report { ssrc: u32, ntp: u64, rtp: u32 },
}

struct World {
    audio: Sender,
    video: Sender,
    /// The delay of a packet, by its number and the time it is sent.
    delay: Box<dyn Fn(i64, i64) -> i64>,
    duration: i64,
}

/// A packet's time of capture and its timestamp plus the time at which the session's timeline began.
type Placed = (i64, i64);

struct Outcome {
    audio: Vec<Placed>,
    video: Vec<Placed>,
    counts: IrregularityCounts,
    withheld: usize,
}

impl World {
    fn new(seconds: i64) -> Self {
        Self {
            audio: Sender::new(20 * MS, AUDIO_RATE),
            video: Sender::new(40 * MS, VIDEO_RATE),
            delay: Box::new(|n, _| (n * 7919 % 13) * MS),
            duration: seconds * SECOND,
        }
    }

    fn audio_clock(mut self, clock: impl Fn(i64) -> Option<(u32, i64)> + 'static) -> Self {
        self.audio.clock = Box::new(clock);
        self
    }

    fn video_clock(mut self, clock: impl Fn(i64) -> Option<(u32, i64)> + 'static) -> Self {
        self.video.clock = Box::new(clock);
        self
    }

    fn reports(mut self, reports: Reports) -> Self {
        (self.audio.reports_every, self.video.reports_every) = match reports {
            Reports::None => (None, None),
            Reports::Browser => (Some(5 * SECOND), Some(SECOND)),
            Reports::Often => (Some(SECOND), Some(SECOND)),
            Reports::LastPacket => (Some(SECOND), Some(SECOND)),
            Reports::OnlyVideo => (None, Some(SECOND)),
        };
        let is_last = matches!(reports, Reports::LastPacket);
        (self.audio.reports_last_packet, self.video.reports_last_packet) = (is_last, is_last);
        self
    }

    fn jitter(mut self, millis: i64) -> Self {
        self.delay = Box::new(move |n, _| noise(n) % (millis + 1) * MS);
        self
    }

    /// What reaches the clock of one track, in order, with the time it does.
    fn sent(&self, sender: &Sender, seed: i64) -> Vec<(i64, What)> {
        let (mut sent, mut released, mut last) = (Vec::new(), 0, None);
        let mut report_at = sender.reports_every.unwrap_or(i64::MAX);
        for n in 0..self.duration / sender.interval {
            let group = sender.order.len() as i64;
            let place = n / group * group + sender.order[(n % group) as usize];
            let captured = place * sender.interval;
            let at = n * sender.interval + sender.latency;
            while report_at <= at {
                let (ntp_error, rtp_error) = (sender.report_errors)(report_at);
                // Extrapolated from the newest packet, as libwebrtc does.
                if let Some((ssrc, time, since)) = last {
                    let passed = if sender.reports_last_packet { 0 } else { report_at - since };
                    let rtp = sender.rtp(time + passed + rtp_error);
                    let ntp = ntp(NTP_START_US + report_at + ntp_error);
                    let arrives = report_at + (self.delay)(report_at / MS + seed, report_at);
                    sent.push((arrives, What::Report { ssrc, ntp, rtp }));
                }
                report_at += sender.reports_every.unwrap_or(i64::MAX);
            }
            let Some((ssrc, time)) = (sender.clock)(captured) else { continue };
            let arrived = at + (self.delay)(n * 2 + seed, at);
            released = arrived.max(released);
            let rtp = sender.rtp(time);
            sent.push((released, What::Packet { captured, ssrc, rtp, arrived }));
            last = Some((ssrc, time, captured));
        }
        sent
    }

    fn run(&self) -> Outcome {
        let mut all: Vec<_> = self.sent(&self.audio, 1).into_iter().map(|of| (of, true)).collect();
        all.extend(self.sent(&self.video, 500).into_iter().map(|of| (of, false)));
        all.sort_by_key(|((at, what), _)| (*at, matches!(what, What::Report { .. })));
        let (start, mut clock, mut reorder) =
            (Instant::now(), Clock::default(), Reorder::default());
        reorder.configure(Some(u32::from(self.video.order.len() > 1)));
        let first = all.first().map_or(0, |((at, _), _)| *at);
        let mut out = Outcome {
            audio: Vec::new(),
            video: Vec::new(),
            counts: IrregularityCounts::default(),
            withheld: 0,
        };
        let time = |micros: i64| start + Duration::from_micros(micros as u64);
        let mut last_decode = -1;
        for ((at, what), is_audio) in all {
            match what {
                What::Report { ssrc, ntp, rtp } if is_audio => {
                    clock.handle_audio_report(time(at), ssrc, ntp, rtp);
                }
                What::Report { ssrc, ntp, rtp } => {
                    clock.handle_video_report(time(at), ssrc, ntp, rtp);
                }
                What::Packet { captured, ssrc, rtp, arrived } if is_audio => {
                    let stamp = clock.stamp_audio(time(arrived), ssrc, rtp).as_micros();
                    assert!(out.audio.last().is_none_or(|last| stamp + first >= last.1));
                    out.audio.push((captured, stamp + first));
                }
                What::Packet { captured, ssrc, rtp, arrived } => {
                    let shown = clock.stamp_video(time(arrived), ssrc, rtp);
                    let Some(frame) = reorder.stamp(shown, captured == 0, false) else {
                        out.withheld += 1;
                        continue;
                    };
                    let placed = clock.place_video(frame);
                    assert!(
                        placed.decode.as_micros() > last_decode && placed.shown >= placed.decode
                    );
                    last_decode = placed.decode.as_micros();
                    out.video.push((captured, placed.shown.as_micros() + first));
                }
            }
        }
        out.counts = clock.take_irregularities();
        out
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reports {
    None,
    Browser,
    Often,
    LastPacket,
    OnlyVideo,
}

const ALL_REPORTS: [Reports; 5] =
    [Reports::None, Reports::Browser, Reports::Often, Reports::LastPacket, Reports::OnlyVideo];

fn noise(n: i64) -> i64 {
    let mixed = (n as u64 ^ 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) as i64
}

fn ntp(micros: i64) -> u64 {
    let (seconds, rest) = ((micros / SECOND) as u64, (micros % SECOND) as u64);
    (seconds << 32) | ((rest << 32) / 1_000_000)
}

/// A clock that stands still while nothing is captured, in each range of milliseconds.
fn standing(pauses: Vec<(i64, i64)>) -> impl Fn(i64) -> Option<(u32, i64)> {
    move |at| {
        let is_paused = pauses.iter().any(|(from, to)| (from * MS..to * MS).contains(&at));
        let passed: i64 =
            pauses.iter().filter(|(_, to)| at >= to * MS).map(|(from, to)| (to - from) * MS).sum();
        (!is_paused).then_some((1, at - passed))
    }
}

impl Outcome {
    /// From `settled` to the end the tracks are together, and neither is behind.
    fn expect_good(&self, what: &str, settled_ms: impl Fn(i64) -> bool) {
        let (mut worst_apart, mut worst_behind) = ((0, 0), (0, 0));
        let mut video = self.video.iter().peekable();
        for (captured, placed) in &self.audio {
            let mut near = None;
            while let Some(of) = video.next_if(|(shown, _)| shown <= captured) {
                near = Some(of);
            }
            if !settled_ms(captured / MS) {
                continue;
            }
            let ahead = placed - captured;
            worst_behind = worst_behind.max((-ahead, *captured));
            if let Some((shown, at)) = near {
                worst_apart = worst_apart.max(((ahead - (at - shown)).abs(), *captured));
            }
        }
        for (shown, placed) in self.video.iter().filter(|of| settled_ms(of.0 / MS)) {
            worst_behind = worst_behind.max((shown - placed, *shown));
        }
        let (apart, behind) = (worst_apart.0, worst_behind.0);
        assert!(
            apart <= APART_LIMIT && behind <= BEHIND_LIMIT,
            "{what}: {} ms apart at {} ms, {} ms behind at {} ms; {:?}",
            apart / MS,
            worst_apart.1 / MS,
            behind / MS,
            worst_behind.1 / MS,
            self.counts.iter().collect::<Vec<_>>(),
        );
    }

    fn count(&self, kind: Irregularity) -> u64 {
        self.counts.iter().find(|(of, _)| *of == kind).map_or(0, |(_, count)| count)
    }

    /// Differences of timestamps are those of the captures, to the tick.
    fn expect_exact(&self, what: &str) {
        assert_eq!(self.counts.iter().count(), 0, "{what}");
        for track in [&self.audio, &self.video] {
            let first = track[0].1 - track[0].0;
            for (captured, placed) in track {
                assert!((placed - captured - first).abs() <= 12, "{what} at {captured}");
            }
        }
    }
}

#[path = "clock_world_tests.rs"]
mod tests;
