//! What Enhanced RTMP puts between the first byte of a tag body and its media, the same for audio and video:
//! extensions (ModEx) and tracks (E-RTMP, "Enhanced Audio" and "Enhanced Video"). Not what the media is.

use bytes::{Buf, Bytes};

use super::Error;

/// The only extension there is takes six bytes, and a sender needs one of each kind.
const EXTENSIONS_LIMIT: usize = 16;
/// An extension of so many bytes says its length in two more.
const LONG_EXTENSION: usize = 256;
/// The track that is used; a sender's further ones are alternatives to it (AvMultitrackType, "Track Ordering").
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
    /// Those that are read. Any other is passed over with all that is behind it.
    pub(super) media: &'static [u8],
}

/// Media of the first track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) packet_type: u8,
    pub(super) four_cc: [u8; 4],
    pub(super) body: Bytes,
}

/// Passes the extensions over: `tag` then starts behind the packet type that is returned.
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
        // Nanoseconds to add to the presentation time, or what nobody knows yet: a millisecond is all RTMP carries on.
        tag.advance(length);
        packet_type = take::<1>(tag)?[0] & 0x0f;
    }
    Ok(packet_type)
}

/// The media behind a packet type that is no extension: of the one track, or of the first among several. `None`: it is
/// no media, or none of the first track's.
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
        // A form that does not exist yet: what it would hold is not known.
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

/// The next bytes of a header.
pub(super) fn take<const N: usize>(tag: &mut Bytes) -> Result<[u8; N], Error> {
    let (taken, _) = tag.split_first_chunk::<N>().ok_or(Error::Truncated)?;
    let taken = *taken;
    tag.advance(N);
    Ok(taken)
}
