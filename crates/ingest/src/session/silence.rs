//! Silent AAC for an upstream whose stream has no audio (R5). Pure: time is an argument.
//!
//! Contract: one [`Silence`] per connection to an upstream. Every frame for it goes through [`Silence::handle_frame`]
//! until that returns false; later frames need nothing from it. Video frames drive it, so there is no timer and silence
//! never runs ahead of video. The audio it writes never goes back in time, unless the video clock does.

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::aac::{SAMPLES_PER_FRAME, SILENCE_STEREO, lc_48k};
use headgate_media::{Channels, Codec, Frame, FrameKind, Timestamp, Track};

use super::filler::{Filler, Made};

/// How long after its first video frame a stream may take to send audio: platforms that require audio refuse a stream
/// after a few seconds without.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same when audio is known to be coming, from a publisher that is muted or an encoder that is late.
const EXPECTED_PATIENCE: Duration = Duration::from_secs(10);
/// Samples per second of the silence.
const SAMPLE_RATE: i64 = 48_000;
/// When the video clock is further away than this, silence starts again there instead of filling the gap.
const STEP_LIMIT_US: i64 = 2_000_000;
/// Video timestamps further than this from zero (4,500 years) count as this, so that sums cannot overflow.
const CLOCK_LIMIT_US: i64 = 1 << 57;
/// Audio that is further than this behind the silence already sent, or has not caught up with it after so much video,
/// is no longer left out: its timestamps are shifted to continue there.
const BEHIND_LIMIT_US: i64 = 10_000_000;

/// What one push adds to a stream until that has audio of its own.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    is_audio_expected: bool,
    /// Audio was expected and cannot be made.
    is_audio_refused: bool,
    /// An earlier connection to the upstream got silence already.
    is_overdue: bool,
    /// When the first video frame passed, and its timestamp.
    first_video: Option<(Instant, Timestamp)>,
    newest_video: Timestamp,
    phase: Phase,
    /// The stream's own decoder configuration of its audio.
    configuration: Option<Frame>,
    /// Codec and data of the configuration written last.
    written: Option<(Codec, Bytes)>,
    filler: Filler,
}

#[derive(Debug, Default)]
enum Phase {
    /// No audio has been written.
    #[default]
    Waiting,
    /// Silence is written beside the video.
    Silent(Run),
    /// The stream has audio, but silence has been written for its time. No more silence is made.
    CatchingUp(CatchUp),
}

/// Silence without a gap.
#[derive(Debug)]
struct Run {
    since: Timestamp,
    frames: i64,
}

#[derive(Debug)]
struct CatchUp {
    /// Where the audio already written ends.
    floor_us: i64,
    /// Video timestamp at which the stream's audio started.
    since: Timestamp,
    /// Offset added to the audio's timestamps, once it was too far behind.
    shift_us: Option<i64>,
}

impl Run {
    /// Timestamp of the next frame: from the sample counter, so that it never drifts.
    fn next_us(&self) -> i64 {
        let samples = self.frames * i64::from(SAMPLES_PER_FRAME);
        self.since.as_micros() + samples * 1_000_000 / SAMPLE_RATE
    }
}

impl CatchUp {
    /// What to add to an audio frame's timestamp; `None` to leave the frame out.
    fn shift(&mut self, frame: Timestamp, newest_video: Timestamp) -> Option<i64> {
        let behind = self.floor_us.saturating_sub(frame.as_micros());
        if behind <= 0 {
            return Some(0);
        }
        let waited = newest_video.as_micros().saturating_sub(self.since.as_micros());
        let is_too_far = match self.shift_us {
            None => behind > BEHIND_LIMIT_US || waited > BEHIND_LIMIT_US,
            Some(shift) => behind.saturating_sub(shift) > BEHIND_LIMIT_US,
        };
        if is_too_far {
            self.shift_us = Some(behind);
        }
        self.shift_us.filter(|shift| *shift >= behind)
    }
}

impl Silence {
    /// For a stream that had audio, of this configuration, until its publisher was lost: its successor may have none.
    pub(crate) fn behind(configuration: Option<Frame>) -> Self {
        let written = configuration.as_ref().map(|frame| (frame.codec, frame.data.clone()));
        Self { configuration, written, ..Self::default() }
    }

    /// For the next connection to the same upstream. If this one got silence, the next one gets it with its first frame:
    /// some upstreams assume that the first tracks they see are the only ones.
    pub(crate) fn renewed(&self) -> Self {
        let is_overdue = self.is_overdue || matches!(self.phase, Phase::Silent(_));
        let filler = Filler { budget: self.filler.budget, ..Filler::default() };
        Self { is_overdue, filler, ..Self::default() }
    }

    /// What was generated since the last call.
    pub(crate) fn take_made(&mut self) -> Option<Made> {
        self.filler.made.take()
    }

    /// The stream has reached a time without a video frame: if silence was written before, it continues up to there.
    pub(crate) fn go_on(&mut self, to: Timestamp, now: Instant, mut write: impl FnMut(&Frame)) {
        if matches!(self.phase, Phase::Silent(_)) {
            self.newest_video = to;
            self.fill(to, now, &mut write);
        }
    }

