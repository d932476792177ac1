use std::time::Duration;

use super::*;
use crate::sdp::Rtx;

pub(super) const SPS_SMALL: &[u8] = &[0x67, 0x42, 0xc0, 0x1f, 0x8c, 0x8d, 0x40, 0x50];

fn section(further: &str) -> VideoSection {
    let offer = format!(
        "v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=ice-ufrag:abcd\r\n\
a=ice-pwd:0123456789abcdefghijklmn\r\na=setup:actpass\r\na=rtcp-mux\r\na=mid:0\r\n\
a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n\
a=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n{further}"
    );
    crate::sdp::read_offer(&offer).expect("acceptable").video.expect("video")
}

pub(super) struct Track {
    pub(super) video: VideoTrack,
    pub(super) clock: Clock,
    pub(super) frames: VecDeque<Frame>,
    pub(super) start: Instant,
}

impl Track {
    pub(super) fn new(further: &str) -> Self {
        let start = Instant::now();
        let video = VideoTrack::new(&section(further), start);
        Self { video, clock: Clock::default(), frames: VecDeque::new(), start }
    }

    pub(super) fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    /// A packet with one payload; `rid` is carried in header extension 10.
    pub(super) fn packet(
        &mut self,
        millis: u64,
        (payload_type, ssrc): (u8, u32),
        sequence: u16,
        payload: &[u8],
        rid: &str,
    ) {
        self.packet_of(millis, millis, (payload_type, ssrc), sequence, payload, rid);
    }

    /// The same, for a frame sampled at a time other than its packet's arrival.
    pub(super) fn packet_of(
        &mut self,
        millis: u64,
        sampled: u64,
        (payload_type, ssrc): (u8, u32),
        sequence: u16,
        payload: &[u8],
        rid: &str,
    ) {
        let mut packet = vec![0x90, 0x80 | payload_type];
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&((sampled * 90) as u32).to_be_bytes());
        packet.extend_from_slice(&ssrc.to_be_bytes());
        packet.extend_from_slice(&[0xbe, 0xde, 0, 1]);
        let mut extension = vec![0xa0 | (rid.len().max(1) as u8 - 1)];
        extension.extend_from_slice(if rid.is_empty() { b"?" } else { rid.as_bytes() });
        extension.resize(4, 0);
        packet.extend_from_slice(&extension);
        packet.extend_from_slice(payload);
        let header = RtpHeader::read(&packet).expect("a packet");
        assert!(self.video.is_of(&header));
        let now = self.at(millis);
        self.video.handle_packet(now, &header, &packet, &mut self.clock, &mut self.frames);
    }

    pub(super) fn wait(&mut self, millis: u64) {
        let now = self.at(millis);
        self.video.handle_timeout(now, &mut self.clock, &mut self.frames);
    }

    /// The kind of each frame produced, and its first byte after the slice header.
    fn out(&mut self) -> Vec<(FrameKind, u8)> {
        let last = |frame: Frame| (frame.kind, frame.data.last().copied().unwrap_or_default());
        self.frames.drain(..).map(last).collect()
    }
}

pub(super) fn key(sps: &[u8], mark: u8) -> Vec<u8> {
    let pps = [0x68, 0xce];
    let mut stap = vec![0x78];
    for nal in [sps, &pps, &[0x65, 0x88, mark]] {
        stap.extend_from_slice(&(nal.len() as u16).to_be_bytes());
        stap.extend_from_slice(nal);
    }
    stap
}

#[test]
fn a_retransmission_fills_its_gap_and_an_invalid_one_is_ignored() {
    assert_eq!(section("").rtx.map(|Rtx { payload_type, .. }| payload_type), Some(97));
    let mut track = Track::new("");
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    track.wait(20);
    track.packet(90, (96, 7), 12, &[0x41, 0x9a, 3], "");
    assert_eq!(track.out().len(), 2);
    for payload in [&[][..], &[0], &[0, 11]] {
        track.packet(81, (97, 8), 500, payload, "");
    }
    assert!(track.out().is_empty());
    for _ in 0..2 {
        track.packet(82, (97, 8), 501, &[0, 11, 0x41, 0x9a, 2], "");
    }
    assert_eq!(track.out(), [(FrameKind::Inter, 2), (FrameKind::Inter, 3)]);
    let counters = track.video.shown().expect("one layer").receiver.counters();
    assert_eq!(counters.recovered, 0, "it was not requested");
}

