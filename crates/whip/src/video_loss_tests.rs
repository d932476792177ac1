//! Loss that no retransmission repairs, against a receiver that requests a keyframe with the first packet that shows the
//! loss, and waits for nothing.

use std::time::Duration;

use headgate_media::{Frame, FrameKind};

use super::tests::{SPS_SMALL, Track, key};
use crate::rtp::RtpHeader;

const FRAME_MS: u64 = 40;
const KEY_PACKETS: u64 = 8;
const PACKETS: u64 = 3;

impl Track {
    /// A packet of the sender 7, with or without the marker.
    pub(super) fn packet_marked(
        &mut self,
        millis: u64,
        sampled: u64,
        sequence: u16,
        payload: &[u8],
        marker: bool,
    ) {
        let head = [0x80, if marker { 0x80 | 96 } else { 96 }];
        let time = ((sampled * 90) as u32).to_be_bytes();
        let packet =
            [&head[..], &sequence.to_be_bytes(), &time, &7_u32.to_be_bytes(), payload].concat();
        let header = RtpHeader::read(&packet).expect("a packet");
        let now = self.at(millis);
        self.video.handle_packet(now, &header, &packet, &mut self.clock, &mut self.frames);
    }

    /// How many frames have left since the last call.
    pub(super) fn frames_shown(&mut self) -> u64 {
        let frames = self.frames.drain(..);
        frames.filter(|frame| frame.kind != FrameKind::Configuration).count() as u64
    }
}

/// A network and a sender. Times in ms.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Packets lost of 10,000, and how many in a row.
    loss: u64,
    burst: u64,
    round_trip: u64,
    /// Frames from one keyframe to the next when none is requested.
    group: u64,
    /// How long the sender takes to answer a request for a keyframe; `None`: it ignores them.
    answers_in: Option<u64>,
    /// The sender answers requests for packets.
    repairs: bool,
    seconds: u64,
}

impl Case {
    fn frames(&self) -> u64 {
        self.seconds * 1_000 / FRAME_MS
    }

    /// Whether packet `n` of a frame is lost: the same for both receivers.
    fn loses(&self, frame: u64, n: u64) -> bool {
        let slot = (frame * 16 + n) / self.burst;
        let mut dice = slot.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
        dice ^= dice >> 31;
        dice = dice.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        dice ^= dice >> 29;
        frame > 25 && dice % 10_000 < self.loss
    }

    fn is_key(&self, frame: u64, requested: &mut Option<u64>) -> bool {
        let now = frame * FRAME_MS;
        let is_answer = requested.is_some_and(|at| at <= now);
        if is_answer {
            *requested = None;
        }
        is_answer || frame.is_multiple_of(self.group)
    }

    /// A request made at `now` by the receiver, as it takes effect at the sender.
    fn request(&self, now: u64, requested: &mut Option<u64>) {
        if let Some(answers_in) = self.answers_in {
            requested.get_or_insert(now + self.round_trip / 2 + answers_in);
        }
    }

    fn ideal(&self) -> u64 {
        let (mut shown, mut is_whole, mut requested) = (0, false, None);
        for frame in 0..self.frames() {
            let is_key = self.is_key(frame, &mut requested);
            let count = if is_key { KEY_PACKETS } else { PACKETS };
            let is_lost = (0..count).any(|n| self.loses(frame, n));
            is_whole = !is_lost && (is_key || is_whole);
            shown += u64::from(is_whole);
            if is_lost {
                // The loss of a picture's last packet shows with the next picture.
                let shows = if self.loses(frame, count - 1) { frame + 1 } else { frame };
                self.request(shows * FRAME_MS + self.round_trip / 2, &mut requested);
            }
        }
        shown
    }

    fn shown(&self) -> u64 {
        let mut track = Track::new("");
        let (mut sequence, mut requested, mut shown) = (1_000_u16, None, 0);
        // Arrival, frame, and whether it is the last packet.
        let mut wire: std::collections::BTreeMap<(u64, u16), (u64, Vec<u8>, bool)> =
            std::collections::BTreeMap::new();
        let mut history: std::collections::HashMap<u16, (u64, Vec<u8>, bool)> =
            std::collections::HashMap::new();
        for now in 0..self.seconds * 1_000 + 1_500 {
            if now % FRAME_MS == 0 && now < self.seconds * 1_000 {
                let frame = now / FRAME_MS;
                let is_key = self.is_key(frame, &mut requested);
                let count = if is_key { KEY_PACKETS } else { PACKETS };
                for n in 0..count {
                    let slice = if n == 0 { 0x88 } else { 0x08 };
                    let payload = match (is_key, n) {
                        (true, 0) => key(SPS_SMALL, 1),
                        (true, _) => vec![0x65, slice, 1],
                        (false, _) => vec![0x41, slice | 0x12, 1],
                    };
                    let packet = (frame, payload, n + 1 == count);
                    if !self.loses(frame, n) {
                        wire.insert((now + self.round_trip / 2 + n, sequence), packet.clone());
                    }
                    if self.repairs {
                        history.insert(sequence, packet);
                    }
                    sequence = sequence.wrapping_add(1);
                }
            }
            while let Some(entry) = wire.first_entry().filter(|entry| entry.key().0 <= now) {
                let ((_, sequence), (frame, payload, marker)) = entry.remove_entry();
                track.packet_marked(now, frame * FRAME_MS, sequence, &payload, marker);
            }
            let at = track.at(now);
            let due = track.video.poll_timeout(at);
            if due.is_some_and(|due| due <= at) {
                track.wait(now);
                if track.video.poll_pli(at).is_some() {
                    self.request(now, &mut requested);
                }
                let mut asked = Vec::new();
                for layer in track.video.layers_mut() {
                    layer.receiver.poll_nack(at, &mut asked);
                }
                for sequence in asked {
                    if let Some(packet) = history.get(&sequence) {
                        wire.insert((now + self.round_trip, sequence), packet.clone());
                    }
                }
            }
            shown += track.frames_shown();
        }
        shown
    }
}

