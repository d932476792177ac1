//! Transcodes Opus frames to AAC-LC frames, with one [`Transcoder`] per stream. The only code that uses codec
//! libraries.
//!
//! An AAC frame's timestamp is that of the first sample a decoder outputs for it. The frames for which a decoder
//! outputs nothing but the encoder's delay are not sent, so that the first frame sent has the first packet's timestamp.
#![forbid(unsafe_code)]

mod configuration;
mod decoder;
mod encoder;
mod error;
mod pcm;
mod pipeline;
#[cfg(test)]
mod tests;
mod timeline;

use std::time::Instant;

use bytes::Bytes;

pub use configuration::first_configuration;
use configuration::{aac_frame, channels_of, configuration};
pub use encoder::{AacBitrate, AacEncoder, EncoderKind, Encoders};
pub use error::TranscodeError;
use pipeline::{Filling, Pipeline};
use timeline::{Arrival, Arriving, Evidence, Timeline};

use headgate_media::opus::LONGEST_PACKET_SAMPLES;
use headgate_media::{Channels, Codec, FillerBudget, Frame, FrameKind, Timestamp, aac, opus};

/// How much of a hole is concealed before silence follows: 120 ms, by which time concealment has faded out.
const LIMIT_CONCEALED: usize = LONGEST_PACKET_SAMPLES as usize;
/// What a new segment costs beside its packets, in time of encoding: two frames, one at its end and one at its beginning.
const SEGMENT_US: i64 = 2 * aac::SAMPLES_PER_FRAME as i64 * 1_000 / 48;
/// Duration assumed for an unreadable packet while none has been read yet: 20 ms.
const USUAL_PACKET_SAMPLES: usize = 960;

/// Counters of irregularities in a transcoded stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranscodeCounters {
    /// Packets that could not be decoded and were concealed.
    pub corrupt_packets: u64,
    /// Packets dropped because they were repeated, or more of them came than time passed by their timestamps.
    pub late_packets: u64,
    /// Samples (per channel) generated for missing or corrupt packets.
    pub concealed_samples: u64,
    /// Holes of more than a second, after which the audio continued at its own timestamps.
    pub discontinuities: u64,
}

/// Transcodes one stream's Opus to AAC-LC at 48 kHz. Mono stays mono until a stereo packet arrives; from then on the
/// output stays stereo.
///
/// Nothing here blocks.
pub struct Transcoder {
    bitrate: AacBitrate,
    encoders: Encoders,
    // `None` before the first packet.
    pipeline: Option<Pipeline>,
    timeline: Timeline,
    // Placed when the packet after it is known.
    doubtful: Option<(Frame, Instant)>,
    // Timestamp and data of the last packet.
    last: Option<(Timestamp, Bytes)>,
    // Duration of the last packet that could be read.
    packet_samples: usize,
    packet_is_dtx: bool,
    // Of what is generated for holes.
    budget: FillerBudget,
    // Why the stream's packets cannot be transcoded, according to its configuration.
    refused: Option<opus::Error>,
    counters: TranscodeCounters,
}

impl Transcoder {
    /// A transcoder for one stream. [`EncoderKind::new`] gives the bounds of `bitrate`.
    #[must_use]
    pub fn new(bitrate: AacBitrate, encoders: Encoders) -> Self {
        Self {
            bitrate,
            encoders,
            pipeline: None,
            timeline: Timeline::default(),
            doubtful: None,
            last: None,
            packet_samples: USUAL_PACKET_SAMPLES,
            packet_is_dtx: false,
            budget: FillerBudget::default(),
            refused: None,
            counters: TranscodeCounters::default(),
        }
    }

