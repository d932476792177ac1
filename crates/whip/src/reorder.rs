//! Derives decode time and composition time of frames that arrive in decoding order. Pure.
//!
//! Without B-frames the two times are equal. With them, a frame is decoded as many frames early as may overtake it. The
//! stream declares that number; if it does not, it is learnt from the first frame that goes back in time.

use headgate_media::Timestamp;

/// Least distance between two decode times: RTMP counts milliseconds.
const STEP_US: i64 = 1000;
/// A frame this much older than the newest one belongs to an earlier timeline.
const STALE_US: i64 = 1_000_000;
/// A depth that was learnt and that so many frames in a row did not need was a wrong timestamp's.
const UNUSED_LIMIT: u32 = 500;

/// The times of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTime {
    /// Never goes back.
    pub decode: Timestamp,
    /// Not before the decode time.
    pub shown: Timestamp,
}

impl FrameTime {
    /// From decode time to presentation time, in milliseconds of the timestamps as they are written; not negative.
    #[must_use]
    pub fn composition_ms(self) -> i32 {
        let milliseconds = |time: Timestamp| time.as_micros().div_euclid(1000);
        i32::try_from(milliseconds(self.shown) - milliseconds(self.decode)).unwrap_or(0)
    }
}

/// One track's decode times.
#[derive(Debug)]
pub struct Reorder {
    depth: usize,
    /// Presentation times that may still become decode times, ascending.
    window: Vec<i64>,
    last_decode: i64,
    /// The same, before it was raised to follow the one before: frames with equal times are in order.
    last_own: i64,
    is_undeclared: bool,
    declared: usize,
    /// The depth that frames needed since it was learnt or last looked at, and how many they were.
    needed: usize,
    frames: u32,
}

impl Default for Reorder {
    fn default() -> Self {
        Self {
            depth: 0,
            window: Vec::new(),
            last_decode: i64::MIN,
            last_own: i64::MIN,
            is_undeclared: false,
            declared: 0,
            needed: 0,
            frames: 0,
        }
    }
}

impl Reorder {
    /// Most frames that may overtake one.
    const DEPTH_LIMIT: usize = 16;

    /// A new decoder configuration begins; `declared` is the reorder depth it declares.
    pub fn configure(&mut self, declared: Option<u32>) {
        let declared = declared.and_then(|depth| usize::try_from(depth).ok());
        // A learnt depth stays valid for an encoder that does not declare it.
        let depth = declared.unwrap_or(0).min(Self::DEPTH_LIMIT);
        self.declared = depth;
        self.depth = if self.is_undeclared { self.depth.max(depth) } else { depth };
    }

    /// The times of the next frame in decoding order, to be presented at `shown`. If it would have to be decoded earlier
    /// than is still possible, it is presented as soon as it is decoded, and the next ones will be right; a disposable one
    /// is to be withheld: `None`.
    pub fn stamp(
        &mut self,
        shown: Timestamp,
        is_keyframe: bool,
        is_disposable: bool,
    ) -> Option<FrameTime> {
        let shown = shown.as_micros();
        if is_keyframe {
            self.window.retain(|waiting| shown - waiting < STALE_US);
        }
        if self.is_undeclared {
            self.note_overtaken(shown);
        }
        let at = self.window.partition_point(|waiting| *waiting <= shown);
        self.window.insert(at, shown);
        let missing = (self.depth + 1).saturating_sub(self.window.len());
        let earliest = match missing {
            0 => self.window.remove(0),
            // At the start of the stream the first frames are decoded slightly early.
            _ => self.window.first().copied().unwrap_or(shown) - missing as i64 * STEP_US,
        };
        // RTMP has no time before 0.
        let decode = earliest.max(self.last_decode.saturating_add(STEP_US)).max(0);
        if shown < self.last_own {
            // While the window fills up after the depth has grown, there is nothing new to learn.
            if missing == 0 {
                self.is_undeclared = true;
                self.depth = (self.depth + 1).min(Self::DEPTH_LIMIT);
                (self.needed, self.frames) = (0, 0);
            }
            if is_disposable {
                return None;
            }
        }
        (self.last_decode, self.last_own) = (decode, earliest.max(self.last_own));
        let shown = Timestamp::from_micros(shown.max(decode));
        Some(FrameTime { decode: Timestamp::from_micros(decode), shown })
    }

    /// Notes how many frames before it one overtakes: forgets a learnt depth that is not needed.
    #[cold]
    fn note_overtaken(&mut self, shown: i64) {
        let overtaken = self.window.iter().filter(|waiting| **waiting > shown).count();
        (self.needed, self.frames) = (self.needed.max(overtaken), self.frames + 1);
        if self.frames < UNUSED_LIMIT {
            return;
        }
        let depth = self.needed.clamp(self.declared, self.depth);
        self.window.drain(..(self.depth - depth).min(self.window.len()));
        (self.depth, self.is_undeclared) = (depth, depth > self.declared);
        (self.needed, self.frames) = (0, 0);
    }

