//! Repairs what RTMP publishers send before it is passed on: decoder configurations that are missing or damaged, NAL
//! units and AAC in another framing, keyframes that are not marked as such. What no decoder could decode is withheld.
//! Pure. H.264 and AAC only: other frames pass.
//!
//! Contract: each frame goes through [`Repair::handle_frame`], then [`Repair::poll_frame`] until it returns `None`. Sound
//! frames are returned unchanged, at once, and without being copied.

mod audio;
#[doc(hidden)]
pub mod fuzz;
mod video;

use std::collections::VecDeque;

use crate::{Codec, Frame, Irregularity, IrregularityCounts, Track};
use audio::AudioRepair;
use video::VideoRepair;

/// The state of one publish.
#[derive(Debug, Default)]
pub struct Repair {
    video: VideoRepair,
    audio: AudioRepair,
    repaired: Repaired,
    has_warned: [bool; 2],
}

/// What the repair of a track produces.
#[derive(Debug, Default)]
struct Repaired {
    frames: VecDeque<Frame>,
    counts: IrregularityCounts,
    is_irregular: bool,
}

impl Repaired {
    fn note(&mut self, kind: Irregularity) {
        self.note_several(kind, 1);
    }

    fn note_several(&mut self, kind: Irregularity, times: usize) {
        self.counts.add(kind, times as u64);
        self.is_irregular |= times > 0;
    }
}

impl Repair {
    /// For a publish that is observed from its middle: its configurations are unknown, and its frames pass unchanged until
    /// the next one.
    #[must_use]
    pub fn resumed() -> Self {
        let (video, audio) = (VideoRepair::resumed(), AudioRepair::resumed());
        Self { video, audio, ..Self::default() }
    }

    /// Takes a frame and returns the first frame to pass on, if there is one.
    pub fn handle_frame(&mut self, frame: Frame) -> Option<Frame> {
        let passed = match frame.codec {
            Codec::H264 => self.video.handle_frame(frame, &mut self.repaired),
            Codec::Aac => self.audio.handle_frame(frame, &mut self.repaired),
            Codec::Hevc | Codec::Av1 | Codec::Vp9 | Codec::Mp3(_) | Codec::Opus | Codec::Amf0 => {
                Some(frame)
            }
        };
        if passed.is_some() { passed } else { self.poll_frame() }
    }

    /// The next frame to pass on.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.repaired.frames.pop_front()
    }

    /// What was irregular since the previous call.
    pub fn poll_irregularities(&mut self) -> Option<IrregularityCounts> {
        let is_irregular = std::mem::take(&mut self.repaired.is_irregular);
        is_irregular.then(|| std::mem::take(&mut self.repaired.counts))
    }

    /// A track of which frames were withheld because it has no usable configuration; each track once.
    pub fn poll_withheld(&mut self) -> Option<Track> {
        for (track, withheld) in
            [(Track::Video, self.video.has_withheld()), (Track::Audio, self.audio.has_withheld())]
        {
            let has_warned = &mut self.has_warned[usize::from(track == Track::Audio)];
            if withheld && !std::mem::replace(has_warned, true) {
                return Some(track);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
