//! A frame for several subscribers, whose RTMP message is written once for all of them.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use headgate_media::{Frame, flv};
use headgate_rtmp::Framed;

use super::rtmp_frames::{media_kind, wire_timestamp};

/// A frame in a subscriber's queue.
#[derive(Clone, Debug)]
pub(crate) struct SharedFrame {
    frame: Frame,
    /// Its tag and chunk headers, written for the first subscriber; only used if there may be several.
    framed: Option<Arc<OnceLock<Framed>>>,
}

impl SharedFrame {
    /// A frame for several subscribers.
    pub(crate) fn for_many(frame: Frame) -> Self {
        Self { frame, framed: Some(Arc::default()) }
    }

    /// Its message with all headers; `None` for a frame with one subscriber, whose headers are written when it is sent.
    pub(super) fn framed(&self) -> Option<&Framed> {
        let framed = self.framed.as_ref()?;
        Some(framed.get_or_init(|| {
            let header = flv::tag_header(&self.frame);
            let (kind, timestamp) = (media_kind(&self.frame), wire_timestamp(&self.frame));
            Framed::new(kind, timestamp, header.as_slice(), &self.frame.data)
        }))
    }
}

/// A frame for one subscriber.
impl From<Frame> for SharedFrame {
    fn from(frame: Frame) -> Self {
        Self { frame, framed: None }
    }
}

impl Deref for SharedFrame {
    type Target = Frame;

    fn deref(&self) -> &Frame {
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use headgate_media::{Codec, FrameKind, Timestamp};

    #[test]
    fn a_frame_for_many_readers_is_written_once_and_for_one_reader_not_in_advance() {
        let (codec, kind) = (Codec::H264, FrameKind::Keyframe);
        let (timestamp, data) = (Timestamp::from_millis(40), Bytes::from_static(b"slice"));
        let frame = Frame { codec, kind, timestamp, composition_ms: 0, data };
        let shared = SharedFrame::for_many(frame.clone());
        let other = shared.clone();
        let (first, second) = (shared.framed().expect("shared"), other.framed().expect("shared"));
        assert!(std::ptr::eq(first, second));
        // Chunk header 12, tag header 5, data 5.
        assert_eq!(first.wire_bytes(), 22);
        assert!(SharedFrame::from(frame).framed().is_none());
    }
}
