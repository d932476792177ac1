//! Whether sound and picture are together at the upstream, given what each was captured at.

use std::time::Duration;

use headgate_rtmp::MediaKind;

use crate::whip_load::due;

/// Further apart than this is out of step, ms.
const SKEW_LIMIT_MS: i64 = 20;
/// Two sender reports, a second apart, have come and have been acted on.
const JUDGED_FROM_MS: i64 = 3_000;

/// How far the tracks' clocks are apart, as units arrive.
pub(crate) struct InStep {
    apart_ms: i64,
    /// Timestamp less capture time of the newest picture and sound, ms.
    offsets: [Option<i64>; 2],
    worst_ms: i64,
    /// Capture time of the last unit out of step.
    last_out_ms: i64,
}

impl InStep {
    /// `apart`: a picture was captured so much later than its place in the stream says.
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
        if captured >= JUDGED_FROM_MS && skew.abs() > self.worst_ms.abs() {
            self.worst_ms = skew;
        }
    }

    /// The most the sound is late (or, negative, early) after two sender reports, ms.
    pub(crate) const fn worst_ms(&self) -> i64 {
        self.worst_ms
    }

    /// From this capture time on nothing is out of step, ms.
    pub(crate) const fn settled_ms(&self) -> i64 {
        self.last_out_ms
    }
}
