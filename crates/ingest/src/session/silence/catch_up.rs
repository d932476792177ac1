//! Where a stream's audio continues after silence. Pure.

use headgate_media::Timestamp;

use super::filler::Run;

/// Audio that is this much further behind the video than before its pause, and still is after so much video: its clock
/// stood still meanwhile.
const STOOD_STILL_US: i64 = 1_000_000;
/// Audio that is further than this behind the silence already sent, or has not caught up with it after so much video,
/// is no longer left out: its timestamps are shifted to continue there.
const BEHIND_LIMIT_US: i64 = 10_000_000;
/// Networks move audio and video against each other by less than this.
const JITTER_US: i64 = 300_000;

/// Audio that starts after silence was written for its time.
#[derive(Debug)]
pub(super) struct CatchUp {
    /// The silence before it, until the first frame is written.
    pub(super) silence: Option<Run>,
    /// Where the audio already written ends.
    pub(super) floor_us: i64,
    /// Video timestamp at which the stream's audio started.
    pub(super) since: Timestamp,
    /// For audio that has paused: how far it was behind the video before, and by how much less than the time that has
    /// passed its timestamps went on.
    pub(super) pause: Option<(i64, i64)>,
    /// Once the audio was too far behind.
    pub(super) shift: Option<Shift>,
}

/// What is added to the timestamps of audio whose clock stood still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shift {
    by_us: i64,
    /// How far the audio was behind the video with it.
    lag_us: i64,
}

impl Shift {
    /// Whether the audio is that much further ahead of the video since that its clock has been corrected.
    fn is_undone(self, lag_us: i64) -> bool {
        let ahead = self.lag_us.saturating_sub(lag_us.saturating_sub(self.by_us));
        ahead >= STOOD_STILL_US.min(self.by_us / 2).max(JITTER_US)
    }
}

impl CatchUp {
    /// What to add to an audio frame's timestamp; `None` to leave the frame out.
    pub(super) fn shift(&mut self, frame: Timestamp, newest_video: Timestamp) -> Option<i64> {
        let behind = self.floor_us.saturating_sub(frame.as_micros());
        if behind <= 0 {
            return Some(0);
        }
        let lag = newest_video.as_micros().saturating_sub(frame.as_micros());
        if self.shift.is_some_and(|shift| shift.is_undone(lag)) {
            (self.shift, self.pause, self.since) = (None, None, newest_video);
        }
        let waited = newest_video.as_micros().saturating_sub(self.since.as_micros());
        let lacks = self.pause.filter(|(before, lacks)| {
            waited >= STOOD_STILL_US
                && *lacks >= STOOD_STILL_US
                && lag.saturating_sub(*before) >= STOOD_STILL_US
        });
        let by_us = match (self.shift, lacks) {
            (None, Some((_, lacks))) => Some(lacks),
            (None, None) if behind > BEHIND_LIMIT_US || waited > BEHIND_LIMIT_US => {
                // Beside the video, where it was, rather than where the silence ends.
                let is_same = |lacks: &i64| lacks.abs_diff(behind) < STOOD_STILL_US.unsigned_abs();
                let lacks = self.pause.map(|(_, lacks)| lacks).filter(is_same);
                Some(lacks.unwrap_or(behind))
            }
            (Some(shift), _) if behind.saturating_sub(shift.by_us) > BEHIND_LIMIT_US => {
                Some(behind)
            }
            (None | Some(_), _) => None,
        };
        if let Some(by_us) = by_us {
            self.shift = Some(Shift { by_us, lag_us: lag.saturating_sub(by_us) });
        }
        self.shift.map(|shift| shift.by_us).filter(|by_us| *by_us >= behind)
    }
}