    /// Takes one Opus frame and appends the AAC frames it completes: a `Configuration` before the first and whenever
    /// the channels change, then `Audio`, with strictly increasing timestamps. An Opus `Configuration` is checked and
    /// not forwarded. Holes of up to a second before the frame, which arrived at `now`, are filled within a budget; after
    /// others the audio continues at the frame's own timestamp. A frame that the time passed does not account for waits
    /// for the next one.
    ///
    /// # Errors
    /// Another codec, more than two channels, or no decoder. `out` keeps what was appended, and the next
    /// frame may be handled as usual. A corrupt packet is not an error: it is concealed and counted.
    pub fn handle_frame(
        &mut self,
        frame: &Frame,
        now: Instant,
        out: &mut Vec<Frame>,
    ) -> Result<(), TranscodeError> {
        if frame.codec != Codec::Opus {
            return Err(TranscodeError::Codec);
        }
        if frame.kind == FrameKind::Configuration {
            self.refused = opus::head_channels(&frame.data).err();
        }
        if let Some(error) = self.refused {
            return Err(error.into());
        }
        if frame.kind != FrameKind::Audio {
            return Ok(());
        }
        let this = (frame.timestamp, frame.data.clone());
        if self.last.as_ref() == Some(&this) {
            self.counters.late_packets += 1;
            return Ok(());
        }
        self.last = Some(this);
        if let Some((doubtful, at)) = self.doubtful.take() {
            let arriving = self.arriving(&doubtful, at);
            let evidence = self.timeline.evidence(&arriving, frame.timestamp);
            self.place(&doubtful, at, evidence, out)?;
        }
        self.place(frame, now, Evidence::Before, out)
    }

    /// Handles a packet that arrived at `at`, unless it has to wait for the next one.
    fn place(
        &mut self,
        frame: &Frame,
        at: Instant,
        evidence: Evidence,
        out: &mut Vec<Frame>,
    ) -> Result<(), TranscodeError> {
        let arriving = self.arriving(frame, at);
        let mut arrival = self.timeline.arrival(&arriving, evidence);
        if arrival == Arrival::Back {
            self.counters.discontinuities += 1;
            self.timeline.follow_back(&arriving);
            arrival = self.timeline.arrival(&arriving, Evidence::Confirmed);
        }
        let arrival = match arrival {
            Arrival::Missing(missing) if !self.budget.take(duration_us(missing), at) => {
                Arrival::Discontinuity
            }
            arrival => arrival,
        };
        let arrival = match arrival {
            Arrival::Discontinuity if !self.budget.take(SEGMENT_US, at) => {
                Arrival::ContinuesUnstamped
            }
            arrival => arrival,
        };
        match arrival {
            Arrival::Doubtful => {
                self.doubtful = Some((frame.clone(), at));
                return Ok(());
            }
            Arrival::Late => {
                self.counters.late_packets += 1;
                return Ok(());
            }
            Arrival::First => self.timeline.begin_segment(frame.timestamp),
            Arrival::Discontinuity => {
                self.counters.discontinuities += 1;
                self.flush(out);
                self.timeline.begin_segment(frame.timestamp);
                if let Some(pipeline) = &mut self.pipeline {
                    pipeline.restart();
                }
            }
            Arrival::Continues
            | Arrival::ContinuesUnstamped
            | Arrival::Missing(_)
            | Arrival::Back => {}
        }
        self.prepare(self.channels(frame), out)?;
        if let Arrival::Missing(missing) = arrival {
            self.fill(missing, &frame.data, arriving.samples, out);
        }
        let samples = self.decode(&frame.data, arriving.samples);
        match arrival {
            Arrival::ContinuesUnstamped => self.timeline.handle_unstamped(samples),
            _ => self.timeline.handle_packet(&arriving, samples),
        }
        self.send(out);
        Ok(())
    }

    /// Decodes a packet, or conceals it if it is corrupt; returns its samples.
    fn decode(&mut self, packet: &[u8], mut samples: usize) -> usize {
        if let Some(pipeline) = &mut self.pipeline {
            if opus::duration(packet).is_ok() && pipeline.decode(packet, samples) {
                (self.packet_samples, self.packet_is_dtx) = (samples, opus::is_dtx(packet));
            } else {
                // The duration in a corrupt packet cannot be trusted either.
                samples = self.packet_samples;
                pipeline.fill(Filling::Concealment, samples);
                self.counters.corrupt_packets += 1;
                self.counters.concealed_samples += samples as u64;
            }
        }
        samples
    }

