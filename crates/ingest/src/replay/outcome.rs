//! Result of a replay, with its counters.

use headgate_capture::{Ended, FrameDigest, Hash, Head};
use headgate_media::{Codec, Frame, FrameKind, Track};
use headgate_whip::WhipCounters;

use super::Comparison;

/// The largest step between two frames of a track that does not count as a gap, milliseconds.
const HOLE_MS: i64 = 1_000;

/// One track of the replay's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedTrack {
    /// Name of its codec.
    pub codec: &'static str,
    /// Frames that contain media.
    pub frames: u64,
    /// Payload bytes of those frames.
    pub bytes: u64,
    /// Keyframes among them; audio has none.
    pub keyframes: u64,
    /// Decode timestamp of the first frame, ms.
    pub first_ms: i64,
    /// Decode timestamp of the last frame, ms.
    pub last_ms: i64,
    /// Decode timestamp of the first keyframe, ms.
    pub first_keyframe_ms: Option<i64>,
    /// Steps of more than a second between two frames.
    pub holes: u64,
    /// Steps backwards.
    pub steps_back: u64,
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Header of the file.
    pub head: Head,
    /// The tracks, video first.
    pub tracks: Vec<ReplayedTrack>,
    /// Hash of the output: bodies and timestamps of all RTMP messages.
    pub hash: u64,
    /// All frames, including configurations and metadata.
    pub frames: u64,
    /// Audio and video payload, bytes.
    pub bytes_in: u64,
    /// Packets lost, requested again and recovered; keyframes requested. `None` for RTMP.
    pub requests: Option<WhipCounters>,
    /// Code of the reason for which the replayed publish ended; `None` if it did not end.
    pub end: Option<String>,
    /// Code of the reason for which the live publish ended, if known.
    pub live_end: Option<String>,
    /// Why the capture ended; `None` if the file does not contain it.
    pub finished: Option<String>,
    /// Where and how the file is damaged.
    pub fault: Option<String>,
    /// Comparison with the frames of the live publish.
    pub comparison: Comparison,
}

impl Replayed {
    /// Description of what differs from the live publish; `None` if nothing does.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let ends = (self.live_end.is_some() && self.live_end != self.end).then(|| {
            let of = |end: &Option<String>| end.clone().unwrap_or_else(|| "no end".into());
            format!(
                "the publish ended with {}, the replay with {}",
                of(&self.live_end),
                of(&self.end)
            )
        });
        self.comparison.difference.clone().or(ends)
    }
}

/// Counters of a running replay.
#[derive(Debug, Default)]
pub(super) struct Tally {
    frames: Vec<FrameDigest>,
    video: Option<ReplayedTrack>,
    audio: Option<ReplayedTrack>,
    hash: Hash,
    end: Option<String>,
    requests: Option<WhipCounters>,
}

impl Tally {
    /// Adds a frame and its FLV tag.
    pub(super) fn add(&mut self, frame: &Frame, tag: &[u8]) {
        self.frames.push(FrameDigest::of(frame));
        self.hash.add(tag);
        let place = match frame.track() {
            Track::Video => &mut self.video,
            Track::Audio => &mut self.audio,
            Track::Script => return,
        };
        if matches!(frame.kind, FrameKind::Configuration | FrameKind::ColorInfo) {
            return;
        }
        let millis = frame.timestamp.as_millis();
        let track = place.get_or_insert_with(|| begun(frame.codec, millis));
        track.frames += 1;
        track.bytes += frame.data.len() as u64;
        track.holes += u64::from(millis - track.last_ms > HOLE_MS);
        track.steps_back += u64::from(millis < track.last_ms);
        track.last_ms = millis;
        if frame.kind == FrameKind::Keyframe {
            track.keyframes += 1;
            track.first_keyframe_ms.get_or_insert(millis);
        }
    }

    /// Sets the reason of the end; the first one counts.
    pub(super) fn end(&mut self, reason: &str) {
        self.end.get_or_insert_with(|| reason.to_owned());
    }

    pub(super) const fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn frames(&self) -> &[FrameDigest] {
        &self.frames
    }

    pub(super) const fn set_requests(&mut self, counters: WhipCounters) {
        self.requests = Some(counters);
    }

    pub(super) fn outcome(
        self,
        head: Head,
        comparison: Comparison,
        live_end: Option<Ended>,
        finished: Option<String>,
        fault: Option<String>,
        bytes_in: u64,
    ) -> Replayed {
        Replayed {
            head,
            tracks: self.video.into_iter().chain(self.audio).collect(),
            hash: self.hash.value(),
            frames: self.frames.len() as u64,
            bytes_in,
            requests: self.requests,
            end: self.end,
            live_end: live_end.map(|ended| ended.reason),
            finished,
            fault,
            comparison,
        }
    }
}

const fn begun(codec: Codec, millis: i64) -> ReplayedTrack {
    ReplayedTrack {
        codec: codec.name(),
        frames: 0,
        bytes: 0,
        keyframes: 0,
        first_ms: millis,
        last_ms: millis,
        first_keyframe_ms: None,
        holes: 0,
        steps_back: 0,
    }
}
