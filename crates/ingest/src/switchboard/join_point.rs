//! The point at which subscribers join a live stream: its configurations and its cached GOP.

use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};

/// Byte limit of one stream's cached GOP.
const GOP_BYTES_LIMIT: usize = 4 << 20;
/// Limit of the media time that one stream's cached GOP spans.
const GOP_TIME_LIMIT_US: i64 = 8_000_000;

/// Limit of the number of frames in it, needed for empty frames with a constant timestamp. Eight seconds with 60 video
/// frames and 400 audio packets a second are 3,680.
const GOP_FRAMES_LIMIT: usize = 4_096;

/// Media time of audio before the first video frame that a new subscriber still gets; for a stream without video, all
/// that it gets.
const PREROLL_LIMIT_US: i64 = 1_000_000;

/// The newest configuration of each track and, if enabled, everything since the last keyframe.
#[derive(Debug)]
pub(super) struct JoinPoint {
    metadata: Option<Frame>,
    video: Option<Frame>,
    color: Option<Frame>,
    /// AAC or MP3.
    audio: Option<Frame>,
    opus: Option<Frame>,
    gop: Vec<Frame>,
    gop_bytes: usize,
    caches_gop: bool,
    has_video: bool,
    has_audio: bool,
    /// Whether the publisher's audio is Opus, and whether packets of it have come.
    has_opus: bool,
    has_opus_audio: bool,
}

impl JoinPoint {
    /// An empty join point; with `caches_gop` false it keeps only configurations.
    #[must_use]
    pub(super) fn new(caches_gop: bool) -> Self {
        Self {
            metadata: None,
            video: None,
            color: None,
            audio: None,
            opus: None,
            gop: Vec::new(),
            gop_bytes: 0,
            caches_gop,
            has_video: false,
            has_audio: false,
            has_opus: false,
            has_opus_audio: false,
        }
    }

    /// Notes a frame. Returns false if it repeats what every subscriber already has and must not be passed on.
    pub(super) fn handle_frame(&mut self, frame: &Frame) -> bool {
        self.has_audio |= frame.track() == Track::Audio;
        if frame.codec == Codec::Opus {
            self.has_opus = true;
            self.has_opus_audio |= frame.kind == FrameKind::Audio;
        }
        match frame.kind {
            FrameKind::Configuration => return self.handle_configuration(frame),
            FrameKind::ColorInfo => return replace(&mut self.color, frame),
            FrameKind::Script => {
                if frame.is_metadata() {
                    self.metadata = Some(frame.clone());
                }
            }
            FrameKind::Keyframe => {
                if self.has_video {
                    self.clear();
                }
                self.has_video = true;
                self.cache(frame);
            }
            FrameKind::Audio if self.was_made_before(frame) => return false,
            FrameKind::Audio if !self.has_video => self.cache_preroll(frame),
            FrameKind::Inter | FrameKind::Disposable | FrameKind::Audio => {
                if self.has_video && !self.gop.is_empty() {
                    self.cache(frame);
                }
            }
        }
        true
    }

