//! Opus frames to AAC-LC frames, one [`Transcoder`] per stream. The only code that knows codec libraries.
//!
//! An AAC frame's timestamp is that of the first sample a decoder puts out for it: the encoder's delay is fed ahead
//! as silence and the frames that would hold nothing but that silence are not sent, so the first frame bears the
//! first packet's timestamp.

mod decoder;
mod encoder;
mod pcm;
mod pool;
mod sound;
#[cfg(test)]
mod tests;
mod timeline;
mod xaac;

use bytes::Bytes;

pub use encoder::{EncoderError, EncoderKind};
pub use pool::EncoderPool;
use sound::{Filling, Sound};
use timeline::{Arrival, Timeline};

use crate::opus::LONGEST_PACKET_SAMPLES;
use crate::{Channels, Codec, Frame, FrameKind, Timestamp, aac, opus};

/// How much of a hole is concealed before it is left silent: 120 ms, by when concealment has faded out.
const LIMIT_CONCEALED: usize = LONGEST_PACKET_SAMPLES as usize;
/// What a packet that cannot be read is taken for when none has been read yet: 20 ms.
const USUAL_PACKET_SAMPLES: usize = 960;

/// Why a frame could not be transcoded. The stream goes on with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranscodeError {
    /// Not an Opus frame.
    #[error("only Opus is transcoded")]
    Codec,
    /// libopus could not be opened: no memory.
    #[error("no Opus decoder could be made")]
    Decoder,
    /// The AAC encoder could not be made, or failed and is replaced with the next frame.
    #[error(transparent)]
    Encoder(#[from] EncoderError),
}

impl TranscodeError {
    /// Stable name for logs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Codec => "transcode_codec",
            Self::Decoder => "opus_decoder_create",
            Self::Encoder(error) => error.code(),
        }
    }
}

/// What a transcoder had to put up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranscodeCounters {
    /// Packets that could not be decoded and were concealed.
    pub corrupt_packets: u64,
    /// Packets whose time had passed, dropped.
    pub late_packets: u64,
    /// Samples (per channel) made up for packets missing or corrupt.
    pub concealed_samples: u64,
    /// Holes of more than a second, or left by a failed encoder, after which the sound went on at its own time.
    pub discontinuities: u64,
    /// Frames the encoder failed to make.
    pub lost_frames: u64,
}

/// Makes one stream's Opus AAC-LC at 48 kHz. Mono stays mono until a stereo packet comes, then stereo for good.
pub struct Transcoder {
    pool: EncoderPool,
    bitrate: u32,
    // `None` before the first packet.
    sound: Option<Sound>,
    timeline: Timeline,
    // Of the last packet that could be read.
    packet_samples: usize,
    packet_is_dtx: bool,
    counters: TranscodeCounters,
}

impl Transcoder {
    /// For `bitrate` bits per second in stereo, half of it in mono; see [`EncoderKind::new`] for the bounds.
    #[must_use]
    pub fn new(pool: &EncoderPool, bitrate: u32) -> Self {
        Self {
            pool: pool.clone(),
            bitrate,
            sound: None,
            timeline: Timeline::default(),
            packet_samples: USUAL_PACKET_SAMPLES,
            packet_is_dtx: false,
            counters: TranscodeCounters::default(),
        }
    }

    /// Takes one Opus frame and appends the AAC frames it completes: a `Configuration` before the first and whenever
    /// the channels change, then `Audio`. An Opus `Configuration` is passed over. Holes of up to a second before the
    /// frame are filled; after longer ones the sound goes on at its own time.
    ///
    /// # Errors
    /// Another codec, or no decoder or encoder to be had; `out` keeps what was appended, and the next frame is
    /// welcome. A corrupt packet is not an error but is concealed and counted.
    pub fn handle_frame(
        &mut self,
        frame: &Frame,
        out: &mut Vec<Frame>,
    ) -> Result<(), TranscodeError> {
        if frame.codec != Codec::Opus {
            return Err(TranscodeError::Codec);
        }
        if frame.kind != FrameKind::Audio {
            return Ok(());
        }
        let (packet, header) = (&frame.data[..], opus::duration(&frame.data));
        let mut samples = header.map_or(self.packet_samples, |samples| samples as usize);
        let arrival = self.timeline.arrival(frame.timestamp, samples);
        match arrival {
            Arrival::Late => {
                self.counters.late_packets += 1;
                return Ok(());
            }
            Arrival::First => self.timeline.begin_segment(frame.timestamp),
            Arrival::Discontinuity => {
                self.counters.discontinuities += 1;
                self.flush(out)?;
                self.timeline.begin_segment(frame.timestamp);
                if let Some(sound) = &mut self.sound {
                    sound.restart();
                }
            }
            Arrival::Continues | Arrival::Missing(_) => {}
        }
        let stereo = header.is_ok() && opus::channels(packet) == Ok(Channels::Stereo);
        self.prepare(if stereo { Channels::Stereo } else { Channels::Mono }, out)?;
        if let Arrival::Missing(missing) = arrival {
            self.fill(missing, packet, samples, out)?;
        }
        if let Some(sound) = &mut self.sound {
            if header.is_ok() && sound.decode(packet, samples) {
                (self.packet_samples, self.packet_is_dtx) = (samples, opus::is_dtx(packet));
            } else {
                // What a corrupt packet says of its own length is worth nothing either.
                samples = self.packet_samples;
                sound.fill(Filling::Concealment, samples);
                self.counters.corrupt_packets += 1;
                self.counters.concealed_samples += samples as u64;
            }
        }
        self.timeline.handle_packet(frame.timestamp, samples);
        self.send(out)
    }

