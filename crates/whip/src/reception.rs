//! What a receiver report states about one sender: losses, jitter, round trip (RFC 3550 6.4.1, A.3, A.8). Pure.

use std::time::{Duration, Instant};

use crate::jitter::Jitter;
use crate::rtp::RtpHeader;
use crate::transport::feedback::Reception;

/// Statistics of one track's source. They restart with a new source.
#[derive(Debug)]
pub(crate) struct ReceptionStats {
    rate: u32,
    start: Instant,
    ssrc: Option<u32>,
    /// Packets and losses of this source at the last report.
    reported: (u64, u64),
    last_transit: Option<i64>,
    /// In units of RTP time, times 16.
    jitter: i64,
    /// Middle bits of the last sender report's NTP time, and when the report arrived.
    last_report: Option<(u32, Instant)>,
}

impl ReceptionStats {
    /// `rate`: the track's RTP clock in Hz.
    #[must_use]
    pub(crate) const fn new(rate: u32, start: Instant) -> Self {
        let (ssrc, last_transit, last_report) = (None, None, None);
        Self { rate, start, ssrc, reported: (0, 0), last_transit, jitter: 0, last_report }
    }

    /// Notes a received packet.
    pub(crate) fn note_packet(&mut self, now: Instant, header: &RtpHeader) {
        if self.ssrc != Some(header.ssrc) {
            *self = Self { ssrc: Some(header.ssrc), ..Self::new(self.rate, self.start) };
        }
        let elapsed = now.saturating_duration_since(self.start);
        let (rate, micros) = (i64::from(self.rate), i64::from(elapsed.subsec_micros()));
        // 24 bits of seconds are half a year; jitter is a difference.
        let seconds = (elapsed.as_secs() & 0x00ff_ffff) as i64;
        let arrival = seconds * rate + micros * rate / 1_000_000;
        let transit = arrival - i64::from(header.timestamp);
        if let Some(last) = self.last_transit {
            // A wrapped or restarted clock says nothing about the network.
            let deviation = (transit - last).abs();
            if deviation < i64::from(self.rate) {
                self.jitter += deviation - (self.jitter + 8) / 16;
            }
        }
        self.last_transit = Some(transit);
    }

    /// Notes a sender report.
    pub(crate) const fn note_report(&mut self, now: Instant, ntp: u64) {
        self.last_report = Some(((ntp >> 16) as u32, now));
    }

    /// Interarrival jitter.
    #[must_use]
    pub(crate) fn jitter(&self) -> Duration {
        let ticks = u64::try_from(self.jitter / 16).unwrap_or(0);
        Duration::from_micros(ticks * 1_000_000 / u64::from(self.rate))
    }

