//! Whether audio and video are in sync at the upstream, given their capture times.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use crate::whip_load::due;

/// A larger skew is out of sync, ms.
const SKEW_LIMIT_MS: i64 = 20;
/// By this time two sender reports, a second apart, have taken effect.
const COMPARED_FROM_MS: i64 = 3_000;

/// Skew between the tracks as frames arrive.
pub(crate) struct InStep {
    apart_ms: i64,
    /// Timestamp minus capture time of the newest video and audio frame, ms.
    offsets: [Option<i64>; 2],
    worst_ms: i64,
    /// Capture time of the last frame out of sync, ms.
    last_out_ms: i64,
}

impl InStep {
    /// `apart`: how much later a picture was captured than its number implies.
    pub(crate) fn new(apart: Duration) -> Self {
        let apart_ms = i64::try_from(apart.as_millis()).unwrap_or(0);
        Self { apart_ms, offsets: [None; 2], worst_ms: 0, last_out_ms: 0 }
    }

    pub(crate) fn note(&mut self, kind: MediaKind, number: u32, timestamp: u32) {
        let captured = i64::try_from(due(kind, number).as_millis()).unwrap_or(0);
        let (place, captured) = match kind {
            MediaKind::Audio => (1, captured),
            MediaKind::Video | MediaKind::Script => (0, captured + self.apart_ms),
        };
        if let Some(offset) = self.offsets.get_mut(place) {
            *offset = Some(i64::from(timestamp) - captured);
        }
        let [Some(video), Some(audio)] = self.offsets else { return };
        let skew = audio - video;
        if skew.abs() > SKEW_LIMIT_MS {
            self.last_out_ms = captured;
        }
        if captured >= COMPARED_FROM_MS && skew.abs() > self.worst_ms.abs() {
            self.worst_ms = skew;
        }
    }

    /// The largest delay of audio (negative: early) after two sender reports, ms.
    pub(crate) const fn worst_ms(&self) -> i64 {
        self.worst_ms
    }

    /// After this capture time nothing is out of sync, ms.
    pub(crate) const fn settled_ms(&self) -> i64 {
        self.last_out_ms
    }
}
