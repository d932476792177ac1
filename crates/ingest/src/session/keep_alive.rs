//! Keeps a publish open at an upstream while the publisher sends nothing (R4). Pure: time is an argument.
//!
//! Upstreams end a publish that sends nothing for some seconds (SRS after 5 s, nginx-rtmp after `drop_idle_publisher`),
//! but a publisher whose network failed may return much later and send everything that TCP buffered. Silent frames
//! would occupy the time of that media, so the audio's decoder configuration is sent again instead, or the video's:
//! it has no duration, every server must accept it, and a decoder that knows it continues unchanged. An empty audio
//! message does not work: SRS does not count it, and MediaMTX closes the connection.

use std::time::{Duration, Instant};

use headgate_media::{Frame, FrameKind, Timestamp, Track};

/// An upstream to which nothing was sent for this long gets a configuration again, repeatedly until media arrives. Two
/// of them fit into the shortest limit in use, SRS's 5 s.
const QUIET_LIMIT: Duration = Duration::from_secs(2);
/// Audio whose newest frame is further than this behind that of the video has stopped: the video's configuration is
/// sent instead.
const STALE_AUDIO_US: i64 = 1_000_000;

/// What was sent on one connection to an upstream. Every frame is noted as it is written.
#[derive(Debug, Default)]
pub(crate) struct KeepAlive {
    /// When the newest frame was written; servers wait longer for the first one.
    written_at: Option<Instant>,
    audio: Written,
    video: Written,
}

/// The newest frame and configuration of one track.
#[derive(Debug, Default)]
struct Written {
    configuration: Option<Frame>,
    timestamp: Option<Timestamp>,
}

impl KeepAlive {
    /// A frame was written.
    pub(crate) fn note(&mut self, frame: &Frame, now: Instant) {
        self.written_at = Some(now);
        let written = match frame.track() {
            Track::Audio => &mut self.audio,
            Track::Video => &mut self.video,
            Track::Script => return,
        };
        match frame.kind {
            FrameKind::Configuration => written.configuration = Some(frame.clone()),
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                written.timestamp = Some(frame.timestamp)
            }
            FrameKind::ColorInfo | FrameKind::Script => {}
        }
    }

    /// When the configuration is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.written_at.map(|at| at + QUIET_LIMIT)
    }

    /// A configuration that is due, with its track's newest timestamp. Also `None` when the stream has none (MP3).
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Frame> {
        if self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        self.written_at = Some(now);
        let is_stale = match (self.audio.timestamp, self.video.timestamp) {
            (Some(audio), Some(video)) => {
                video.as_micros().saturating_sub(audio.as_micros()) > STALE_AUDIO_US
            }
            (None | Some(_), _) => false,
        };
        let audio = self.audio.repeated().filter(|_| !is_stale);
        audio.or_else(|| self.video.repeated()).or_else(|| self.audio.repeated())
    }
}

impl Written {
    fn repeated(&self) -> Option<Frame> {
        let (configuration, timestamp) = (self.configuration.clone()?, self.timestamp?);
        Some(Frame { timestamp, ..configuration })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use headgate_media::Codec;
    use headgate_media::SoundFlags;

    fn frame(codec: Codec, kind: FrameKind, millis: i64) -> Frame {
        let data = Bytes::from_static(b"data");
        let timestamp = Timestamp::from_millis(millis);
        Frame { codec, kind, timestamp, composition_ms: 0, data }
    }

    /// What is due two seconds after these frames.
    fn repeated(frames: &[(Codec, FrameKind, i64)]) -> Option<(Codec, i64)> {
        let (mut keep_alive, now) = (KeepAlive::default(), Instant::now());
        for &(codec, kind, millis) in frames {
            keep_alive.note(&frame(codec, kind, millis), now);
        }
        assert_eq!(keep_alive.poll(now + QUIET_LIMIT - Duration::from_millis(1)), None);
        let repeated = keep_alive.poll(now + QUIET_LIMIT);
        assert!(repeated.as_ref().is_none_or(|frame| frame.kind == FrameKind::Configuration));
        repeated.map(|frame| (frame.codec, frame.timestamp.as_millis()))
    }

    const AVC: (Codec, FrameKind, i64) = (Codec::H264, FrameKind::Configuration, 0);
    const AAC: (Codec, FrameKind, i64) = (Codec::Aac, FrameKind::Configuration, 0);
    const OPUS: (Codec, FrameKind, i64) = (Codec::Opus, FrameKind::Configuration, 0);
    const fn picture(millis: i64) -> (Codec, FrameKind, i64) {
        (Codec::H264, FrameKind::Inter, millis)
    }

    #[test]
    fn the_audio_configuration_is_repeated_or_else_that_of_the_video() {
        let aac = (Codec::Aac, FrameKind::Audio, 80);
        let opus = (Codec::Opus, FrameKind::Audio, 80);
        let mp3 = (Codec::Mp3(SoundFlags::STEREO), FrameKind::Audio, 80);
        assert_eq!(repeated(&[AVC, AAC, picture(100), aac]), Some((Codec::Aac, 80)));
        assert_eq!(repeated(&[AVC, OPUS, opus, picture(100)]), Some((Codec::Opus, 80)));
        assert_eq!(repeated(&[AAC, aac]), Some((Codec::Aac, 80)));
        assert_eq!(repeated(&[AVC, picture(100)]), Some((Codec::H264, 100)));
        assert_eq!(repeated(&[AVC, AAC, picture(100)]), Some((Codec::H264, 100)), "no audio yet");
        assert_eq!(repeated(&[AVC, mp3, picture(100)]), Some((Codec::H264, 100)));
        assert_eq!(repeated(&[AVC, AAC, aac, picture(2_000)]), Some((Codec::H264, 2_000)));
        assert_eq!(repeated(&[mp3]), None);
        assert_eq!(repeated(&[AVC, AAC]), None, "no frame yet");
    }

    #[test]
    fn it_is_repeated_every_two_seconds_until_something_else_is_sent() {
        let (mut keep_alive, start) = (KeepAlive::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(keep_alive.deadline(), None);
        for (codec, kind, millis) in [AVC, picture(0)] {
            keep_alive.note(&frame(codec, kind, millis), start);
        }
        assert_eq!(keep_alive.deadline(), Some(at(2_000)));
        assert!(keep_alive.poll(at(2_010)).is_some() && keep_alive.poll(at(4_000)).is_none());
        assert!(keep_alive.poll(at(4_010)).is_some());
        keep_alive.note(&frame(Codec::H264, FrameKind::Inter, 40), at(5_000));
        assert_eq!(keep_alive.deadline(), Some(at(7_000)));
        assert_eq!(keep_alive.poll(at(7_000)).map(|frame| frame.timestamp.as_millis()), Some(40));
    }
}
