//! The time of one track, as far as it is known.

use super::{AHEAD_US, BACKWARD_US, GAP_LIMIT_US, ORDINARY_US};

/// Frames without progress after which a clock counts as standing, and the time that they must span. A picture in
/// several messages is not enough.
const STANDING: [(u32, i64); 2] = [(8, 200_000), (3, 1_000_000)];

/// One track. A track that `is_settled` needs nothing but an ordinary step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrackTime {
    pub(super) has_begun: bool,
    pub(super) is_settled: bool,
    /// The timestamps stand still, and arrival times are used.
    pub(super) is_by_arrival: bool,
    /// The newest frame was put later than where its track continues.
    pub(super) is_replaced: bool,
    /// The publisher's own time of the newest frame that was not doubted.
    pub(super) own: Option<i64>,
    /// What is added to the publisher's times, and the sum of steps in it.
    pub(super) shift: i64,
    pub(super) steps: i64,
    /// Where the track continues: its newest frame that was not doubted, and the one before it.
    pub(super) placed: i64,
    pub(super) before: i64,
    /// Timestamp of the newest frame passed on, and when that arrived.
    pub(super) out: i64,
    pub(super) arrival: i64,
    /// Between the two newest frames; the limit of a gap before there are two.
    pub(super) distance: i64,
    /// How far ahead of the other track it was before it leapt forward alone.
    pub(super) leapt: Option<i64>,
    /// The newest frame, if it is doubted.
    pub(super) pending: Option<Pending>,
    pub(super) idle: Idle,
}

/// A doubted frame: its own time, and the timestamp with which it was passed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) own: i64,
    pub(super) out: i64,
}

/// Frames whose timestamps did not move, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    pub(super) frames: u32,
    pub(super) since: i64,
}

impl TrackTime {
    /// A track that begins at `arrival`.
    pub(super) fn begun(shift: i64, steps: i64, arrival: i64) -> Self {
        let distance = GAP_LIMIT_US;
        Self { has_begun: true, shift, steps, arrival, distance, ..Self::default() }
    }

    /// Whether only its first frame has been placed where it says.
    pub(super) const fn is_first(&self) -> bool {
        self.distance == GAP_LIMIT_US && self.placed == self.before
    }

    /// The longest step forward that the track's frame rate accounts for.
    pub(super) const fn usual_limit(&self) -> i64 {
        let usual = self.distance.saturating_mul(3);
        if usual > GAP_LIMIT_US { GAP_LIMIT_US } else { usual }
    }

    /// The longest step forward that is part of any stream of such a frame rate.
    pub(super) const fn ordinary_limit(&self) -> i64 {
        let usual = self.distance.saturating_mul(3);
        if usual > ORDINARY_US { ORDINARY_US } else { usual }
    }

    /// Whether the newest frame was a leap forward, and this time continues what came before it; or several were, and it
    /// puts the track beside the other as before. `is_start`: tracks begin together.
    pub(super) fn is_return(&self, at: i64, other: &Self, is_start: bool) -> bool {
        let lead = self.leapt.or((is_start && !self.is_first()).then_some(0));
        let back = self.placed - at;
        let is_beside = |lead: i64| {
            let apart = (at - other.placed).abs_diff(lead).saturating_mul(2);
            let is_together = other.has_begun && other.steps == self.steps;
            is_together
                && (BACKWARD_US + 1..=GAP_LIMIT_US).contains(&back)
                && apart <= back.unsigned_abs()
        };
        self.placed - self.before > BACKWARD_US
            && (self.before - BACKWARD_US..=self.before + ORDINARY_US).contains(&at)
            || lead.is_some_and(is_beside)
    }

    /// Notes that it continues `ahead` of its newest frame, if that is ahead of the other track too: after a gap of its
    /// own it is beside it.
    pub(super) fn note_leap(&mut self, ahead: i64, passed: i64, other: &Self) {
        let expected = passed.max(self.distance);
        let is_alone = self.placed + ahead - other.placed > BACKWARD_US;
        let is_together = other.has_begun && other.steps == self.steps;
        if ahead - expected > BACKWARD_US && is_alone && is_together {
            self.leapt.get_or_insert(self.placed + expected - other.placed);
        }
    }
}

impl Pending {
    /// Whether a frame of the track that arrives `passed` later continues the doubted one.
    pub(super) const fn is_confirmed_by(self, own: i64, track: &TrackTime, passed: i64) -> bool {
        let ahead = own.saturating_sub(self.own);
        let usual = track.usual_limit();
        ahead >= -BACKWARD_US
            && (ahead <= ORDINARY_US || ahead <= usual || ahead <= passed + AHEAD_US)
    }
}

impl Idle {
    /// Notes a frame; `before`: when the one before it arrived.
    pub(super) const fn note(&mut self, is_moving: bool, before: i64) {
        if is_moving {
            self.frames = 0;
        } else {
            if self.frames == 0 {
                self.since = before;
            }
            self.frames = self.frames.saturating_add(1);
        }
    }

    pub(super) const fn is_idle(self) -> bool {
        self.frames > 0
    }

    pub(super) fn is_standing(self, arrival: i64) -> bool {
        let lasts = |(frames, time)| self.frames >= frames && arrival - self.since >= time;
        STANDING.into_iter().any(lasts)
    }
}
