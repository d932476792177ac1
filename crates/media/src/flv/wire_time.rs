//! FLV's 32-bit millisecond timestamps as times without an end. Pure.
//!
//! A timestamp stands for the time nearest to a known one of its publisher: a step of less than 2^30 ms (12 days) in
//! either direction is never taken for a wrap, and a small negative number is one, with 32 bits or with 31.

use crate::Timestamp;

/// RTMP's own wrap is at 2^32 (RTMP 1.0 5.3.1.2), after 49.7 days. Encoders derived from FLV (OBS, ffmpeg) mask the top
/// bit and wrap here, after 24.9 days; the nearest time by this wrap is also the nearest by the other.
const WRAP: i64 = 1 << 31;
/// Encoders that only write the 24 bits without the extension wrap here, after 4.66 hours.
const SHORT_WRAP: i64 = 1 << 24;
/// The longest step across a wrap at 24 bits; a clock that is further away has restarted.
const SHORT_STEP_LIMIT: i64 = 10_000;
/// A publisher that begins less than this below zero begins with a negative number.
const NEGATIVE_LIMIT: i64 = 10_000;

/// What is known of one publisher's wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireTime {
    /// A timestamp had more than 24 bits.
    pub is_long: bool,
}

impl WireTime {
    /// The time nearest to `newest`, in milliseconds, that `wire` can stand for.
    pub fn extend(&mut self, wire: u32, newest: Option<Timestamp>) -> Timestamp {
        let wire = i64::from(wire);
        let Some(newest) = newest.map(Timestamp::as_millis) else {
            self.is_long |= wire >= SHORT_WRAP && first(wire) >= 0;
            return Timestamp::from_millis(first(wire));
        };
        let time = nearest(wire, newest, WRAP);
        self.is_long |= wire >= SHORT_WRAP && time >= 0;
        if self.is_long {
            return Timestamp::from_millis(time);
        }
        let short = nearest(wire, newest, SHORT_WRAP);
        let is_near = short.abs_diff(newest) <= SHORT_STEP_LIMIT.unsigned_abs();
        Timestamp::from_millis(if is_near { short } else { time })
    }
}

/// The time of a publisher's first timestamp.
const fn first(wire: i64) -> i64 {
    // Below 2^32, or with the top bit masked below 2^31.
    let negative = wire % WRAP - WRAP;
    if negative >= -NEGATIVE_LIMIT { negative } else { wire }
}

const fn nearest(wire: i64, newest: i64, wrap: i64) -> i64 {
    let ahead = wire.saturating_sub(newest).rem_euclid(wrap);
    newest.saturating_add(if ahead < wrap / 2 { ahead } else { ahead - wrap })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wires: &[u32]) -> Vec<i64> {
        let (mut wire_time, mut newest) = (WireTime::default(), None);
        let extend = |wire: &u32| {
            newest = Some(wire_time.extend(*wire, newest));
            newest.map_or(0, Timestamp::as_millis)
        };
        wires.iter().map(extend).collect()
    }

    #[test]
    fn ordinary_time_passes_through() {
        assert_eq!(run(&[0, 40, 80, 60]), [0, 40, 80, 60]);
        assert_eq!(run(&[16_777_200, 16_777_230]), [16_777_200, 16_777_230]);
        assert_eq!(run(&[3_000_000_000, 3_000_000_040]), [3_000_000_000, 3_000_000_040]);
    }

    #[test]
    fn small_negative_numbers_are_negative_with_32_and_with_31_bits() {
        for top in [0, 1 << 31] {
            let wire = |millis: i32| millis.cast_unsigned() & 0x7fff_ffff | top;
            assert_eq!(run(&[wire(-80), wire(-57), 20]), [-80, -57, 20]);
            assert_eq!(run(&[wire(-9_000), 31]), [-9_000, 31]);
            assert_eq!(run(&[40, wire(-265), wire(-242), 80]), [40, -265, -242, 80]);
        }
    }

    #[test]
    fn time_continues_across_wraps_at_31_and_32_bits_and_late_frames_stay_before_them() {
        let (day_24, day_49) = (0x7fff_0000, 0xffff_0000);
        assert_eq!(run(&[day_24, 0x10, day_24]), [0x7fff_0000, 0x8000_0010, 0x7fff_0000]);
        assert_eq!(run(&[day_49, 0x10, 0x20]), [0xffff_0000, 0x1_0000_0010, 0x1_0000_0020]);
        assert_eq!(run(&[day_49, 0x10, day_49]), [0xffff_0000, 0x1_0000_0010, 0xffff_0000]);
        let day_50 = [day_24, 0x10, 0x3000_0000, 0x6000_0000, 0x7fff_fff0, 0x10];
        let want = [0x7fff_0000, 0x8000_0010, 0xb000_0000, 0xe000_0000, 0xffff_fff0, 0x1_0000_0010];
        assert_eq!(run(&day_50), want);
    }

    #[test]
    fn time_continues_across_every_wrap_of_a_publisher_with_24_bits() {
        let around = [16_777_200, 16_777_215, 24, 4_000_000, 11_000_000, 16_777_000, 5];
        let want =
            [16_777_200, 16_777_215, 16_777_240, 20_777_216, 27_777_216, 33_554_216, 33_554_437];
        let mut wire_time = WireTime::default();
        let mut newest = None;
        for (wire, want) in around.into_iter().zip(want) {
            // Between those, time passed unseen.
            newest = Some(wire_time.extend(wire, newest.map(|_| Timestamp::from_millis(want - 9))));
            assert_eq!(newest.map(Timestamp::as_millis), Some(want));
        }
        assert_eq!(run(&[20_000_000, 0]), [20_000_000, 0], "it has more bits");
        assert_eq!(run(&[15_000_000, 0]), [15_000_000, 0], "it restarted");
    }
}
