//! Converts between RTMP media messages and frames: tag bodies and clocks in one place. Pure.

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track, flv, opus};
use headgate_rtmp::{MediaKind, MediaMessage};

use super::effect::AudioForm;
use super::rtmp_clock::RtmpClock;
use crate::publish::capture::CLOCK_BYTES;

/// The clocks of a broadcaster's tracks.
#[derive(Debug, Default)]
pub(crate) struct TrackClocks {
    audio: RtmpClock,
    video: RtmpClock,
    has_opus_head: bool,
}

impl TrackClocks {
    /// The state as stored in a capture.
    pub(crate) fn to_bytes(&self) -> [u8; CLOCK_BYTES] {
        let mut bytes = [0; CLOCK_BYTES];
        bytes[..9].copy_from_slice(&self.audio.to_bytes());
        bytes[9..18].copy_from_slice(&self.video.to_bytes());
        bytes[18] = u8::from(self.has_opus_head);
        bytes
    }

    /// Reads such a state.
    pub(crate) fn read_bytes(bytes: &[u8; CLOCK_BYTES]) -> Self {
        let mut halves = bytes.chunks_exact(9).map(|half| half.try_into().unwrap_or_default());
        let mut next = || RtmpClock::read(halves.next().unwrap_or_default());
        Self { audio: next(), video: next(), has_opus_head: bytes[18] == 1 }
    }

    /// The frame in a message; `None` if it contains none.
    pub(crate) fn read(&mut self, message: MediaMessage) -> Result<Option<Frame>, flv::Error> {
        let MediaMessage { kind, timestamp, payload } = message;
        let (clock, other, frame) = match kind {
            MediaKind::Audio => {
                let frame = flv::read_audio(&payload, Timestamp::ZERO)?;
                (&mut self.audio, self.video, frame)
            }
            MediaKind::Video => {
                let frame = flv::read_video(&payload, Timestamp::ZERO)?;
                (&mut self.video, self.audio, frame)
            }
            MediaKind::Script => (&mut self.video, self.audio, Some(script(payload))),
        };
        Ok(frame.map(|mut frame| {
            frame.timestamp = match frame.kind {
                // Headers have timestamp 0 even in mid-stream: leave it, and do not let it move the clock.
                FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script
                    if timestamp == 0 =>
                {
                    Timestamp::ZERO
                }
                FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script => {
                    { *clock }.unwrap(timestamp, &other)
                }
                FrameKind::Keyframe
                | FrameKind::Inter
                | FrameKind::Disposable
                | FrameKind::Audio => clock.unwrap(timestamp, &other),
            };
            frame
        }))
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