    /// What a new subscriber gets first: metadata, video configuration and colour, audio configuration, then the GOP.
    /// The headers have timestamp 0, as encoders send theirs: they apply from the start, whenever they last arrived,
    /// and FFmpeg's demuxer treats `onMetaData` with any other timestamp as a track of its own.
    pub(super) fn burst(&self) -> impl Iterator<Item = Frame> + '_ {
        self.headers().chain(self.gop.iter().cloned())
    }

    /// Only the headers of [`JoinPoint::burst`].
    pub(super) fn headers(&self) -> impl Iterator<Item = Frame> + '_ {
        let headers = [&self.metadata, &self.video, &self.color, &self.opus, &self.audio];
        headers
            .into_iter()
            .flatten()
            .map(|header| Frame { timestamp: Timestamp::ZERO, ..header.clone() })
    }

    /// Whether a keyframe is cached, or there has been no video.
    pub(super) fn can_begin(&self) -> bool {
        // The cached frames may begin with audio from before the first keyframe.
        let has_keyframe = self.gop.iter().any(|frame| frame.kind == FrameKind::Keyframe);
        has_keyframe || !self.tracks().0
    }

    /// Sets whether GOPs are cached.
    pub(super) fn set_caches_gop(&mut self, caches_gop: bool) {
        self.caches_gop = caches_gop;
        if !caches_gop {
            self.clear();
        }
    }

    /// Whether there has been video, and audio.
    pub(super) const fn tracks(&self) -> (bool, bool) {
        (self.has_video || self.video.is_some(), self.has_audio)
    }

    /// Whether the publisher's audio is Opus: AAC is transcoded from it.
    pub(super) const fn has_opus(&self) -> bool {
        self.has_opus
    }

    /// Whether Opus packets have come.
    pub(super) const fn has_opus_audio(&self) -> bool {
        self.has_opus_audio
    }

    /// Whether a keyframe has passed.
    pub(super) const fn has_begun_video(&self) -> bool {
        self.has_video
    }

    /// The video codec of a stream that has had no audio.
    pub(super) fn only_video(&self) -> Option<Codec> {
        self.video.as_ref().filter(|_| !self.has_audio).map(|header| header.codec)
    }

    /// The Opus frames that a new subscriber would get: a new transcoder begins with them.
    pub(super) fn opus_frames(&self) -> impl Iterator<Item = Frame> + '_ {
        let packets = self.gop.iter().filter(|frame| frame.codec == Codec::Opus);
        self.opus.iter().chain(packets).cloned()
    }

    /// The stream's AAC is no longer transcoded: what is cached of it would be incomplete. Its header stays, for those who
    /// join before it is transcoded again.
    pub(super) fn forget_aac(&mut self) {
        self.forget_frames(Codec::Aac);
    }

    /// The stream's audio is no longer Opus. AAC from before or beside it is forgotten, too: subscribers that took Opus
    /// have not had its header, which has to count as new when it comes.
    pub(super) fn forget_opus(&mut self) {
        (self.opus, self.audio) = (None, None);
        (self.has_opus, self.has_opus_audio) = (false, false);
        self.forget_frames(Codec::Opus);
        self.forget_frames(Codec::Aac);
    }

    /// The configuration of AAC.
    pub(super) fn audio(&self) -> Option<&Frame> {
        self.audio.as_ref().filter(|frame| frame.codec == Codec::Aac)
    }

    /// Whether this is AAC for a time that the cache already covers: a transcoder restarted for subscribers of another worker
    /// sends what it had cached again. Every subscriber that takes AAC has already had it, or joined with it.
    fn was_made_before(&self, frame: &Frame) -> bool {
        let is_made = frame.codec == Codec::Aac && self.opus.is_some();
        let newest = || self.gop.iter().rev().find(|cached| cached.codec == Codec::Aac);
        is_made && newest().is_some_and(|newest| frame.timestamp <= newest.timestamp)
    }

    /// A header only counts as new if its bytes changed, so that a repeated one does not reset any decoder.
    fn handle_configuration(&mut self, frame: &Frame) -> bool {
        let slot = match frame.track() {
            Track::Video => &mut self.video,
            Track::Audio if frame.codec == Codec::Opus => &mut self.opus,
            Track::Audio => &mut self.audio,
            Track::Script => return true,
        };
        if !replace(slot, frame) {
            return false;
        }
        // What is cached belongs to the previous header.
        if frame.track() == Track::Video {
            self.color = self.color.take().filter(|color| color.codec == frame.codec);
            self.clear();
        } else {
            self.forget_frames(frame.codec);
        }
        true
    }

    fn forget_frames(&mut self, codec: Codec) {
        self.gop.retain(|frame| frame.codec != codec);
        self.gop_bytes = self.gop.iter().map(|frame| frame.data.len()).sum();
    }

    fn cache_preroll(&mut self, frame: &Frame) {
        let oldest = frame.timestamp.as_micros() - PREROLL_LIMIT_US;
        let late = self.gop.iter().take_while(|kept| kept.timestamp.as_micros() < oldest).count();
        let bytes: usize = self.gop.drain(..late).map(|kept| kept.data.len()).sum();
        self.gop_bytes -= bytes;
        self.cache(frame);
    }

    fn cache(&mut self, frame: &Frame) {
        if !self.caches_gop {
            return;
        }
        let first = self.gop.first().map_or(frame.timestamp, |first| first.timestamp);
        let span = frame.timestamp.as_micros() - first.as_micros();
        let has_no_room = self.gop_bytes + frame.data.len() > GOP_BYTES_LIMIT
            || span > GOP_TIME_LIMIT_US
            || self.gop.len() >= GOP_FRAMES_LIMIT;
        if has_no_room {
            // New subscribers wait for the next keyframe instead.
            self.clear();
            return;
        }
        self.gop_bytes += frame.data.len();
        self.gop.push(frame.clone());
    }

    /// Drops the cached frames: new subscribers wait for the next keyframe.
    pub(super) fn clear(&mut self) {
        self.gop.clear();
        self.gop_bytes = 0;
    }
}

