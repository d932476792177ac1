//! What a WHIP publisher sends: access units of 720p25 H.264 at 2 Mbit/s with a keyframe every two seconds, and Opus of
//! 64 kbit/s in packets of 20 ms; and how the sink recognises them.

use std::io;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use headgate_rtmp::MediaKind;

use crate::load::{Stamp, due as picture_due};

/// Pictures in a GOP.
const GOP: u32 = 50;
/// Bytes of one picture: 2 Mbit/s over 25.
const PICTURE_BYTES: usize = 10_000;
/// Bytes of one Opus packet: 64 kbit/s over 50.
const SOUND_BYTES: usize = 160;
/// Samples of one channel in a packet, 48 kHz.
pub(crate) const SOUND_SAMPLES: u32 = 960;
/// Opus packets that are prepared and then repeated: five seconds.
pub(crate) const PREPARED: usize = 250;

/// Constrained Baseline 3.1, 1280x720.
const SPS: &[u8] = b"\x67\x42\xe0\x1f\xda\x01\x40\x16\xe4";
const PPS: &[u8] = b"\x68\xce\x3c\x80";
/// NAL header and the start of a slice header: first macroblock 0, slice type I or P.
const IDR_SLICE: [u8; 3] = [0x65, 0x88, 0x84];
const P_SLICE: [u8; 3] = [0x41, 0x9a, 0x24];
/// Bytes of an Opus packet before its stamp: the TOC, CELT fullband 20 ms stereo (RFC 6716 3.1).
const OPUS_TOC: u8 = 0xfc;
/// An audio tag body of Opus by Enhanced RTMP: coded frames, then the name of the codec.
const OPUS_TAG: &[u8] = b"\x91Opus";
/// The same for AAC: raw frames, whatever the flags.
const AAC_TAG: [u8; 2] = [0xa0, 1];

/// The audio that the upstream receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    /// Opus without transcoding; packets carry stamps instead of audio.
    Opus,
    /// Stereo Opus that the server transcodes to AAC.
    AacStereo,
    /// Mono Opus that the server transcodes to AAC.
    AacMono,
}

/// Opus packets with real audio, for the server to decode. None for [`Sound::Opus`].
pub(crate) fn prepare_sound(sound: Sound) -> io::Result<Vec<Vec<u8>>> {
    let channels = match sound {
        Sound::Opus => return Ok(Vec::new()),
        Sound::AacStereo => opus::Channels::Stereo,
        Sound::AacMono => opus::Channels::Mono,
    };
    let count = channels as usize;
    let mut encoder =
        opus::Encoder::new(48_000, channels, opus::Application::Audio).map_err(io::Error::other)?;
    encoder.set_bitrate(opus::Bitrate::Bits(64_000)).map_err(io::Error::other)?;
    let mut noise = 1_u32;
    (0..PREPARED)
        .map(|packet| {
            let samples = SOUND_SAMPLES as usize;
            let pcm: Vec<f32> = (0..samples * count)
                .map(|at| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let time = (packet * samples + at / count) as f32 / 48_000.0;
                    tones(time, at % count) + (noise >> 16) as f32 / 65_536.0 * 0.02
                })
                .collect();
            encoder.encode_vec_float(&pcm, 1_500).map_err(io::Error::other)
        })
        .collect()
}

/// A chord that swells and fades, different in each channel: neither silence nor one sine.
fn tones(time: f32, channel: usize) -> f32 {
    let turn = |hertz: f32| (time * hertz * std::f32::consts::TAU).sin();
    let base = if channel == 0 { 220.0 } else { 330.0 };
    (turn(base) + turn(base * 1.5) * turn(0.7) + turn(base * 5.0) * turn(2.3)) * 0.15
}

/// When frame `number` is due, from the publisher's start.
pub(crate) fn due(kind: MediaKind, number: u32) -> Duration {
    match kind {
        MediaKind::Video | MediaKind::Script => picture_due(kind, number),
        MediaKind::Audio => Duration::from_millis(20) * number,
    }
}

/// RTP time of a frame, from 0 at the publisher's start on both clocks.
pub(crate) const fn rtp_time(kind: MediaKind, number: u32) -> u32 {
    match kind {
        MediaKind::Video | MediaKind::Script => number.wrapping_mul(3_600),
        MediaKind::Audio => number.wrapping_mul(SOUND_SAMPLES),
    }
}

/// Whether a picture is a keyframe by schedule.
pub(crate) const fn is_due_keyframe(number: u32) -> bool {
    number.is_multiple_of(GOP)
}

/// NAL units of a picture of the default size: parameter sets before a keyframe, and one slice in `buffer`.
pub(crate) fn picture(stamp: Stamp, is_key: bool, buffer: &mut BytesMut) -> Vec<&[u8]> {
    picture_of(stamp, is_key, PICTURE_BYTES, buffer)
}

