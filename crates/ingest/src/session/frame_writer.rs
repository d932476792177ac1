//! Frames into RTMP sessions: the tag header in front, the right message kind, the wire's time.

use headgate_media::{Frame, flv};
use headgate_rtmp::{ClientSession, ServerSession};

use super::rtmp_frames::{media_kind, takes_codec, wire_timestamp};
use super::shared_frame::SharedFrame;

/// Hands a frame to a player that lists its codec.
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

/// Hands a frame to an upstream.
pub(super) fn write_to_upstream(session: &mut ClientSession, frame: &Frame) {
    let header = flv::tag_header(frame);
    session.send_media(media_kind(frame), wire_timestamp(frame), header.as_slice(), &frame.data);
}
