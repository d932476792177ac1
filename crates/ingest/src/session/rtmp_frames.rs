//! Converts between RTMP media messages and frames: tag bodies and timestamps in one place. Pure.

use std::time::Instant;

use bytes::Bytes;
use headgate_media::flv::WireTime;
use headgate_media::{
    Codec, Frame, FrameKind, IrregularityCounts, TimePolicy, Timestamp, Track, flv, opus,
};
use headgate_rtmp::{ClientSession, MediaKind, MediaMessage};

use super::effect::AudioForm;
use crate::publish::capture::CLOCK_BYTES;

/// The clocks of a peer's tracks.
#[derive(Debug)]
pub(crate) struct TrackClocks {
    wire_time: WireTime,
    source: TimeSource,
    has_opus_head: bool,
}

/// Who stamps the frames.
#[derive(Debug)]
enum TimeSource {
    /// A broadcaster, whose timestamps are subject to the policy.
    Broadcaster(Box<TimePolicy>),
    /// Another node, which has applied the policy: its timestamps are only extended to 64 bits, and it repeats some
    /// after a reconnect. The newest of video and audio.
    Node([Option<Timestamp>; 2]),
}

impl TrackClocks {
    /// For a broadcaster.
    pub(crate) fn of_broadcaster() -> Self {
        Self::new(TimeSource::Broadcaster(Box::default()))
    }

    /// For a stream pulled from another node.
    pub(crate) fn of_node() -> Self {
        Self::new(TimeSource::Node([None; 2]))
    }

    fn new(source: TimeSource) -> Self {
        Self { wire_time: WireTime::default(), source, has_opus_head: false }
    }

    /// The state at `now` as stored in a capture.
    pub(crate) fn to_bytes(&self, now: Instant) -> [u8; CLOCK_BYTES] {
        let mut bytes = [0; CLOCK_BYTES];
        if let TimeSource::Broadcaster(policy) = &self.source {
            bytes[2..].copy_from_slice(&policy.to_bytes(now));
        }
        bytes[0] = u8::from(self.wire_time.is_long);
        bytes[1] = u8::from(self.has_opus_head);
        bytes
    }

    /// Reads such a state of a broadcaster's clocks, to continue at `now`.
    pub(crate) fn read_bytes(bytes: &[u8; CLOCK_BYTES], now: Instant) -> Self {
        let [is_long, has_opus_head, policy @ ..] = bytes;
        Self {
            wire_time: WireTime { is_long: *is_long == 1 },
            source: TimeSource::Broadcaster(Box::new(TimePolicy::read(policy, now))),
            has_opus_head: *has_opus_head == 1,
        }
    }

    /// The frame in a message that arrived at `now`; `None` if it contains none.
    pub(crate) fn read(
        &mut self,
        message: MediaMessage,
        now: Instant,
    ) -> Result<Option<Frame>, flv::Error> {
        let MediaMessage { kind, timestamp, payload } = message;
        let frame = match kind {
            MediaKind::Audio => flv::read_audio(&payload, Timestamp::ZERO)?,
            MediaKind::Video => flv::read_video(&payload, Timestamp::ZERO)?,
            MediaKind::Script => Some(script(payload)),
        };
        Ok(frame.map(|frame| self.stamp(frame, timestamp, now)))
    }

    /// What was irregular about the timestamps since the last call.
    pub(crate) fn take_irregularities(&mut self) -> Option<Box<IrregularityCounts>> {
        match &mut self.source {
            TimeSource::Broadcaster(policy) => policy.take_irregularities(),
            TimeSource::Node(_) => None,
        }
    }

    fn stamp(&mut self, frame: Frame, wire: u32, now: Instant) -> Frame {
        let is_header = match frame.kind {
            FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script => true,
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                false
            }
        };
        // Headers have timestamp 0 even in mid-stream: leave it, and do not let it move the clock.
        if is_header && wire == 0 {
            return frame;
        }
        let track = frame.track();
        match &mut self.source {
            TimeSource::Broadcaster(policy) => {
                let own = self.wire_time.extend(wire, policy.newest(track));
                place(policy, Frame { timestamp: own, ..frame }, now)
            }
            TimeSource::Node(newest) => {
                let [video, audio] = newest;
                let (this, other) =
                    if track == Track::Audio { (audio, *video) } else { (video, *audio) };
                let timestamp = self.wire_time.extend(wire, this.or(other));
                if !is_header {
                    *this = (*this).max(Some(timestamp));
                }
                Frame { timestamp, ..frame }
            }
        }
    }

    /// The configuration to insert before `frame` if the broadcaster omitted it: Opus may begin without one (E-RTMP,
    /// "Enhanced Audio"), but players that join late and some upstreams need it.
    pub(crate) fn missing_configuration(&mut self, frame: &Frame) -> Option<Frame> {
        if frame.codec != Codec::Opus || std::mem::replace(&mut self.has_opus_head, true) {
            return None;
        }
        let channels = opus::channels(&frame.data).ok()?;
        let data = Bytes::copy_from_slice(&opus::head(channels));
        let is_missing = frame.kind == FrameKind::Audio;
        is_missing.then_some(Frame { kind: FrameKind::Configuration, data, ..frame.clone() })
    }
}

