//! The broadcaster's frames: repaired where needed, counted, and passed on.

use std::time::Instant;

use headgate_media::{Frame, FrameKind, Track};

use super::{Publishing, Role, RtmpServer};
use crate::session::effect::Effect;
use crate::session::frame_rates::Verdict;

impl RtmpServer {
    /// Handles a frame from the broadcaster.
    pub(super) fn handle_frame(&mut self, frame: Frame, now: Instant, effects: &mut Vec<Effect>) {
        let Role::Publishing(publishing) = &mut self.role else { return };
        let Publishing { publish, clocks, repair, mark, .. } = &mut **publishing;
        let is_media = !matches!(frame.kind, FrameKind::Configuration | FrameKind::ColorInfo);
        if frame.track() == Track::Video && is_media {
            mark.handle_video_frame(frame.data.len(), now);
        }
        let mut next = repair.handle_frame(frame);
        while let Some(frame) = next {
            match publish.handle_frame(&frame, now) {
                Verdict::Pass => {}
                Verdict::PassAfter(configuration) => {
                    self.captured.frame(&configuration, now);
                    effects.push(Effect::Publish(configuration));
                }
                Verdict::Drop => {
                    next = repair.poll_frame();
                    continue;
                }
            }
            if let Some(configuration) = clocks.missing_configuration(&frame) {
                self.captured.frame(&configuration, now);
                effects.push(Effect::Publish(configuration));
            }
            self.captured.frame(&frame, now);
            effects.push(Effect::Publish(frame));
            next = repair.poll_frame();
        }
        if let Some(counts) = repair.poll_irregularities() {
            for (kind, times) in counts.iter() {
                publish.record().note_irregularity(kind, times);
            }
            while let Some(track) = repair.poll_withheld() {
                let (code, description) = warning(track);
                self.session.warn_publisher(code, description);
            }
        }
    }
}

/// What a broadcaster is told when a track is withheld. Its frames are lost, not its publish.
const fn warning(track: Track) -> (&'static str, &'static str) {
    match track {
        Track::Audio => (
            "NetStream.Publish.AudioConfigurationMissing",
            "Audio without a usable AAC configuration cannot be decoded and is withheld",
        ),
        Track::Video | Track::Script => (
            "NetStream.Publish.VideoConfigurationMissing",
            "Video without a usable H.264 configuration (SPS and PPS) cannot be decoded and is withheld",
        ),
    }
}
