//! Delays of any number of units in a fixed amount of memory: exact below half a millisecond, then within 0.4 %.

use std::time::Duration;

/// Values below this have a bucket each; above it every power of two has half as many.
const LINEAR: u64 = 512;
const STEPS: u64 = LINEAR / 2;
/// The largest value in microseconds: two hours, longer than any run.
const LARGEST: u64 = 7_200_000_000;

/// Counts of values in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    most_us: u64,
}

/// What is printed of a histogram, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) most_us: u64,
}

impl Histogram {
    pub(crate) fn note(&mut self, value: Duration) {
        let us = u64::try_from(value.as_micros()).unwrap_or(LARGEST).min(LARGEST);
        let bucket = bucket_of(us);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(found) = self.buckets.get_mut(bucket) {
            *found += 1;
        }
        self.count += 1;
        self.most_us = self.most_us.max(us);
    }

    pub(crate) fn percentiles(&self) -> Percentiles {
        Percentiles { p50_us: self.at(50), p99_us: self.at(99), most_us: self.most_us }
    }

    /// The smallest value that `percent` of all do not exceed.
    fn at(&self, percent: u64) -> u64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let found = self.buckets.iter().position(|bucket| {
            passed += bucket;
            passed >= rank
        });
        found.map_or(0, lowest_of)
    }
}

fn bucket_of(us: u64) -> usize {
    let shift = us.checked_ilog2().unwrap_or(0).saturating_sub(LINEAR.ilog2() - 1);
    usize::try_from(u64::from(shift) * STEPS + (us >> shift)).unwrap_or(usize::MAX)
}

fn lowest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    (bucket - shift * STEPS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_previous_one_ends() {
        let mut last = 0;
        for bucket in 1..6_000 {
            let lowest = lowest_of(bucket);
            assert_eq!((bucket_of(lowest), bucket_of(lowest - 1)), (bucket, bucket - 1));
            assert!(lowest - last <= 1 + last / 250, "{last} to {lowest}");
            last = lowest;
        }
    }

    #[test]
    fn percentiles_of_a_hundred_values_are_their_ranks() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentiles(), Percentiles::default());
        for us in (1..=100).rev() {
            histogram.note(Duration::from_micros(us));
        }
        assert_eq!(histogram.percentiles(), Percentiles { p50_us: 50, p99_us: 99, most_us: 100 });
    }
}
