use super::*;

/// Numbers that are spread evenly and repeatable.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Pictures in the order in which they are shown, from a sender that stands still and catches up, over a network that
/// does the same and loses some, with or without jumps of its clock: calls `seen` with arrival and position of each.
fn starved(seed: u64, has_jumps: bool, mut seen: impl FnMut(i64, i64)) {
    let (mut numbers, mut clock) = (Numbers(seed), TrackClock::of_video());
    let mut counts = IrregularityCounts::default();
    let (mut rtp, mut sent, mut ready, mut arrival) = (numbers.below(1 << 32) as u32, 0, 0, 0);
    for _ in 0..1_500 {
        let lost = if numbers.below(80) == 0 { numbers.below(40) as u32 } else { 0 };
        rtp = rtp.wrapping_add(3_600 * (1 + lost));
        if has_jumps && numbers.below(200) == 0 {
            rtp = rtp.wrapping_add(match numbers.below(3) {
                0 => numbers.below(1 << 32) as u32,
                1 => 90 * 700,
                _ => 90_000 * 60,
            });
        }
        ready += 40 * MILLI_US * (1 + i64::from(lost));
        let stops = if numbers.below(60) == 0 { numbers.below(3_000) as i64 } else { 0 };
        sent = (sent + (2 + stops) * MILLI_US).max(ready);
        let delay = if numbers.below(90) == 0 { numbers.below(1_500) } else { numbers.below(30) };
        arrival = (sent + delay as i64 * MILLI_US).max(arrival + 300);
        let is_other_on_time = numbers.below(2) == 0;
        let position = clock.map(arrival, (1, rtp), is_other_on_time, &mut counts);
        seen(arrival, position);
    }
}

#[test]
fn what_is_shown_in_order_keeps_its_order() {
    for seed in 0..100 {
        let mut last = i64::MIN;
        starved(seed, seed % 2 == 1, |_, position| {
            assert!(position >= last, "seed {seed}: {last} is followed by {position}");
            last = position;
        });
    }
}
