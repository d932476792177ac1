//! Compares the frames of a replay with those of the live publish and finds the first difference.

use headgate_capture::FrameDigest;
use headgate_media::Track;

/// Tolerance in microseconds for a WHIP capture that began in mid-publish: the replay maps the sender's clock again,
/// first by arrival and then by sender reports, which the live session had already applied.
const CLOCK_SLACK_US: i64 = 1_000_000;
/// Frames at the end, of the last input, that a truncated capture may lack.
const TAIL_LIMIT: usize = 512;

/// Result of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Number of compared frames.
    pub compared: usize,
    /// Frames of the live publish before the replay's first keyframe.
    pub skipped: usize,
    /// Description of the first difference, if there is one.
    pub difference: Option<String>,
}

impl Comparison {
    /// Compares all frames exactly if both began with the same state (`is_exact`); otherwise from the replay's first
    /// video keyframe, ignoring a constant offset of the timestamps.
    pub(crate) fn new(
        live: &[FrameDigest],
        played: &[FrameDigest],
        without_media: bool,
        is_exact: bool,
    ) -> Self {
        if is_exact {
            return compare(live, played, without_media, Some(0), 0);
        }
        // Audio and video may have been interleaved differently until both tracks ran: compare each track separately.
        let of = |frames: &[FrameDigest], track: Track| -> Vec<FrameDigest> {
            frames
                .iter()
                .filter(|frame| frame.codec.track() == track && is_media(frame))
                .cloned()
                .collect()
        };
        let mut all = Self { compared: 0, skipped: 0, difference: None };
        for track in [Track::Video, Track::Audio] {
            let (live, played) = (of(live, track), of(played, track));
            let Some((from, at)) = meeting(&live, &played, without_media, track) else {
                if !played.is_empty() {
                    let words = format!("no {track:?} frame of the replay matches the publish");
                    all.difference.get_or_insert(words.to_lowercase());
                }
                continue;
            };
            let (live, played) =
                (live.get(from..).unwrap_or_default(), played.get(at..).unwrap_or_default());
            let part = compare(live, played, without_media, None, from);
            all.compared += part.compared;
            all.skipped += from;
            all.difference = all.difference.or(part.difference);
        }
        all
    }
}

/// The positions from which both are the same; the replay's first frames need not match the publish's first.
fn meeting(
    live: &[FrameDigest],
    played: &[FrameDigest],
    without_media: bool,
    track: Track,
) -> Option<(usize, usize)> {
    use headgate_media::FrameKind::Keyframe;
    let at = match track {
        Track::Video => played.iter().position(|frame| frame.kind == Keyframe)?,
        Track::Audio | Track::Script => 0,
    };
    let window = played.get(at..(at + 8).min(played.len()))?;
    let is_here = |from: usize| {
        let same = live.get(from..)?.iter().zip(window);
        let mut count = 0;
        for (live, played) in same {
            if !is_same(live, played, without_media) {
                return None;
            }
            count += 1;
        }
        (count > 0).then_some(())
    };
    (0..live.len()).find(|from| is_here(*from).is_some()).map(|from| (from, at))
}

fn is_media(frame: &FrameDigest) -> bool {
    use headgate_media::FrameKind::{Audio, Disposable, Inter, Keyframe};
    matches!(frame.kind, Keyframe | Inter | Disposable | Audio)
}

/// Compares everything but the timestamp.
fn is_same(live: &FrameDigest, played: &FrameDigest, without_media: bool) -> bool {
    let is_blank = without_media && is_media(live);
    live.codec == played.codec
        && live.kind == played.kind
        && live.size == played.size
        && live.composition_ms == played.composition_ms
        && (is_blank || live.hash == played.hash)
}

fn compare(
    live: &[FrameDigest],
    played: &[FrameDigest],
    without_media: bool,
    exact_offset: Option<i64>,
    skipped: usize,
) -> Comparison {
    let first = live.first().zip(played.first());
    let offset = exact_offset
        .or_else(|| first.map(|(live, played)| played.timestamp_us - live.timestamp_us));
    let slack = if exact_offset.is_some() { 0 } else { CLOCK_SLACK_US };
    let mut difference = None;
    for (number, (live, played)) in live.iter().zip(played).enumerate() {
        let apart = played.timestamp_us - live.timestamp_us - offset.unwrap_or(0);
        if !is_same(live, played, without_media) || apart.abs() > slack {
            let number = skipped + number + 1;
            let (live, played) = (words(live), words(played));
            difference = Some(format!("frame {number} was {live} and is {played}"));
            break;
        }
    }
    // A capture may lack the frames of its last input; a replay never does.
    let (of_live, of_replay) = (live.len(), played.len());
    if difference.is_none() && (of_replay < of_live || of_replay - of_live > TAIL_LIMIT) {
        difference = Some(format!("the publish had {of_live} frames, the replay has {of_replay}"));
    }
    Comparison { compared: of_live.min(of_replay), skipped: 0, difference }
}

fn words(frame: &FrameDigest) -> String {
    let FrameDigest { codec, kind, timestamp_us, composition_ms, size, hash } = frame;
    let kind = format!("{kind:?}").to_lowercase();
    let millis = timestamp_us.div_euclid(1000);
    format!("{} {kind} at {millis}+{composition_ms} ms of {size} bytes ({hash:016x})", codec.name())
}
