//! The parts of Enhanced RTMP between the first byte of a tag body and its media, common to audio and video: extensions
//! (ModEx) and tracks (E-RTMP, "Enhanced Audio" and "Enhanced Video"). Not the media itself.

use bytes::{Buf, Bytes};

use super::Error;

/// The only defined extension takes six bytes, and a sender needs at most one of each kind.
const EXTENSIONS_LIMIT: usize = 16;
/// An extension of this length gives its actual length in two further bytes.
const LONG_EXTENSION: usize = 256;
/// The track that is used; further tracks are alternatives to it (AvMultitrackType, "Track Ordering").
const TRACK: u8 = 0;

// AvMultitrackType.
const ONE_TRACK: u8 = 0;
const MANY_TRACKS: u8 = 1;
const MANY_TRACKS_MANY_CODECS: u8 = 2;

/// The packet types of audio or of video.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTypes {
    pub(super) multitrack: u8,
    pub(super) extension: u8,
    /// Packet types that are read. Any other is ignored together with everything after it.
    pub(super) media: &'static [u8],
}

/// Media from the first track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) packet_type: u8,
    pub(super) four_cc: [u8; 4],
    pub(super) body: Bytes,
}

/// Skips the extensions: afterwards `tag` starts after the packet type that is returned.
pub(super) fn skip_extensions(
    tag: &mut Bytes,
    mut packet_type: u8,
    types: PacketTypes,
) -> Result<u8, Error> {
    let mut count = 0;
    while packet_type == types.extension {
        count += 1;
        if count > EXTENSIONS_LIMIT {
            return Err(Error::Extensions);
        }
        let mut length = usize::from(take::<1>(tag)?[0]) + 1;
        if length == LONG_EXTENSION {
            length = usize::from(u16::from_be_bytes(take(tag)?)) + 1;
        }
        if length > tag.len() {
            return Err(Error::Truncated);
        }
        // Nanoseconds to add to the presentation time, or an undefined extension; RTMP only forwards milliseconds.
        tag.advance(length);
        packet_type = take::<1>(tag)?[0] & 0x0f;
    }
    Ok(packet_type)
}

/// The media after a packet type that is not an extension: of the single track, or of the first among several. `None`
/// if it is not media, or contains nothing for the first track.
pub(super) fn read_packet(
    mut tag: Bytes,
    packet_type: u8,
    types: PacketTypes,
) -> Result<Option<Packet>, Error> {
    if types.media.contains(&packet_type) {
        let four_cc = take(&mut tag)?;
        return Ok(Some(Packet { packet_type, four_cc, body: tag }));
    }
    if packet_type != types.multitrack {
        return Ok(None);
    }
    let [kinds] = take(&mut tag)?;
    let (multitrack, packet_type) = (kinds >> 4, kinds & 0x0f);
    if !types.media.contains(&packet_type) {
        return Ok(None);
    }
    let common = match multitrack {
        ONE_TRACK | MANY_TRACKS => Some(take(&mut tag)?),
        MANY_TRACKS_MANY_CODECS => None,
        // An undefined form, whose contents are unknown.
        _ => return Ok(None),
    };
    while !tag.is_empty() {
        let four_cc = common.map_or_else(|| take(&mut tag), Ok)?;
        let [track] = take(&mut tag)?;
        let length = if multitrack == ONE_TRACK {
            tag.len()
        } else {
            let [a, b, c] = take(&mut tag)?;
            u32::from_be_bytes([0, a, b, c]) as usize
        };
        if length > tag.len() {
            return Err(Error::Truncated);
        }
        let body = tag.split_to(length);
        if track == TRACK {
            return Ok(Some(Packet { packet_type, four_cc, body }));
        }
    }
    Ok(None)
}

/// Takes the next bytes of a header.
pub(super) fn take<const N: usize>(tag: &mut Bytes) -> Result<[u8; N], Error> {
    let (taken, _) = tag.split_first_chunk::<N>().ok_or(Error::Truncated)?;
    let taken = *taken;
    tag.advance(N);
    Ok(taken)
}
