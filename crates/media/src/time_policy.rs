//! One policy for a publisher's timestamps, whatever its protocol: sound ones pass unchanged, others are repaired so
//! that no track ever goes back. Pure: time is an argument. Not the splicing of successive publishers.
//!
//! Sound is a timestamp that continues its track: a small step forward, or one of any size that the time passed accounts
//! for. Any other is replaced until a second frame confirms it. A confirmed restart or jump is a step, which is taken
//! out of both tracks alike: the other track follows as soon as its frames fit the step. A track whose timestamps stand
//! still gets the times of arrival. All times are in microseconds.

#[doc(hidden)]
pub mod fuzz;
mod lead;
mod state;
#[cfg(test)]
mod tests;
mod track_time;

use std::time::{Duration, Instant};

use crate::{Irregularity, IrregularityCounts, Timestamp, Track};
use lead::Lead;
use track_time::{Pending, TrackTime};

/// A step forward up to this is part of any stream, a longer one only if the time passed or the frame rate accounts
/// for it.
const ORDINARY_US: i64 = 500_000;
/// The longest step forward that the frame rate accounts for. Beyond it, a jump is taken out.
const GAP_LIMIT_US: i64 = 2_000_000;
/// A timestamp that goes back by this much within its track is raised. Beyond it, a step back is taken out.
const BACKWARD_US: i64 = 120_000;
/// How far the media may run ahead of its fastest arrival before the time passed does not account for it.
const AHEAD_US: i64 = 300_000;
/// How far apart the two tracks of a publisher may begin.
const APART_US: i64 = 10_000_000;
/// How far behind its newest frame a track may be put when it follows a step of the other: by their interleaving.
const FOLLOW_BACK_US: i64 = 500_000;
/// A track that has continued for this long without a step of the other does not follow it any more.
const FOLLOW_TIME_US: i64 = 5_000_000;
/// A clock that was set is recognised where it was before for this long.
const RETURN_TIME_US: i64 = 60_000_000;
/// A frame that is shown this long before or after it is decoded: no reordering takes so long.
const COMPOSITION_LIMIT_MS: u32 = 10_000;
/// Own times beyond this (2,283 years) count as this, so that sums cannot overflow.
const OWN_LIMIT_US: i64 = 1 << 56;

/// The timestamps of one publisher.
#[derive(Debug, Default)]
pub struct TimePolicy {
    /// Arrival of the first frame; arrival times count from here.
    epoch: Option<Instant>,
    /// Video and audio.
    tracks: [TrackTime; 2],
    /// Sum of the steps that were taken out, the sum before the newest one, and when that was confirmed.
    steps_us: i64,
    previous_steps_us: i64,
    stepped_at: i64,
    lead: Lead,
    noted: Option<Box<IrregularityCounts>>,
}

impl TimePolicy {
    /// The timestamp with which a frame that arrives at `now` with this one is passed on: never less than that of the
    /// frame before it on its track, and never negative.
    pub fn place(&mut self, track: Track, time: Timestamp, now: Instant) -> Timestamp {
        let arrival = self.arrival(now);
        let own = time.as_micros().clamp(-OWN_LIMIT_US, OWN_LIMIT_US);
        let this = &mut self.tracks[index(track)];
        let at = own + this.shift;
        let ahead = at - this.placed;
        let is_ordinary = this.is_settled
            && ahead > 0
            && ahead <= this.ordinary_limit()
            && is_moving(ahead, arrival - this.arrival);
        if !is_ordinary {
            return Timestamp::from_micros(self.place_unusual(index(track), own, arrival));
        }
        (this.before, this.placed, this.distance) = (this.placed, at, ahead);
        (this.own, this.arrival, this.out) = (Some(own), arrival, this.out.max(at));
        self.lead.note(at, arrival);
        Timestamp::from_micros(this.out)
    }

