//! Silent audio for an upstream whose stream has no audio, or none any more (R5). Pure: time is an argument.
//!
//! Contract: one [`Silence`] per connection to an upstream. Each frame is shown to [`Silence::passes`]; it goes through
//! [`Silence::handle_frame`] unless that says that it needs nothing. Video frames drive it, so there is no timer and silence never runs
//! ahead of video. The audio it writes never goes back in time, unless the video clock does.

mod catch_up;
mod filler;

use std::time::{Duration, Instant};

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Timestamp, Track};

use super::audio_pause::AudioPause;
use catch_up::CatchUp;
use filler::{Filler, Run};

use super::silence_budget::{Made, SilenceBudget};

/// How long after its first video frame a stream may take to send audio: platforms that require audio refuse a stream
/// after a few seconds without.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same before its first audio when that is known to be coming, from a publisher that is muted or an encoder that
/// is late.
const EXPECTED_PATIENCE: Duration = Duration::from_secs(10);
/// When the video clock is further away than this, silence starts again there instead of filling the gap.
const STEP_LIMIT_US: i64 = 2_000_000;
/// The same at the start and at the end of a pause, which is only noticed at the next video frame.
const PAUSE_STEP_LIMIT_US: i64 = 5_000_000;
/// Video timestamps further than this from zero (4,500 years) count as this, so that sums cannot overflow.
const CLOCK_LIMIT_US: i64 = 1 << 57;

/// What one push adds to a stream while that has no audio of its own.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    is_audio_expected: bool,
    /// Audio was expected and cannot be made.
    is_audio_refused: bool,
    before: Before,
    /// When the first video frame passed, and its timestamp.
    first_video: Option<(Instant, Timestamp)>,
    pause: AudioPause,
    /// Whether the audio has paused.
    has_paused: bool,
    newest_video: Option<Timestamp>,
    newest_audio: Option<Written>,
    phase: Phase,
    /// The stream's own decoder configuration of its audio.
    configuration: Option<Frame>,
    /// The stream's newest frame of MP3, which has no configuration.
    mp3: Option<Frame>,
    /// Codec and data of the configuration written last.
    written: Option<(Codec, Bytes)>,
    budget: SilenceBudget,
}

/// What is known about the stream's audio before the connection's first frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Nothing,
    /// An earlier connection to the upstream got silence: the stream has never had audio.
    NoAudio,
    /// Its audio has stopped.
    Stopped,
}

/// An audio frame as it was written.
#[derive(Clone, Copy, Debug)]
struct Written {
    timestamp: Timestamp,
    at: Instant,
    /// The newest video frame at that time.
    video: Option<Timestamp>,
}

impl Written {
    /// How far the audio is behind the video; negative if it is ahead.
    fn lag_us(self) -> i64 {
        let behind =
            |video: Timestamp| video.as_micros().saturating_sub(self.timestamp.as_micros());
        self.video.map_or(0, behind)
    }
}

#[derive(Debug, Default)]
enum Phase {
    /// No audio has been written.
    #[default]
    Waiting,
    /// Silence is written beside the video.
    Silent(Run),
    /// The stream has audio, but silence has been written for its time.
    CatchingUp(CatchUp),
    /// The stream's audio is written unchanged.
    Passing,
}

impl Silence {
    /// For the next connection to the same upstream. If this one got silence, the next one gets it with its first frame:
    /// some upstreams assume that the first tracks they see are the only ones.
    pub(crate) fn renewed(&self) -> Self {
        let has_had_audio = self.newest_audio.is_some() || self.before == Before::Stopped;
        let before = match self.phase {
            Phase::Waiting => self.before,
            Phase::Silent(_) if has_had_audio => Before::Stopped,
            Phase::Silent(_) => Before::NoAudio,
            Phase::CatchingUp(_) | Phase::Passing => Before::Nothing,
        };
        Self { before, budget: self.budget.renewed(), ..Self::default() }
    }

    /// What was generated since the last call.
    pub(crate) fn take_made(&mut self) -> Option<Made> {
        self.budget.take_made()
    }

    /// The stream has had audio, which has stopped before this connection.
    pub(crate) const fn set_audio_stopped(&mut self) {
        self.before = Before::Stopped;
    }

    /// The first frame of another publisher follows, on the stream's own clock.
    pub(crate) fn handle_successor(&mut self) {
        if let Phase::CatchingUp(catch_up) = &mut self.phase {
            catch_up.since = self.newest_video.unwrap_or_default();
            (catch_up.pause, catch_up.shift) = (None, None);
        }
    }