#[test]
fn without_retransmissions_four_fifths_of_the_ideal_are_shown() {
    let mut worst = (f64::MAX, None);
    for (loss, burst) in [(50, 1), (100, 1), (270, 1), (500, 1), (50, 8), (200, 16)] {
        for round_trip in [20, 80, 200] {
            for group in [25, 50, 250] {
                for answers_in in [Some(100), Some(1_000), None] {
                    let repairs = false;
                    let seconds = 20;
                    let case =
                        Case { loss, burst, round_trip, group, answers_in, repairs, seconds };
                    let (shown, ideal) = (case.shown(), case.ideal());
                    let share = shown as f64 / ideal as f64;
                    if share < worst.0 {
                        worst = (share, Some(case));
                    }
                    println!("{shown} of {ideal} = {share:.2}: {case:?}");
                }
            }
        }
    }
    assert!(worst.0 >= 0.8, "{worst:?}");
}

#[test]
fn with_retransmissions_nearly_everything_is_shown() {
    for round_trip in [20, 80, 200] {
        let (burst, group, answers_in) = (1, 250, Some(100));
        let (loss, repairs, seconds) = (500, true, 40);
        let case = Case { loss, burst, round_trip, group, answers_in, repairs, seconds };
        let shown = case.shown();
        assert!(shown >= case.frames() * 995 / 1_000, "{shown} of {}: {case:?}", case.frames());
    }
}

#[test]
fn a_keyframe_is_requested_at_once_when_no_answer_is_expected() {
    let mut track = Track::new("");
    track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
    let mut asked = Vec::new();
    // Of four packets one is lost, and a keyframe follows each loss.
    for ms in 20..10_000_u64 {
        let (number, payload) =
            (ms / 500, if ms % 2_000 == 0 { key(SPS_SMALL, 1) } else { vec![0x41, 0x9a, 2] });
        if ms % 500 == 0 && number % 4 != 2 {
            track.packet(ms, (96, 7), 10 + number as u16, &payload, "");
        }
        track.wait(ms);
        for layer in track.video.layers_mut() {
            layer.receiver.poll_nack(track.start + Duration::from_millis(ms), &mut Vec::new());
        }
        if track.video.poll_pli(track.at(ms)).is_some() {
            asked.push(ms);
        }
    }
    // The third packet after each keyframe shows the loss. In the beginning an answer may still come.
    assert!(asked.iter().any(|ms| (1_800..=1_801).contains(ms)), "{asked:?}");
    assert!(asked.contains(&9_512), "{asked:?}");
}

#[test]
fn a_single_wrong_timestamp_costs_no_other_frame_and_no_keyframe_is_asked_for() {
    for off in [-900, -400, -80, 80, 130, 400, 490, 600, 100_000] {
        let mut track = Track::new("");
        track.packet(0, (96, 7), 10, &key(SPS_SMALL, 1), "");
        track.wait(20);
        for n in 1..200_u16 {
            let millis = u64::from(n) * 40;
            let sampled = if n == 100 { millis.saturating_add_signed(off) } else { millis };
            track.packet_of(millis, sampled, (96, 7), 10 + n, &[0x41, 0x9a, n as u8], "");
        }
        let shown = |frame: &Frame| frame.timestamp.as_millis() + i64::from(frame.composition_ms);
        let late: Vec<_> = track.frames.iter().skip(1).zip(0..).collect();
        assert_eq!(late.len(), 200, "{off}: configuration apart");
        for (frame, n) in late {
            let apart = (shown(frame) - n * 40).abs();
            let is_near = (100..113).contains(&n);
            assert!(apart <= if is_near { 500 } else { 1 }, "{off}: {n} by {apart}");
        }
        assert!(!track.video.shown().expect("a layer").awaits_keyframe(), "{off}");
    }
}
