//! Notices that a stream's audio has stopped while its video continues. Pure: time is an argument.

use std::time::{Duration, Instant};

use headgate_media::Timestamp;

/// Audio that is missing for this long beside video has paused.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);

/// The video since the newest audio. What arrives at once after an outage is no pause: both clocks must have advanced,
/// by the video frame before the current one, because audio may follow the first one after an outage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AudioPause {
    first: Option<(Instant, Timestamp)>,
    newest: Option<(Instant, Timestamp)>,
}

impl AudioPause {
    /// Audio has come.
    pub(crate) const fn note_audio(&mut self) {
        (self.first, self.newest) = (None, None);
    }

    /// A video frame has come: whether the audio had paused before it.
    pub(crate) fn note_video(&mut self, timestamp: Timestamp, now: Instant) -> bool {
        let has_paused = self.has_paused();
        self.first.get_or_insert((now, timestamp));
        self.newest = Some((now, timestamp));
        has_paused
    }

    /// Timestamp of the first video frame after the newest audio.
    pub(crate) fn began(&self) -> Option<Timestamp> {
        self.first.map(|(_, first)| first)
    }

    fn has_paused(&self) -> bool {
        let (Some((since, first)), Some((now, newest))) = (self.first, self.newest) else {
            return false;
        };
        let elapsed = newest.as_micros().saturating_sub(first.as_micros());
        let elapsed = Duration::from_micros(u64::try_from(elapsed).unwrap_or(0));
        now >= since + PAUSE_LIMIT && elapsed >= PAUSE_LIMIT
    }
}