    /// The stream has reached a time without a video frame: if silence was written before, it continues up to there.
    pub(crate) fn go_on(&mut self, to: Timestamp, now: Instant, mut write: impl FnMut(&Frame)) {
        if matches!(self.phase, Phase::Silent(_)) {
            self.newest_video = Some(to);
            self.fill(to, now, &mut write);
        }
    }

    /// Whether the stream has an audio track whose frames are still to come, transcoded ones for example: silence then
    /// waits longer. False when they cannot be made. A configuration of an audio codec counts as true.
    pub(crate) const fn set_audio_expected(&mut self, is_expected: bool) {
        self.is_audio_refused = !is_expected && (self.is_audio_refused || self.is_audio_expected);
        self.is_audio_expected = is_expected;
    }

    /// Notes a frame. Whether it can be written as it is; otherwise it goes through [`Silence::handle_frame`].
    pub(crate) fn passes(&mut self, frame: &Frame, now: Instant) -> bool {
        let is_passing = matches!(self.phase, Phase::Passing);
        match frame.kind {
            FrameKind::Audio if is_passing => {
                self.note_audio(frame.timestamp, now);
                !matches!(frame.codec, Codec::Mp3(_))
            }
            FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable => {
                self.newest_video = Some(frame.timestamp);
                self.has_paused = self.pause.note_video(frame.timestamp, now);
                is_passing && !self.has_paused
            }
            FrameKind::Configuration => is_passing && frame.track() == Track::Video,
            FrameKind::ColorInfo | FrameKind::Script => true,
            FrameKind::Audio => false,
        }
    }

    /// Writes a frame with what silence it needs.
    pub(crate) fn handle_frame(
        &mut self,
        frame: &Frame,
        now: Instant,
        mut write: impl FnMut(&Frame),
    ) {
        match (frame.track(), frame.kind) {
            (Track::Audio, FrameKind::Configuration) => {
                self.configuration = Some(frame.clone());
                self.mp3 = None;
                self.is_audio_refused = false;
                // Silence has a configuration of its own; the stream's follows with its audio.
                if matches!(self.phase, Phase::Waiting | Phase::Passing) {
                    self.write_configuration(frame.clone(), &mut write);
                }
            }
            (Track::Audio, _) => self.handle_audio(frame, now, &mut write),
            (Track::Video, FrameKind::Keyframe | FrameKind::Inter | FrameKind::Disposable) => {
                self.fill(frame.timestamp, now, &mut write);
                write(frame);
            }
            (Track::Video | Track::Script, _) => write(frame),
        }
    }

    fn handle_audio(&mut self, frame: &Frame, now: Instant, write: &mut impl FnMut(&Frame)) {
        if matches!(frame.codec, Codec::Mp3(_)) {
            self.mp3 = Some(frame.clone());
        }
        if matches!(self.phase, Phase::Waiting | Phase::Passing) {
            self.phase = Phase::Passing;
            self.note_audio(frame.timestamp, now);
            write(frame);
            return;
        }
        self.pause.note_audio();
        let newest_video = self.newest_video.unwrap_or_default();
        self.phase = match std::mem::take(&mut self.phase) {
            Phase::Silent(run) => {
                let pause = self.newest_audio.map(|last| {
                    let passed = micros(now.saturating_duration_since(last.at));
                    let went_on =
                        frame.timestamp.as_micros().saturating_sub(last.timestamp.as_micros());
                    (last.lag_us(), passed.saturating_sub(went_on))
                });
                let (floor_us, silence) = (run.next_us(), Some(run));
                let since = newest_video;
                Phase::CatchingUp(CatchUp { silence, floor_us, since, pause, shift: None })
            }
            phase => phase,
        };
        let Phase::CatchingUp(catch_up) = &mut self.phase else { return };
        let Some(shift) = catch_up.shift(frame.timestamp, newest_video) else { return };
        let shifted_us = frame.timestamp.as_micros().saturating_add(shift);
        let floor_us = std::mem::replace(&mut catch_up.floor_us, shifted_us);
        if let Some(mut silence) = catch_up.silence.take()
            && shifted_us.saturating_sub(floor_us) <= PAUSE_STEP_LIMIT_US
        {
            // Silence ended at a video frame, the audio continues later.
            let may = self.budget.take(shifted_us.saturating_sub(silence.next_us()), now);
            while may && silence.end_us() <= shifted_us {
                let frame = silence.frame();
                self.budget.note(&frame);
                write(&frame);
            }
        }
        let timestamp = Timestamp::from_micros(shifted_us);
        if let Some(configuration) = self.configuration.clone().filter(|of| of.codec == frame.codec)
        {
            self.write_configuration(Frame { timestamp, ..configuration }, write);
        }
        self.note_audio(timestamp, now);
        write(&Frame { timestamp, ..frame.clone() });
        if shift == 0 {
            self.phase = Phase::Passing;
        }
    }

