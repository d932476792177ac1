//! When each kind of RTCP is sent: requests immediately, transport-wide feedback every 100 ms, reports every second.
//! Pure.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::audio::AudioTrack;
use crate::receiver::Receiver;
use crate::transport::feedback::Compound;
use crate::transport::transport_cc::ReceiveTimes;
use crate::video::VideoTrack;

/// Browsers estimate the bandwidth from transport-wide feedback and expect it every 50 to 250 ms.
const TRANSPORT_CC_PAUSE: Duration = Duration::from_millis(100);
/// Pause between receiver reports.
const REPORT_PAUSE: Duration = Duration::from_secs(1);
/// The bitrate that REMB carries when there is no limit, bit/s.
const UNLIMITED_BITS: u64 = 100_000_000;

/// One session's RTCP.
pub(crate) struct Reporter {
    ssrc: u32,
    times: Option<ReceiveTimes>,
    /// Whether the sender reads REMB.
    has_remb: bool,
    /// The bitrate that REMB asks the sender to stay below, bit/s; `None`: no REMB is sent.
    bitrate_limit: Option<u64>,
    times_of: u32,
    transport_cc_at: Instant,
    report_at: Instant,
    /// For one report: the sequence numbers to request, and which source each belongs to.
    nacked: Vec<u16>,
    nacks: Vec<(u32, Range<usize>)>,
}

impl Reporter {
    /// `ssrc` is our own. `has_transport_cc`, `has_remb`: the offer asked for transport-wide feedback, for REMB.
    #[must_use]
    pub(crate) fn new(ssrc: u32, has_transport_cc: bool, has_remb: bool, now: Instant) -> Self {
        Self {
            ssrc,
            times: has_transport_cc.then(|| ReceiveTimes::new(now)),
            has_remb,
            bitrate_limit: None,
            times_of: 0,
            transport_cc_at: now + TRANSPORT_CC_PAUSE,
            report_at: now + REPORT_PAUSE,
            nacked: Vec::new(),
            nacks: Vec::new(),
        }
    }

    /// From the next report on, asks the sender to stay below `kbps`; 0 is no limit.
    pub(crate) fn limit_bitrate(&mut self, kbps: u32) {
        let may_say = self.has_remb && (self.times.is_none() || self.bitrate_limit.is_some());
        self.bitrate_limit = match kbps {
            // The removal of a limit is sent too: a sender that receives nothing keeps the last limit.
            0 => may_say.then_some(UNLIMITED_BITS),
            kbps => self.has_remb.then_some(u64::from(kbps) * 1000),
        };
    }

    /// Notes a packet with a transport-wide sequence number.
    pub(crate) fn note_packet(&mut self, now: Instant, ssrc: u32, sequence: u16) {
        if let Some(times) = &mut self.times {
            self.times_of = ssrc;
            times.note(now, sequence);
        }
    }

    /// When the next regular report is due; requests are due when the tracks say so.
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Instant {
        let times = self.times.as_ref().filter(|times| !times.is_empty());
        times.map_or(self.report_at, |_| self.transport_cc_at.min(self.report_at))
    }

    /// The report to send now, if any.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        mut video: Option<&mut VideoTrack>,
        mut audio: Option<&mut AudioTrack>,
    ) -> Option<Compound> {
        let keyframe_of = video.as_mut().and_then(|video| video.poll_pli(now));
        self.nacks.clear();
        self.nacked.clear();
        for receiver in receivers(&mut video, &mut audio) {
            let Some(ssrc) = receiver.ssrc() else { continue };
            let before = self.nacked.len();
            receiver.poll_nack(now, &mut self.nacked);
            if self.nacked.len() > before {
                self.nacks.push((ssrc, before..self.nacked.len()));
            }
        }
        let has_times = now >= self.transport_cc_at
            && self.times.as_ref().is_some_and(|times| !times.is_empty());
        let is_due = now >= self.report_at;
        let has_requests = keyframe_of.is_some() || !self.nacks.is_empty();
        if !is_due && !has_times && !has_requests {
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
        for (ssrc, range) in &self.nacks {
            compound.put_nack(*ssrc, self.nacked.get(range.clone()).unwrap_or_default());
        }
        if let Some(ssrc) = keyframe_of {
            compound.put_pli(ssrc);
        }
        if let Some(bitrate) = self.bitrate_limit.filter(|_| is_due) {
            let of: Vec<u32> = receptions.iter().map(|of| of.ssrc).collect();
            compound.put_remb(bitrate, &of);
        }
        if has_times && let Some(times) = &mut self.times {
            self.transport_cc_at = now + TRANSPORT_CC_PAUSE;
            compound.put_transport_cc(self.times_of, times);
        }
        Some(compound)
    }
}

/// The receivers of every sender in the session.
fn receivers<'a>(
    video: &'a mut Option<&mut VideoTrack>,
    audio: &'a mut Option<&mut AudioTrack>,
) -> impl Iterator<Item = &'a mut Receiver> {
    let video = video.iter_mut().flat_map(|video| video.layers_mut());
    let audio = audio.iter_mut().map(|audio| &mut audio.receiver);
    video.map(|layer| &mut layer.receiver).chain(audio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remb_is_sent_only_as_offered_and_a_limit_is_taken_back() {
        let limits_after = |has_transport_cc, has_remb, of: [u32; 2]| {
            let mut reporter = Reporter::new(1, has_transport_cc, has_remb, Instant::now());
            of.map(|kbps| {
                reporter.limit_bitrate(kbps);
                reporter.bitrate_limit
            })
        };
        for has_transport_cc in [false, true] {
            assert_eq!(limits_after(has_transport_cc, false, [0, 500]), [None, None]);
            let taken_back = [Some(500_000), Some(UNLIMITED_BITS)];
            assert_eq!(limits_after(has_transport_cc, true, [500, 0]), taken_back);
        }
        assert_eq!(limits_after(false, true, [0, 0]), [Some(UNLIMITED_BITS); 2]);
        assert_eq!(limits_after(true, true, [0, 0]), [None; 2]);
    }
}