    /// How many frames may overtake one.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the stream reorders more than it declares.
    #[must_use]
    pub const fn is_undeclared(&self) -> bool {
        self.is_undeclared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presentation times in frames of 40 ms, in decoding order → decode and presentation times in milliseconds, `None`
    /// if withheld.
    fn run(reorder: &mut Reorder, shown: &[i64]) -> Vec<Option<(i64, i64)>> {
        let stamp = |(n, frame): (usize, &i64)| {
            let time = reorder.stamp(Timestamp::from_millis(frame * 40 + 1000), n == 0, n > 0)?;
            let decode = time.decode.as_millis() - 1000;
            Some((decode, decode + i64::from(time.composition_ms())))
        };
        shown.iter().enumerate().map(stamp).collect()
    }

    #[test]
    fn frames_in_order_have_equal_decode_and_presentation_times() {
        let times = run(&mut Reorder::default(), &[0, 1, 2, 4]);
        assert_eq!(times, [(0, 0), (40, 40), (80, 80), (160, 160)].map(Some));
    }

    #[test]
    fn declared_b_frames_keep_their_exact_presentation_times() {
        for (depth, shown) in [
            (1, &[0, 3, 1, 2, 6, 4, 5, 9, 7, 8][..]),
            (2, &[0, 4, 2, 1, 3, 8, 6, 5, 7, 12][..]),
            (1, &[0, 2, 1, 4, 3, 6, 5][..]),
        ] {
            let mut reorder = Reorder::default();
            reorder.configure(Some(depth));
            let times: Vec<_> = run(&mut reorder, shown).into_iter().flatten().collect();
            assert_eq!(times.len(), shown.len());
            for (time, frame) in times.iter().zip(shown) {
                assert_eq!(time.1, frame * 40, "{times:?}");
                assert!(time.0 <= time.1);
            }
            assert!(times.windows(2).all(|pair| pair[0].0 < pair[1].0), "{times:?}");
            assert!(!reorder.is_undeclared());
        }
    }

    #[test]
    fn frames_whose_time_stands_still_are_in_order() {
        for depth in [0, 1, 2] {
            let mut reorder = Reorder::default();
            reorder.configure(Some(depth));
            let shown: Vec<_> = (0..5).chain([5; 20]).chain(6..20).collect();
            let times = run(&mut reorder, &shown);
            assert_eq!(times.iter().flatten().count(), shown.len(), "{depth}");
            let decoded = |pair: &[Option<(i64, i64)>]| {
                pair[0].map(|time| time.0) < pair[1].map(|time| time.0)
            };
            assert!(times.windows(2).all(decoded), "{times:?}");
            assert!(!reorder.is_undeclared() && reorder.depth() == depth as usize);
        }
    }

    #[test]
    fn decode_times_are_never_negative() {
        let mut reorder = Reorder::default();
        reorder.configure(Some(2));
        for (n, shown) in [0, 160, 80, 40, 120].into_iter().enumerate() {
            let time =
                reorder.stamp(Timestamp::from_millis(shown), n == 0, n > 0).expect("in time");
            let decode = time.decode.as_millis();
            assert!(decode >= 0 && decode + i64::from(time.composition_ms()) == shown);
        }
    }

    #[test]
    fn undeclared_b_frames_are_withheld_once_and_then_expected() {
        let mut reorder = Reorder::default();
        reorder.configure(None);
        let shown = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8];
        let times = run(&mut reorder, &shown);
        assert!(reorder.is_undeclared());
        assert!(times.iter().filter(|time| time.is_none()).count() <= 2, "{times:?}");
        let kept: Vec<_> =
            times.iter().zip(&shown).filter_map(|(t, f)| Some((*t.as_ref()?, f))).collect();
        for ((decode, composed), frame) in &kept {
            assert_eq!(*composed, **frame * 40);
            assert!(decode <= composed);
        }
        assert!(kept.windows(2).all(|pair| pair[0].0.0 < pair[1].0.0));
    }

    #[test]
    fn a_depth_that_a_wrong_time_taught_is_forgotten_and_one_that_is_used_is_not() {
        let mut reorder = Reorder::default();
        reorder.configure(None);
        for (off, at) in [(8, 100), (-20, 900), (1, 1_700)] {
            for n in (at - 100)..(at + 700) {
                let shown = Timestamp::from_millis(40 * (n + if n == at { off } else { 0 }));
                let time = reorder.stamp(shown, n == 0, false).expect("no frame is disposable");
                if n > at + 600 {
                    assert_eq!(time, FrameTime { decode: shown, shown }, "{off} at {n}");
                }
            }
            assert!(!reorder.is_undeclared() && reorder.depth() == 0);
        }
        let mut times = Vec::new();
        for n in (3_000..9_000).step_by(3) {
            for frame in [n, n + 2, n + 1] {
                let shown = Timestamp::from_millis(40 * frame);
                times.extend(reorder.stamp(shown, n == 0, frame == n + 1));
            }
        }
        assert!(times.len() >= 5_999 && reorder.depth() == 1);
        assert!(times.windows(2).all(|pair| pair[0].decode < pair[1].decode));
    }

    #[test]
    fn waiting_frames_a_second_older_are_forgotten() {
        for (keyframe, decode) in [(999, -1), (1_000, 998)] {
            let mut reorder = Reorder::default();
            reorder.configure(Some(1));
            let mut stamp = |millis: i64, is_keyframe| {
                let shown = Timestamp::from_millis(1_000 + millis);
                reorder.stamp(shown, is_keyframe, false).map(|time| time.decode.as_millis() - 1_000)
            };
            // The first frame is decoded slightly early, as at the start of a stream; after it one frame still waits.
            assert_eq!(stamp(0, true), Some(-1));
            assert_eq!(stamp(keyframe, true), Some(if decode < 0 { 0 } else { 999 }));
        }
    }

    #[test]
    fn frames_that_waited_before_a_gap_do_not_delay_those_after_it() {
        let mut reorder = Reorder::default();
        reorder.configure(Some(2));
        run(&mut reorder, &[0, 4, 2, 1, 3]);
        let times = run(&mut reorder, &[100, 104, 102]);
        assert!(times[0].is_some_and(|(decode, shown)| shown == 4000 && decode >= 3990));
    }
}