    /// Whether the stream has an audio track whose frames are still to come, transcoded ones for example: silence then
    /// waits longer. False when they cannot be made. A configuration of an audio codec counts as true.
    pub(crate) const fn set_audio_expected(&mut self, is_expected: bool) {
        self.is_audio_refused = !is_expected && (self.is_audio_refused || self.is_audio_expected);
        self.is_audio_expected = is_expected;
    }

    /// Writes a frame with what silence it needs. False: the stream has audio, and nothing is left to do here.
    pub(crate) fn handle_frame(
        &mut self,
        frame: &Frame,
        now: Instant,
        mut write: impl FnMut(&Frame),
    ) -> bool {
        match (frame.track(), frame.kind) {
            (Track::Audio, FrameKind::Configuration) => {
                self.configuration = Some(frame.clone());
                self.is_audio_refused = false;
                // Silence has a configuration of its own; the stream's follows with its audio.
                if matches!(self.phase, Phase::Waiting) {
                    self.write_configuration(frame.clone(), &mut write);
                }
                true
            }
            (Track::Audio, _) => self.handle_audio(frame, &mut write),
            (Track::Video, FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable) => {
                self.newest_video = frame.timestamp;
                self.fill(frame.timestamp, now, &mut write);
                write(frame);
                true
            }
            (Track::Video | Track::Script, _) => {
                write(frame);
                true
            }
        }
    }

    fn handle_audio(&mut self, frame: &Frame, write: &mut impl FnMut(&Frame)) -> bool {
        if let Phase::Silent(run) = &self.phase {
            let (floor_us, since) = (run.next_us(), self.newest_video);
            self.phase = Phase::CatchingUp(CatchUp { floor_us, since, shift_us: None });
        }
        let Phase::CatchingUp(catch_up) = &mut self.phase else {
            write(frame);
            return false;
        };
        let Some(shift) = catch_up.shift(frame.timestamp, self.newest_video) else { return true };
        let shifted_us = frame.timestamp.as_micros().saturating_add(shift);
        catch_up.floor_us = shifted_us;
        let timestamp = Timestamp::from_micros(shifted_us);
        if let Some(configuration) = self.configuration.clone() {
            self.write_configuration(Frame { timestamp, ..configuration }, write);
        }
        write(&Frame { timestamp, ..frame.clone() });
        shift != 0
    }

    /// Silence up to a video frame's timestamp.
    fn fill(&mut self, to: Timestamp, now: Instant, write: &mut impl FnMut(&Frame)) {
        let to = Timestamp::from_micros(to.as_micros().clamp(-CLOCK_LIMIT_US, CLOCK_LIMIT_US));
        let (since, first) = *self.first_video.get_or_insert((now, to));
        let mut run = match std::mem::take(&mut self.phase) {
            Phase::Waiting => {
                // Both clocks: the frames of a late join are old already, and its audio may be on its way.
                let elapsed = Timestamp::from_micros(to.as_micros() - first.as_micros());
                let has_header = self.configuration.is_some() && !self.is_audio_refused;
                let (patience, starts_at) = match self.is_audio_expected || has_header {
                    true => (EXPECTED_PATIENCE, to),
                    false if self.is_overdue => (Duration::ZERO, Timestamp::ZERO),
                    false => (PATIENCE, to),
                };
                if now < since + patience || elapsed < timestamp(patience) {
                    return;
                }
                let data = Bytes::copy_from_slice(&lc_48k(Channels::Stereo));
                self.write_configuration(aac(FrameKind::Configuration, starts_at, data), write);
                Run { since: to, frames: 0 }
            }
            Phase::Silent(run) => run,
            phase @ Phase::CatchingUp(_) => {
                self.phase = phase;
                return;
            }
        };
        if to.as_micros().abs_diff(run.next_us()) > STEP_LIMIT_US.unsigned_abs() {
            run = Run { since: to, frames: 0 };
        }
        if !self.filler.take(to.as_micros() - run.next_us(), now) {
            run = Run { since: to, frames: 0 };
            if !self.filler.take(0, now) {
                self.phase = Phase::Silent(run);
                return;
            }
        }
        while run.next_us() <= to.as_micros() {
            let timestamp = Timestamp::from_micros(run.next_us());
            write(&aac(FrameKind::Audio, timestamp, Bytes::from_static(&SILENCE_STEREO)));
            run.frames += 1;
            self.filler.made.bytes += SILENCE_STEREO.len() as u64;
        }
        self.phase = Phase::Silent(run);
    }

    /// Writes a decoder configuration unless the upstream has it already.
    fn write_configuration(&mut self, frame: Frame, write: &mut impl FnMut(&Frame)) {
        let is_known =
            |(codec, data): &(Codec, Bytes)| *codec == frame.codec && *data == frame.data;
        if !self.written.as_ref().is_some_and(is_known) {
            write(&frame);
            self.written = Some((frame.codec, frame.data));
        }
    }
}

fn timestamp(duration: Duration) -> Timestamp {
    Timestamp::from_micros(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

const fn aac(kind: FrameKind, timestamp: Timestamp, data: Bytes) -> Frame {
    Frame { codec: Codec::Aac, kind, timestamp, composition_ms: 0, data }
}

#[cfg(test)]
mod tests;
