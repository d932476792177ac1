//! RTMP media messages ⇄ frames: tag bodies and clocks in one place. Pure.

use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track, flv};
use headgate_rtmp::{MediaKind, MediaMessage};

use crate::hub::SoundForm;
use crate::rtmp_clock::RtmpClock;

/// The clocks of a broadcaster's tracks.
#[derive(Debug, Default)]
pub(crate) struct TrackClocks {
    audio: RtmpClock,
    video: RtmpClock,
}

impl TrackClocks {
    /// The frame in a message; `None` for what carries none.
    pub(crate) fn read(&mut self, message: MediaMessage) -> Result<Option<Frame>, flv::Error> {
        let MediaMessage { kind, timestamp, payload } = message;
        let (clock, frame) = match kind {
            MediaKind::Audio => (&mut self.audio, flv::read_audio(&payload, Timestamp::ZERO)?),
            MediaKind::Video => (&mut self.video, flv::read_video(&payload, Timestamp::ZERO)?),
            MediaKind::Script => (&mut self.video, Some(script(payload))),
        };
        Ok(frame.map(|mut frame| {
            frame.timestamp = match frame.kind {
                // Headers are stamped 0 even in the middle of a clock: they must not move it.
                FrameKind::Configuration | FrameKind::Script => { *clock }.unwrap(timestamp),
                FrameKind::Keyframe
                | FrameKind::Inter
                | FrameKind::Disposable
                | FrameKind::Audio => clock.unwrap(timestamp),
            };
            frame
        }))
    }
}

fn script(data: bytes::Bytes) -> Frame {
    let (codec, kind) = (Codec::Amf0, FrameKind::Script);
    Frame { codec, kind, timestamp: Timestamp::ZERO, composition_ms: 0, data }
}

/// The message kind a frame travels in.
pub(crate) const fn media_kind(frame: &Frame) -> MediaKind {
    match frame.track() {
        Track::Video => MediaKind::Video,
        Track::Audio => MediaKind::Audio,
        Track::Script => MediaKind::Script,
    }
}

/// The wire's 32 bits of a frame's time (RTMP 1.0 5.3.1.2: serial arithmetic).
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the low 32 bits are what is meant"
)]
pub(crate) const fn wire_timestamp(frame: &Frame) -> u32 {
    frame.timestamp.as_millis() as u32
}

/// In which form a peer with this `fourCcList` takes the sound of a stream that comes as Opus.
pub(crate) fn sound_form(four_cc_list: &[String]) -> SoundForm {
    if takes_codec(four_cc_list, Codec::Opus) { SoundForm::Opus } else { SoundForm::Aac }
}

/// Whether a player with this `fourCcList` takes the codec: legacy FLV always, the rest only when listed (R3).
pub(crate) fn takes_codec(four_cc_list: &[String], codec: Codec) -> bool {
    let four_cc = match codec {
        Codec::H264 | Codec::Aac | Codec::Mp3 | Codec::Amf0 => return true,
        Codec::Hevc => "hvc1",
        Codec::Av1 => "av01",
        Codec::Vp9 => "vp09",
        Codec::Opus => "Opus",
    };
    four_cc_list.iter().any(|listed| listed == four_cc || listed == "*")
}
