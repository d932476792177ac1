//! The AAC that a stream's Opus becomes, as far as it follows from the packets' headers.

use bytes::Bytes;

use headgate_media::{Channels, Codec, Frame, FrameKind, Timestamp, aac, opus};

/// The configuration of the AAC that a [`Transcoder`] makes of Opus with this head and first packet: subscribers can get it
/// before there is a transcoder. `None` if such Opus cannot be transcoded.
#[must_use]
pub fn first_configuration(head: &Frame, packet: &Frame) -> Option<Frame> {
    opus::head_channels(&head.data).ok()?;
    Some(configuration(channels_of(packet), packet.timestamp))
}

/// Channels of an Opus packet; mono if it is unreadable.
pub(super) fn channels_of(packet: &Frame) -> Channels {
    let is_readable = opus::duration(&packet.data).is_ok();
    opus::channels(&packet.data).ok().filter(|_| is_readable).unwrap_or(Channels::Mono)
}

/// The decoder configuration of AAC that begins at this time.
pub(super) fn configuration(channels: Channels, timestamp: Timestamp) -> Frame {
    let data = Bytes::copy_from_slice(&aac::lc_48k(channels));
    aac_frame(FrameKind::Configuration, timestamp, data)
}

/// A frame of AAC.
pub(super) const fn aac_frame(kind: FrameKind, timestamp: Timestamp, data: Bytes) -> Frame {
    Frame { codec: Codec::Aac, kind, timestamp, composition_ms: 0, data }
}
