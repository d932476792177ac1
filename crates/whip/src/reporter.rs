//! When the sender is told what: requests at once, arrivals every 100 ms, reports every second. Pure.

use std::time::{Duration, Instant};

use crate::tracks::{AudioTrack, VideoTrack};
use crate::transport::feedback::{Arrivals, Compound};

/// Browsers estimate the bandwidth from this; they expect it between 50 and 250 ms.
const ARRIVALS_PAUSE: Duration = Duration::from_millis(100);
/// Receiver reports.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// One session's RTCP.
pub(crate) struct Reporter {
    ssrc: u32,
    arrivals: Option<Arrivals>,
    arrivals_of: u32,
    arrivals_at: Instant,
    report_at: Instant,
}

impl Reporter {
    /// `ssrc`: our own id; `has_transport_cc`: the offer asked for arrivals.
    #[must_use]
    pub(crate) fn new(ssrc: u32, has_transport_cc: bool, now: Instant) -> Self {
        Self {
            ssrc,
            arrivals: has_transport_cc.then(|| Arrivals::new(now)),
            arrivals_of: 0,
            arrivals_at: now + ARRIVALS_PAUSE,
            report_at: now + REPORT_PAUSE,
        }
    }

    /// A packet with a transport-wide sequence number came.
    pub(crate) fn note_arrival(&mut self, now: Instant, ssrc: u32, sequence: u16) {
        if let Some(arrivals) = &mut self.arrivals {
            self.arrivals_of = ssrc;
            arrivals.note(now, sequence);
        }
    }

    /// When the next regular report is due; requests come when the tracks say so.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Instant {
        let arrivals = self.arrivals.as_ref().filter(|arrivals| !arrivals.is_empty());
        arrivals.map_or(self.report_at, |_| self.arrivals_at.min(self.report_at))
    }

    /// What to send now, if anything.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        mut video: Option<&mut VideoTrack>,
        mut audio: Option<&mut AudioTrack>,
    ) -> Option<Compound> {
        let (mut video_nack, mut audio_nack) = (Vec::new(), Vec::new());
        let mut wants_keyframe = false;
        if let Some(video) = &mut video {
            video.receiver.poll_nack(now, &mut video_nack);
            wants_keyframe = video.receiver.ssrc().is_some() && video.poll_pli(now);
        }
        if let Some(audio) = &mut audio {
            audio.receiver.poll_nack(now, &mut audio_nack);
        }
        let has_arrivals = now >= self.arrivals_at
            && self.arrivals.as_ref().is_some_and(|arrivals| !arrivals.is_empty());
        let is_due = now >= self.report_at;
        let has_requests = wants_keyframe || !video_nack.is_empty() || !audio_nack.is_empty();
        if !is_due && !has_arrivals && !has_requests {
            return None;
        }
        let mut receptions = Vec::new();
        if is_due {
            self.report_at = now + REPORT_PAUSE;
            receptions.extend(video.as_mut().and_then(|video| video.receiver.reception(now)));
            receptions.extend(audio.as_mut().and_then(|audio| audio.receiver.reception(now)));
        }
        let mut compound = Compound::new(self.ssrc, &receptions);
        if let Some(ssrc) = video.as_ref().and_then(|video| video.receiver.ssrc()) {
            compound.put_nack(ssrc, &video_nack);
            if wants_keyframe {
                compound.put_pli(ssrc);
            }
        }
        if let Some(ssrc) = audio.as_ref().and_then(|audio| audio.receiver.ssrc()) {
            compound.put_nack(ssrc, &audio_nack);
        }
        if has_arrivals && let Some(arrivals) = &mut self.arrivals {
            self.arrivals_at = now + ARRIVALS_PAUSE;
            compound.put_arrivals(self.arrivals_of, arrivals);
        }
        Some(compound)
    }
}