    /// Appends the frames with the end of the audio, padded with silence.
    ///
    /// # Errors
    /// When the last packet needed another decoder and there was none.
    pub fn finish(mut self, out: &mut Vec<Frame>) -> Result<(), TranscodeError> {
        if let Some((doubtful, at)) = self.doubtful.take() {
            self.place(&doubtful, at, Evidence::Refuted, out)?;
        }
        self.flush(out);
        Ok(())
    }

    /// Counters since the start.
    #[must_use]
    pub const fn counters(&self) -> TranscodeCounters {
        self.counters
    }

    fn arriving(&self, packet: &Frame, at: Instant) -> Arriving {
        let (timestamp, samples) = (packet.timestamp, self.samples(packet));
        let in_pause = self.packet_is_dtx || opus::is_dtx(&packet.data);
        Arriving { timestamp, samples, at, in_pause }
    }

    /// Samples in the packet or, if it cannot be read, in the last one that could.
    fn samples(&self, packet: &Frame) -> usize {
        opus::duration(&packet.data).map_or(self.packet_samples, |samples| samples as usize)
    }

    /// Channels of the stream from this packet on.
    fn channels(&self, packet: &Frame) -> Channels {
        match &self.pipeline {
            Some(pipeline) if pipeline.channels() == Channels::Stereo => Channels::Stereo,
            Some(_) | None => channels_of(packet),
        }
    }

    /// Provides a decoder and an encoder of these channels.
    fn prepare(&mut self, channels: Channels, out: &mut Vec<Frame>) -> Result<(), TranscodeError> {
        if self.pipeline.as_ref().is_some_and(|pipeline| pipeline.channels() == channels) {
            return Ok(());
        }
        let encoder = self.encoders.make(EncoderKind::new(channels, self.bitrate));
        match &mut self.pipeline {
            Some(pipeline) => pipeline.widen(encoder).map_err(|_| TranscodeError::Decoder)?,
            slot @ None => {
                let made = Pipeline::new(channels, encoder).map_err(|_| TranscodeError::Decoder)?;
                *slot = Some(made);
            }
        }
        out.push(configuration(channels, self.timeline.next_timestamp()));
        Ok(())
    }

    /// Appends the audio remaining in the encoder; a new segment must begin afterwards.
    fn flush(&mut self, out: &mut Vec<Frame>) {
        while self.timeline.has_unsent()
            && let Some(pipeline) = &mut self.pipeline
        {
            pipeline.fill(Filling::Silence, aac::SAMPLES_PER_FRAME as usize);
            self.send(out);
        }
    }

    /// Fills the hole before a packet: the last `samples` of it from the packet's redundancy. Before that the audio is
    /// concealed, for at most [`LIMIT_CONCEALED`] or throughout a pause that the sender announced, and silent for the
    /// rest.
    fn fill(&mut self, missing: usize, packet: &[u8], samples: usize, out: &mut Vec<Frame>) {
        let recovered = missing.min(samples);
        let audible = if self.packet_is_dtx { missing } else { missing.min(LIMIT_CONCEALED) };
        let concealed = audible.saturating_sub(recovered);
        for (filling, mut left) in [
            (Filling::Concealment, concealed),
            (Filling::Silence, missing - concealed - recovered),
            (Filling::Redundancy(packet), recovered),
        ] {
            while left > 0
                && let Some(pipeline) = &mut self.pipeline
            {
                let step = left.min(LONGEST_PACKET_SAMPLES as usize);
                pipeline.fill(filling, step);
                self.timeline.handle_filling(step);
                self.counters.concealed_samples += step as u64;
                left -= step;
                self.send(out);
            }
        }
    }

    /// Appends the frames whose samples are complete.
    fn send(&mut self, out: &mut Vec<Frame>) {
        let Some(pipeline) = &mut self.pipeline else { return };
        while let Some(data) = pipeline.next_frame() {
            out.push(aac_frame(FrameKind::Audio, self.timeline.send_frame(), data));
        }
    }
}

/// Duration of samples at 48 kHz, rounded down.
const fn duration_us(samples: usize) -> i64 {
    samples as i64 * 1_000 / 48
}
