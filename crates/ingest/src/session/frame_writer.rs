//! Writes frames to RTMP sessions: FLV tag header, message kind and wire timestamp.

use headgate_media::{Frame, flv};
use headgate_rtmp::{ClientSession, ServerSession};

use super::rtmp_frames::{media_kind, takes_codec, wire_timestamp};
use super::shared_frame::SharedFrame;

/// Sends a frame to a player, if the player supports its codec.
pub(super) fn write_to_player(session: &mut ServerSession, frame: &SharedFrame) {
    if !takes_codec(session.four_cc_list(), frame.codec) {
        return;
    }
    if let Some(framed) = frame.framed() {
        return session.send_framed(framed);
    }
    let header = flv::tag_header(frame);
    let (kind, timestamp) = (media_kind(frame), wire_timestamp(frame));
    session.send_media(kind, timestamp, header.as_slice(), &frame.data);
}

/// Sends a frame to an upstream.
pub(super) fn write_to_upstream(session: &mut ClientSession, frame: &Frame) {
    let header = flv::tag_header(frame);
    session.send_media(media_kind(frame), wire_timestamp(frame), header.as_slice(), &frame.data);
}
