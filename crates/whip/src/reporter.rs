//! When the sender is told what: requests at once, arrivals every 100 ms, reports every second. Pure.

use std::time::{Duration, Instant};

use crate::audio::AudioTrack;
use crate::receiver::Receiver;
use crate::transport::feedback::{Arrivals, Compound};
use crate::video::VideoTrack;

/// Browsers estimate the bandwidth from this; they expect it between 50 and 250 ms.
const ARRIVALS_PAUSE: Duration = Duration::from_millis(100);
/// Receiver reports.
const REPORT_PAUSE: Duration = Duration::from_secs(1);
/// What a sender without a limit is told, bit/s.
const UNLIMITED_BITS: u64 = 100_000_000;

/// One session's RTCP.
pub(crate) struct Reporter {
    ssrc: u32,
    arrivals: Option<Arrivals>,
    /// The sender reads REMB.
    has_remb: bool,
    /// What it is told to stay below, bit/s; `None`: nothing is said.
    bitrate_limit: Option<u64>,
    arrivals_of: u32,
    arrivals_at: Instant,
    report_at: Instant,
}

impl Reporter {
    /// `ssrc`: our own id; `has_transport_cc`: the offer asked for arrivals; `has_remb`: it asked for REMB.
    #[must_use]
    pub(crate) fn new(ssrc: u32, has_transport_cc: bool, has_remb: bool, now: Instant) -> Self {
        Self {
            ssrc,
            arrivals: has_transport_cc.then(|| Arrivals::new(now)),
            has_remb,
            bitrate_limit: None,
            arrivals_of: 0,
            arrivals_at: now + ARRIVALS_PAUSE,
            report_at: now + REPORT_PAUSE,
        }
    }

    /// From the next report on the sender is told to stay below `kbps`; 0 is no limit.
    pub(crate) fn limit_bitrate(&mut self, kbps: u32) {
        let is_told = self.has_remb && (self.arrivals.is_none() || self.bitrate_limit.is_some());
        self.bitrate_limit = match kbps {
            // Unlimited is said, too: a sender that hears nothing else stays where it is.
            0 => is_told.then_some(UNLIMITED_BITS),
            kbps => self.has_remb.then_some(u64::from(kbps) * 1000),
        };
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
        let keyframe_of = video.as_mut().and_then(|video| video.poll_pli(now));
        let mut nacks: Vec<(u32, Vec<u16>)> = Vec::new();
        for receiver in receivers(&mut video, &mut audio) {
            let Some(ssrc) = receiver.ssrc() else { continue };
            let mut sequences = Vec::new();
            receiver.poll_nack(now, &mut sequences);
            if !sequences.is_empty() {
                nacks.push((ssrc, sequences));
            }
        }
        let has_arrivals = now >= self.arrivals_at
            && self.arrivals.as_ref().is_some_and(|arrivals| !arrivals.is_empty());
        let is_due = now >= self.report_at;
        let has_requests = keyframe_of.is_some() || !nacks.is_empty();
        if !is_due && !has_arrivals && !has_requests {
            return None;
        }
        let mut receptions = Vec::new();
        if is_due {
            self.report_at = now + REPORT_PAUSE;
            receptions.extend(
                receivers(&mut video, &mut audio).filter_map(|receiver| receiver.reception(now)),
            );
        }
        let mut compound = Compound::new(self.ssrc, &receptions);
        for (ssrc, sequences) in &nacks {
            compound.put_nack(*ssrc, sequences);
        }
        if let Some(ssrc) = keyframe_of {
            compound.put_pli(ssrc);
        }
        if let Some(bitrate) = self.bitrate_limit.filter(|_| is_due) {
            let of: Vec<u32> = receptions.iter().map(|of| of.ssrc).collect();
            compound.put_remb(bitrate, &of);
        }
        if has_arrivals && let Some(arrivals) = &mut self.arrivals {
            self.arrivals_at = now + ARRIVALS_PAUSE;
            compound.put_arrivals(self.arrivals_of, arrivals);
        }
        Some(compound)
    }
}

/// Every sender of the session.
fn receivers<'a>(
    video: &'a mut Option<&mut VideoTrack>,
    audio: &'a mut Option<&mut AudioTrack>,
) -> impl Iterator<Item = &'a mut Receiver> {
    let video = video.iter_mut().flat_map(|video| video.layers_mut());
    let audio = audio.iter_mut().map(|audio| &mut audio.receiver);
    video.map(|layer| &mut layer.receiver).chain(audio)
}