    /// Appends the frames that hold the end of the sound, made whole with silence.
    ///
    /// # Errors
    /// The encoder failed.
    pub fn finish(mut self, out: &mut Vec<Frame>) -> Result<(), TranscodeError> {
        self.flush(out)
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> TranscodeCounters {
        self.counters
    }

    /// Sees to a decoder and an encoder of at least those channels.
    fn prepare(&mut self, channels: Channels, out: &mut Vec<Frame>) -> Result<(), TranscodeError> {
        let channels = match &self.sound {
            Some(sound) if sound.channels() == Channels::Stereo => Channels::Stereo,
            Some(_) | None => channels,
        };
        if let Some(sound) = &self.sound
            && sound.channels() == channels
            && sound.has_encoder()
        {
            return Ok(());
        }
        let encoder = self.pool.take(EncoderKind::new(channels, self.bitrate))?;
        match &mut self.sound {
            Some(sound) if sound.channels() == channels => {
                sound.install(encoder);
                return Ok(());
            }
            Some(sound) if sound.has_encoder() => {
                sound.widen(encoder).map_err(|_| TranscodeError::Decoder)?;
            }
            sound @ (Some(_) | None) => {
                *sound = Some(Sound::new(channels, encoder).map_err(|_| TranscodeError::Decoder)?);
            }
        }
        let configuration = Bytes::copy_from_slice(&aac::lc_48k(channels));
        out.push(aac_frame(
            FrameKind::Configuration,
            self.timeline.next_timestamp(),
            configuration,
        ));
        Ok(())
    }

    /// Appends what the encoder still holds; a segment must begin after it.
    fn flush(&mut self, out: &mut Vec<Frame>) -> Result<(), TranscodeError> {
        while self.timeline.has_unsent()
            && let Some(sound) = &mut self.sound
        {
            sound.fill(Filling::Silence, aac::SAMPLES_PER_FRAME as usize);
            self.send(out)?;
        }
        Ok(())
    }

    /// Makes up what is missing before a packet: the last packet's worth from the packet's redundancy, what is before
    /// that concealed as long as that makes sense, or for all of a pause that the sender announced.
    fn fill(
        &mut self,
        missing: usize,
        packet: &[u8],
        samples: usize,
        out: &mut Vec<Frame>,
    ) -> Result<(), TranscodeError> {
        let recovered = missing.min(samples);
        let audible = if self.packet_is_dtx { missing } else { missing.min(LIMIT_CONCEALED) };
        let concealed = audible.saturating_sub(recovered);
        for (filling, mut left) in [
            (Filling::Concealment, concealed),
            (Filling::Silence, missing - concealed - recovered),
            (Filling::Redundancy(packet), recovered),
        ] {
            while left > 0
                && let Some(sound) = &mut self.sound
            {
                let step = left.min(LONGEST_PACKET_SAMPLES as usize);
                sound.fill(filling, step);
                self.timeline.handle_filling(step);
                self.counters.concealed_samples += step as u64;
                left -= step;
                self.send(out)?;
            }
        }
        Ok(())
    }

    /// Appends the frames whose samples are there.
    fn send(&mut self, out: &mut Vec<Frame>) -> Result<(), TranscodeError> {
        let Some(sound) = &mut self.sound else { return Ok(()) };
        while let Some(frame) = sound.next_frame() {
            match frame {
                Ok(data) => out.push(aac_frame(FrameKind::Audio, self.timeline.send_frame(), data)),
                Err(error) => {
                    self.counters.lost_frames += 1;
                    self.timeline.abandon_segment();
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }
}

const fn aac_frame(kind: FrameKind, timestamp: Timestamp, data: Bytes) -> Frame {
    Frame { codec: Codec::Aac, kind, timestamp, composition_ms: 0, data }
}
