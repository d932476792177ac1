//! Pictures as Chromium sends them: their sizes, and how its pacer spreads their packets over time. Recorded from a
//! broadcast of 720p25 (`test/repository/chromium-packets.test.ts` records it again), and repeated.

use std::io;
use std::time::Duration;

/// One picture a line: `K` or `P`, then for each packet its delay after the first in µs and its payload bytes.
const RECORDED: &str = include_str!("../recordings/chromium-720p.txt");
/// The smallest picture: room for headers and a stamp.
const SMALLEST: usize = 64;

/// One picture.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) is_key: bool,
    /// Total size of its NAL units.
    pub(crate) bytes: usize,
    /// Delay of each packet after the first.
    delays: Vec<Duration>,
}

/// The pictures of some seconds, the first of them a keyframe.
pub(crate) struct Recording {
    pictures: Vec<Picture>,
}

impl Recording {
    pub(crate) fn read() -> io::Result<Self> {
        let pictures: Option<Vec<_>> = RECORDED.lines().map(Picture::parse).collect();
        match pictures {
            Some(pictures) if pictures.first().is_some_and(|first| first.is_key) => {
                Ok(Self { pictures })
            }
            _ => Err(io::Error::other("the recording of Chromium is damaged")),
        }
    }

    /// The picture of this number; after the last one the recording repeats.
    pub(crate) fn picture(&self, number: u32) -> Option<&Picture> {
        self.pictures.get(number as usize % self.pictures.len().max(1))
    }
}

impl Picture {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let is_key = words.next()? == "K";
        let (mut bytes, mut delays) = (0, Vec::new());
        for word in words {
            let (delay, length) = word.split_once(':')?;
            delays.push(Duration::from_micros(delay.parse().ok()?));
            bytes += length.parse::<usize>().ok()?;
        }
        Some(Self { is_key, bytes: bytes.max(SMALLEST), delays })
    }

    /// Delay of packet `at` of `count` after the first; the sender may have used more or fewer packets than recorded.
    pub(crate) fn delay(&self, at: usize, count: usize) -> Duration {
        let place = at * self.delays.len() / count.max(1);
        self.delays.get(place).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_about_two_megabits_per_second_and_has_keyframes() {
        let recording = Recording::read().expect("whole");
        let bytes: usize = recording.pictures.iter().map(|picture| picture.bytes).sum();
        let kbps = bytes * 8 * 25 / recording.pictures.len() / 1_000;
        assert!((1_500..3_500).contains(&kbps), "{kbps} kbit/s");
        let keys = recording.pictures.iter().filter(|picture| picture.is_key).count();
        assert!(keys >= 2, "{keys} keyframes");
    }

    #[test]
    fn packets_keep_the_recorded_delays_whatever_their_number() {
        let picture = Picture::parse("P 0:1100 10:1100 5000:1100 5010:200").expect("valid");
        assert_eq!((picture.is_key, picture.bytes), (false, 3_500));
        let delays = |count| -> Vec<u128> {
            (0..count).map(|at| picture.delay(at, count).as_micros()).collect()
        };
        assert_eq!(delays(4), [0, 10, 5_000, 5_010]);
        assert_eq!(delays(2), [0, 5_000]);
        assert_eq!(delays(5), [0, 0, 10, 5_000, 5_010]);
    }
}
