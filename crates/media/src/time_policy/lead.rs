//! How far the media runs ahead of its arrival, at most: what arrives late, after an outage for example, runs less far
//! ahead, so that the time passed accounts for any step up to here.

/// A lead is remembered for one to two of these, if media arrives meanwhile: clocks drift.
const WINDOW_US: i64 = 60_000_000;

/// The largest lead of the current window and of the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lead {
    pub(super) windows: Option<[i64; 2]>,
    pub(super) since: i64,
}

impl Lead {
    /// Notes a sound timestamp and its arrival.
    pub(super) fn note(&mut self, at: i64, arrival: i64) {
        let lead = at.saturating_sub(arrival);
        match &mut self.windows {
            Some([newest, before]) => {
                *newest = lead.max(*newest);
                if arrival - self.since >= WINDOW_US {
                    (*before, *newest, self.since) = (*newest, lead, arrival);
                }
            }
            None => (self.windows, self.since) = (Some([lead; 2]), arrival),
        }
    }

    /// The latest timestamp that the time passed accounts for.
    pub(super) fn position(&self, arrival: i64) -> i64 {
        let lead = self.windows.map_or(0, |[newest, before]| newest.max(before));
        arrival.saturating_add(lead)
    }
}