const SIMULCAST: &str = "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n\
a=rid:q send\r\na=rid:f send\r\na=simulcast:send q;f\r\n";
/// 640x360 and 320x180 by x264.
pub(super) const SPS_LARGE: &[u8] = include_bytes!("fixtures/sps_640x360");
pub(super) const SPS_QUARTER: &[u8] = include_bytes!("fixtures/sps_320x180");

#[test]
fn the_largest_live_simulcast_layer_is_shown_and_changes_only_at_a_keyframe() {
    let mut track = Track::new(SIMULCAST);
    track.packet(0, (96, 1), 10, &key(SPS_QUARTER, 1), "q");
    // A source begins when its first packet can no longer have been overtaken.
    track.wait(20);
    assert_eq!(track.video.resolution(), Some((320, 180)));
    track.packet(40, (96, 1), 11, &[0x41, 0x9a, 2], "q");
    let shown = [(FrameKind::Configuration, 0xce), (FrameKind::Keyframe, 1), (FrameKind::Inter, 2)];
    assert_eq!(track.out(), shown);
    // The large layer begins: it takes over at its keyframe, with its own configuration.
    track.packet(60, (96, 2), 900, &key(SPS_LARGE, 11), "f");
    track.wait(80);
    track.packet(80, (96, 1), 12, &[0x41, 0x9a, 3], "");
    track.packet(100, (96, 2), 901, &[0x41, 0x9a, 12], "");
    let shown =
        [(FrameKind::Configuration, 0xce), (FrameKind::Keyframe, 11), (FrameKind::Inter, 12)];
    assert_eq!(track.out(), shown);
    assert_eq!(track.video.resolution(), Some((640, 360)));
    // It falls silent: a keyframe is requested from the small layer, which is forwarded from there.
    let mut sequence = 13;
    for millis in (140..1400).step_by(40) {
        track.packet(millis, (96, 1), sequence, &[0x41, 0x9a, 4], "");
        sequence += 1;
    }
    assert!(track.out().is_empty());
    let now = track.at(1400);
    assert_eq!(track.video.poll_pli(now), Some(1));
    track.packet(1420, (96, 1), sequence, &key(SPS_QUARTER, 21), "");
    assert_eq!(track.out(), [(FrameKind::Configuration, 0xce), (FrameKind::Keyframe, 21)]);
    // It comes back: a keyframe is requested, and it is forwarded again.
    track.packet(1500, (96, 2), 902, &[0x41, 0x9a, 13], "");
    assert_eq!(track.video.poll_pli(track.at(1910)), Some(2));
    track.packet(1920, (96, 2), 903, &key(SPS_LARGE, 31), "");
    let last = track.out();
    assert_eq!(last, [(FrameKind::Configuration, 0xce), (FrameKind::Keyframe, 31)]);
}

#[test]
fn a_simulcast_layer_with_a_frame_every_1100_ms_remains_shown() {
    let (mut track, mut configurations) = (Track::new(SIMULCAST), 0);
    for n in 0..20_u16 {
        let millis = u64::from(n) * 1_100;
        let frame = |sps| if n.is_multiple_of(2) { key(sps, 1) } else { vec![0x41, 0x9a, 1] };
        track.packet(millis, (96, 1), n, &frame(SPS_QUARTER), "q");
        track.packet(millis + 3, (96, 2), 900 + n, &frame(SPS_LARGE), "f");
        track.wait(millis + 30);
        let frames = track.out().into_iter();
        configurations += frames.filter(|(kind, _)| *kind == FrameKind::Configuration).count();
    }
    assert_eq!(configurations, 2, "one of each layer, at the beginning");
}

#[test]
fn decode_times_never_go_back_across_layers() {
    let mut track = Track::new(SIMULCAST);
    let mut last = None;
    for n in 0..200_u64 {
        let millis = n * 40;
        let payload =
            |sps, n: u64| if n.is_multiple_of(10) { key(sps, 1) } else { vec![0x41, 0x9a, 1] };
        track.packet(millis, (96, 1), n as u16, &payload(SPS_QUARTER, n), "q");
        if n % 100 < 50 {
            track.packet(millis + 3, (96, 2), 5000 + n as u16, &payload(SPS_LARGE, n), "f");
        }
        for frame in track.frames.drain(..) {
            if frame.kind != FrameKind::Configuration {
                assert!(last.is_none_or(|last| frame.timestamp > last), "{n}");
                last = Some(frame.timestamp);
            }
        }
    }
}

