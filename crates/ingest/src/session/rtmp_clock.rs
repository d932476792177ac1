//! Extends RTMP's 32-bit millisecond timestamps to a 64-bit clock.

use headgate_media::Timestamp;

/// Encoders derived from FLV (OBS, ffmpeg) mask the top bit and wrap here, after 24.9 days.
const WRAP_31: i64 = 1 << 31;
/// RTMP's own wrap (RTMP 1.0 5.3.1.2): after 49.7 days.
const WRAP_32: i64 = 1 << 32;
/// The tracks of one broadcaster start less than this apart.
const TRACKS_APART: i64 = 60_000;

/// One track's clock. The broadcaster's timestamps are extended, never rewritten.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RtmpClock {
    newest: Option<i64>,
}

impl RtmpClock {
    /// Nine bytes: a flag whether there is a newest timestamp, and that timestamp.
    pub(crate) fn to_bytes(self) -> [u8; 9] {
        let mut bytes = [0; 9];
        if let Some(newest) = self.newest {
            bytes[0] = 1;
            bytes[1..].copy_from_slice(&newest.to_be_bytes());
        }
        bytes
    }

    /// Reads them. An impossible timestamp is treated as none.
    pub(crate) fn read(bytes: [u8; 9]) -> Self {
        let [has, rest @ ..] = bytes;
        let newest = i64::from_be_bytes(rest);
        let is_possible = has == 1 && (0..1 << 48).contains(&newest);
        Self { newest: is_possible.then_some(newest) }
    }

    /// The 64-bit timestamp nearest to the track's newest one that `wire` can stand for. A track without frames that
    /// starts close to `other`, which has already wrapped, starts after that wrap.
    pub(crate) fn unwrap(&mut self, wire: u32, other: &Self) -> Timestamp {
        let beside = |newest: &i64| (nearest(wire, *newest) - newest).abs() <= TRACKS_APART;
        let newest = self.newest.or(other.newest.filter(beside));
        let millis = newest.map_or(i64::from(wire), |newest| nearest(wire, newest));
        self.newest = self.newest.max(Some(millis));
        Timestamp::from_millis(millis)
    }
}

/// `wire` can stand for its place in the current 32 bits or for one that is a wrap of either kind away from it; the
/// nearest counts. A step of less than 2^30 ms (12 days) in either direction is thus never taken for a wrap.
fn nearest(wire: u32, newest: i64) -> i64 {
    let plain = newest.div_euclid(WRAP_32) * WRAP_32 + i64::from(wire);
    [plain, plain + WRAP_31, plain - WRAP_31, plain + WRAP_32, plain - WRAP_32]
        .into_iter()
        .filter(|candidate| *candidate >= 0)
        .min_by_key(|candidate| (candidate - newest).abs())
        .unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(wire: &[u32]) -> Vec<i64> {
        let mut clock = RtmpClock::default();
        wire.iter().map(|w| clock.unwrap(*w, &RtmpClock::default()).as_millis()).collect()
    }

    #[test]
    fn ordinary_time_passes_through() {
        assert_eq!(run(&[0, 40, 80, 60]), [0, 40, 80, 60]);
        assert_eq!(run(&[16_777_200, 16_777_230]), [16_777_200, 16_777_230]);
    }

    #[test]
    fn time_continues_across_a_wrap_at_31_bits() {
        assert_eq!(run(&[0x7fff_fff0, 0x0000_0010]), [0x7fff_fff0, 0x8000_0010]);
    }

    #[test]
    fn time_continues_across_a_wrap_at_32_bits() {
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
    fn a_late_packet_across_a_second_wrap_at_31_bits_stays_before_it() {
        let day_50 = [0x7fff_fff0, 0x10, 0x4000_0000, 0x7fff_fff0, 0x10, 0x7fff_fff8];
        let want = [0x7fff_fff0, 0x8000_0010, 0xc000_0000, 0xffff_fff0, 0x1_0000_0010, 0xffff_fff8];
        assert_eq!(run(&day_50), want);
    }

    #[test]
    fn a_track_that_starts_after_a_wrap_starts_beside_the_other() {
        for (wires, want) in [
            ([0x7fff_fff0, 0x10], 0x8000_0010),
            ([0xffff_fff0, 0x10], 0x1_0000_0010),
            ([0x10, 0xffff_fff0], 0xffff_fff0),
            ([5000, 4000], 4000),
            ([0, 3_000_000_000], 3_000_000_000),
        ] {
            let (mut audio, mut video) = (RtmpClock::default(), RtmpClock::default());
            audio.unwrap(wires[0], &video);
            assert_eq!(video.unwrap(wires[1], &audio).as_millis(), want, "{wires:x?}");
        }
    }

    #[test]
    fn headers_at_zero_do_not_move_the_clock_of_a_late_start() {
        assert_eq!(run(&[0, 2_000_000]), [0, 2_000_000]);
    }
}
