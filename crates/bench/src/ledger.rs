//! The exact account: each unit that was sent is found once, in order, or named lost.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use crate::load::Stamp;

#[derive(Clone, Copy, Default)]
struct TrackAccount {
    sent: u32,
    /// The first number that counts: a server may not have reached its upstream before.
    first: Option<u32>,
    /// The next number that should come.
    next: u32,
    received: u32,
    /// Came again, or behind a later one.
    misplaced: u32,
}

/// The account of a run.
pub(crate) struct Ledger {
    tracks: Vec<[TrackAccount; 2]>,
    delays: Vec<u32>,
}

/// What the account says.
pub(crate) struct Balance {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) misplaced: u64,
    /// Delays in microseconds, median and 99th percentile.
    pub(crate) delay_p50_us: u32,
    pub(crate) delay_p99_us: u32,
}

impl Ledger {
    pub(crate) fn new(publishers: usize) -> Self {
        Self { tracks: vec![Default::default(); publishers], delays: Vec::new() }
    }

    pub(crate) fn note_sent(&mut self, kind: MediaKind, stamp: Stamp) {
        if let Some(track) = self.track(kind, stamp.publisher) {
            track.first.get_or_insert(stamp.number);
            track.sent += 1;
        }
    }

    pub(crate) fn note_received(&mut self, kind: MediaKind, stamp: Stamp, now: Duration) {
        let Some(track) = self.track(kind, stamp.publisher) else { return };
        if track.first.is_none_or(|first| stamp.number < first) {
            return;
        }
        if stamp.number < track.next {
            track.misplaced += 1;
            return;
        }
        track.next = stamp.number + 1;
        track.received += 1;
        let delay = now.saturating_sub(stamp.sent).as_micros();
        self.delays.push(u32::try_from(delay).unwrap_or(u32::MAX));
    }

    /// Everything that was sent has come.
    pub(crate) fn is_settled(&self) -> bool {
        self.tracks.iter().flatten().all(|track| track.received == track.sent)
    }

    pub(crate) fn balance(mut self) -> Balance {
        self.delays.sort_unstable();
        let percentile = |percent: usize| {
            let at = (self.delays.len() * percent / 100).min(self.delays.len().saturating_sub(1));
            self.delays.get(at).copied().unwrap_or(0)
        };
        let sum = |pick: fn(&TrackAccount) -> u32| {
            self.tracks.iter().flatten().map(|track| u64::from(pick(track))).sum()
        };
        Balance {
            sent: sum(|track| track.sent),
            received: sum(|track| track.received),
            misplaced: sum(|track| track.misplaced),
            delay_p50_us: percentile(50),
            delay_p99_us: percentile(99),
        }
    }

    fn track(&mut self, kind: MediaKind, publisher: u32) -> Option<&mut TrackAccount> {
        let at = match kind {
            MediaKind::Video => 0,
            MediaKind::Audio => 1,
            MediaKind::Script => return None,
        };
        self.tracks.get_mut(publisher as usize)?.get_mut(at)
    }
}
