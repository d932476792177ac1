//! Silent frames in the form of a stream's audio, so that nothing changes for the upstream. Pure.

use bytes::Bytes;
use headgate_media::{Channels, Codec, Frame, FrameKind, Timestamp, aac, opus};

/// Silence of one form.
#[derive(Clone, Debug)]
pub(super) struct Filler {
    codec: Codec,
    data: Bytes,
    /// Samples in one frame, and per second.
    samples: i64,
    sample_rate: i64,
}

impl Filler {
    /// AAC-LC in stereo at 48 kHz, for a stream without audio, and its configuration.
    pub(super) fn stereo() -> (Self, Bytes) {
        let data = Bytes::from_static(&aac::SILENCE_STEREO);
        let (samples, sample_rate) = (i64::from(aac::SAMPLES_PER_FRAME), 48_000);
        let filler = Self { codec: Codec::Aac, data, samples, sample_rate };
        (filler, Bytes::copy_from_slice(&aac::lc_48k(Channels::Stereo)))
    }

    /// For audio with this configuration; `None` if there is no silence in its form.
    pub(super) fn of(configuration: &Frame) -> Option<Self> {
        let codec = configuration.codec;
        match codec {
            Codec::Opus => {
                let sample_rate = i64::from(opus::SAMPLE_RATE);
                let samples = opus::SILENCE_US * sample_rate / 1_000_000;
                let data = Bytes::from_static(&opus::SILENCE);
                Some(Self { codec, data, samples, sample_rate })
            }
            Codec::Aac => {
                let silence = aac::silence(&configuration.data)?;
                let parsed = aac::AudioSpecificConfig::parse(&configuration.data).ok()?;
                let sample_rate = i64::from(parsed.sample_rate);
                // The duration is rounded; samples at the rate of the output are whole.
                let samples = (silence.duration_us * sample_rate + 500_000) / 1_000_000;
                (samples > 0).then_some(Self { codec, data: silence.data, samples, sample_rate })
            }
            Codec::Mp3(_) | Codec::H264 | Codec::Hevc | Codec::Av1 | Codec::Vp9 | Codec::Amf0 => {
                None
            }
        }
    }

    /// A frame of MP3 like `frame`, whose side information describes no spectrum (ISO 11172-3 2.4.1.7).
    pub(super) fn of_mp3(frame: &Frame) -> Option<Self> {
        /// kbit/s of layer III by index, of MPEG 1 and of MPEG 2 and 2.5.
        const BIT_RATES: [[i64; 15]; 2] = [
            [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
        ];
        let &[0xff, second, third, fourth, ..] = &*frame.data else { return None };
        let (version, layer) = (second >> 3 & 3, second >> 1 & 3);
        let divisor = match version {
            3 => 1,
            2 => 2,
            0 => 4,
            _ => return None,
        };
        if second >> 5 != 7 || layer != 1 {
            return None;
        }
        let sample_rate = [44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))? / divisor;
        let is_first = version == 3;
        let bit_rate = BIT_RATES[usize::from(!is_first)].get(usize::from(third >> 4))?;
        let samples = if is_first { 1_152 } else { 576 };
        let padding = i64::from(third >> 1 & 1);
        let length = samples / 8 * bit_rate * 1_000 / sample_rate + padding;
        let length = usize::try_from(length).ok().filter(|length| *length >= 36)?;
        // Without a checksum.
        let mut data = vec![0xff, second | 1, third, fourth];
        data.resize(length, 0);
        Some(Self { codec: frame.codec, data: data.into(), samples, sample_rate })
    }
}

/// Silence without a gap.
#[derive(Debug)]
pub(super) struct Run {
    filler: Filler,
    since: Timestamp,
    frames: i64,
}

impl Run {
    /// Silence that begins at `since`.
    pub(super) const fn from(filler: Filler, since: Timestamp) -> Self {
        Self { filler, since, frames: 0 }
    }

    /// Silence that follows a frame of audio with this timestamp.
    pub(super) const fn after(filler: Filler, frame: Timestamp) -> Self {
        Self { filler, since: frame, frames: 1 }
    }

    /// Begins again at `since`.
    pub(super) const fn restart(&mut self, since: Timestamp) {
        (self.since, self.frames) = (since, 0);
    }

    /// Timestamp of the next frame: from the sample counter, so that it never drifts.
    pub(super) fn next_us(&self) -> i64 {
        self.at(self.frames)
    }

    /// Where the next frame would end.
    pub(super) fn end_us(&self) -> i64 {
        self.at(self.frames + 1)
    }

    /// Duration of the frames from the next one to one at `to`; negative if the next one comes later.
    pub(super) fn duration_us(&self, to: Timestamp) -> i64 {
        let ahead = to.as_micros().saturating_sub(self.next_us());
        let frame = (self.end_us() - self.next_us()).max(1);
        if ahead < 0 { ahead } else { (ahead / frame + 1).saturating_mul(frame) }
    }

    /// The next frame.
    pub(super) fn frame(&mut self) -> Frame {
        let timestamp = Timestamp::from_micros(self.next_us());
        self.frames += 1;
        let Filler { codec, data, .. } = &self.filler;
        let kind = FrameKind::Audio;
        Frame { codec: *codec, kind, timestamp, composition_ms: 0, data: data.clone() }
    }

    fn at(&self, frames: i64) -> i64 {
        let us = frames * self.filler.samples * 1_000_000 / self.filler.sample_rate;
        self.since.as_micros().saturating_add(us)
    }
}