/// The same with another size.
pub(crate) fn picture_of(
    stamp: Stamp,
    is_key: bool,
    bytes: usize,
    buffer: &mut BytesMut,
) -> Vec<&[u8]> {
    buffer.clear();
    buffer.put_slice(&if is_key { IDR_SLICE } else { P_SLICE });
    stamp.write(buffer);
    let sets = if is_key { SPS.len() + PPS.len() } else { 0 };
    buffer.resize(bytes - sets, 0x55);
    if is_key { vec![SPS, PPS, buffer] } else { vec![buffer] }
}

/// An Opus packet that is never decoded.
pub(crate) fn stamped_sound(stamp: Stamp, buffer: &mut BytesMut) -> &[u8] {
    buffer.clear();
    buffer.put_u8(OPUS_TOC);
    stamp.write(buffer);
    buffer.resize(SOUND_BYTES, 0x55);
    buffer
}

/// What a tag body at the sink contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// A frame that carries a stamp.
    Stamped(Stamp),
    /// An AAC frame.
    Aac,
    /// A header, or script data.
    Other,
}

/// Recognises a tag body.
pub(crate) fn recognise(kind: MediaKind, body: &[u8]) -> Arrived {
    let stamp = match kind {
        MediaKind::Video => slice_of(body).and_then(|slice| Stamp::read(slice.get(3..)?)),
        MediaKind::Audio => match body {
            [first, packet_type, _, ..] if [first & 0xf0, *packet_type] == AAC_TAG => {
                return Arrived::Aac;
            }
            _ => body.strip_prefix(OPUS_TAG).and_then(|packet| Stamp::read(packet.get(1..)?)),
        },
        MediaKind::Script => None,
    };
    stamp.map_or(Arrived::Other, Arrived::Stamped)
}

/// Whether a tag body contains exactly the slice that was sent with this stamp.
pub(crate) fn is_intact(stamp: Stamp, is_key: bool, body: &[u8]) -> bool {
    let mut buffer = BytesMut::new();
    let sent = picture(stamp, is_key, &mut buffer).last().copied();
    sent.is_some() && slice_of(body) == sent
}

/// The first slice among the NAL units of an AVC tag body: four-byte lengths, parameter sets may come first.
fn slice_of(body: &[u8]) -> Option<&[u8]> {
    let mut rest = match body {
        [first, 1, _, _, _, units @ ..] if first & 0x0f == 7 => units,
        _ => return None,
    };
    loop {
        let (length, after) = rest.split_first_chunk()?;
        let (unit, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        if matches!(unit.first()? & 0x1f, 1 | 5) {
            return Some(unit);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(number: u32) -> Stamp {
        Stamp { publisher: 7, number, sent: Duration::from_micros(9) }
    }

    #[test]
    fn a_picture_is_recognised_after_parameter_sets() {
        for number in [0, 1] {
            let mut buffer = BytesMut::new();
            let mut body = vec![0x17, 1, 0, 0, 0];
            for unit in picture(stamp(number), is_due_keyframe(number), &mut buffer) {
                body.extend_from_slice(&u32::try_from(unit.len()).expect("short").to_be_bytes());
                body.extend_from_slice(unit);
            }
            assert_eq!(recognise(MediaKind::Video, &body), Arrived::Stamped(stamp(number)));
            assert!(is_intact(stamp(number), number == 0, &body));
            *body.last_mut().expect("long") ^= 1;
            assert!(!is_intact(stamp(number), number == 0, &body));
        }
        assert_eq!(recognise(MediaKind::Video, &[0x17, 0, 0, 0, 0, 1]), Arrived::Other);
    }

    #[test]
    fn opus_is_recognised_by_its_stamp_and_aac_by_its_header() {
        let mut buffer = BytesMut::new();
        let packet = stamped_sound(stamp(3), &mut buffer);
        let body = [OPUS_TAG, packet].concat();
        assert_eq!(recognise(MediaKind::Audio, &body), Arrived::Stamped(stamp(3)));
        assert_eq!(recognise(MediaKind::Audio, &[0xaf, 1, 0x21]), Arrived::Aac);
        assert_eq!(recognise(MediaKind::Audio, &[0xaf, 0, 0x11, 0x90]), Arrived::Other);
        assert_eq!(recognise(MediaKind::Audio, b"\x90OpusOpusHead"), Arrived::Other);
    }

    #[test]
    fn prepared_sound_is_decodable_and_of_64_kbit_per_second() {
        for (sound, channels) in
            [(Sound::AacStereo, opus::Channels::Stereo), (Sound::AacMono, opus::Channels::Mono)]
        {
            let packets = prepare_sound(sound).expect("encodes");
            let bytes: usize = packets.iter().map(Vec::len).sum();
            assert!((35_000..45_000).contains(&bytes), "{bytes} bytes in five seconds");
            assert_eq!(opus::packet::get_nb_channels(&packets[0]).expect("valid"), channels);
        }
    }
}