#[test]
fn a_wanted_keyframe_is_requested_immediately_but_not_twice_in_half_a_second() {
    let mut track = Track::new("");
    track.video.want_keyframe();
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    track.wait(20);
    let at = |millis| track.start + Duration::from_millis(millis);
    assert_eq!(track.video.poll_pli(at(100)), None);
    track.video.want_keyframe();
    assert_eq!(track.video.poll_pli(at(101)), Some(7));
    track.video.want_keyframe();
    assert_eq!(track.video.poll_pli(at(500)), None);
    assert_eq!(track.video.poll_pli(at(601)), Some(7));
}

/// When keyframes are requested in a minute of 25 frames a second, ms; a keyframe arrives every `group` frames.
fn asked_in_a_minute(track: &mut Track, group: u16) -> Vec<u64> {
    let mut asked = Vec::new();
    for n in 0..1500_u16 {
        let millis = u64::from(n) * 40;
        let is_key = n.is_multiple_of(group);
        let payload = if is_key { key(SPS_SMALL, 1) } else { vec![0x41, 0x9a, 2] };
        track.packet(millis, (96, 7), 10 + n, &payload, "");
        if track.video.poll_pli(track.at(millis)).is_some() {
            asked.push(millis);
        }
    }
    asked
}

#[test]
fn a_sender_that_never_responds_gets_eight_requests_and_then_few_when_needed() {
    let mut track = Track::new("");
    let asked = asked_in_a_minute(&mut track, u16::MAX);
    assert!(asked.len() == 8 && (1_850..2_000).contains(&asked[0]), "{asked:?}");
    let mut needed = Vec::new();
    for millis in (60_000..90_000).step_by(100) {
        track.video.want_keyframe();
        if track.video.poll_pli(track.at(millis)).is_some() {
            needed.push(millis);
        }
    }
    assert_eq!(needed, [60_000, 70_000, 80_000]);
}

#[test]
fn a_sender_with_its_own_keyframe_interval_is_no_longer_asked() {
    let mut track = Track::new("");
    let asked = asked_in_a_minute(&mut track, 100);
    assert!(asked.len() == 14 && asked[13] < 12_000, "{asked:?}");
    // It does respond when a keyframe is needed: then requests continue as before.
    track.video.want_keyframe();
    assert_eq!(track.video.poll_pli(track.at(60_000)), Some(7));
    track.packet(60_100, (96, 7), 1510, &key(SPS_SMALL, 1), "");
    assert_eq!(track.video.poll_pli(track.at(61_900)), None);
    assert_eq!(track.video.poll_pli(track.at(61_950)), Some(7));
}

#[test]
fn a_sender_whose_keyframes_arrive_late_is_asked_again_and_again() {
    let mut track = Track::new("");
    let (mut due, mut keyframes) = (vec![0_u64], Vec::new());
    for n in 0..1500_u16 {
        let millis = u64::from(n) * 40;
        let is_key = due.first().is_some_and(|due| *due <= millis);
        if is_key {
            due.remove(0);
            keyframes.push(millis);
        }
        let payload = if is_key { key(SPS_SMALL, 1) } else { vec![0x41, 0x9a, 2] };
        track.packet(millis, (96, 7), 10 + n, &payload, "");
        if track.video.poll_pli(track.at(millis)).is_some() {
            due.push(millis + 1_200);
        }
    }
    let longest = keyframes.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(longest.is_some_and(|longest| longest < 7_000), "{keyframes:?}");
    assert!(keyframes.last().is_some_and(|last| *last > 50_000), "{keyframes:?}");
}

#[test]
fn requests_during_an_outage_do_not_make_a_sender_unresponsive() {
    let mut track = Track::new("");
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    for millis in (20..6_000).step_by(20) {
        track.wait(millis);
        let _ = track.video.poll_pli(track.at(millis));
    }
    for n in 0..40_u16 {
        let millis = 6_000 + u64::from(n) * 40;
        track.packet(millis, (96, 7), 210 + n, &[0x41, 0x9a, 2], "");
        track.wait(millis + 20);
        if track.video.poll_pli(track.at(millis + 20)).is_some() {
            return;
        }
    }
    panic!("no keyframe was requested within 1.6 s of the return");
}

#[test]
fn configurations_that_change_with_every_keyframe_are_rate_limited() {
    let mut track = Track::new("");
    let mut configurations = 0;
    for n in 0..300_u16 {
        let sps = [SPS_SMALL, &n.to_be_bytes()].concat();
        track.packet(u64::from(n) * 10, (96, 7), 10 + n, &key(&sps, 1), "");
        track.wait(u64::from(n) * 10 + 9);
        let kinds: Vec<_> = track.out().into_iter().map(|(kind, _)| kind).collect();
        configurations += kinds.iter().filter(|kind| **kind == FrameKind::Configuration).count();
        // A keyframe whose configuration was not emitted is withheld too.
        let has_both = kinds.is_empty() || kinds.starts_with(&[FrameKind::Configuration]);
        assert!(has_both, "{kinds:?}");
    }
    assert!((20..=31).contains(&configurations), "{configurations}");
}

