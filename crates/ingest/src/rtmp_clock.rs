//! RTMP's 32-bit milliseconds extended to one 64-bit clock. Pure.

use headgate_media::Timestamp;

/// Half the smaller wrap: a step further than this is a wrap, anything nearer is taken as it is.
const HALF_WRAP: i64 = 1 << 30;
/// FLV-derived encoders (OBS, ffmpeg) mask the top bit and wrap here: after 24.9 days.
const WRAP_31: i64 = 1 << 31;
/// RTMP's own wrap (RTMP 1.0 5.3.1.2): after 49.7 days.
const WRAP_32: i64 = 1 << 32;

/// One track's clock. The broadcaster's timestamps are extended, never rewritten.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RtmpClock {
    newest: Option<i64>,
}

impl RtmpClock {
    /// The 64-bit time nearest to the track's newest one that `wire` can mean.
    pub(crate) fn unwrap(&mut self, wire: u32) -> Timestamp {
        let wire = i64::from(wire);
        let Some(newest) = self.newest else {
            self.newest = Some(wire);
            return Timestamp::from_millis(wire);
        };
        let base = newest.div_euclid(WRAP_32) * WRAP_32;
        let plain = base + wire;
        let millis = if (plain - newest).abs() <= HALF_WRAP {
            plain
        } else {
            // Far from the newest: the candidates are one wrap of either kind away.
            [plain, plain + WRAP_31, plain + WRAP_32, plain - WRAP_32]
                .into_iter()
                .filter(|candidate| *candidate >= 0)
                .min_by_key(|candidate| (candidate - newest).abs())
                .unwrap_or(plain)
        };
        self.newest = Some(millis.max(newest));
        Timestamp::from_millis(millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wire: &[u32]) -> Vec<i64> {
        let mut clock = RtmpClock::default();
        wire.iter().map(|w| clock.unwrap(*w).as_millis()).collect()
    }

    #[test]
    fn ordinary_time_passes_through() {
        assert_eq!(run(&[0, 40, 80, 60]), [0, 40, 80, 60]);
        assert_eq!(run(&[16_777_200, 16_777_230]), [16_777_200, 16_777_230]);
    }

    #[test]
    fn wraps_at_31_bits_go_on() {
        assert_eq!(run(&[0x7fff_fff0, 0x0000_0010]), [0x7fff_fff0, 0x8000_0010]);
    }

    #[test]
    fn wraps_at_32_bits_go_on() {
        assert_eq!(
            run(&[0xffff_fff0, 0x0000_0010, 0x20]),
            [0xffff_fff0, 0x1_0000_0010, 0x1_0000_0020]
        );
    }

    #[test]
    fn a_late_packet_across_the_wrap_stays_before_it() {
        assert_eq!(
            run(&[0xffff_fff0, 0x10, 0xffff_fff8]),
            [0xffff_fff0, 0x1_0000_0010, 0xffff_fff8]
        );
    }

    #[test]
    fn headers_at_zero_do_not_move_the_clock_of_a_late_start() {
        assert_eq!(run(&[0, 2_000_000]), [0, 2_000_000]);
    }
}
