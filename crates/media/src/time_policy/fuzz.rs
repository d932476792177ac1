//! Fuzz body: whatever a publisher's timestamps and their arrival, no track goes back. Run by the shells in
//! `crates/fuzz` and by tests.

use std::time::{Duration, Instant};

use super::{APART_US, BACKWARD_US, GAP_LIMIT_US, TimePolicy};
use crate::flv::WireTime;
use crate::{FillerBudget, Timestamp, Track};

/// Fillers: at most this much more than the time passed.
const FILLER_AHEAD: Duration = Duration::from_secs(5);
/// Audio and video of one moment may be this far apart, 5 s after the last step.
const SYNC_LIMIT_US: u64 = 45_000;

/// Reads the bytes as frames of a publisher, and again as steps of a clock that both tracks share.
///
/// # Panics
/// When a track goes back or below zero, runs ahead of its own steps and the time passed, a filler exceeds its budget, or
/// the tracks part.
pub fn time_policy(bytes: &[u8]) {
    any_frames(bytes);
    // This costs more, and few inputs differ.
    if bytes.get(1).is_some_and(|byte| byte % 32 == 0) {
        shared_steps(bytes);
    }
}

/// Each frame is eight bytes: track and kind of timestamp, when it arrives, and the timestamp.
fn any_frames(bytes: &[u8]) {
    let start = Instant::now();
    let (mut policy, mut wire_time, mut now) = (TimePolicy::default(), WireTime::default(), start);
    let (mut newest, mut last_wire, mut latest) = ([0; 2], 0_u32, 0);
    let (mut budget, mut filled) = (FillerBudget::default(), Duration::ZERO);
    for frame in bytes.chunks_exact(8) {
        let value = u32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]);
        let track = if frame[0] & 1 == 0 { Track::Video } else { Track::Audio };
        let passed = Duration::from_millis(match frame[1] & 3 {
            0 => 0,
            1 => frame[2].into(),
            2 => u64::from(frame[2]) * 40,
            _ => 20,
        });
        now += passed;
        let wire = match frame[0] >> 1 & 3 {
            0 => value,
            1 => last_wire.wrapping_add(value & 0x3f),
            2 => last_wire.wrapping_sub(value & 0xff),
            _ => last_wire.wrapping_add(value & 0xff_ffff),
        };
        last_wire = wire;
        let own = match frame[0] >> 3 & 7 {
            7 => Timestamp::from_micros(i64::from(value) << (frame[3] & 31)),
            6 => Timestamp::from_micros(-i64::from(value) << (frame[3] & 31)),
            _ => wire_time.extend(wire, policy.newest(track)),
        };
        let header = policy.place_header(track, own);
        let placed = policy.place(track, own, now);
        let at = usize::from(track == Track::Audio);
        let before = std::mem::replace(&mut newest[at], placed.as_micros());
        assert!(placed.as_micros() >= before && header >= Timestamp::ZERO, "goes back");
        if latest > 0 {
            let passed_us = i64::try_from(now.duration_since(start).as_micros()).expect("short");
            let step = placed.as_micros() - before;
            let is_explained = step <= GAP_LIMIT_US
                || step <= passed_us + APART_US
                || placed.as_micros() <= latest + APART_US + passed_us;
            assert!(is_explained, "leaps by {step}");
        }
        latest = latest.max(placed.as_micros());
        // Something that fills every gap.
        if budget.take(placed.as_micros() - before, now) {
            filled += Duration::from_micros(placed.as_micros().abs_diff(before));
        }
        assert!(filled <= now.duration_since(start) + FILLER_AHEAD, "fills too much");
        if frame[1] & 0xf0 == 0 {
            let state = policy.to_bytes(now);
            assert_eq!(TimePolicy::read(&state, now).to_bytes(now), state);
        }
        policy.take_irregularities();
    }
    let mut noise = [0; TimePolicy::STATE_BYTES];
    noise.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let mut policy = TimePolicy::read(&noise, now);
    for track in [Track::Video, Track::Audio, Track::Video] {
        policy.place(track, Timestamp::ZERO, now);
    }
}

/// Both tracks are captured by one clock, which is set at every five bytes: after 5.5 to 6.5 s, to another time. Frames
/// arrive as they are captured, audio up to 127 ms late.
fn shared_steps(bytes: &[u8]) {
    let start = Instant::now();
    let mut policy = TimePolicy::default();
    let late_ms = bytes.first().map_or(0, |byte| u64::from(byte & 127));
    let (mut set_us, mut set_at, mut next_us) = (0_i64, 0_u64, [0_u64, late_ms * 1_000]);
    let mut set_before_us = 0;
    for step in bytes.chunks_exact(5).take(16) {
        let until = set_at + 5_500_000 + u64::from(step[0]) * 4_000;
        while next_us[0].min(next_us[1]) < until {
            let index = usize::from(next_us[1] < next_us[0]);
            let (track, arrival) = ([Track::Video, Track::Audio][index], next_us[index]);
            next_us[index] += [40_000, 21_333][index];
            let captured = arrival - [0, late_ms * 1_000][index];
            // The clock is set at the same captured moment for both.
            let own_us = if captured >= set_at { set_us } else { set_before_us };
            let own = Timestamp::from_millis((own_us + captured.cast_signed()) / 1_000);
            policy.place(track, own, start + Duration::from_micros(arrival));
            if captured > set_at + 5_000_000 {
                let apart = policy.apart_us(own);
                assert!(apart <= SYNC_LIMIT_US, "{apart} µs apart, set to {set_us}");
            }
        }
        let value = i32::from_be_bytes([step[1], step[2], step[3], step[4]]);
        set_before_us = set_us;
        let to_us = match step[0] & 3 {
            0 => i64::from(value) * 1_000,
            1 => set_us + i64::from(value >> 16) * 1_000,
            2 => -set_at.cast_signed(),
            _ => set_us + i64::from(value >> 20) * 1_000,
        };
        // At the limit one track may be raised while the other one steps, and a gap is no step, but may look like the
        // return from one.
        let step_us = to_us - set_us;
        let is_clear = !(-BACKWARD_US - 80_000..-BACKWARD_US).contains(&step_us)
            && !(1..GAP_LIMIT_US + 100_000).contains(&step_us);
        set_us = if is_clear { to_us } else { set_us };
        set_at = until;
    }
}

impl TimePolicy {
    /// How far apart the two tracks put one moment of the publisher's.
    fn apart_us(&self, own: Timestamp) -> u64 {
        let [video, audio] = self.tracks.map(|track| own.as_micros() + track.shift);
        video.abs_diff(audio)
    }
}