#[test]
fn a_flood_of_tiny_access_units_is_rate_limited_and_resumes_with_a_keyframe() {
    let mut track = Track::new("");
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    track.wait(20);
    for n in 0..4_000_u16 {
        // The frames' clock advances by a millisecond, ours does not.
        track.start -= Duration::from_millis(1);
        track.packet(41 + u64::from(n), (96, 7), 11 + n, &[0x41, 0x9a, 2], "");
    }
    let left = track.out().len();
    assert!((900..=1_002).contains(&left), "{left}");
    track.packet(5_100, (96, 7), 4_011, &[0x41, 0x9a, 3], "");
    assert!(track.out().is_empty());
    track.packet(5_140, (96, 7), 4_012, &key(SPS_SMALL, 4), "");
    assert_eq!(track.out(), [(FrameKind::Keyframe, 4)]);
}

/// A track that has emitted a keyframe and an inter frame 200 ms later; the next number is 12.
fn shown_until_200() -> Track {
    let mut track = Track::new("");
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    track.wait(20);
    track.packet(200, (96, 7), 11, &[0x41, 0x9a, 2], "");
    assert_eq!(track.out().len(), 3);
    track
}

#[test]
fn all_packets_after_a_gap_are_released_by_the_packet_that_fills_it() {
    let mut track = shown_until_200();
    track.packet(280, (96, 7), 13, &key(SPS_SMALL, 4), "");
    track.packet(320, (96, 7), 14, &[0x41, 0x9a, 5], "");
    assert!(track.out().is_empty());
    track.packet_of(330, 240, (96, 7), 12, &[0x41, 0x9a, 3], "");
    let filled = [(FrameKind::Inter, 3), (FrameKind::Keyframe, 4), (FrameKind::Inter, 5)];
    assert_eq!(track.out(), filled);
}

#[test]
fn a_timestamp_that_goes_back_costs_at_most_its_own_frame() {
    for (slice, is_shown) in [(0x41, true), (0x01, false)] {
        let mut track = shown_until_200();
        track.packet_of(210, 100, (96, 7), 13, &[slice, 0x9a, 4], "");
        track.packet_of(280, 280, (96, 7), 14, &[0x41, 0x9a, 5], "");
        track.packet_of(290, 240, (96, 7), 12, &[0x41, 0x9a, 3], "");
        let mut out = vec![(FrameKind::Inter, 3), (FrameKind::Inter, 4), (FrameKind::Inter, 5)];
        out.retain(|(_, n)| *n != 4 || is_shown);
        assert_eq!(track.out(), out);
        assert_eq!(track.video.withheld(), u64::from(!is_shown));
    }
}

#[test]
fn frames_that_reference_a_keyframe_with_a_rejected_configuration_are_withheld() {
    let mut track = Track::new("");
    let sps = |n: u8| [SPS_SMALL, &[n]].concat();
    for n in 0..10 {
        let millis = u64::from(n) * 40;
        track.packet(millis, (96, 7), 10 + u16::from(n), &key(&sps(n), 1), "");
        track.wait(millis + 20);
    }
    assert_eq!(track.out().len(), 20);
    track.packet(440, (96, 7), 21, &key(&sps(10), 4), "");
    track.packet(480, (96, 7), 22, &[0x41, 0x9a, 5], "");
    track.packet_of(490, 400, (96, 7), 20, &[0x41, 0x9a, 3], "");
    assert_eq!(track.out(), [(FrameKind::Inter, 3)]);
}

#[test]
fn a_layer_without_packets_for_a_second_is_no_longer_live() {
    let mut track = Track::new("");
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    let is_live = |millis| track.video.layers().all(|layer| layer.is_live(track.at(millis)));
    assert!(is_live(999) && !is_live(1_000));
}

#[test]
fn a_requested_keyframe_is_not_requested_again_before_the_age_limit() {
    let mut track = shown_until_200();
    track.video.want_keyframe();
    assert_eq!(track.video.poll_pli(track.at(210)), Some(7));
    // The next request is due at the age limit of the last keyframe.
    assert_eq!(track.video.poll_pli(track.at(1_869)), None);
    assert_eq!(track.video.poll_pli(track.at(1_870)), Some(7));
}
