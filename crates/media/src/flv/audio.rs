//! Audio tag bodies (FLV 10.1 E.4.2; E-RTMP, "Enhanced Audio").

use bytes::Bytes;

use super::extended::{Packet, PacketTypes, read_packet, skip_extensions};
use super::{CODED_FRAMES, Error, SEQUENCE_START, SOUND_AAC, SOUND_EX, SOUND_MP3, frame};
use crate::{Codec, Frame, FrameKind, SoundFlags, Timestamp, opus};

/// The most channels of mapping family 0 (RFC 7845 5.1.1.1).
const STEREO: u8 = 2;
/// Declares the channels of the following packets (E-RTMP, "MultichannelConfig").
const CHANNEL_LAYOUT: u8 = 4;
/// End of sequence (2) is ignored.
const TYPES: PacketTypes = PacketTypes {
    multitrack: 5,
    extension: 7,
    media: &[SEQUENCE_START, CODED_FRAMES, CHANNEL_LAYOUT],
};

/// Reads an audio tag body. `None` if it carries no audio: empty messages, end of sequence, channel layouts, Opus
/// comments, tracks other than the first, undefined packet types.
///
/// # Errors
/// A truncated header or an unsupported codec.
pub fn read_audio(tag: &Bytes, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let Some(&first) = tag.first() else { return Ok(None) };
    let (codec, is_configuration, data) = match first >> 4 {
        SOUND_AAC => {
            let Some(&packet_type) = tag.get(1) else { return Err(Error::Truncated) };
            if !matches!(packet_type, SEQUENCE_START | CODED_FRAMES) {
                return Ok(None);
            }
            (Codec::Aac, packet_type == SEQUENCE_START, tag.slice(2..))
        }
        SOUND_MP3 => (Codec::Mp3(SoundFlags::of(first)), false, tag.slice(1..)),
        SOUND_EX => match read_extended(tag.slice(1..), first & 0x0f)? {
            Some(read) => read,
            None => return Ok(None),
        },
        other => return Err(Error::AudioCodec(other)),
    };
    let kind = if is_configuration { FrameKind::Configuration } else { FrameKind::Audio };
    frame(codec, kind, timestamp, 0, data)
}

/// The codec, whether this is its configuration, and the data.
fn read_extended(mut tag: Bytes, packet_type: u8) -> Result<Option<(Codec, bool, Bytes)>, Error> {
    let packet_type = skip_extensions(&mut tag, packet_type, TYPES)?;
    let Some(packet) = read_packet(tag, packet_type, TYPES)? else { return Ok(None) };
    let Packet { packet_type, four_cc, body } = packet;
    if packet_type == CHANNEL_LAYOUT {
        return read_channel_layout(four_cc, &body).map(|()| None);
    }
    let is_configuration = packet_type == SEQUENCE_START;
    let codec = match &four_cc {
        // Its sequence may also start with its comments, or with nothing.
        b"Opus" if is_configuration && !opus::is_head(&body) => return Ok(None),
        b"Opus" if is_configuration => {
            check_opus_head(&body)?;
            Codec::Opus
        }
        b"Opus" => Codec::Opus,
        b"mp4a" => Codec::Aac,
        // MP3 has no configuration.
        b".mp3" if is_configuration => return Ok(None),
        b".mp3" => Codec::Mp3(SoundFlags::STEREO),
        _ => return Err(Error::FourCc(four_cc)),
    };
    Ok(Some((codec, is_configuration, body)))
}

/// Opus without an OpusHead has the channels of its layout; other codecs declare them in their configuration.
fn read_channel_layout(four_cc: [u8; 4], body: &[u8]) -> Result<(), Error> {
    match body {
        &[order, channels, ..] if four_cc == *b"Opus" && channels > STEREO => {
            // An explicit channel order corresponds to family 1 (RFC 7845 5.1.1.2), none to family 255.
            let family = if order == 0 { 255 } else { 1 };
            Err(Error::OpusChannels { channels, family })
        }
        _ => Ok(()),
    }
}

fn check_opus_head(head: &[u8]) -> Result<(), Error> {
    let &channels = head.get(9).ok_or(Error::Truncated)?;
    let &family = head.get(18).ok_or(Error::Truncated)?;
    if channels > STEREO || family != 0 {
        return Err(Error::OpusChannels { channels, family });
    }
    Ok(())
}