/// Whether a frame of this kind belongs to the headers of the joining burst.
pub(super) const fn is_header(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Configuration | FrameKind::ColorInfo | FrameKind::Script)
}

/// Keeps `frame` unless it equals the kept one; returns whether it is new.
fn replace(slot: &mut Option<Frame>, frame: &Frame) -> bool {
    let same = |known: &Frame| known.codec == frame.codec && known.data == frame.data;
    let is_new = !slot.as_ref().is_some_and(same);
    if is_new {
        *slot = Some(frame.clone());
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn cached(frames: impl IntoIterator<Item = (FrameKind, i64, usize)>) -> usize {
        let mut join = JoinPoint::new(true);
        for (kind, millis, length) in frames {
            let (codec, timestamp) = (Codec::H264, Timestamp::from_millis(millis));
            let data = Bytes::from(vec![0; length]);
            join.handle_frame(&Frame { codec, kind, timestamp, composition_ms: 0, data });
        }
        assert!(join.gop_bytes <= GOP_BYTES_LIMIT);
        join.burst().count()
    }

    #[test]
    fn headers_are_given_to_a_joiner_at_the_start_of_the_clock() {
        let mut join = JoinPoint::new(true);
        let (codec, timestamp) = (Codec::H264, Timestamp::from_millis(4_014));
        for kind in [FrameKind::Configuration, FrameKind::Keyframe] {
            let data = Bytes::from_static(b"x");
            join.handle_frame(&Frame { codec, kind, timestamp, composition_ms: 0, data });
        }
        let times: Vec<_> = join.burst().map(|frame| frame.timestamp).collect();
        assert_eq!(times, [Timestamp::ZERO, timestamp]);
    }

    #[test]
    fn a_joiner_gets_the_newest_colour_information_after_the_configuration_of_its_codec() {
        let mut join = JoinPoint::new(true);
        let frame = |codec, kind, data: &'static [u8]| {
            let (timestamp, data) = (Timestamp::from_millis(40), Bytes::from_static(data));
            Frame { codec, kind, timestamp, composition_ms: 0, data }
        };
        let color = |data| frame(Codec::Hevc, FrameKind::ColorInfo, data);
        assert!(join.handle_frame(&color(b"sdr")));
        assert!(join.handle_frame(&frame(Codec::Hevc, FrameKind::Configuration, b"hvcC")));
        assert!(join.handle_frame(&color(b"pq")));
        assert!(!join.handle_frame(&color(b"pq")), "nothing new");
        let given: Vec<_> = join.burst().map(|frame| frame.data).collect();
        assert_eq!(given, [&b"hvcC"[..], b"pq"]);
        join.handle_frame(&frame(Codec::H264, FrameKind::Configuration, b"avcC"));
        assert_eq!(join.burst().count(), 1, "it was of another codec");
    }

    #[test]
    fn at_most_eight_seconds_or_four_megabytes_of_a_gop_are_cached() {
        use FrameKind::{Inter, Keyframe};
        let seconds = |end: i64| [(Keyframe, 0, 9), (Inter, 4_000, 9), (Inter, end, 9)];
        assert_eq!((cached(seconds(8_000)), cached(seconds(8_001))), (3, 0));
        let bytes = |last: usize| [(Keyframe, 0, 4 << 19), (Inter, 40, 4 << 19), (Inter, 80, last)];
        assert_eq!((cached(bytes(0)), cached(bytes(1))), (3, 0));
        let still = std::iter::repeat_n((Inter, 0, 0), GOP_FRAMES_LIMIT - 1);
        let whole = std::iter::once((Keyframe, 0, 0)).chain(still);
        assert_eq!(cached(whole.clone()), GOP_FRAMES_LIMIT);
        assert_eq!(cached(whole.chain([(Inter, 0, 0)])), 0, "one frame too many");
        let next = seconds(9_000).into_iter().chain([(Inter, 9_040, 9), (Keyframe, 9_080, 9)]);
        assert_eq!(cached(next), 1, "the next keyframe restarts the cache");
    }
}
