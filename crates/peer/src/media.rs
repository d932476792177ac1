//! Media of a connected session: the two tracks under SRTP, sender reports, and reactions to feedback.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::offer::{AUDIO_PAYLOAD_TYPE, VIDEO_PAYLOAD_TYPE};
use crate::packetizer::packetize;
use crate::reports::{Feedback, ntp_time, read_feedback};
use crate::srtp::Srtp;
use crate::track::Track;
use crate::{Event, SrtpChoice};

/// Interval between sender reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Both tracks. Nothing is sent until there are keys.
pub(crate) struct Media {
    audio: Track,
    video: Track,
    srtp: Option<Box<Srtp>>,
    /// Counter over both tracks; `None` unless offered and accepted.
    transport_sequence: Option<u16>,
    next_report: Option<Instant>,
    audio_latency: Duration,
}

impl Media {
    /// `seed` determines the SSRCs and first sequence numbers.
    pub(crate) fn new(seed: [u8; 12], audio_latency: Duration) -> Self {
        let [a0, a1, a2, a3, v0, v1, v2, v3, s0, s1, t0, t1] = seed;
        // The SSRCs differ at least in the last bit.
        let audio_ssrc = u32::from_be_bytes([a0, a1, a2, a3]) & !1;
        let video_ssrc = u32::from_be_bytes([v0, v1, v2, v3]) | 1;
        let first = |high, low| u16::from_be_bytes([high, low]);
        Self {
            audio: Track::new(audio_ssrc, AUDIO_PAYLOAD_TYPE, 48_000, first(s0, s1)),
            video: Track::new(video_ssrc, VIDEO_PAYLOAD_TYPE, 90_000, first(t0, t1)),
            srtp: None,
            transport_sequence: None,
            next_report: None,
            audio_latency,
        }
    }

    /// Adds the transport-wide sequence number to packets.
    pub(crate) const fn number_packets(&mut self) {
        self.transport_sequence = Some(0);
    }

    pub(crate) fn start(&mut self, srtp: Box<Srtp>) {
        self.srtp = Some(srtp);
    }

    pub(crate) fn stop(&mut self) {
        self.srtp = None;
        self.next_report = None;
    }

    pub(crate) fn send_video(
        &mut self,
        now: Instant,
        rtp_time: u32,
        nal_units: &[&[u8]],
        out: &mut VecDeque<Vec<u8>>,
    ) {
        packetize(nal_units, |payload, marker| {
            self.send_video_payload(now, rtp_time, payload, marker, out);
        });
    }

    pub(crate) fn send_video_payload(
        &mut self,
        now: Instant,
        rtp_time: u32,
        payload: &[u8],
        marker: bool,
        out: &mut VecDeque<Vec<u8>>,
    ) {
        let Some(srtp) = &mut self.srtp else { return };
        self.video.set_time(now, rtp_time);
        self.next_report.get_or_insert(now);
        let sequence = next(&mut self.transport_sequence);
        out.extend(self.video.send(srtp, payload, marker, sequence));
    }

    pub(crate) fn send_audio(
        &mut self,
        now: Instant,
        rtp_time: u32,
        packet: &[u8],
        out: &mut VecDeque<Vec<u8>>,
    ) {
        let Some(srtp) = &mut self.srtp else { return };
        self.audio.set_time(now, rtp_time);
        self.next_report.get_or_insert(now);
        let sequence = next(&mut self.transport_sequence);
        out.extend(self.audio.send(srtp, packet, false, sequence));
    }

    pub(crate) fn send_rtp(&mut self, packet: &[u8], out: &mut VecDeque<Vec<u8>>) {
        out.extend(self.srtp.as_mut().and_then(|srtp| srtp.protect_rtp(packet)));
    }

    pub(crate) fn send_rtcp(&mut self, packet: &[u8], out: &mut VecDeque<Vec<u8>>) {
        out.extend(self.srtp.as_mut().and_then(|srtp| srtp.protect_rtcp(packet)));
    }

    /// Sends the sender reports that are due; `elapsed`, the time since the answer, becomes their NTP time.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        elapsed: Duration,
        out: &mut VecDeque<Vec<u8>>,
    ) {
        if self.next_report.is_none_or(|at| now < at) {
            return;
        }
        self.next_report = Some(now + REPORT_INTERVAL);
        // Audio that is captured earlier is what its clock shows later.
        let audio = self.audio.report(now + self.audio_latency, ntp_time(elapsed));
        let video = self.video.report(now, ntp_time(elapsed));
        for report in [audio, video] {
            self.send_rtcp(report.as_deref().unwrap_or_default(), out);
        }
    }

    /// Decrypts an SRTCP packet, answers the NACKs in it and returns its requests.
    pub(crate) fn handle_feedback(
        &mut self,
        bytes: &[u8],
        out: &mut VecDeque<Vec<u8>>,
    ) -> Vec<Event> {
        let opened = self.srtp.as_mut().and_then(|srtp| srtp.open_rtcp(bytes));
        let asked = read_feedback(&opened.unwrap_or_default());
        let events = asked.into_iter().map(|feedback| match feedback {
            Feedback::Keyframe => Event::KeyframeWanted,
            Feedback::TransportCc => Event::TransportFeedback,
            Feedback::Nack(ssrc, missing) => {
                let tracks = [&self.audio, &self.video];
                if let Some(track) = tracks.into_iter().find(|track| track.ssrc == ssrc) {
                    out.extend(missing.iter().filter_map(|id| track.sent_before(*id)));
                }
                Event::Nack(missing)
            }
        });
        events.collect()
    }

    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.next_report
    }

    pub(crate) fn profile(&self) -> Option<SrtpChoice> {
        self.srtp.as_ref().map(|srtp| srtp.profile())
    }

    /// SSRCs of the audio and the video track.
    pub(crate) const fn ssrcs(&self) -> (u32, u32) {
        (self.audio.ssrc, self.video.ssrc)
    }
}

/// Takes the next number of a counter, if it is in use.
fn next(counter: &mut Option<u16>) -> Option<u16> {
    let taken = *counter;
    *counter = taken.map(|number| number.wrapping_add(1));
    taken
}
