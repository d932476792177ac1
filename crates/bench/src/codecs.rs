//! The cost of the codecs alone: Opus decoded, and transcoded to AAC, for many streams in turn, with nothing around them.
//! What a server spends on transcoding cannot be less.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use headgate_media::{Codec, Frame, FrameKind, Timestamp};
use headgate_transcode::{AacBitrate, Encoders, Transcoder};

use crate::run_queue;
use crate::whip_load::{PREPARED, SOUND_SAMPLES, Sound, prepare_sound};

/// The service's default.
const BITRATE: AacBitrate = AacBitrate::PerChannel(64_000);
const PACKETS_PER_SECOND: u32 = 50;
/// Seconds of each stream before the measurement.
const WARM_SECONDS: u32 = 1;

pub(crate) struct Run {
    pub(crate) sound: Sound,
    pub(crate) streams: usize,
    /// Of each stream's audio.
    pub(crate) seconds: u32,
}

/// Returns one line of JSON.
pub(crate) fn run(run: &Run) -> io::Result<String> {
    let packets: Vec<Bytes> = prepare_sound(run.sound)?.into_iter().map(Bytes::from).collect();
    let [transcoding, decoding] = [transcode(run, &packets)?, decode(run, &packets)?]
        .map(|took| took.as_secs_f64() * 1_000.0 / (run.streams as f64 * f64::from(run.seconds)));
    let (streams, sound) =
        (run.streams, if run.sound == Sound::AacMono { "mono" } else { "stereo" });
    Ok(format!(
        "{{\"server\":\"codecs alone\",\"streams\":{streams},\"sound\":\"{sound}\",\
         \"cpu_ms_per_stream_second\":{transcoding:.3},\"decoding_ms_per_stream_second\":{decoding:.3}}}"
    ))
}

fn transcode(run: &Run, packets: &[Bytes]) -> io::Result<Duration> {
    let transcoder = || Transcoder::new(BITRATE, Encoders::default());
    let mut transcoders: Vec<_> = std::iter::repeat_with(transcoder).take(run.streams).collect();
    let mut out = Vec::new();
    measured(run, |number| {
        for (stream, transcoder) in transcoders.iter_mut().enumerate() {
            let frame = packet(packets, number, stream);
            out.clear();
            transcoder
                .handle_frame(&frame, std::time::Instant::now(), &mut out)
                .map_err(io::Error::other)?;
        }
        Ok(())
    })
}

fn decode(run: &Run, packets: &[Bytes]) -> io::Result<Duration> {
    let channels = match run.sound {
        Sound::AacMono => opus::Channels::Mono,
        Sound::Opus | Sound::AacStereo => opus::Channels::Stereo,
    };
    let mut decoders = (0..run.streams)
        .map(|_| opus::Decoder::new(48_000, channels))
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let mut pcm = vec![0_i16; SOUND_SAMPLES as usize * channels as usize];
    measured(run, |number| {
        for (stream, decoder) in decoders.iter_mut().enumerate() {
            let Frame { data, .. } = packet(packets, number, stream);
            decoder.decode(&data, &mut pcm, false).map_err(io::Error::other)?;
        }
        Ok(())
    })
}

/// Time on the processor for `step` with the number of each packet of the measured seconds.
fn measured(run: &Run, mut step: impl FnMut(u32) -> io::Result<()>) -> io::Result<Duration> {
    let warm = WARM_SECONDS * PACKETS_PER_SECOND;
    (0..warm).try_for_each(&mut step)?;
    let before = run_queue::ran();
    (warm..warm + run.seconds * PACKETS_PER_SECOND).try_for_each(&mut step)?;
    Ok(run_queue::ran().saturating_sub(before))
}

/// Each stream is at another place of the same audio.
fn packet(packets: &[Bytes], number: u32, stream: usize) -> Frame {
    Frame {
        codec: Codec::Opus,
        kind: FrameKind::Audio,
        timestamp: Timestamp::from_millis(i64::from(number) * 20),
        composition_ms: 0,
        data: packets[(number as usize + stream * 7) % PREPARED].clone(),
    }
}
