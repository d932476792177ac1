//! How the AAC of one upstream starts: its first timestamp, its headers, and whether timestamps go back or have gaps.

use headgate_rtmp::{MediaKind, MediaMessage};

use crate::whip_load::{Arrived, recognise};

/// The most between two consecutive AAC frames; timestamps are whole milliseconds.
const STEP_LIMIT_MS: u32 = 22;
/// Codec id of AAC in FLV, and the packet type of a sequence header (FLV E.4.2.2).
const AAC: u8 = 10;
const SEQUENCE_HEADER: u8 = 0;

/// What one upstream received.
#[derive(Default)]
pub(crate) struct AacStart {
    first_video_ms: Option<u32>,
    first_aac_ms: Option<u32>,
    last_aac_ms: Option<u32>,
    frames: u32,
    headers: u32,
    /// How often an AAC timestamp was below the previous one, and the largest step back.
    backwards: u32,
    most_back_ms: u32,
    /// How often at least one frame was missing.
    gaps: u32,
}

impl AacStart {
    pub(crate) fn note(&mut self, message: &MediaMessage) {
        let timestamp = message.timestamp;
        if matches!(recognise(message.kind, &message.payload), Arrived::Stamped(_)) {
            self.first_video_ms.get_or_insert(timestamp);
        }
        let (kind, Some(&[first, packet_type])) = (message.kind, message.payload.first_chunk())
        else {
            return;
        };
        if kind != MediaKind::Audio || first >> 4 != AAC {
            return;
        }
        if packet_type == SEQUENCE_HEADER {
            self.headers += 1;
            return;
        }
        self.frames += 1;
        self.first_aac_ms.get_or_insert(timestamp);
        if let Some(last) = self.last_aac_ms.replace(timestamp) {
            self.backwards += u32::from(timestamp < last);
            self.most_back_ms = self.most_back_ms.max(last.saturating_sub(timestamp));
            self.gaps += u32::from(timestamp > last + STEP_LIMIT_MS);
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let number = |number: Option<u32>| number.map_or(-1, i64::from);
        let (first_video, first_aac) = (number(self.first_video_ms), number(self.first_aac_ms));
        let Self { frames, headers, backwards, most_back_ms, gaps, .. } = self;
        format!(
            "{{\"first_video_ms\":{first_video},\"first_aac_ms\":{first_aac},\"aac_frames\":{frames},\"aac_headers\":{headers},\"backwards\":{backwards},\"most_back_ms\":{most_back_ms},\"gaps\":{gaps}}}"
        )
    }
}
