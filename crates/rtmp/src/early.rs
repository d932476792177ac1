//! Headers that a publisher sends before it is allowed. nginx-rtmp relays do not wait for the answer, and send each
//! header once: without it nothing that follows can be decoded. Pictures and sound of that time are not kept.

use crate::message::{MediaKind, MediaMessage};

/// The newest header of each kind; each is at most as long as a message before acceptance may be.
#[derive(Debug, Default)]
pub(crate) struct EarlyHeaders {
    script: Option<MediaMessage>,
    video: Option<MediaMessage>,
    audio: Option<MediaMessage>,
}

impl EarlyHeaders {
    /// Keeps a header, in place of an earlier one of its kind; drops everything else.
    pub(crate) fn keep(&mut self, message: MediaMessage) {
        if !is_header(&message) {
            return;
        }
        let place = match message.kind {
            MediaKind::Script => &mut self.script,
            MediaKind::Video => &mut self.video,
            MediaKind::Audio => &mut self.audio,
        };
        *place = Some(message);
    }

    /// What was kept, metadata first.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = MediaMessage> + use<> {
        let Self { script, video, audio } = std::mem::take(self);
        [script, video, audio].into_iter().flatten()
    }
}

/// AVC and AAC sequence headers (FLV 10.1, E.4.2.1 and E.4.3.1), `SequenceStart` of Enhanced RTMP, and metadata.
fn is_header(message: &MediaMessage) -> bool {
    let mut bytes = message.payload.iter().copied();
    let (first, second) = (bytes.next().unwrap_or(0), bytes.next());
    match message.kind {
        MediaKind::Script => true,
        MediaKind::Video if first & 0x80 != 0 => first & 0x0f == 0,
        MediaKind::Video => first & 0x0f == 7 && second == Some(0),
        MediaKind::Audio if first >> 4 == 9 => first & 0x0f == 0,
        MediaKind::Audio => first >> 4 == 10 && second == Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn the_newest_header_of_each_kind_stays_and_nothing_else() {
        let message = |kind, payload: &'static [u8]| MediaMessage {
            kind,
            timestamp: 0,
            payload: Bytes::from_static(payload),
        };
        let mut early = EarlyHeaders::default();
        for (kind, payload) in [
            (MediaKind::Audio, &[0xaf, 0, 1][..]),
            (MediaKind::Audio, &[0xaf, 1, 2]),
            (MediaKind::Video, &[0x17, 0, 3]),
            (MediaKind::Video, &[0x17, 1, 4]),
            (MediaKind::Video, &[0x17, 0, 5]),
            (MediaKind::Video, &[]),
            (MediaKind::Script, &[2]),
        ] {
            early.keep(message(kind, payload));
        }
        let kept: Vec<_> = early.take().map(|message| message.payload).collect();
        assert_eq!(kept, [&[2][..], &[0x17, 0, 5], &[0xaf, 0, 1]]);
        assert_eq!(early.take().count(), 0);
    }
}