    /// The timestamp of a header, which belongs to no time of its own: where it says, if that is near its track's
    /// newest frame, and never before that.
    pub fn place_header(&self, track: Track, time: Timestamp) -> Timestamp {
        let (this, other) = self.pair(index(track));
        let own = time.as_micros().clamp(-OWN_LIMIT_US, OWN_LIMIT_US);
        let reference = [this, other].into_iter().find(|of| of.has_begun);
        let Some(reference) = reference else { return Timestamp::from_micros(own.max(0)) };
        let at = own + reference.shift;
        let is_near = at.abs_diff(reference.out) <= APART_US.unsigned_abs();
        let floor = if this.has_begun { this.out } else { 0 };
        Timestamp::from_micros(if is_near { at.max(floor) } else { reference.out })
    }

    /// The composition time with which a frame is passed on: its own, unless it cannot be meant.
    pub fn place_composition(&mut self, millis: i32) -> i32 {
        if millis.unsigned_abs() <= COMPOSITION_LIMIT_MS {
            return millis;
        }
        self.note(Irregularity::TimeOutlier);
        0
    }

    /// The publisher's own time of the newest frame of a track, or of the other track before it has any.
    #[must_use]
    pub fn newest(&self, track: Track) -> Option<Timestamp> {
        let (this, other) = self.pair(index(track));
        this.own.or(other.own).map(Timestamp::from_micros)
    }

    /// What was irregular since the last call; `None` if nothing was.
    pub const fn take_irregularities(&mut self) -> Option<Box<IrregularityCounts>> {
        self.noted.take()
    }

    fn place_unusual(&mut self, index: usize, own: i64, arrival: i64) -> i64 {
        let this = self.tracks[index];
        if !this.has_begun {
            return self.begin(index, own, arrival);
        }
        let passed = arrival - this.arrival;
        if this.is_by_arrival && this.own.is_some_and(|before| !is_moving(own - before, passed)) {
            self.tracks[index].own = Some(own);
            return self.place_by_arrival(index, arrival);
        }
        let confirmed = this.pending.filter(|of| of.is_confirmed_by(own, &this, passed));
        // A second frame behind the track, or near a clock that was left, is no coincidence.
        let is_doubtful =
            |steps| steps != self.steps_us || steps == this.steps && own + this.shift < this.placed;
        let steps = self.fitting_steps(index, own, arrival);
        match (steps, confirmed) {
            (Some(steps), None) => self.accept(index, own, steps, arrival),
            (Some(steps), Some(_)) if !is_doubtful(steps) => {
                self.accept(index, own, steps, arrival)
            }
            (_, Some(pending)) => self.confirm(index, pending, own, arrival),
            (None, None) => self.doubt(index, own, arrival),
        }
    }

    /// A track's first frame.
    fn begin(&mut self, index: usize, own: i64, arrival: i64) -> i64 {
        let (_, other) = self.pair(index);
        let (other, wall) = (*other, self.lead.position(arrival));
        if !other.has_begun && own < 0 {
            // The publisher begins below zero: all of its time is moved up.
            self.tracks[1 - index].shift = -own;
            self.note(Irregularity::TimeBackward);
        }
        let shift = self.tracks[1 - index].shift;
        let at = own + shift;
        let is_beside = !other.has_begun
            || at.abs_diff(other.placed) <= APART_US.unsigned_abs()
            || (wall - APART_US..=wall + AHEAD_US).contains(&at);
        let mut this = TrackTime::begun(shift, self.steps_us, arrival);
        if is_beside {
            this.own = Some(own);
            (this.placed, this.before, this.out) = (at, at, at.max(0));
            (this.is_settled, this.is_replaced) = (true, at < 0);
            self.lead.note(at, arrival);
        } else {
            let out = other.out;
            (this.placed, this.before, this.out) = (out, out, out);
            (this.pending, this.is_replaced) = (Some(Pending { own, out }), true);
        }
        if this.own.is_some() && at < 0 {
            self.note(Irregularity::TimeBackward);
        }
        self.tracks[index] = this;
        this.out
    }