    /// Notes audio of the stream as it is written.
    const fn note_audio(&mut self, timestamp: Timestamp, at: Instant) {
        self.pause.note_audio();
        self.newest_audio = Some(Written { timestamp, at, video: self.newest_video });
    }

    /// Silence up to a video frame's timestamp.
    fn fill(&mut self, to: Timestamp, now: Instant, write: &mut impl FnMut(&Frame)) {
        let to = clamped(to.as_micros());
        let mut limit = STEP_LIMIT_US;
        if matches!(self.phase, Phase::Passing | Phase::CatchingUp(_)) {
            if !self.has_paused {
                return;
            }
            limit = PAUSE_STEP_LIMIT_US;
        }
        let mut run = match std::mem::take(&mut self.phase) {
            Phase::Silent(run) => run,
            Phase::Waiting => {
                let Some(starts_at) = self.initial(to, now) else { return };
                Run::from(self.begin(starts_at, write), to)
            }
            Phase::Passing | Phase::CatchingUp(_) => {
                let first = self.pause.began();
                let after = self.newest_audio.as_mut().map_or(to, |audio| {
                    audio.video = audio.video.or(first);
                    audio.timestamp
                });
                Run::after(self.begin(after, write), after)
            }
        };
        // Relative to the video where the audio was.
        let lag_us = self.newest_audio.map_or(0, Written::lag_us);
        let to = clamped(to.as_micros().saturating_sub(lag_us));
        if to.as_micros().abs_diff(run.next_us()) > limit.unsigned_abs() {
            run.restart(to);
        }
        if !self.budget.take(run.duration_us(to), now) {
            run.restart(to);
            if !self.budget.take(run.duration_us(to), now) {
                self.phase = Phase::Silent(run);
                return;
            }
        }
        while run.next_us() <= to.as_micros() {
            let frame = run.frame();
            self.budget.note(&frame);
            write(&frame);
        }
        self.phase = Phase::Silent(run);
    }

    /// Timestamp of the silence's configuration if it begins before any audio.
    fn initial(&mut self, to: Timestamp, now: Instant) -> Option<Timestamp> {
        let (since, first) = *self.first_video.get_or_insert((now, to));
        // Both clocks: the frames of a late join are old already, and its audio may be on its way.
        let elapsed = to.as_micros() - first.as_micros();
        let has_header = self.configuration.is_some() && !self.is_audio_refused;
        let (patience, starts_at) = match self.before {
            Before::Stopped => (Duration::ZERO, Timestamp::ZERO),
            Before::Nothing | Before::NoAudio if self.is_audio_expected || has_header => {
                (EXPECTED_PATIENCE, to)
            }
            Before::NoAudio => (Duration::ZERO, Timestamp::ZERO),
            Before::Nothing => (PATIENCE, to),
        };
        (now >= since + patience && elapsed >= micros(patience)).then_some(starts_at)
    }

    /// Begins silence: in the form of the stream's audio if there is such silence, so that its configuration stays.
    fn begin(&mut self, at: Timestamp, write: &mut impl FnMut(&Frame)) -> Filler {
        if let Some(filler) = self.mp3.as_ref().and_then(Filler::of_mp3) {
            return filler;
        }
        let own = self.configuration.clone().filter(|_| !self.is_audio_refused);
        if let Some(own) = own
            && let Some(filler) = Filler::of(&own)
        {
            self.write_configuration(Frame { timestamp: at, ..own }, write);
            return filler;
        }
        let (filler, data) = Filler::stereo();
        let (codec, kind) = (Codec::Aac, FrameKind::Configuration);
        let configuration = Frame { codec, kind, timestamp: at, composition_ms: 0, data };
        self.write_configuration(configuration, write);
        filler
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

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

const fn clamped(micros: i64) -> Timestamp {
    let micros = if micros > CLOCK_LIMIT_US { CLOCK_LIMIT_US } else { micros };
    Timestamp::from_micros(if micros < -CLOCK_LIMIT_US { -CLOCK_LIMIT_US } else { micros })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod pause_tests;
