//! Audio tag bodies (FLV 10.1 E.4.2; E-RTMP, "Enhanced Audio").

use bytes::Bytes;

use super::extended::{Packet, PacketTypes, read_packet, skip_extensions};
use super::{CODED_FRAMES, Error, SEQUENCE_START, SOUND_AAC, SOUND_EX, SOUND_MP3, frame};
use crate::{Codec, Frame, FrameKind, Timestamp, opus};

/// Not carried: end of sequence (2), channel layouts (4).
const TYPES: PacketTypes =
    PacketTypes { multitrack: 5, extension: 7, media: &[SEQUENCE_START, CODED_FRAMES] };

/// Reads an audio tag body. `None` for what carries no sound: empty messages, end of sequence, channel layouts, Opus
/// comments, tracks besides the first, packets that do not exist yet.
///
/// # Errors
/// A truncated header or a codec we do not carry.
pub fn read_audio(tag: &Bytes, timestamp: Timestamp) -> Result<Option<Frame>, Error> {
    let Some(&first) = tag.first() else { return Ok(None) };
    let (codec, is_configuration, data) = match first >> 4 {
        SOUND_AAC => {
            let Some(&packet_type) = tag.get(1) else { return Err(Error::Truncated) };
            (Codec::Aac, packet_type == 0, tag.slice(2..))
        }
        SOUND_MP3 => (Codec::Mp3, false, tag.slice(1..)),
        SOUND_EX => match read_extended(tag.slice(1..), first & 0x0f)? {
            Some(read) => read,
            None => return Ok(None),
        },
        other => return Err(Error::AudioCodec(other)),
    };
    let kind = if is_configuration { FrameKind::Configuration } else { FrameKind::Audio };
    Ok(frame(codec, kind, timestamp, 0, data))
}

/// Codec, whether it is its configuration, and the data.
fn read_extended(mut tag: Bytes, packet_type: u8) -> Result<Option<(Codec, bool, Bytes)>, Error> {
    let packet_type = skip_extensions(&mut tag, packet_type, TYPES)?;
    let Some(packet) = read_packet(tag, packet_type, TYPES)? else { return Ok(None) };
    let Packet { packet_type, four_cc, body } = packet;
    let is_configuration = packet_type == SEQUENCE_START;
    let codec = match &four_cc {
        // Its sequence may as well start with its comments, or with nothing.
        b"Opus" if is_configuration && !opus::is_head(&body) => return Ok(None),
        b"Opus" => Codec::Opus,
        b"mp4a" => Codec::Aac,
        // It has no configuration.
        b".mp3" if is_configuration => return Ok(None),
        b".mp3" => Codec::Mp3,
        _ => return Err(Error::FourCc(four_cc)),
    };
    Ok(Some((codec, is_configuration, body)))
}