    /// The sum of steps with which a frame continues its track: usually that of the frames before it.
    fn fitting_steps(&self, index: usize, own: i64, arrival: i64) -> Option<i64> {
        let (this, other) = self.pair(index);
        let passed = arrival - this.arrival;
        // After a long pause the newest arrivals say less.
        let latest = self.lead.position(arrival) + AHEAD_US + passed / 16;
        let at = own + this.shift;
        let ahead = at - this.placed;
        if (0..=this.ordinary_limit()).contains(&ahead) {
            return Some(this.steps);
        }
        let is_with_other =
            other.has_begun && other.steps == this.steps && at <= other.placed + ORDINARY_US;
        let is_sound = if ahead < 0 {
            ahead >= -BACKWARD_US || this.is_return(at, other, arrival <= FOLLOW_TIME_US)
        } else {
            ahead <= ORDINARY_US.max(this.usual_limit()) || at <= latest || is_with_other
        };
        let expected = this.placed + passed.max(this.distance);
        let mut best = is_sound.then(|| (at.abs_diff(expected), this.steps));
        let is_recent = arrival - self.stepped_at <= RETURN_TIME_US;
        for steps in [self.steps_us, self.previous_steps_us] {
            if steps == this.steps || (steps != self.steps_us && !is_recent) {
                continue;
            }
            let at = at.saturating_add(steps - this.steps);
            let ahead = at - this.placed;
            let is_fitting = if steps == self.steps_us {
                ahead >= -FOLLOW_BACK_US && (ahead <= ORDINARY_US || at <= latest)
            } else {
                (-BACKWARD_US..=this.ordinary_limit().max(BACKWARD_US)).contains(&ahead)
            };
            let distance = at.abs_diff(expected);
            if is_fitting && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, steps));
            }
        }
        best.map(|(_, steps)| steps)
    }

    /// The frame continues its track, with this sum of steps.
    fn accept(&mut self, index: usize, own: i64, steps: i64, arrival: i64) -> i64 {
        let (mut this, other) = (self.tracks[index], self.tracks[1 - index]);
        let passed = arrival - this.arrival;
        let was_doubted = this.pending.take().is_some();
        if steps != this.steps {
            this.shift += steps - this.steps;
            (this.steps, this.leapt) = (steps, None);
            if steps != self.steps_us {
                // Back from a jump to where the clock was before.
                self.note_step(index, steps, arrival);
            }
        } else {
            if was_doubted {
                self.note(Irregularity::TimeOutlier);
            }
            if steps != self.steps_us && arrival - self.stepped_at > FOLLOW_TIME_US {
                this.steps = self.steps_us;
            }
        }
        let at = own + this.shift;
        let ahead = at - this.placed;
        let is_start = arrival <= FOLLOW_TIME_US;
        if ahead < -BACKWARD_US && this.is_return(at, &other, is_start) {
            self.note(Irregularity::TimeOutlier);
            (this.placed, this.is_replaced, this.leapt) = (at, true, None);
        } else if ahead < 0 && !this.is_replaced {
            self.note(Irregularity::TimeBackward);
        }
        if ahead > 0 {
            this.note_leap(ahead, passed, &other);
            this.distance = ahead;
        }
        this.idle.note(is_moving(ahead, passed), this.arrival);
        (this.before, this.placed) = (this.placed, this.placed.max(at));
        (this.own, this.arrival) = (Some(own), arrival);
        this.is_replaced &= at < this.out;
        this.out = this.out.max(at);
        self.lead.note(at, arrival);
        this.is_by_arrival = this.idle.is_standing(arrival);
        this.is_settled = !this.idle.is_idle() && this.steps == self.steps_us;
        self.tracks[index] = this;
        if this.is_by_arrival { self.place_by_arrival(index, arrival) } else { this.out }
    }

    /// A second frame beside a doubtful one: the publisher's clock was set, or there is a gap.
    fn confirm(&mut self, index: usize, pending: Pending, own: i64, arrival: i64) -> i64 {
        let this = &mut self.tracks[index];
        let gap = pending.own + this.shift - this.placed;
        this.pending = None;
        this.is_by_arrival = false;
        if this.own.is_some() && (0..=GAP_LIMIT_US).contains(&gap) {
            return self.accept(index, own, self.tracks[index].steps, arrival);
        }
        let shift = pending.out - pending.own;
        let (step, before) = (shift - this.shift, this.shift);
        // The track's only frame before was too late.
        let is_first = (1..=APART_US).contains(&step) && this.is_first();
        (this.shift, this.placed, this.before) = (shift, pending.out, pending.out);
        this.leapt = None;
        if this.own.is_some() {
            let steps = this.steps.saturating_add(step);
            this.steps = steps;
            self.note_step(index, steps, arrival);
            let other = &mut self.tracks[1 - index];
            if is_first && other.has_begun && other.shift == before {
                (other.shift, other.steps) = (other.shift + step, steps);
                (other.placed, other.before) = (other.placed + step, other.before + step);
            }
        } else {
            // The tracks count from different points.
            this.steps = self.steps_us;
            self.note(Irregularity::TimeStep);
        }
        self.accept(index, own, self.tracks[index].steps, arrival)
    }

    /// The frame continues nothing: it is placed after the one before it.
    fn doubt(&mut self, index: usize, own: i64, arrival: i64) -> i64 {
        let wall = self.lead.position(arrival);
        let this = &mut self.tracks[index];
        let passed = arrival - this.arrival;
        this.idle.note(false, this.arrival);
        let was_doubted = this.pending.is_some();
        if this.is_by_arrival || this.idle.is_standing(arrival) {
            this.out = this.out.max(wall);
            this.placed = this.out;
        } else {
            let usual = if this.distance < GAP_LIMIT_US { this.distance } else { 0 };
            let step = if passed >= ORDINARY_US { passed } else { usual };
            this.out = this.out.max((this.out + step).min(wall + AHEAD_US));
        }
        this.pending = Some(Pending { own, out: this.out });
        (this.arrival, this.is_replaced, this.is_settled) = (arrival, true, false);
        let out = this.out;
        if was_doubted {
            self.note(Irregularity::TimeOutlier);
        }
        out
    }

    /// The track's timestamps stand still.
    fn place_by_arrival(&mut self, index: usize, arrival: i64) -> i64 {
        let wall = self.lead.position(arrival);
        let this = &mut self.tracks[index];
        this.out = this.out.max(wall);
        (this.placed, this.before, this.arrival) = (this.out, this.out, arrival);
        (this.is_replaced, this.is_settled, this.pending) = (true, false, None);
        let out = this.out;
        self.note(Irregularity::TimeMissing);
        out
    }

    fn note_step(&mut self, index: usize, steps: i64, arrival: i64) {
        (self.previous_steps_us, self.steps_us) = (self.steps_us, steps);
        self.stepped_at = arrival;
        self.tracks[1 - index].is_settled = false;
        self.note(Irregularity::TimeStep);
    }

    fn note(&mut self, kind: Irregularity) {
        self.noted.get_or_insert_default().add(kind, 1);
    }

    fn arrival(&mut self, now: Instant) -> i64 {
        let epoch = *self.epoch.get_or_insert(now);
        micros(now.saturating_duration_since(epoch))
    }

    const fn pair(&self, index: usize) -> (&TrackTime, &TrackTime) {
        let [video, audio] = &self.tracks;
        if index == 0 { (video, audio) } else { (audio, video) }
    }
}

const fn index(track: Track) -> usize {
    match track {
        Track::Video | Track::Script => 0,
        Track::Audio => 1,
    }
}

/// Whether a track's clock runs, though it may be slow: at least at a sixteenth of the time passed.
const fn is_moving(ahead: i64, passed: i64) -> bool {
    ahead > 0 && ahead.saturating_mul(16) > passed
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX >> 2)
}