    /// The block for the next report; `None` before the first packet.
    pub(crate) fn take(&mut self, now: Instant, track: &Jitter) -> Option<Reception> {
        let (ssrc, highest) = track.highest()?;
        let of_source = track.source_counters();
        let (received, lost) = (
            of_source.0.saturating_sub(self.reported.0),
            of_source.1.saturating_sub(self.reported.1),
        );
        self.reported = of_source;
        let expected = (received + lost).max(1);
        let (last_report, delay) = self.last_report.map_or((0, 0), |(ntp, at)| {
            let delay = now.saturating_duration_since(at).as_micros() * 65_536 / 1_000_000;
            (ntp, u32::try_from(delay).unwrap_or(u32::MAX))
        });
        Some(Reception {
            ssrc,
            fraction_lost: u8::try_from(lost * 256 / expected).unwrap_or(u8::MAX),
            lost: u32::try_from(of_source.1).unwrap_or(u32::MAX),
            highest: highest as u32,
            jitter: u32::try_from(self.jitter / 16).unwrap_or(0),
            last_report,
            delay,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u16, timestamp: u32) -> RtpHeader {
        let (payload_type, ssrc, payload_at, payload_end) = (96, 7, 0, 1);
        let marker = true;
        RtpHeader { marker, payload_type, sequence, timestamp, ssrc, payload_at, payload_end }
    }

    #[test]
    fn losses_jitter_and_the_last_report_are_reported() {
        let start = Instant::now();
        let (mut stats, mut track) = (ReceptionStats::new(90_000, start), Jitter::new(false));
        assert_eq!(stats.take(start, &track), None);
        for n in 0..100_u16 {
            if n == 50 {
                continue;
            }
            let late = u64::from(n % 2) * 5;
            let now = start + Duration::from_millis(u64::from(n) * 40 + late);
            stats.note_packet(now, &header(n, u32::from(n) * 3600));
            track.handle_packet(now, &header(n, 0), &[1], false, &mut |_| {});
            track.handle_timeout(now, &mut |_| {});
        }
        stats.note_report(start, 0x1234_5678_9abc_def0);
        let report = stats.take(start + Duration::from_secs(1), &track).expect("packets arrived");
        assert_eq!((report.ssrc, report.lost, report.fraction_lost), (7, 1, 2));
        assert_eq!((report.last_report, report.delay), (0x5678_9abc, 65_536));
        // A deviation of 5 ms each way is 450 ticks.
        assert!((300..=450).contains(&report.jitter), "{}", report.jitter);
        let next = stats.take(start + Duration::from_secs(2), &track).expect("packets arrived");
        assert_eq!(next.fraction_lost, 0);
    }

    #[test]
    fn a_step_of_a_second_is_not_jitter() {
        for (step, is_jitter) in [(89_999, true), (90_000, false)] {
            let start = Instant::now();
            let mut stats = ReceptionStats::new(90_000, start);
            stats.note_packet(start, &header(1, 0));
            stats.note_packet(start, &header(2, step));
            assert_eq!(stats.jitter() > Duration::ZERO, is_jitter, "{step} ticks");
        }
    }

    /// Feeds packets of `ssrc`, 20 ms apart.
    fn feed(stats: &mut ReceptionStats, track: &mut Jitter, ssrc: u32, sequences: &[u16]) {
        for (n, sequence) in sequences.iter().enumerate() {
            let now = stats.start + Duration::from_millis(20 * n as u64);
            let header = RtpHeader { ssrc, ..header(*sequence, 0) };
            stats.note_packet(now, &header);
            track.handle_packet(now, &header, &[1], false, &mut |_| {});
            track.handle_timeout(now, &mut |_| {});
        }
    }

    #[test]
    fn the_first_report_on_a_source_counts_from_its_first_packet() {
        let start = Instant::now();
        let (mut stats, mut track) = (ReceptionStats::new(48_000, start), Jitter::new(false));
        feed(&mut stats, &mut track, 7, &[65_533, 65_534, 65_535]);
        let first = stats.take(start, &track).expect("packets arrived");
        assert_eq!((first.fraction_lost, first.lost), (0, 0));
        assert_eq!(first.highest, 65_535, "the first cycle is 0");
        feed(&mut stats, &mut track, 7, &[0, 1]);
        assert_eq!(stats.take(start, &track).expect("packets arrived").highest, 0x1_0001);
    }

    #[test]
    fn a_new_source_does_not_inherit_the_losses_of_the_previous_one() {
        let start = Instant::now();
        let (mut stats, mut track) = (ReceptionStats::new(48_000, start), Jitter::new(false));
        feed(&mut stats, &mut track, 7, &[1, 2, 5, 6, 7, 8, 9, 10]);
        assert_eq!(stats.take(start, &track).expect("packets arrived").lost, 2);
        feed(&mut stats, &mut track, 9, &[1000, 1001]);
        let report = stats.take(start, &track).expect("packets arrived");
        assert_eq!((report.ssrc, report.lost, report.fraction_lost), (9, 0, 0));
        assert_eq!(report.highest, 1001);
    }
}
