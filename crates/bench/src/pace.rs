//! When each frame is sent, and the phases of a run: warm-up, measured time, settling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::{Duration, Instant};

use headgate_rtmp::MediaKind;

use crate::dice::Dice;
use crate::histogram::{Histogram, Percentiles};
use crate::ledger::Ledger;
use crate::run_queue;

/// How long media flows before anything is measured, unless the server needs more.
pub(crate) const WARM_UP: Duration = Duration::from_secs(3);
/// How long the last frames may take to arrive.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// What a run drives.
pub(crate) trait Load {
    /// Waits for the network until the timeout and handles what arrived.
    fn turn(&mut self, timeout: Duration) -> io::Result<()>;
    /// Sends one frame; it is entered in the ledger when it `counts`.
    fn send_unit(&mut self, publisher: usize, kind: MediaKind, number: u32, counts: bool);
    /// The account so far.
    fn ledger(&self) -> &Ledger;
}

/// When frame `number` of a track is due, from its publisher's start; `None` if there is no such track.
pub(crate) type Due<'a> = &'a dyn Fn(MediaKind, u32) -> Option<Duration>;

/// How late frames were sent and how long we waited for a core: faults of the generator, not of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    pub(crate) units: Percentiles,
    /// Share of the measured time in which we were ready to run but had no core.
    pub(crate) starved: f64,
}

/// Pseudo-random starts of publishers within a GOP, the same in every run.
pub(crate) fn at_random(publishers: usize) -> Vec<Duration> {
    let mut dice = Dice::new(1);
    (0..publishers).map(|_| Duration::from_micros(u64::from(dice.roll() % 2_000_000))).collect()
}

/// Sends frames on time, each publisher's from its phase on. `report` is called when measuring begins (true) and ends
/// (false).
pub(crate) fn run(
    load: &mut impl Load,
    phases: &[Duration],
    (warm_up, seconds): (Duration, u64),
    due: Due<'_>,
    report: impl Fn(bool),
) -> io::Result<Lateness> {
    let base = Instant::now();
    let mut queue = BinaryHeap::new();
    for (publisher, phase) in phases.iter().enumerate() {
        let start = base + *phase;
        for (kind, is_audio) in [(MediaKind::Video, false), (MediaKind::Audio, true)] {
            if let Some(due) = due(kind, 0) {
                queue.push(Reverse((start + due, publisher, is_audio, 0_u32, start)));
            }
        }
    }
    let measure_from = base + warm_up;
    let until = measure_from + Duration::from_secs(seconds);
    let mut is_measuring = false;
    let mut late = Histogram::default();
    let mut waited = Duration::ZERO;
    loop {
        let now = Instant::now();
        if !is_measuring && now >= measure_from {
            is_measuring = true;
            waited = run_queue::waited();
            report(true);
        }
        if now >= until {
            break;
        }
        while let Some(&Reverse((at, publisher, is_audio, number, start))) = queue.peek() {
            if at > now {
                break;
            }
            queue.pop();
            if is_measuring {
                late.note(now - at);
            }
            let kind = if is_audio { MediaKind::Audio } else { MediaKind::Video };
            load.send_unit(publisher, kind, number, is_measuring);
            if let Some(due) = due(kind, number + 1) {
                queue.push(Reverse((start + due, publisher, is_audio, number + 1, start)));
            }
        }
        let next = queue.peek().map_or(until, |Reverse((at, ..))| (*at).min(until));
        load.turn(next.saturating_duration_since(Instant::now()))?;
    }
    report(false);
    let waited = run_queue::waited().saturating_sub(waited);
    let starved = waited.as_secs_f64() / Duration::from_secs(seconds.max(1)).as_secs_f64();
    let settled_by = Instant::now() + SETTLE_LIMIT;
    while !load.ledger().is_settled() && Instant::now() < settled_by {
        load.turn(Duration::from_millis(20))?;
    }
    Ok(Lateness { units: late.percentiles(), starved })
}
