//! When each unit is sent, and the course of a run: warm-up, measured time, settling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::{Duration, Instant};

use headgate_rtmp::MediaKind;

use crate::ledger::Ledger;

/// Media flows for so long before anything is measured, unless the server needs more.
pub(crate) const WARM_UP: Duration = Duration::from_secs(3);
/// What was sent last may take so long to arrive.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// What a run drives.
pub(crate) trait Load {
    /// Waits for the network, at most so long, and handles what came.
    fn turn(&mut self, timeout: Duration) -> io::Result<()>;
    /// Sends one unit; the ledger hears of it when it `counts`.
    fn send_unit(&mut self, publisher: usize, kind: MediaKind, number: u32, counts: bool);
    /// The account so far.
    fn ledger(&self) -> &Ledger;
}

/// When unit `number` of a track is due, from its publisher's own start.
pub(crate) type Due = fn(MediaKind, u32) -> Duration;

/// How late units left: the generator's own fault, not the server's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    pub(crate) p99: Duration,
    pub(crate) most: Duration,
}

/// Sends units on time. `report` is called when measuring begins (true) and ends (false).
pub(crate) fn run(
    load: &mut impl Load,
    publishers: usize,
    (warm_up, seconds): (Duration, u64),
    due: Due,
    report: impl Fn(bool),
) -> io::Result<Lateness> {
    let base = Instant::now();
    let mut queue = BinaryHeap::new();
    // Publishers out of step: spread over one frame interval.
    for publisher in 0..publishers {
        let offset = due(MediaKind::Video, 1) * u32::try_from(publisher).unwrap_or(0);
        let start = base + offset / u32::try_from(publishers).unwrap_or(1);
        queue.push(Reverse((start, publisher, false, 0_u32, start)));
        queue.push(Reverse((start, publisher, true, 0_u32, start)));
    }
    let measure_from = base + warm_up;
    let until = measure_from + Duration::from_secs(seconds);
    let mut is_measuring = false;
    let mut late = Vec::new();
    loop {
        let now = Instant::now();
        if !is_measuring && now >= measure_from {
            is_measuring = true;
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
                late.push(now - at);
            }
            let kind = if is_audio { MediaKind::Audio } else { MediaKind::Video };
            load.send_unit(publisher, kind, number, is_measuring);
            let next = start + due(kind, number + 1);
            queue.push(Reverse((next, publisher, is_audio, number + 1, start)));
        }
        let next = queue.peek().map_or(until, |Reverse((at, ..))| (*at).min(until));
        load.turn(next.saturating_duration_since(Instant::now()))?;
    }
    report(false);
    let settled_by = Instant::now() + SETTLE_LIMIT;
    while !load.ledger().is_settled() && Instant::now() < settled_by {
        load.turn(Duration::from_millis(20))?;
    }
    late.sort_unstable();
    let at = |percent| late.get(late.len().saturating_sub(1) * percent / 100).copied();
    Ok(Lateness { p99: at(99).unwrap_or_default(), most: at(100).unwrap_or_default() })
}