/// A broadcaster's frame that arrived at `now`, with the timestamp that the policy gives it.
pub(crate) fn place(policy: &mut TimePolicy, frame: Frame, now: Instant) -> Frame {
    let track = frame.track();
    match frame.kind {
        FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script => {
            Frame { timestamp: policy.place_header(track, frame.timestamp), ..frame }
        }
        FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
            let composition_ms = policy.place_composition(frame.composition_ms);
            Frame { timestamp: policy.place(track, frame.timestamp, now), composition_ms, ..frame }
        }
    }
}

/// Sends a frame to an upstream.
pub(super) fn write_to_upstream(session: &mut ClientSession, frame: &Frame) {
    let header = flv::tag_header(frame);
    session.send_media(media_kind(frame), wire_timestamp(frame), header.as_slice(), &frame.data);
}

fn script(data: Bytes) -> Frame {
    let (codec, kind) = (Codec::Amf0, FrameKind::Script);
    Frame { codec, kind, timestamp: Timestamp::ZERO, composition_ms: 0, data }
}

/// The kind of message that carries a frame.
pub(crate) const fn media_kind(frame: &Frame) -> MediaKind {
    match frame.track() {
        Track::Video => MediaKind::Video,
        Track::Audio => MediaKind::Audio,
        Track::Script => MediaKind::Script,
    }
}

/// The 32-bit wire timestamp of a frame (RTMP 1.0 5.3.1.2: serial arithmetic).
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the low 32 bits are what is meant"
)]
pub(crate) const fn wire_timestamp(frame: &Frame) -> u32 {
    frame.timestamp.as_millis() as u32
}

/// How a peer with this `fourCcList` takes Opus audio.
pub(crate) fn audio_form(four_cc_list: &[String]) -> AudioForm {
    if takes_codec(four_cc_list, Codec::Opus) { AudioForm::Opus } else { AudioForm::Aac }
}

/// The video codecs that a player with this `fourCcList` does not support: of a stream in one of them it gets only the
/// audio.
pub(crate) fn unlisted_video(four_cc_list: &[String]) -> Vec<Codec> {
    let mut codecs = vec![Codec::Hevc, Codec::Av1, Codec::Vp9];
    codecs.retain(|codec| !takes_codec(four_cc_list, *codec));
    codecs
}

/// Whether a player with this `fourCcList` supports the codec: legacy FLV codecs always, others only if listed (R3).
pub(crate) fn takes_codec(four_cc_list: &[String], codec: Codec) -> bool {
    let four_cc = match codec {
        Codec::H264 | Codec::Aac | Codec::Mp3(_) | Codec::Amf0 => return true,
        Codec::Hevc => "hvc1",
        Codec::Av1 => "av01",
        Codec::Vp9 => "vp09",
        Codec::Opus => "Opus",
    };
    four_cc_list.iter().any(|listed| listed == four_cc || listed == "*")
}

#[cfg(test)]
mod tests {
    use headgate_media::Irregularity;

    use super::*;

    #[test]
    fn a_composition_time_that_no_reordering_accounts_for_is_left_out() {
        let (mut clocks, now) = (TrackClocks::of_broadcaster(), Instant::now());
        let mut passed = |header: &[u8], millis: i32| {
            let [_, c0, c1, c2] = millis.to_be_bytes();
            let payload = [header, &[c0, c1, c2, 0x41, 0x9a]].concat().into();
            let message = MediaMessage { kind: MediaKind::Video, timestamp: 0, payload };
            let frame = clocks.read(message, now).expect("readable").expect("a frame");
            frame.composition_ms
        };
        for header in [&[0x27, 1][..], b"\xa1hvc1"] {
            for (millis, want) in [
                (80, 80),
                (8_388_607, 0),
                (-8_388_608, 0),
                (10_001, 0),
                (10_000, 10_000),
                (-10_001, 0),
                (-10_000, -10_000),
            ] {
                assert_eq!(passed(header, millis), want, "{header:x?}");
            }
        }
        let counts = clocks.take_irregularities().expect("some");
        assert_eq!(counts.count(Irregularity::TimeOutlier), 8);
    }
}
