//! The policy's state as bytes, so that a capture can begin in mid-publish.

use std::time::{Duration, Instant};

use super::lead::Lead;
use super::track_time::{Idle, Pending, TrackTime};
use super::{OWN_LIMIT_US, TimePolicy, micros};

/// Numbers of one track, and of the policy besides its tracks.
const OF_TRACK: usize = 13;
const OF_POLICY: usize = 8;

/// No sum of own times and steps is further from zero.
const STATE_LIMIT_US: i64 = 16 * OWN_LIMIT_US;

impl TimePolicy {
    /// Length of [`TimePolicy::to_bytes`].
    pub const STATE_BYTES: usize = (2 * OF_TRACK + OF_POLICY) * 8;

    /// The state at `now`.
    #[must_use]
    pub fn to_bytes(&self, now: Instant) -> [u8; Self::STATE_BYTES] {
        let elapsed = self.epoch.map_or(0, |epoch| micros(now.saturating_duration_since(epoch)));
        let [newest, before] = self.lead.windows.unwrap_or_default();
        let flags = i64::from(self.epoch.is_some()) | i64::from(self.lead.windows.is_some()) << 1;
        let steps = [self.steps_us, self.previous_steps_us, self.stepped_at];
        let mut bytes = [0; Self::STATE_BYTES];
        let of_policy = [flags, elapsed, newest, before, self.lead.since].into_iter().chain(steps);
        let numbers = of_policy.chain(self.tracks.iter().flat_map(numbers));
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// A policy that continues from such a state at `now`. Impossible numbers do no harm.
    #[must_use]
    pub fn read(bytes: &[u8; Self::STATE_BYTES], now: Instant) -> Self {
        let mut numbers = bytes.chunks_exact(8).map(|number| {
            let number = i64::from_be_bytes(number.try_into().unwrap_or_default());
            number.clamp(-STATE_LIMIT_US, STATE_LIMIT_US)
        });
        let mut next = || numbers.next().unwrap_or_default();
        let (flags, elapsed, windows) = (next(), next(), [next(), next()]);
        let since = next();
        let elapsed = Duration::from_micros(u64::try_from(elapsed).unwrap_or_default());
        Self {
            epoch: if flags & 1 == 1 { now.checked_sub(elapsed) } else { None },
            lead: Lead { windows: (flags & 2 == 2).then_some(windows), since },
            steps_us: next(),
            previous_steps_us: next(),
            stepped_at: next(),
            tracks: [track(&mut next), track(&mut next)],
            noted: None,
        }
    }
}

fn numbers(track: &TrackTime) -> [i64; OF_TRACK] {
    let flags = [
        track.has_begun,
        track.is_settled,
        track.is_by_arrival,
        track.is_replaced,
        track.own.is_some(),
        track.pending.is_some(),
    ];
    let flags = flags.into_iter().rev().fold(0, |bits, flag| bits << 1 | i64::from(flag));
    let (own, pending) = (track.own.unwrap_or_default(), track.pending);
    let Pending { own: pending, out } = pending.unwrap_or(Pending { own: 0, out: 0 });
    let TrackTime { shift, steps, placed, before, arrival, distance, idle, .. } = *track;
    let idle = [i64::from(idle.frames), idle.since];
    let [frames, since] = idle;
    [
        flags, own, shift, steps, placed, before, track.out, arrival, distance, pending, out,
        frames, since,
    ]
}

fn track(next: &mut impl FnMut() -> i64) -> TrackTime {
    let flags = next();
    let is_set = |bit: u32| flags >> bit & 1 == 1;
    let own = next();
    let mut track = TrackTime {
        has_begun: is_set(0),
        is_settled: is_set(1),
        is_by_arrival: is_set(2),
        is_replaced: is_set(3),
        own: is_set(4).then_some(own),
        shift: next(),
        steps: next(),
        placed: next(),
        before: next(),
        out: next().max(0),
        arrival: next(),
        distance: next().max(0),
        ..TrackTime::default()
    };
    let pending = Pending { own: next(), out: next() };
    track.pending = is_set(5).then_some(pending);
    let (frames, since) = (next(), next());
    track.idle = Idle { frames: u32::try_from(frames).unwrap_or_default(), since };
    track
}
