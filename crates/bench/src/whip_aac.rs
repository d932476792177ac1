//! The account of AAC, which carries no stamps: gaps in its timestamps, and its delay.

use std::time::Duration;

use headgate_rtmp::{MediaKind, MediaMessage};

use crate::histogram::Histogram;
use crate::load::Stamp;

/// An AAC frame lasts 21.3 ms; timestamps are whole milliseconds.
const AAC_STEP_MS: std::ops::RangeInclusive<u32> = 21..=22;

/// Totals of AAC over all pushes.
#[derive(Default)]
pub(crate) struct AacAccount {
    pushes: Vec<PushTimes>,
    pub(crate) frames: u64,
    /// Frames whose timestamp is not one frame after the previous one.
    pub(crate) gaps: u64,
    pub(crate) delays: Histogram,
}

/// The times of one push.
#[derive(Clone, Copy, Default)]
struct PushTimes {
    /// Timestamp of its last AAC frame.
    last_ms: Option<u32>,
    /// When its timestamp 0 was sent, computed from its last picture: microseconds since the start of the run.
    origin_us: Option<i64>,
}

impl AacAccount {
    /// Relates timestamps to sending times: both tracks of a publisher start at the same time.
    pub(crate) fn note_picture(&mut self, push: usize, message: &MediaMessage, stamp: Stamp) {
        if message.kind == MediaKind::Video {
            let sent = i64::try_from(stamp.sent.as_micros()).unwrap_or(i64::MAX);
            self.push(push).origin_us = Some(sent - i64::from(message.timestamp) * 1_000);
        }
    }

    pub(crate) fn note_frame(
        &mut self,
        push: usize,
        message: &MediaMessage,
        now: Duration,
        is_measuring: bool,
    ) {
        let times = self.push(push);
        let last_ms = times.last_ms.replace(message.timestamp);
        let origin_us = times.origin_us;
        if !is_measuring {
            return;
        }
        self.frames += 1;
        let step = last_ms.map(|last| message.timestamp.wrapping_sub(last));
        self.gaps += u64::from(step.is_some_and(|step| !AAC_STEP_MS.contains(&step)));
        if let Some(origin) = origin_us {
            let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
            let delay = now - origin - i64::from(message.timestamp) * 1_000;
            self.delays.note(Duration::from_micros(u64::try_from(delay).unwrap_or(0)));
        }
    }

    fn push(&mut self, push: usize) -> &mut PushTimes {
        if self.pushes.len() <= push {
            self.pushes.resize(push + 1, PushTimes::default());
        }
        // The line above made room for it.
        &mut self.pushes[push]
    }
}
