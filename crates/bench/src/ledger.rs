//! The exact account: each frame that was sent is received once, in order, or listed as lost.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use crate::histogram::{Histogram, Percentiles};
use crate::load::Stamp;

#[derive(Clone, Copy, Default)]
struct TrackAccount {
    sent: u32,
    /// The first number that counts: before it the server may not have reached its upstream yet.
    first: Option<u32>,
    /// The next number expected.
    next: u32,
    received: u32,
    /// Received twice or out of order.
    misplaced: u32,
}

/// Lost frames that are listed; further ones are only missing from `received`.
const NAMED_LIMIT: usize = 100;

/// The account of a run.
pub(crate) struct Ledger {
    tracks: Vec<[TrackAccount; 2]>,
    /// Delays of video and of audio.
    delays: [Histogram; 2],
    lost: Vec<String>,
}

/// The totals of an account.
pub(crate) struct Balance {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) misplaced: u64,
    /// Lost frames, as track, publisher and number.
    pub(crate) lost: Vec<String>,
    pub(crate) video_delay: Percentiles,
    pub(crate) audio_delay: Percentiles,
}

impl Ledger {
    pub(crate) fn new(publishers: usize) -> Self {
        Self {
            tracks: vec![Default::default(); publishers],
            delays: Default::default(),
            lost: Vec::new(),
        }
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
        let missed = track.next.max(track.first.unwrap_or(0))..stamp.number;
        track.next = stamp.number + 1;
        track.received += 1;
        self.name_lost(kind, stamp.publisher, missed);
        if let Some(delays) = self.delays.get_mut(place(kind).unwrap_or(usize::MAX)) {
            delays.note(now.saturating_sub(stamp.sent));
        }
    }

    /// Whether everything that was sent has arrived.
    pub(crate) fn is_settled(&self) -> bool {
        self.tracks.iter().flatten().all(|track| track.received == track.sent)
    }

    pub(crate) fn balance(mut self) -> Balance {
        self.name_never_seen();
        let [video, audio] = std::mem::take(&mut self.delays);
        let sum = |pick: fn(&TrackAccount) -> u32| {
            self.tracks.iter().flatten().map(|track| u64::from(pick(track))).sum()
        };
        Balance {
            sent: sum(|track| track.sent),
            received: sum(|track| track.received),
            misplaced: sum(|track| track.misplaced),
            lost: self.lost,
            video_delay: video.percentiles(),
            audio_delay: audio.percentiles(),
        }
    }

    /// Lists as lost what was sent after the last frame received.
    fn name_never_seen(&mut self) {
        for publisher in 0..self.tracks.len() {
            let publisher = u32::try_from(publisher).unwrap_or(u32::MAX);
            for kind in [MediaKind::Video, MediaKind::Audio] {
                let Some(track) = self.track(kind, publisher) else { continue };
                let first = track.first.unwrap_or(0);
                let missed = track.next.max(first)..first + track.sent;
                self.name_lost(kind, publisher, missed);
            }
        }
    }

    fn name_lost(&mut self, kind: MediaKind, publisher: u32, missed: std::ops::Range<u32>) {
        let room = NAMED_LIMIT - self.lost.len();
        let names = missed.map(|number| format!("{kind:?} {publisher}:{number}"));
        self.lost.extend(names.take(room));
    }

    fn track(&mut self, kind: MediaKind, publisher: u32) -> Option<&mut TrackAccount> {
        self.tracks.get_mut(publisher as usize)?.get_mut(place(kind)?)
    }
}

/// Index of a track in an account.
const fn place(kind: MediaKind) -> Option<usize> {
    match kind {
        MediaKind::Video => Some(0),
        MediaKind::Audio => Some(1),
        MediaKind::Script => None,
    }
}
